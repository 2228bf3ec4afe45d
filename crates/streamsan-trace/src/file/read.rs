//! Reads a whole trace into memory.

use std::path::Path;

use super::error::ReadError;
use super::follow::open_file;
use super::reading::Reading;
use super::source::Source;
use crate::{EventKind, Trace};

/// Reads the trace at `path` into memory; [`TraceFile`](super::TraceFile) needs less of it.
///
/// A trace that was cut off, damaged, or not closed is read as far as it can be relied on and gets a
/// [`EventKind::Gap`] at its end that says so.
///
/// # Errors
///
/// If the file cannot be read, is no trace, has another version, or its header is not whole.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    read_from(open_file(path)?)
}

/// Reads a trace from the bytes of its file; like [`read`].
///
/// # Errors
///
/// If the bytes are no trace, have another version, or the header is not whole.
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    read_from(bytes)
}

fn read_from<S: Source>(source: S) -> Result<Trace, ReadError> {
    let mut reading = Reading::open(source)?;
    reading.refresh(true)?;
    let mut trace = Trace::default();
    reading.run(true, |_, event, accesses| {
        if trace.accesses.len() + accesses.len() > u32::MAX as usize {
            return Err("more accesses than fit into memory");
        }
        let mut event = *event;
        if let EventKind::Op { accesses: range, .. } | EventKind::HostAccess { accesses: range, .. } =
            &mut event.kind
        {
            *range = trace.push_accesses(accesses);
        }
        trace.events.push(event);
        Ok(())
    });
    trace.events.extend(reading.gaps());
    trace.header = reading.collector.header;
    trace.tables = reading.collector.tables;
    Ok(trace)
}
