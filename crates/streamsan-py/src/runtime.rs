//! What the runtime's Python half takes from its Rust half.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use streamsan_runtime::StreamGraph;

/// The picture of a stream graph: names, each with the names of the streams that it comes after.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn draw_stream_graph(streams: Vec<(String, Vec<String>)>) -> PyResult<String> {
    let declared =
        streams.iter().map(|(name, after)| (name.as_str(), after.iter().map(String::as_str).collect()));
    let graph = StreamGraph::new(declared).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(graph.to_svg())
}
