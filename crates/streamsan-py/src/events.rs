//! Reading a trace as plain Python values, for tests and for people.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use streamsan_trace::{AccessRange, Event, EventKind, MemorySpace, SiteId, Subject, Trace, WaitTarget, file};

use crate::errors::TraceError;

/// The events of a trace, as dictionaries.
///
/// Each has `number`, `thread`, `stack` (file, line, function, whether user code; innermost first) and `kind`;
/// the other keys depend on the kind and are those of `streamsan_trace::EventKind`.
/// Raises `TraceError` if the file cannot be read.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn read_events(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyList>> {
    let trace =
        file::read(&path).map_err(|error| TraceError::new_err(format!("{}: {error}", path.display())))?;
    let events = PyList::empty(py);
    for event in &trace.events {
        events.append(event_dict(py, &trace, event)?)?;
    }
    Ok(events)
}

fn event_dict<'py>(py: Python<'py>, trace: &Trace, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", event.number.0)?;
    dict.set_item("thread", event.thread.0)?;
    dict.set_item("stack", stack(py, trace, event.site)?)?;
    let tables = &trace.tables;
    let kind = match event.kind {
        EventKind::StreamCreate { stream, device, blocking, legacy_default, priority } => {
            dict.set_item("stream", stream.0)?;
            dict.set_item("device", device.0)?;
            dict.set_item("blocking", blocking)?;
            dict.set_item("legacy_default", legacy_default)?;
            dict.set_item("priority", priority)?;
            "stream_create"
        }
        EventKind::StreamDestroy { stream } => {
            dict.set_item("stream", stream.0)?;
            "stream_destroy"
        }
        EventKind::EventRecord { event, stream } => {
            dict.set_item("event", event.0)?;
            dict.set_item("stream", stream.0)?;
            "event_record"
        }
        EventKind::EventWait { event, stream } => {
            dict.set_item("event", event.0)?;
            dict.set_item("stream", stream.0)?;
            "event_wait"
        }
        EventKind::EventDestroy { event } => {
            dict.set_item("event", event.0)?;
            "event_destroy"
        }
        EventKind::HostWaitBegin { target } => {
            set_target(&dict, target)?;
            "host_wait_begin"
        }
        EventKind::HostWait { target, observer, how } => {
            set_target(&dict, target)?;
            dict.set_item("observer", format!("{observer:?}"))?;
            dict.set_item("how", format!("{how:?}"))?;
            "host_wait"
        }
        EventKind::Op { stream, label, kind, forward_site, accesses } => {
            dict.set_item("stream", stream.0)?;
            dict.set_item("label", tables.string(label))?;
            dict.set_item("op", format!("{kind:?}"))?;
            dict.set_item("forward_stack", stack(py, trace, forward_site)?)?;
            dict.set_item("accesses", access_dicts(py, trace, accesses)?)?;
            "op"
        }
        EventKind::Alloc { block, stream, space, address, size } => {
            dict.set_item("block", block.0)?;
            dict.set_item("stream", stream.0)?;
            dict.set_item("space", space_name(space))?;
            dict.set_item("address", address)?;
            dict.set_item("size", size)?;
            "alloc"
        }
        EventKind::BlockSize { block, size } => {
            dict.set_item("block", block.0)?;
            dict.set_item("size", size)?;
            "block_size"
        }
        EventKind::FreeRequest { block } => {
            dict.set_item("block", block.0)?;
            "free_request"
        }
        EventKind::FreeGuard { block, stream } => {
            dict.set_item("block", block.0)?;
            dict.set_item("stream", stream.0)?;
            "free_guard"
        }
        EventKind::FreeDone { block } => {
            dict.set_item("block", block.0)?;
            "free_done"
        }
        EventKind::HostAccess { label, accesses } => {
            dict.set_item("label", tables.string(label))?;
            dict.set_item("accesses", access_dicts(py, trace, accesses)?)?;
            "host_access"
        }
        EventKind::Escape { block, label } => {
            dict.set_item("block", block.0)?;
            dict.set_item("label", tables.string(label))?;
            "escape"
        }
        EventKind::RecordStream { block, stream } => {
            dict.set_item("block", block.0)?;
            dict.set_item("stream", stream.0)?;
            "record_stream"
        }
        EventKind::StreamObject { stream, object, sharers } => {
            dict.set_item("stream", stream.0)?;
            dict.set_item("object", object)?;
            dict.set_item("sharers", sharers)?;
            "stream_object"
        }
        EventKind::Name { subject, name, by_user } => {
            match subject {
                Subject::Stream(stream) => dict.set_item("stream", stream.0)?,
                Subject::Block(block) => dict.set_item("block", block.0)?,
            }
            dict.set_item("name", tables.string(name))?;
            dict.set_item("by_user", by_user)?;
            "name"
        }
        EventKind::RangeBegin { kind, label } => {
            dict.set_item("range", format!("{kind:?}"))?;
            dict.set_item("label", tables.string(label))?;
            "range_begin"
        }
        EventKind::RangeEnd { kind } => {
            dict.set_item("range", format!("{kind:?}"))?;
            "range_end"
        }
        EventKind::CaptureBegin { graph, stream } => {
            dict.set_item("graph", graph.0)?;
            dict.set_item("stream", stream.0)?;
            "capture_begin"
        }
        EventKind::CaptureEnd { graph, stream, valid } => {
            dict.set_item("graph", graph.0)?;
            dict.set_item("stream", stream.0)?;
            dict.set_item("valid", valid)?;
            "capture_end"
        }
        EventKind::GraphInstantiate { graph, executable } => {
            dict.set_item("graph", graph.0)?;
            dict.set_item("executable", executable.0)?;
            "graph_instantiate"
        }
        EventKind::GraphLaunch { executable, stream, label } => {
            dict.set_item("executable", executable.0)?;
            dict.set_item("stream", stream.0)?;
            dict.set_item("label", tables.string(label))?;
            "graph_launch"
        }
        EventKind::GraphDestroy { graph } => {
            dict.set_item("graph", graph.0)?;
            "graph_destroy"
        }
        EventKind::ExecutableDestroy { executable } => {
            dict.set_item("executable", executable.0)?;
            "executable_destroy"
        }
        EventKind::GraphMemory { block } => {
            dict.set_item("block", block.0)?;
            "graph_memory"
        }
        EventKind::Gap { reason, detail } => {
            dict.set_item("reason", format!("{reason:?}"))?;
            dict.set_item("detail", tables.string(detail))?;
            "gap"
        }
    };
    dict.set_item("kind", kind)?;
    Ok(dict)
}

