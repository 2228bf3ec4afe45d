//! Streams: handles that are never used twice, flags, priorities, waits.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Mutex;

use streamsan_record::WaitOn;
use streamsan_record::callers::library_at;
use streamsan_record::with_caller;
use streamsan_trace::HostWaitHow;

use crate::call::{call, give, lock, record};
use crate::capture::{self, Captures, unsafe_call};
use crate::delays;
use crate::devices::current_device;
use crate::errors::{Answer, Code};
use crate::events::EventState;
use crate::graphs::work::Argument;
use crate::graphs::{Graphs, Work};
use crate::readiness::{Chain, Readiness, StreamKind};

/// `cudaStreamNonBlocking`.
pub const NON_BLOCKING: u32 = 1;
/// The most urgent priority.
pub const GREATEST_PRIORITY: i32 = -5;

/// Handles of `cudaStreamLegacy` and `cudaStreamPerThread`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// A created stream.
#[derive(Debug)]
pub struct StreamState {
    device: u32,
    flags: u32,
    priority: i32,
    chain: Option<Chain>,
}

/// Streams and events of the process.
#[derive(Debug)]
pub struct State {
    streams: HashMap<u64, StreamState>,
    /// Chains of the legacy default streams, by device.
    legacy: HashMap<u32, Chain>,
    /// Streams behind `cudaStreamPerThread`, by thread and device.
    per_thread: HashMap<(u64, u32), u64>,
    /// Events by handle.
    pub events: HashMap<u64, EventState>,
    /// What has finished.
    pub readiness: Readiness,
    /// Captures under way.
    pub captures: Captures,
    /// Graphs and executables.
    pub graphs: Graphs,
    next_handle: u64,
}

/// A stream that a call names, resolved: handle 0 is the legacy default stream of `device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Its handle.
    pub handle: u64,
    /// Its device.
    pub device: u32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Works on the streams and events. Nothing that is called in here may call back into this library.
pub fn with_state<T>(work: impl FnOnce(&mut State) -> Result<T, Code>) -> Result<T, Code> {
    work(lock(&STATE)?.get_or_insert_with(State::new))
}

/// Works on the streams and events, with what a call's stream argument names.
pub fn with_stream<T>(handle: u64, work: impl FnOnce(&mut State, Stream) -> T) -> Result<(Stream, T), Code> {
    let per_thread = if handle == PER_THREAD { Some(per_thread_stream()?) } else { None };
    with_state(|state| {
        let stream = state.resolve(per_thread.unwrap_or(handle))?;
        Ok((stream, work(state, stream)))
    })
}

/// Says that work was enqueued in a stream, and which stream that is.
pub fn enqueue(handle: u64) -> Result<Stream, Code> {
    let (stream, ()) = with_stream(handle, |state, stream| {
        let chain = state.chain(stream);
        state.readiness.enqueue(chain);
    })?;
    Ok(stream)
}

/// Like [`enqueue`], and says at which place of the stream the work is.
pub fn enqueue_at(handle: u64) -> Result<(Stream, Chain, u64), Code> {
    let (stream, (chain, position)) = with_stream(handle, |state, stream| {
        let chain = state.chain(stream);
        state.readiness.enqueue(chain);
        (chain, state.readiness.position(chain))
    })?;
    Ok((stream, chain, position))
}

/// Says that a call has waited for all work of a stream.
pub fn host_waited(stream: Stream) -> Answer {
    with_state(|state| {
        let chain = state.chain(stream);
        state.readiness.host_waited_chain(chain);
        Ok(())
    })?;
    delays::before_host()
}

/// The calling thread's stream behind `cudaStreamPerThread`: an ordinary blocking stream.
fn per_thread_stream() -> Result<u64, Code> {
    // SAFETY: asks the system for a number.
    let thread = u64::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap_or(0);
    let key = (thread, current_device());
    if let Some(handle) = with_state(|state| Ok(state.per_thread.get(&key).copied()))? {
        return Ok(handle);
    }
    let device = key.1;
    let handle = with_state(|state| {
        let handle = state.add(device, 0, 0);
        state.per_thread.insert(key, handle);
        Ok(handle)
    })?;
    // The torch layer knows it by the number that stands for it.
    record(|recorder| recorder.per_thread_stream(handle, device));
    Ok(handle)
}

impl State {
    fn add(&mut self, device: u32, flags: u32, priority: i32) -> u64 {
        let handle = self.new_handle();
        self.streams.insert(handle, StreamState { device, flags, priority, chain: None });
        handle
    }

