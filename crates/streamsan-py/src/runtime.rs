//! What the runtime's Python half takes from its Rust half: the planner and the stream graph.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use streamsan_runtime::{Budget, Machine, StreamGraph, WELL_FILLED, Work, ideal_of_stages, plan};

/// Three slots keep three stages busy, the fourth hides the hand-over between them, whatever they take.
const USUAL_SLOTS: u64 = 4;

/// From the end of a stage to the start of the next one, in seconds (measured on an H200).
const HANDOVER: f64 = 3e-6;

/// Before the first item has run, the rates of an H200 stand for those of the machine: what is planned then, how
/// many items travel together, depends on sizes only.
const ASSUMED: Machine =
    Machine { upload: 55.3e9, download: 55.3e9, both: 101.2e9, handover: HANDOVER, issue: 0.0 };

/// Declared streams: names, each with the names of the streams that it comes after.
type Declared = Vec<(String, Vec<String>)>;

fn graph(streams: &Declared) -> PyResult<StreamGraph> {
    let declared =
        streams.iter().map(|(name, after)| (name.as_str(), after.iter().map(String::as_str).collect()));
    StreamGraph::new(declared).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The names of a stream graph, each after those it depends on; `ValueError` if it is none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn order_streams(streams: Declared) -> PyResult<Vec<String>> {
    Ok(graph(&streams)?.order().map(str::to_owned).collect())
}

/// The picture of a stream graph.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn draw_stream_graph(streams: Declared) -> PyResult<String> {
    Ok(graph(&streams)?.to_svg())
}

/// A stream graph in the DOT language.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn write_stream_graph(streams: Declared) -> PyResult<String> {
    Ok(graph(&streams)?.to_dot())
}

/// Slots, items in each, and the bytes from which on a load of items is well filled.
///
/// `items` is `None` where nobody knows how many come; `ValueError` if the memory does not suffice.
#[pyfunction]
#[pyo3(signature = (item_bytes, memory, items, slots))]
pub fn plan_pipeline(
    item_bytes: u64,
    memory: u64,
    items: Option<u64>,
    slots: Option<usize>,
) -> PyResult<(usize, u64, u64)> {
    let work = Work {
        items: items.unwrap_or(u64::MAX),
        upload_bytes: item_bytes,
        download_bytes: item_bytes,
        slot_bytes: item_bytes,
        compute: 0.0,
    };
    let fit = memory / item_bytes.max(1);
    let usual = USUAL_SLOTS.min(fit).min(work.items).max(1);
    let budget = Budget { device: memory, slots: slots.or_else(|| usize::try_from(usual).ok()) };
    let planned = plan(&ASSUMED, &work, &budget).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((planned.slots, planned.pack, WELL_FILLED))
}

/// Seconds that a pipeline needs at best, and what limits it, for stages with these times an item.
#[pyfunction]
pub fn ideal_pipeline(upload: f64, function: f64, download: f64, items: u64, slots: usize) -> (f64, String) {
    let (seconds, bound) = ideal_of_stages([upload, function, download], HANDOVER, items, slots);
    (seconds, bound.to_string())
}