fn set_target(dict: &Bound<'_, PyDict>, target: WaitTarget) -> PyResult<()> {
    match target {
        WaitTarget::Event(event) => dict.set_item("event", event.0),
        WaitTarget::Stream(stream) => dict.set_item("stream", stream.0),
        WaitTarget::Device(device) => dict.set_item("device", device.0),
    }
}

fn space_name(space: MemorySpace) -> String {
    match space {
        MemorySpace::Cached(device) => format!("cached {}", device.0),
        MemorySpace::Device(device) => format!("device {}", device.0),
        MemorySpace::Pinned => "pinned".to_owned(),
        MemorySpace::Pageable => "pageable".to_owned(),
    }
}

fn stack<'py>(py: Python<'py>, trace: &Trace, site: SiteId) -> PyResult<Bound<'py, PyList>> {
    let frames = PyList::empty(py);
    for (id, frame) in trace.tables.stack(site) {
        let dict = PyDict::new(py);
        dict.set_item("frame", id.0)?;
        dict.set_item("file", trace.tables.string(frame.file))?;
        dict.set_item("line", frame.line)?;
        dict.set_item("end_line", frame.end_line)?;
        dict.set_item("column", frame.column)?;
        dict.set_item("end_column", frame.end_column)?;
        dict.set_item("function", trace.tables.string(frame.function))?;
        dict.set_item("user", frame.origin == streamsan_trace::FrameOrigin::User)?;
        let visible = PyDict::new(py);
        for entry in trace.tables.visible_streams.iter().filter(|entry| entry.frame == id) {
            visible.set_item(trace.tables.string(entry.expression), entry.stream.0)?;
        }
        dict.set_item("streams", visible)?;
        frames.append(dict)?;
    }
    Ok(frames)
}

fn access_dicts<'py>(py: Python<'py>, trace: &Trace, range: AccessRange) -> PyResult<Bound<'py, PyList>> {
    let accesses = PyList::empty(py);
    for access in trace.accesses(range) {
        let dict = PyDict::new(py);
        dict.set_item("block", access.block.0)?;
        dict.set_item("mode", format!("{:?}", access.mode).to_lowercase())?;
        dict.set_item("offset", access.offset)?;
        dict.set_item("length", access.length)?;
        dict.set_item("shape", access.shape.0)?;
        dict.set_item("argument", trace.tables.string(access.argument))?;
        accesses.append(dict)?;
    }
    Ok(accesses)
}