    fn new() -> Self {
        Self {
            streams: HashMap::new(),
            legacy: HashMap::new(),
            per_thread: HashMap::new(),
            events: HashMap::new(),
            readiness: Readiness::default(),
            captures: Captures::default(),
            graphs: Graphs::default(),
            // Looks like an address, as CUDA's handles do, and is none of this process.
            next_handle: 0x6000_0000_0000,
        }
    }

    /// Whether a stream takes part in the legacy default stream's order.
    pub fn is_blocking(&self, stream: Stream) -> bool {
        self.streams.get(&stream.handle).is_none_or(|state| state.flags & NON_BLOCKING == 0)
    }

    /// A handle that nothing has had; each is greater than those before.
    pub fn new_handle(&mut self) -> u64 {
        self.next_handle += 0x40;
        self.next_handle
    }

    fn resolve(&self, handle: u64) -> Result<Stream, Code> {
        if handle == 0 || handle == LEGACY {
            return Ok(Stream { handle: 0, device: current_device() });
        }
        let stream = self.streams.get(&handle).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        Ok(Stream { handle, device: stream.device })
    }

    /// The chain of a stream; made at its first use.
    pub fn chain(&mut self, stream: Stream) -> Chain {
        let readiness = &mut self.readiness;
        match self.streams.get_mut(&stream.handle) {
            Some(state) => {
                let kind = if state.flags & NON_BLOCKING != 0 {
                    StreamKind::NonBlocking
                } else {
                    StreamKind::Blocking
                };
                *state.chain.get_or_insert_with(|| readiness.open(state.device, kind))
            }
            None => *self
                .legacy
                .entry(stream.device)
                .or_insert_with(|| readiness.open(stream.device, StreamKind::Legacy)),
        }
    }
}

fn create(flags: u32, priority: i32) -> Result<u64, Code> {
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let device = current_device();
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    let handle = with_state(|state| Ok(state.add(device, flags, priority)))?;
    record(|recorder| recorder.stream_created(handle, device, flags & NON_BLOCKING == 0, priority));
    Ok(handle)
}

