//! Events: records, waits, queries.

use std::ffi::{c_float, c_uint};

use streamsan_record::WaitOn;
use streamsan_record::callers::library_at;
use streamsan_trace::HostWaitHow;

use crate::callers::{exported, with_caller};
use crate::code::Code;
use crate::real::real;
use crate::recording::{begin, report};
use crate::streams::stream;

/// Tells of an event that was made.
fn created(code: Code, place: *mut u64) -> Code {
    code.then(|recorder| {
        // SAFETY: the runtime has written the handle there.
        recorder.event_created(unsafe { place.read() });
    })
}

extern "C" fn cudaEventCreate(event: *mut u64) -> Code {
    begin();
    created(real!(cudaEventCreate(event: *mut u64)), event)
}

extern "C" fn cudaEventCreateWithFlags(event: *mut u64, flags: c_uint) -> Code {
    begin();
    created(real!(cudaEventCreateWithFlags(event: *mut u64, flags: c_uint)), event)
}

extern "C" fn cudaEventDestroy(event: u64) -> Code {
    begin();
    report(|recorder| recorder.event_destroyed(event));
    real!(cudaEventDestroy(event: u64))
}

/// Tells of a record.
fn recorded(code: Code, event: u64, handle: u64, caller: usize) -> Code {
    code.then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.event_recorded(event, stream.handle, stream.device, library_at(caller));
    })
}

extern "C" fn record(event: u64, stream: u64, caller: usize) -> Code {
    begin();
    recorded(real!(cudaEventRecord(event: u64, stream: u64)), event, stream, caller)
}
with_caller!(cudaEventRecord, "rdx", record);

extern "C" fn record_with_flags(event: u64, stream: u64, flags: c_uint, caller: usize) -> Code {
    begin();
    let code = real!(cudaEventRecordWithFlags(event: u64, stream: u64, flags: c_uint));
    recorded(code, event, stream, caller)
}
with_caller!(cudaEventRecordWithFlags, "rcx", record_with_flags);

extern "C" fn wait(handle: u64, event: u64, flags: c_uint, caller: usize) -> Code {
    begin();
    real!(cudaStreamWaitEvent(handle: u64, event: u64, flags: c_uint)).then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.event_waited(stream.handle, stream.device, event, library_at(caller));
    })
}
with_caller!(cudaStreamWaitEvent, "rcx", wait);

extern "C" fn synchronize(event: u64, caller: usize) -> Code {
    begin();
    let target = WaitOn::Event(event);
    report(|recorder| recorder.host_wait_begin(target));
    real!(cudaEventSynchronize(event: u64)).then_or_give_up(|recorder| {
        recorder.host_waited(target, HostWaitHow::Synchronize, library_at(caller));
    })
}
with_caller!(cudaEventSynchronize, "rsi", synchronize);

extern "C" fn query(event: u64, caller: usize) -> Code {
    begin();
    real!(cudaEventQuery(event: u64)).then(|recorder| {
        recorder.host_waited(WaitOn::Event(event), HostWaitHow::Query, library_at(caller));
    })
}
with_caller!(cudaEventQuery, "rsi", query);

/// Tells of a time that was read: both events have happened.
fn elapsed(code: Code, start: u64, end: u64, caller: usize) -> Code {
    code.then(|recorder| {
        let caller = library_at(caller);
        for event in [start, end] {
            recorder.host_waited(WaitOn::Event(event), HostWaitHow::Elapsed, caller);
        }
    })
}

extern "C" fn elapsed_time(place: *mut c_float, start: u64, end: u64, caller: usize) -> Code {
    begin();
    elapsed(real!(cudaEventElapsedTime(place: *mut c_float, start: u64, end: u64)), start, end, caller)
}
with_caller!(cudaEventElapsedTime, "rcx", elapsed_time);

extern "C" fn elapsed_time_v2(place: *mut c_float, start: u64, end: u64, caller: usize) -> Code {
    begin();
    elapsed(real!(cudaEventElapsedTime_v2(place: *mut c_float, start: u64, end: u64)), start, end, caller)
}
with_caller!(cudaEventElapsedTime_v2, "rcx", elapsed_time_v2);

exported! {
    cudaEventCreate
    cudaEventCreateWithFlags
    cudaEventDestroy
}
