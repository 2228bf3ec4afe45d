//! The calls that begin and end captures, and ask about them.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::call::{call, give, record};
use crate::capture::rules::{exchange, this_thread};
use crate::capture::{Mode, any};
use crate::errors::{Answer, Code};
use crate::streams::{State, Stream, with_state, with_stream};

/// `cudaStreamCaptureStatusActive` and `…Invalidated`.
const ACTIVE: c_int = 1;
const INVALIDATED: c_int = 2;

/// Handles as the caller gives them.
///
/// # Safety
///
/// `start` points to `count` handles, or `count` is 0.
unsafe fn handles(start: *const u64, count: usize) -> Result<Vec<u64>, Code> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if start.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(start, count) }.to_vec())
}

fn begin(stream: u64, mode: c_int, existing: Option<(u64, Vec<u64>)>) -> Answer {
    let mode = Mode::from_number(mode)?;
    let known_before = existing.is_some();
    let (stream, begun) = with_stream(stream, |state, stream| {
        if stream.handle == 0 {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        state.begin_capture(stream, mode, this_thread(), existing)
    })?;
    begun?;
    record(|recorder| {
        recorder.capture_begun(stream.handle, stream.device);
        if known_before {
            // The nodes that the graph had before are not known to be the same graph's.
            recorder.unsupported("cudaStreamBeginCaptureToGraph");
        }
    });
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamBeginCapture(stream: u64, mode: c_int) -> Code {
    call(|| begin(stream, mode, None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamBeginCaptureToGraph(
    stream: u64,
    graph: u64,
    dependencies: *const u64,
    _edges: *const c_void,
    count: usize,
    mode: c_int,
) -> Code {
    call(|| {
        // SAFETY: the caller gives so many handles.
        let after = unsafe { handles(dependencies, count)? };
        begin(stream, mode, Some((graph, after)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamEndCapture(stream: u64, graph: *mut u64) -> Code {
    call(|| {
        // Without a place for the graph the capture ends all the same.
        let (stream, ended) = with_stream(stream, |state, stream| state.end_capture(stream, this_thread()))?;
        let ended = match ended {
            Ok(ended) => ended,
            Err(code) => {
                // SAFETY: null, or the caller's place for the handle.
                unsafe { give_if_asked(graph, 0) };
                return Err(code);
            }
        };
        let made = ended.made.unwrap_or(0);
        record(|recorder| recorder.capture_ended(stream.handle, stream.device, made));
        // SAFETY: as above.
        unsafe { give_if_asked(graph, made) };
        // No lock is held: nodes that go tell the torch layer.
        ended.made.map(|_| ())
    })
}

/// The state of a stream's capture, and its capture's number and graph; 0 if there is none.
fn status_of(state: &State, stream: Stream) -> Result<(c_int, u64, u64), Code> {
    if !any() {
        return Ok((0, 0, 0));
    }
    if stream.handle == 0 && state.blocks_legacy(stream.device).is_some() {
        return Err(Code::CAPTURE_IMPLICIT);
    }
    Ok(match state.captures.of(stream) {
        None => (0, 0, 0),
        Some((number, capture)) if capture.is_valid() => (ACTIVE, number, capture.graph),
        Some(_) => (INVALIDATED, 0, 0),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamIsCapturing(stream: u64, status: *mut c_int) -> Code {
    call(|| {
        let (_, found) = with_stream(stream, |state, stream| status_of(state, stream))?;
        // SAFETY: the caller gives a place for the status.
        unsafe { give(status, found?.0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetCaptureInfo(
    stream: u64,
    status: *mut c_int,
    id: *mut c_ulonglong,
    graph: *mut u64,
    dependencies: *mut *const u64,
    edges: *mut *const c_void,
    count: *mut usize,
) -> Code {
    call(|| {
        if !edges.is_null() && dependencies.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let (_, found) = with_stream(stream, |state, stream| {
            let (status, number, graph) = status_of(state, stream)?;
            let shown = if status == ACTIVE { state.show_tail(stream) } else { None };
            let (start, count) = shown.map_or((std::ptr::null(), 0), |shown| (shown.as_ptr(), shown.len()));
            Ok((status, number, graph, start as usize, count))
        })?;
        let (found, number, made, start, length) = found?;
        // SAFETY: the caller gives a place for the status, and for each of the others or null.
        unsafe {
            give(status, found)?;
            give_if_asked(id, number);
            give_if_asked(graph, made);
            give_if_asked(dependencies, std::ptr::with_exposed_provenance(start));
            // All edges are ordinary ones, which have no data.
            give_if_asked(edges, std::ptr::null());
            give_if_asked(count, length);
        }
        Ok(())
    })
}

/// # Safety
///
/// `place` is null or may be written.
unsafe fn give_if_asked<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { place.write(value) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamUpdateCaptureDependencies(
    stream: u64,
    dependencies: *const u64,
    _edges: *const c_void,
    count: usize,
    flags: c_uint,
) -> Code {
    call(|| {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller gives so many handles.
        let nodes = unsafe { handles(dependencies, count)? };
        with_stream(stream, |state, stream| state.change_tail(stream, nodes, flags == 1))?.1?;
        record(|recorder| recorder.unsupported("cudaStreamUpdateCaptureDependencies"));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) -> Code {
    call(|| {
        // SAFETY: null or the caller's mode.
        let mode = unsafe { mode.as_mut() }.ok_or(Code::INVALID_VALUE)?;
        *mode = exchange(*mode);
        Ok(())
    })
}

/// For the torch layer: 1 if a stream gives nodes to a graph now, 2 if its capture is invalid, else 0.
#[unsafe(no_mangle)]
extern "C" fn streamsan_captures_in(stream: u64, device: u32) -> c_int {
    let found = with_state(|state| status_of(state, Stream { handle: stream, device }));
    found.map_or(0, |(status, ..)| status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capture_mode_is_exchanged() {
        let mut mode = 2;
        // SAFETY: a place for the mode, here and below.
        assert_eq!(unsafe { cudaThreadExchangeStreamCaptureMode(&raw mut mode) }, Code::SUCCESS);
        assert_eq!(mode, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { cudaThreadExchangeStreamCaptureMode(&raw mut mode) }, Code::SUCCESS);
        assert_eq!(mode, 2);
    }
}
