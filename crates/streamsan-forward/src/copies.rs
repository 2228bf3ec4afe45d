//! Copies: recorded with both ends, and with the wait if the call holds the host.

use std::ffi::c_int;

use streamsan_record::{CopyCall, CopyLayout, Recorder, copy_kind, copy_label, holds_host};
use streamsan_trace::OpKind;

use crate::callers::exported;
use crate::code::Code;
use crate::pointers::kind_of;
use crate::real::real;
use crate::recording::{ask, begin};
use crate::streams::{Stream, stream};

/// One copy as a call asks for it.
struct Request {
    destination: u64,
    source: u64,
    layout: CopyLayout,
    stream: u64,
    asynchronous: bool,
}

impl Request {
    fn linear(destination: u64, source: u64, size: usize, stream: u64, asynchronous: bool) -> Self {
        let layout = CopyLayout::Linear { bytes: size as u64 };
        Self { destination, source, layout, stream, asynchronous }
    }

    fn is_empty(&self) -> bool {
        match self.layout {
            CopyLayout::Linear { bytes } => bytes == 0,
            CopyLayout::Pitched { width, height, .. } => width == 0 || height == 0,
        }
    }
}

/// What was found out about a copy before it is made.
struct Planned {
    stream: Stream,
    kind: OpKind,
    blocking: bool,
}

fn plan(recorder: &Recorder, request: &Request) -> Planned {
    let (to, from) = (kind_of(recorder, request.destination), kind_of(recorder, request.source));
    let kind = copy_kind(to, from);
    let blocking = holds_host(kind, to, from, request.asynchronous);
    let stream = stream(recorder, request.stream);
    if blocking {
        recorder.blocking_operation_begin(stream.handle, stream.device);
    }
    Planned { stream, kind, blocking }
}

/// Makes a copy and tells of it.
fn copied(request: &Request, call: impl FnOnce() -> Code) -> Code {
    begin();
    if request.is_empty() {
        return call();
    }
    let planned = ask(|recorder| plan(recorder, request));
    let code = call();
    let Some(Planned { stream, kind, blocking }) = planned else { return code };
    let report = |recorder: &'static Recorder| {
        recorder.copy(&CopyCall {
            stream: stream.handle,
            device: stream.device,
            destination: request.destination,
            source: request.source,
            layout: request.layout,
            kind,
            blocking,
            label: copy_label(kind),
        });
    };
    if blocking { code.then_or_give_up(report) } else { code.then(report) }
}

extern "C" fn cudaMemcpy(to: u64, from: u64, size: usize, kind: c_int) -> Code {
    copied(
        &Request::linear(to, from, size, 0, false),
        || real!(cudaMemcpy(to: u64, from: u64, size: usize, kind: c_int)),
    )
}

extern "C" fn cudaMemcpyAsync(to: u64, from: u64, size: usize, kind: c_int, stream: u64) -> Code {
    copied(
        &Request::linear(to, from, size, stream, true),
        || real!(cudaMemcpyAsync(to: u64, from: u64, size: usize, kind: c_int, stream: u64)),
    )
}

extern "C" fn cudaMemcpyPeer(to: u64, to_device: c_int, from: u64, from_device: c_int, size: usize) -> Code {
    copied(
        &Request::linear(to, from, size, 0, false),
        || real!(cudaMemcpyPeer(to: u64, to_device: c_int, from: u64, from_device: c_int, size: usize)),
    )
}

extern "C" fn cudaMemcpyPeerAsync(
    to: u64,
    to_device: c_int,
    from: u64,
    from_device: c_int,
    size: usize,
    stream: u64,
) -> Code {
    copied(&Request::linear(to, from, size, stream, true), || {
        real!(cudaMemcpyPeerAsync(
            to: u64,
            to_device: c_int,
            from: u64,
            from_device: c_int,
            size: usize,
            stream: u64
        ))
    })
}

fn pitched(ends: [(u64, usize); 2], width: usize, height: usize, stream: u64, asynchronous: bool) -> Request {
    let [(destination, destination_pitch), (source, source_pitch)] = ends;
    let layout = CopyLayout::Pitched {
        width: width as u64,
        height: height as u64,
        destination_pitch: destination_pitch as u64,
        source_pitch: source_pitch as u64,
    };
    Request { destination, source, layout, stream, asynchronous }
}

extern "C" fn cudaMemcpy2D(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Code {
    copied(&pitched([(to, to_pitch), (from, from_pitch)], width, height, 0, false), || {
        real!(cudaMemcpy2D(
            to: u64,
            to_pitch: usize,
            from: u64,
            from_pitch: usize,
            width: usize,
            height: usize,
            kind: c_int
        ))
    })
}

extern "C" fn cudaMemcpy2DAsync(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: u64,
) -> Code {
    copied(&pitched([(to, to_pitch), (from, from_pitch)], width, height, stream, true), || {
        real!(cudaMemcpy2DAsync(
            to: u64,
            to_pitch: usize,
            from: u64,
            from_pitch: usize,
            width: usize,
            height: usize,
            kind: c_int,
            stream: u64
        ))
    })
}

exported! {
    cudaMemcpy
    cudaMemcpyAsync
    cudaMemcpyPeer
    cudaMemcpyPeerAsync
    cudaMemcpy2D
    cudaMemcpy2DAsync
}
