//! One stream: its handle, and an event for each number that may still be asked for.

use super::driver::check;
use crate::error::Error;
use cudarc::driver::sys;
use std::collections::VecDeque;

/// Numbers with pending events after which finished ones are looked for.
const MANY: usize = 64;

/// A stream and its numbers.
pub(super) struct Timeline {
    pub(super) name: String,
    stream: sys::CUstream,
    last: u64,
    /// Numbers and the events recorded behind them, rising; those before the first have passed.
    pending: VecDeque<(u64, sys::CUevent)>,
    free: Vec<sys::CUevent>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Timeline {}

impl Timeline {
    pub(super) fn new(name: &str) -> Result<Self, Error> {
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a place for the handle.
        check(unsafe { sys::cuStreamCreate(&raw mut stream, flags) }, name, "creation")?;
        Ok(Self { name: name.to_owned(), stream, last: 0, pending: VecDeque::new(), free: Vec::new() })
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.stream
    }

    /// A number that stands for everything enqueued so far.
    pub(super) fn mark(&mut self) -> Result<u64, Error> {
        if self.pending.len() >= MANY {
            self.reclaim();
        }
        let event = match self.free.pop() {
            Some(event) => event,
            None => new_event(&self.name)?,
        };
        // SAFETY: both handles are ours and alive.
        check(unsafe { sys::cuEventRecord(event, self.stream) }, &self.name, "event record")?;
        self.last += 1;
        self.pending.push_back((self.last, event));
        Ok(self.last)
    }

    /// Events that have passed go back to the pool.
    fn reclaim(&mut self) {
        while let Some(&(_, event)) = self.pending.front() {
            // SAFETY: the event is ours and alive.
            if unsafe { sys::cuEventQuery(event) } != sys::CUresult::CUDA_SUCCESS {
                return;
            }
            self.pending.pop_front();
            self.free.push(event);
        }
    }

    /// The event behind a number; `None` if it has passed.
    pub(super) fn event_of(&self, number: u64) -> Option<sys::CUevent> {
        let first = self.pending.partition_point(|&(known, _)| known < number);
        let &(known, event) = self.pending.get(first)?;
        (known == number).then_some(event)
    }

    pub(super) fn finished(&mut self, number: u64) -> Result<bool, Error> {
        let Some(event) = self.event_of(number) else { return Ok(true) };
        // SAFETY: the event is ours and alive.
        match unsafe { sys::cuEventQuery(event) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check(code, &self.name, "event query").map(|()| true),
        }
    }

    /// Gives the handles back. The caller has synchronized.
    pub(super) fn close(self) {
        // SAFETY: ours, each destroyed once.
        unsafe {
            for event in self.free.into_iter().chain(self.pending.into_iter().map(|(_, event)| event)) {
                let _ = sys::cuEventDestroy_v2(event);
            }
            let _ = sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

fn new_event(name: &str) -> Result<sys::CUevent, Error> {
    let mut event = std::ptr::null_mut();
    let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
    // SAFETY: a place for the handle.
    check(unsafe { sys::cuEventCreate(&raw mut event, flags) }, name, "event creation")?;
    Ok(event)
}
