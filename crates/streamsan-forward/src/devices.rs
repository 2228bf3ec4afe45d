//! The current device, and waits for all of one.

use std::ffi::c_int;

use streamsan_record::WaitOn;
use streamsan_record::callers::library_at;
use streamsan_trace::HostWaitHow;

use crate::callers::with_caller;
use crate::code::Code;
use crate::real::real;
use crate::recording::{begin, report};

/// The calling thread's current device.
pub fn current_device() -> u32 {
    let mut number: c_int = 0;
    let place = &raw mut number;
    let code = real!(cudaGetDevice(place: *mut c_int));
    if code.ok() { u32::try_from(number).unwrap_or(0) } else { 0 }
}

extern "C" fn synchronize(caller: usize) -> Code {
    begin();
    let target = WaitOn::Device(current_device());
    report(|recorder| recorder.host_wait_begin(target));
    real!(cudaDeviceSynchronize()).then_or_give_up(|recorder| {
        recorder.host_waited(target, HostWaitHow::Synchronize, library_at(caller));
    })
}
with_caller!(cudaDeviceSynchronize, "rdi", synchronize);
