//! Events: records, waits, queries.

use std::ffi::{c_float, c_uint};

use streamsan_record::{Library, WaitOn, callers::library_at, with_caller};
use streamsan_trace::HostWaitHow;

use crate::call::{ask_recorder, call, give, record};
use crate::delays;
use crate::devices::current_device;
use crate::errors::{Answer, Code};
use crate::readiness::Record;
use crate::streams::{with_state, with_stream};

/// `cudaEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;
/// `cudaEventInterprocess`.
const INTERPROCESS: u32 = 4;
/// All event flags.
const ALL_FLAGS: u32 = 7;

/// A created event.
#[derive(Debug)]
pub struct EventState {
    device: u32,
    flags: u32,
    /// Its last record.
    last: Option<Record>,
}

unsafe fn create(place: *mut u64, flags: u32) -> Code {
    call(|| {
        if place.is_null() || flags & !ALL_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            record(|recorder| recorder.unsupported("cudaEventCreateWithFlags(cudaEventInterprocess)"));
            return Err(Code::NOT_SUPPORTED);
        }
        let device = current_device();
        let handle = with_state(|state| {
            let handle = state.new_handle();
            state.events.insert(handle, EventState { device, flags, last: None });
            Ok(handle)
        })?;
        record(|recorder| recorder.event_created(handle));
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaEventCreate(event: *mut u64) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { create(event, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaEventCreateWithFlags(event: *mut u64, flags: c_uint) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { create(event, flags) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventDestroy(event: u64) -> Code {
    call(|| {
        if !with_state(|state| Ok(state.events.contains_key(&event)))? {
            return Err(Code::INVALID_RESOURCE_HANDLE);
        }
        record(|recorder| recorder.event_destroyed(event));
        with_state(|state| state.events.remove(&event).map(|_| ()).ok_or(Code::INVALID_RESOURCE_HANDLE))
    })
}

fn record_event(event: u64, stream: u64, caller: usize) -> Answer {
    let (stream, recorded) = with_stream(stream, |state, stream| {
        // An event belongs to the device on which it was made.
        if state.events.get(&event).is_none_or(|known| known.device != stream.device) {
            return Err(Code::INVALID_RESOURCE_HANDLE);
        }
        let chain = state.chain(stream);
        let record = state.readiness.record(chain);
        if let Some(known) = state.events.get_mut(&event) {
            known.last = Some(record);
        }
        Ok(())
    })?;
    recorded?;
    record(|recorder| recorder.event_recorded(event, stream.handle, stream.device, library_at(caller)));
    Ok(())
}

extern "C" fn record_plainly(event: u64, stream: u64, caller: usize) -> Code {
    call(|| record_event(event, stream, caller))
}
with_caller!(cudaEventRecord, "rdx", record_plainly);

/// The only flag of records and waits, "external", is for captured work.
fn check_flags(flags: c_uint) -> Answer {
    match flags {
        0 => Ok(()),
        1 => Err(Code::ILLEGAL_STATE),
        _ => Err(Code::INVALID_VALUE),
    }
}

extern "C" fn record_with_flags(event: u64, stream: u64, flags: c_uint, caller: usize) -> Code {
    call(|| {
        check_flags(flags)?;
        record_event(event, stream, caller)
    })
}
with_caller!(cudaEventRecordWithFlags, "rcx", record_with_flags);

extern "C" fn wait(stream: u64, event: u64, flags: c_uint, caller: usize) -> Code {
    call(|| {
        check_flags(flags)?;
        let (stream, known) = with_stream(stream, |state, stream| {
            let known = state.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
            if let Some(last) = known.last.clone() {
                let chain = state.chain(stream);
                state.readiness.wait(chain, &last);
            }
            Ok(())
        })?;
        known?;
        record(|recorder| recorder.event_waited(stream.handle, stream.device, event, library_at(caller)));
        Ok(())
    })
}
with_caller!(cudaStreamWaitEvent, "rcx", wait);

/// The host knows the last record of an event. Fails if there is no such event.
fn learn(event: u64) -> Answer {
    with_state(|state| {
        let known = state.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        if let Some(last) = &known.last {
            state.readiness.host_waited_record(last);
        }
        Ok(())
    })?;
    delays::before_host()
}

extern "C" fn synchronize(event: u64, caller: usize) -> Code {
    call(|| {
        if !with_state(|state| Ok(state.events.contains_key(&event)))? {
            return Err(Code::INVALID_RESOURCE_HANDLE);
        }
        record(|recorder| recorder.host_wait_begin(WaitOn::Event(event)));
        learn(event)?;
        record(|recorder| {
            recorder.host_waited(WaitOn::Event(event), HostWaitHow::Synchronize, library_at(caller));
        });
        Ok(())
    })
}
with_caller!(cudaEventSynchronize, "rsi", synchronize);

/// Whether one of torch's allocators asks for an event of its own. Its polls succeed at once: that gives the
/// earliest reuse of memory that can happen on a GPU.
fn is_allocators(event: u64, caller: Library) -> bool {
    matches!(caller, Library::C10Cuda | Library::TorchCuda)
        && ask_recorder(|recorder| recorder.event_is_allocators(event)).unwrap_or(true)
}

extern "C" fn query(event: u64, caller: usize) -> Code {
    call(|| {
        let caller = library_at(caller);
        let allocators = is_allocators(event, caller);
        let (ready, asked) = with_state(|state| {
            let known = state.events.get_mut(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
            Ok(match &mut known.last {
                Some(last) => {
                    let ready = allocators || state.readiness.poll_record(last);
                    (ready, (ready && delays::is_on()).then(|| last.clone()))
                }
                None => (true, None),
            })
        })?;
        if !ready {
            return Err(Code::NOT_READY);
        }
        if let Some(asked) = asked {
            delays::before_record(&asked)?;
        }
        record(|recorder| recorder.host_waited(WaitOn::Event(event), HostWaitHow::Query, caller));
        Ok(())
    })
}
with_caller!(cudaEventQuery, "rsi", query);

/// Shortest time between two events, in milliseconds: CUDA's resolution is about half a microsecond.
const SHORTEST: f32 = 0.000_5;

unsafe extern "C" fn elapsed(milliseconds: *mut c_float, start: u64, end: u64, caller: usize) -> Code {
    call(|| {
        let (from, to) = with_state(|state| {
            let at = |event: u64| {
                let known = state.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
                let last = known.last.as_ref().ok_or(Code::INVALID_RESOURCE_HANDLE)?;
                if known.flags & DISABLE_TIMING != 0 {
                    return Err(Code::INVALID_RESOURCE_HANDLE);
                }
                Ok((last.at, known.device))
            };
            let ((from, device), (to, other)) = (at(start)?, at(end)?);
            if device == other { Ok((from, to)) } else { Err(Code::INVALID_RESOURCE_HANDLE) }
        })?;
        let time = match to.checked_duration_since(from) {
            Some(_) if start == end => 0.0,
            Some(time) => (time.as_secs_f64() * 1e3).max(f64::from(SHORTEST)),
            None => -from.duration_since(to).as_secs_f64() * 1e3,
        };
        // SAFETY: the caller gives a place for the time.
        unsafe { give(milliseconds, time as f32)? };
        let caller = library_at(caller);
        for event in [start, end] {
            learn(event)?;
            record(|recorder| recorder.host_waited(WaitOn::Event(event), HostWaitHow::Elapsed, caller));
        }
        Ok(())
    })
}
with_caller!(cudaEventElapsedTime, "rcx", elapsed);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::own_stream;

    fn event(flags: u32) -> u64 {
        let mut handle = 0;
        // SAFETY: a place for the handle.
        assert_eq!(unsafe { create(&raw mut handle, flags) }, Code::SUCCESS);
        handle
    }

    #[test]
    fn an_event_never_recorded_is_ready_and_waiting_for_it_does_nothing() {
        let event = event(0);
        assert_eq!(query(event, 0), Code::SUCCESS);
        assert_eq!(synchronize(event, 0), Code::SUCCESS);
        assert_eq!(wait(0, event, 0, 0), Code::SUCCESS);
    }

    #[test]
    fn a_destroyed_event_is_no_handle() {
        let event = event(DISABLE_TIMING);
        assert_eq!(cudaEventDestroy(event), Code::SUCCESS);
        assert_eq!(cudaEventDestroy(event), Code::INVALID_RESOURCE_HANDLE);
        assert_eq!(query(event, 0), Code::INVALID_RESOURCE_HANDLE);
        assert_eq!(record_plainly(event, 0, 0), Code::INVALID_RESOURCE_HANDLE);
        assert_eq!(wait(0, event, 0, 0), Code::INVALID_RESOURCE_HANDLE);
    }

    #[test]
    fn a_synchronize_makes_a_query_succeed() {
        let event = event(0);
        assert_eq!(record_plainly(event, own_stream(), 0), Code::SUCCESS);
        assert_eq!(query(event, 0), Code::NOT_READY);
        assert_eq!(synchronize(event, 0), Code::SUCCESS);
        assert_eq!(query(event, 0), Code::SUCCESS);
    }

    #[test]
    fn time_runs_from_start_to_end_between_timed_records() {
        let (start, end, untimed) = (event(0), event(0), event(DISABLE_TIMING));
        let mut time = 0.0;
        // SAFETY: a place for the time, here and below.
        assert_eq!(unsafe { elapsed(&raw mut time, start, end, 0) }, Code::INVALID_RESOURCE_HANDLE);
        for event in [start, end, untimed] {
            assert_eq!(record_with_flags(event, 2, 0, 0), Code::SUCCESS);
        }
        // SAFETY: as above.
        unsafe {
            assert_eq!(elapsed(&raw mut time, start, end, 0), Code::SUCCESS);
            assert!(time >= SHORTEST);
            assert_eq!(elapsed(&raw mut time, end, start, 0), Code::SUCCESS);
            assert!(time <= 0.0);
            assert_eq!(elapsed(&raw mut time, start, untimed, 0), Code::INVALID_RESOURCE_HANDLE);
        }
    }
}
