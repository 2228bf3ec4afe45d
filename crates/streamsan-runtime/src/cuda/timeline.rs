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
    /// Numbers and the events recorded behind them, rising; those before the first have passed. No event: it could
    /// not be recorded, but what has the number is in the stream all the same.
    pending: VecDeque<(u64, Option<sys::CUevent>)>,
    free: Vec<sys::CUevent>,
}

/// How to wait for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has passed.
    Passed,
    /// An event behind it, or behind a later number.
    Event(sys::CUevent),
    /// There is none: the whole stream.
    Stream,
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

    /// A number that stands for everything enqueued so far. It does not fail: whoever has enqueued something can
    /// always wait for it.
    pub(super) fn mark(&mut self) -> u64 {
        if self.pending.len() >= MANY {
            self.reclaim();
        }
        self.last += 1;
        let event = self.record();
        self.pending.push_back((self.last, event));
        self.last
    }

    fn record(&mut self) -> Option<sys::CUevent> {
        let event = self.free.pop().or_else(|| new_event(&self.name).ok())?;
        // SAFETY: both handles are ours and alive.
        let recorded = unsafe { sys::cuEventRecord(event, self.stream) } == sys::CUresult::CUDA_SUCCESS;
        if !recorded {
            self.free.push(event);
        }
        recorded.then_some(event)
    }

    /// Events that have passed go back to the pool.
    fn reclaim(&mut self) {
        while let Some((at, event)) = self.first_event(0) {
            // SAFETY: the event is ours and alive.
            if unsafe { sys::cuEventQuery(event) } != sys::CUresult::CUDA_SUCCESS {
                return;
            }
            self.pending.drain(..=at);
            self.free.push(event);
        }
    }

    /// The first event at or behind a place in the list.
    fn first_event(&self, from: usize) -> Option<(usize, sys::CUevent)> {
        self.pending.iter().enumerate().skip(from).find_map(|(at, &(_, event))| Some((at, event?)))
    }

    /// How to wait for a number.
    pub(super) fn place_of(&self, number: u64) -> Place {
        let at = self.pending.partition_point(|&(known, _)| known < number);
        match self.pending.get(at) {
            Some(&(known, _)) if known == number => {
                self.first_event(at).map_or(Place::Stream, |(_, event)| Place::Event(event))
            }
            _ => Place::Passed,
        }
    }

    pub(super) fn finished(&mut self, number: u64) -> Result<bool, Error> {
        // SAFETY: the handles are ours and alive.
        let code = unsafe {
            match self.place_of(number) {
                Place::Passed => return Ok(true),
                Place::Event(event) => sys::cuEventQuery(event),
                Place::Stream => sys::cuStreamQuery(self.stream),
            }
        };
        match code {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check(code, &self.name, "query").map(|()| true),
        }
    }

    /// Blocks the host until all of the stream has passed.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the stream is ours and alive.
        check(unsafe { sys::cuStreamSynchronize(self.stream) }, &self.name, "wait of the host")
    }

    /// Gives the handles back. The caller has synchronized.
    pub(super) fn close(self) {
        // SAFETY: ours, each destroyed once.
        unsafe {
            for event in self.free.into_iter().chain(self.pending.into_iter().filter_map(|(_, event)| event))
            {
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
