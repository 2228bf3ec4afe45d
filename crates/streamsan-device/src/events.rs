//! Events: records, waits, queries.

use std::ffi::{c_float, c_uint};

use streamsan_record::{Library, WaitOn, callers::library_at, with_caller};
use streamsan_trace::HostWaitHow;

use crate::call::{ask_recorder, call, give, record};
use crate::capture::{self, Captured, unsafe_call};
use crate::delays;
use crate::devices::current_device;
use crate::errors::{Answer, Code};
use crate::graphs::Work;
use crate::readiness::Record;
use crate::streams::{State, Stream, with_state, with_stream};

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
    /// Its last record, if that was not captured.
    last: Option<Record>,
    /// Its last record, if that was captured.
    captured: Option<Captured>,
}

impl EventState {
    /// Refuses an event that was last recorded in a capture; the capture goes on.
    fn check_outside(state: &State, event: u64) -> Answer {
        let known = state.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        if known.captured.is_some() { Err(Code::CAPTURED_EVENT) } else { Ok(()) }
    }

    /// Its last record; an error if that was captured, which makes the capture invalid.
    fn last_of(state: &mut State, event: u64) -> Result<Option<&mut Record>, Code> {
        let known = state.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        if let Some(Captured { capture, .. }) = known.captured {
            return Err(state.refuse_captured_event(capture));
        }
        Ok(state.events.get_mut(&event).and_then(|known| known.last.as_mut()))
    }
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
            state.events.insert(handle, EventState { device, flags, last: None, captured: None });
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
    let (stream, recorded) = with_stream(stream, |state, stream| state.record_event(event, stream))?;
    recorded?;
    record(|recorder| recorder.event_recorded(event, stream.handle, stream.device, library_at(caller)));
    Ok(())
}

impl State {
    fn record_event(&mut self, event: u64, stream: Stream) -> Answer {
        // An event belongs to the device on which it was made.
        if self.events.get(&event).is_none_or(|known| known.device != stream.device) {
            return Err(Code::INVALID_RESOURCE_HANDLE);
        }
        let captured = self.record_captured(stream)?;
        let last = if captured.is_none() {
            let chain = self.chain(stream);
            Some(self.readiness.record(chain))
        } else {
            None
        };
        if let Some(known) = self.events.get_mut(&event) {
            (known.last, known.captured) = (last, captured);
        }
        Ok(())
    }
}

/// A graph that runs in a stream has come to where it records an event.
pub fn record_now(event: u64, stream: Stream) -> Answer {
    with_state(|state| {
        let chain = state.chain(stream);
        let record = state.readiness.record(chain);
        if let Some(known) = state.events.get_mut(&event) {
            (known.last, known.captured) = (Some(record), None);
        }
        Ok(())
    })
}

extern "C" fn record_plainly(event: u64, stream: u64, caller: usize) -> Code {
    call(|| record_event(event, stream, caller))
}
with_caller!(cudaEventRecord, "rdx", record_plainly);

/// `cudaEventRecordExternal`, `cudaEventWaitExternal`: the captured call is a node, and does what it does at each
/// launch.
const EXTERNAL: c_uint = 1;

fn check_flags(flags: c_uint) -> Answer {
    if flags & !EXTERNAL == 0 { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// Makes an external record or wait a node. Outside of a capture there is no such thing.
fn capture_external(event: u64, stream: u64, work: Work, name: &str) -> Answer {
    if !with_state(|state| Ok(state.events.contains_key(&event)))? {
        return Err(Code::INVALID_RESOURCE_HANDLE);
    }
    capture::add(stream, || work)?.ok_or(Code::ILLEGAL_STATE)?;
    // The order that it makes at each launch is not in the record.
    record(|recorder| recorder.unsupported(name));
    Ok(())
}

extern "C" fn record_with_flags(event: u64, stream: u64, flags: c_uint, caller: usize) -> Code {
    call(|| {
        check_flags(flags)?;
        if flags & EXTERNAL != 0 {
            return capture_external(event, stream, Work::Record(event), "cudaEventRecordExternal");
        }
        record_event(event, stream, caller)
    })
}
with_caller!(cudaEventRecordWithFlags, "rcx", record_with_flags);

extern "C" fn wait(stream: u64, event: u64, flags: c_uint, caller: usize) -> Code {
    call(|| {
        check_flags(flags)?;
        if flags & EXTERNAL != 0 {
            return capture_external(event, stream, Work::Wait(event), "cudaEventWaitExternal");
        }
        let (stream, waited) = with_stream(stream, |state, stream| state.wait_for_event(event, stream))?;
        waited?;
        record(|recorder| recorder.event_waited(stream.handle, stream.device, event, library_at(caller)));
        Ok(())
    })
}
with_caller!(cudaStreamWaitEvent, "rcx", wait);

impl State {
    fn wait_for_event(&mut self, event: u64, stream: Stream) -> Answer {
        let known = self.events.get(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        let (last, captured) = (known.last.clone(), known.captured.clone());
        if self.wait_captured(stream, captured.as_ref(), last.is_some())? {
            return Ok(());
        }
        self.wait_outside(stream, last);
        Ok(())
    }

    /// A stream waits for an event's last record, outside of any capture.
    fn wait_outside(&mut self, stream: Stream, last: Option<Record>) {
        if let Some(last) = last {
            let chain = self.chain(stream);
            self.readiness.wait(chain, &last);
        }
    }
}

/// A graph that is launched in a stream waits for an event.
pub fn wait_now(event: u64, stream: Stream) -> Answer {
    with_state(|state| {
        let last = state.events.get(&event).and_then(|known| known.last.clone());
        state.wait_outside(stream, last);
        Ok(())
    })
}

/// The host knows the last record of an event. Fails if there is no such event.
fn learn(event: u64) -> Answer {
    with_state(|state| {
        if let Some(last) = EventState::last_of(state, event)?.map(|last| last.clone()) {
            state.readiness.host_waited_record(&last);
        }
        Ok(())
    })?;
    delays::before_host()
}

extern "C" fn synchronize(event: u64, caller: usize) -> Code {
    call(|| {
        with_state(|state| EventState::last_of(state, event).map(|_| ()))?;
        unsafe_call()?;
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
        with_state(|state| EventState::last_of(state, event).map(|_| ()))?;
        unsafe_call()?;
        let allocators = is_allocators(event, caller);
        let watched = ask_recorder(|recorder| recorder.is_watched_end(event)).unwrap_or(false);
        let (ready, asked) = with_state(|state| {
            let known = state.events.get_mut(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
            Ok(match &mut known.last {
                Some(last) => {
                    let ready = if watched {
                        state.readiness.poll_watched(last)
                    } else {
                        allocators || state.readiness.poll_record(last)
                    };
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
        for event in [start, end] {
            with_state(|state| EventState::check_outside(state, event))?;
        }
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