unsafe fn create_into(place: *mut u64, flags: u32, priority: i32) -> Code {
    call(|| {
        if place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, create(flags, priority)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreate(stream: *mut u64) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { create_into(stream, 0, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreateWithFlags(stream: *mut u64, flags: c_uint) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { create_into(stream, flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreateWithPriority(stream: *mut u64, flags: c_uint, priority: c_int) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { create_into(stream, flags, priority) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamDestroy(handle: u64) -> Code {
    call(|| {
        if handle <= PER_THREAD || !with_state(|state| Ok(state.streams.contains_key(&handle)))? {
            return Err(Code::INVALID_RESOURCE_HANDLE);
        }
        let (stream, ended) = with_stream(handle, State::give_up_capture)?;
        if ended.is_some() {
            record(|recorder| recorder.capture_ended(handle, stream.device, 0));
        }
        record(|recorder| recorder.stream_destroyed(handle));
        with_state(|state| {
            let stream = state.streams.remove(&handle).ok_or(Code::INVALID_RESOURCE_HANDLE)?;
            if let Some(chain) = stream.chain {
                state.readiness.close(chain);
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetPriority(handle: u64, priority: *mut c_int) -> Code {
    call(|| {
        let (_, value) = with_stream(handle, |state, stream| {
            state.streams.get(&stream.handle).map_or(0, |stream| stream.priority)
        })?;
        // SAFETY: the caller gives a place for the number.
        unsafe { give(priority, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetFlags(handle: u64, flags: *mut c_uint) -> Code {
    call(|| {
        let (_, value) = with_stream(handle, |state, stream| {
            state.streams.get(&stream.handle).map_or(0, |stream| stream.flags)
        })?;
        // SAFETY: the caller gives a place for the flags.
        unsafe { give(flags, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetDevice(handle: u64, device: *mut c_int) -> Code {
    call(|| {
        let (stream, ()) = with_stream(handle, |_, _| ())?;
        // SAFETY: the caller gives a place for the number.
        unsafe { give(device, stream.device.cast_signed()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetId(handle: u64, id: *mut c_ulonglong) -> Code {
    call(|| {
        let (stream, ()) = with_stream(handle, |_, _| ())?;
        // SAFETY: the caller gives a place for the number.
        unsafe { give(id, if stream.handle == 0 { u64::from(stream.device) } else { stream.handle }) }
    })
}

/// What the host waits for, by the number that torch has announced.
fn waited_for(handle: u64, stream: Stream) -> WaitOn {
    WaitOn::Stream(if handle == PER_THREAD { handle } else { stream.handle }, stream.device)
}

extern "C" fn synchronize(handle: u64, caller: usize) -> Code {
    call(|| {
        let (stream, allowed) = with_stream(handle, State::check_host_wait)?;
        allowed.and_then(|()| unsafe_call())?;
        let target = waited_for(handle, stream);
        record(|recorder| recorder.host_wait_begin(target));
        host_waited(stream)?;
        record(|recorder| recorder.host_waited(target, HostWaitHow::Synchronize, library_at(caller)));
        Ok(())
    })
}
with_caller!(cudaStreamSynchronize, "rsi", synchronize);

extern "C" fn query(handle: u64, caller: usize) -> Code {
    call(|| {
        with_stream(handle, State::check_host_wait)?.1.and_then(|()| unsafe_call())?;
        let (stream, ready) = with_stream(handle, |state, stream| {
            let chain = state.chain(stream);
            state.readiness.poll_chain(chain)
        })?;
        if !ready {
            return Err(Code::NOT_READY);
        }
        delays::before_host()?;
        let target = waited_for(handle, stream);
        record(|recorder| recorder.host_waited(target, HostWaitHow::Query, library_at(caller)));
        Ok(())
    })
}
with_caller!(cudaStreamQuery, "rsi", query);

/// A stream that no other test waits for.
#[cfg(test)]
pub fn own_stream() -> u64 {
    create(NON_BLOCKING, 0).expect("a stream can be made")
}

/// `cudaHostFn_t`.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);
/// `cudaStreamCallback_t`.
type StreamCallback = unsafe extern "C" fn(u64, Code, *mut c_void);

fn host_function(handle: u64) -> Answer {
    let stream = enqueue(handle)?;
    record(|recorder| recorder.host_function(stream.handle, stream.device));
    delays::before_work_of(stream)
}

/// Runs a host function: what it touches, it touches in its stream's order, not in the host's.
pub fn run_in_stream(function: impl FnOnce()) {
    record(|recorder| recorder.ignore_faults(true));
    function();
    record(|recorder| recorder.ignore_faults(false));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchHostFunc(
    handle: u64,
    function: Option<HostFunction>,
    data: *mut c_void,
) -> Code {
    call(|| {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        if let Some(stream) = capture::add(handle, || Work::HostFunction(function, Argument(data)))? {
            record(|recorder| recorder.host_function(stream.handle, stream.device));
            return Ok(());
        }
        host_function(handle)?;
        // SAFETY: the caller gives a function and what it is to be called with.
        run_in_stream(|| unsafe { function(data) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamAddCallback(
    handle: u64,
    callback: Option<StreamCallback>,
    data: *mut c_void,
    _flags: c_uint,
) -> Code {
    call(|| {
        let callback = callback.ok_or(Code::INVALID_VALUE)?;
        // Callbacks cannot be captured.
        with_stream(handle, State::check_host_wait)?.1?;
        host_function(handle)?;
        // SAFETY: the caller gives a function and what it is to be called with.
        run_in_stream(|| unsafe { callback(handle, Code::SUCCESS, data) });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_priorities_are_kept_and_bounded() {
        let mut handle = 0;
        // SAFETY: places for the answers, here and below.
        unsafe {
            assert_eq!(cudaStreamCreateWithPriority(&raw mut handle, NON_BLOCKING, -9), Code::SUCCESS);
            let (mut priority, mut flags) = (0, 0);
            assert_eq!(cudaStreamGetPriority(handle, &raw mut priority), Code::SUCCESS);
            assert_eq!(cudaStreamGetFlags(handle, &raw mut flags), Code::SUCCESS);
            assert_eq!((priority, flags), (GREATEST_PRIORITY, NON_BLOCKING));
            assert_eq!(cudaStreamCreateWithFlags(&raw mut handle, 8), Code::INVALID_VALUE);
        }
        assert_eq!(cudaStreamDestroy(handle), Code::SUCCESS);
        assert_eq!(cudaStreamDestroy(handle), Code::INVALID_RESOURCE_HANDLE);
        assert_eq!(enqueue(handle), Err(Code::INVALID_RESOURCE_HANDLE));
    }

    #[test]
    fn special_handles_are_streams_of_the_current_device() {
        assert_eq!(enqueue(0), Ok(Stream { handle: 0, device: 0 }));
        assert_eq!(enqueue(LEGACY), Ok(Stream { handle: 0, device: 0 }));
        let own = enqueue(PER_THREAD).expect("made at its first use");
        assert_eq!(enqueue(PER_THREAD), Ok(own));
        let other = std::thread::spawn(|| enqueue(PER_THREAD)).join().expect("no panic");
        assert_ne!(other, Ok(own));
        assert_eq!(cudaStreamDestroy(PER_THREAD), Code::INVALID_RESOURCE_HANDLE);
    }
}
