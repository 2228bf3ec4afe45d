//! Memsets.

use std::ffi::c_int;

use streamsan_record::{MemsetCall, PointerKind, Recorder};

use crate::callers::exported;
use crate::code::Code;
use crate::pointers::kind_of;
use crate::real::real;
use crate::recording::{ask, begin};
use crate::streams::stream;

/// One memset as a call asks for it.
struct Request {
    address: u64,
    pitch: usize,
    width: usize,
    height: usize,
    stream: u64,
    asynchronous: bool,
}

/// Makes a memset and tells of it.
fn set(request: &Request, call: impl FnOnce() -> Code) -> Code {
    begin();
    if request.width == 0 || request.height == 0 {
        return call();
    }
    let planned = ask(|recorder| {
        let stream = stream(recorder, request.stream);
        // A memset of device memory never holds the host.
        let blocking = !request.asynchronous && kind_of(recorder, request.address) == PointerKind::Pinned;
        if blocking {
            recorder.blocking_operation_begin(stream.handle, stream.device);
        }
        (stream, blocking)
    });
    let code = call();
    let Some((stream, blocking)) = planned else { return code };
    let report = |recorder: &'static Recorder| {
        recorder.memset(&MemsetCall {
            stream: stream.handle,
            device: stream.device,
            address: request.address,
            pitch: request.pitch as u64,
            width: request.width as u64,
            height: request.height as u64,
            blocking,
        });
    };
    if blocking { code.then_or_give_up(report) } else { code.then(report) }
}

fn row(address: u64, width: usize, stream: u64, asynchronous: bool) -> Request {
    Request { address, pitch: width, width, height: 1, stream, asynchronous }
}

extern "C" fn cudaMemset(to: u64, value: c_int, size: usize) -> Code {
    set(&row(to, size, 0, false), || real!(cudaMemset(to: u64, value: c_int, size: usize)))
}

extern "C" fn cudaMemsetAsync(to: u64, value: c_int, size: usize, stream: u64) -> Code {
    set(
        &row(to, size, stream, true),
        || real!(cudaMemsetAsync(to: u64, value: c_int, size: usize, stream: u64)),
    )
}

extern "C" fn cudaMemset2D(to: u64, pitch: usize, value: c_int, width: usize, height: usize) -> Code {
    let request = Request { address: to, pitch, width, height, stream: 0, asynchronous: false };
    set(&request, || real!(cudaMemset2D(to: u64, pitch: usize, value: c_int, width: usize, height: usize)))
}

extern "C" fn cudaMemset2DAsync(
    to: u64,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: u64,
) -> Code {
    let request = Request { address: to, pitch, width, height, stream, asynchronous: true };
    set(&request, || {
        real!(cudaMemset2DAsync(
            to: u64,
            pitch: usize,
            value: c_int,
            width: usize,
            height: usize,
            stream: u64
        ))
    })
}

exported! {
    cudaMemset
    cudaMemsetAsync
    cudaMemset2D
    cudaMemset2DAsync
}
