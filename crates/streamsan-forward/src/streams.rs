//! Streams: made, waited for, polled; host functions in them.

use std::ffi::{c_int, c_uint, c_void};

use streamsan_record::callers::library_at;
use streamsan_record::{Recorder, WaitOn};
use streamsan_trace::HostWaitHow;

use crate::callers::{exported, with_caller};
use crate::code::Code;
use crate::devices::current_device;
use crate::real::real;
use crate::recording::{begin, report};

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: c_uint = 1;

/// A stream as the recorder wants it: its handle, and the device that counts if the handle is that of a default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub handle: u64,
    pub device: u32,
}

impl Stream {
    pub fn target(self) -> WaitOn {
        WaitOn::Stream(self.handle, self.device)
    }
}

/// The stream behind a call's argument. The recorder is told how it was made, if nobody has told it yet: a stream of the
/// driver's, or of a library with a runtime of its own.
pub fn stream(recorder: &Recorder, handle: u64) -> Stream {
    let stream = Stream { handle, device: current_device() };
    if !recorder.knows_stream(handle) {
        let (mut flags, mut priority): (c_uint, c_int) = (NON_BLOCKING, 0);
        let (flags_place, priority_place) = (&raw mut flags, &raw mut priority);
        let code = real!(cudaStreamGetFlags(handle: u64, flags_place: *mut c_uint));
        if code.ok() {
            let _stays_0 = real!(cudaStreamGetPriority(handle: u64, priority_place: *mut c_int));
        }
        recorder.stream_seen(handle, stream.device, flags & NON_BLOCKING == 0, priority);
    }
    stream
}

/// Tells of a stream that was made.
fn created(code: Code, place: *mut u64, flags: c_uint, priority: c_int) -> Code {
    code.then(|recorder| {
        // SAFETY: the runtime has written the handle there.
        let handle = unsafe { place.read() };
        recorder.stream_created(handle, current_device(), flags & NON_BLOCKING == 0, priority);
    })
}

extern "C" fn cudaStreamCreate(stream: *mut u64) -> Code {
    begin();
    created(real!(cudaStreamCreate(stream: *mut u64)), stream, 0, 0)
}

extern "C" fn cudaStreamCreateWithFlags(stream: *mut u64, flags: c_uint) -> Code {
    begin();
    created(real!(cudaStreamCreateWithFlags(stream: *mut u64, flags: c_uint)), stream, flags, 0)
}

extern "C" fn cudaStreamCreateWithPriority(stream: *mut u64, flags: c_uint, priority: c_int) -> Code {
    begin();
    let code = real!(cudaStreamCreateWithPriority(stream: *mut u64, flags: c_uint, priority: c_int));
    created(code, stream, flags, priority)
}

extern "C" fn cudaStreamDestroy(stream: u64) -> Code {
    begin();
    report(|recorder| recorder.stream_destroyed(stream));
    real!(cudaStreamDestroy(stream: u64))
}

extern "C" fn synchronize(handle: u64, caller: usize) -> Code {
    begin();
    let mut target = WaitOn::Stream(handle, 0);
    report(|recorder| {
        target = stream(recorder, handle).target();
        recorder.host_wait_begin(target);
    });
    real!(cudaStreamSynchronize(handle: u64)).then_or_give_up(|recorder| {
        recorder.host_waited(target, HostWaitHow::Synchronize, library_at(caller));
    })
}
with_caller!(cudaStreamSynchronize, "rsi", synchronize);

extern "C" fn query(handle: u64, caller: usize) -> Code {
    begin();
    real!(cudaStreamQuery(handle: u64)).then(|recorder| {
        let target = stream(recorder, handle).target();
        recorder.host_waited(target, HostWaitHow::Query, library_at(caller));
    })
}
with_caller!(cudaStreamQuery, "rsi", query);

/// Tells of a host function that was put in a stream.
fn host_function(code: Code, handle: u64) -> Code {
    code.then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.host_function(stream.handle, stream.device);
    })
}

extern "C" fn cudaLaunchHostFunc(stream: u64, function: *const c_void, data: *mut c_void) -> Code {
    begin();
    let code = real!(cudaLaunchHostFunc(stream: u64, function: *const c_void, data: *mut c_void));
    host_function(code, stream)
}

extern "C" fn cudaStreamAddCallback(
    stream: u64,
    callback: *const c_void,
    data: *mut c_void,
    flags: c_uint,
) -> Code {
    begin();
    let code = real!(cudaStreamAddCallback(
        stream: u64,
        callback: *const c_void,
        data: *mut c_void,
        flags: c_uint
    ));
    host_function(code, stream)
}

exported! {
    cudaStreamCreate
    cudaStreamCreateWithFlags
    cudaStreamCreateWithPriority
    cudaStreamDestroy
    cudaLaunchHostFunc
    cudaStreamAddCallback
}
