//! Work objects of collectives: what holds once a method of one has returned.
//!
//! `work.wait()` orders the current stream after the collective. Mostly it does so with a wait for the event at the
//! collective's end. The newer NCCL back end of torch leaves that wait out where its own thread has already seen the
//! event: the order is there all the same, by way of the host, but no call of the runtime shows it. So the torch layer
//! tells which method of which object begins and has returned, and what is missing is written here.
//!
//! Written is what holds in every run: that the stream waits. That the host happened to know more is not. For the same
//! reason polls that such a method makes by the way are the library's, unless its answer is whether the collective has
//! finished.
//!
//! It can miss: methods that C++ calls (the reducer of `DistributedDataParallel` does, right after the collective).

use streamsan_trace::{EventKind, HostWaitHow, Observer, WaitTarget};

use crate::Recorder;
use crate::exports::with;
use crate::handles::EventState;
use crate::table::RawEnd;
use crate::thread::Thread;

/// A method of a work object that a thread is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkCall {
    /// Whether its answer is whether the collective has finished.
    pub asks: bool,
    /// Whether a stream was made to wait.
    pub stream_waited: bool,
    /// Whether the host has waited on behalf of the program, or a poll on its behalf succeeded.
    pub host_waited: bool,
}

/// What holds when a method has returned: the current stream is ordered after the collective.
pub const STREAM_WAITS: u32 = 1;
/// The host knows that the collective has finished.
pub const HOST_KNOWS: u32 = 2;

impl Recorder {
    /// The end of the collective that this thread enqueued last; number 0 if there was none.
    pub(crate) fn collective_end(&self) -> RawEnd {
        let last = self.thread().collective_end;
        let known = self.known();
        let EventState { stream, end, .. } = known.events.get(last);
        let place = stream.and_then(|stream| known.streams.place(stream));
        place.map_or_else(RawEnd::default, |(_, device)| RawEnd {
            event: last,
            number: end,
            device,
            reserved: 0,
        })
    }

    /// A method of a work object begins on this thread.
    pub(crate) fn work_begin(&self, asks: bool) {
        self.thread().work = Some(WorkCall { asks, ..WorkCall::default() });
    }

    /// It has returned, with `stream` current on the collective's device, and this `holds`.
    pub(crate) fn work_end(&self, end: RawEnd, stream: u64, holds: u32) {
        let mut thread = self.begin();
        let Some(call) = thread.work.take() else { return };
        let mut known = self.known();
        // The event may have been recorded again: then its work object is gone.
        if end.number == 0 || known.events.get(end.event).end != end.number {
            return;
        }
        let event = known.events.id(end.event);
        if holds & STREAM_WAITS != 0 && !call.stream_waited {
            let stream = self.stream(&mut thread, &mut known, stream, end.device);
            // A collective that ran on the current stream needs no wait.
            if known.events.get(end.event).stream != Some(stream) {
                thread.emit(&self.file, &EventKind::EventWait { event, stream }, &[]);
            }
        }
        if holds & HOST_KNOWS != 0 && !call.host_waited {
            let (target, observer) = (WaitTarget::Event(event), Observer::Program);
            let wait = EventKind::HostWait { target, observer, how: HostWaitHow::Query };
            thread.emit(&self.file, &wait, &[]);
        }
    }
}

impl Thread {
    /// On whose behalf torch polls the end of a collective here.
    pub fn asks_for_work(&self) -> bool {
        self.work.is_some_and(|call| call.asks)
    }
}

pub unsafe extern "C" fn collective_end() -> RawEnd {
    with(Recorder::collective_end)
}

pub unsafe extern "C" fn work_begin(asks: u32) {
    with(|recorder| recorder.work_begin(asks != 0));
}

pub unsafe extern "C" fn work_end(end: RawEnd, stream: u64, holds: u32) {
    with(|recorder| recorder.work_end(end, stream, holds));
}
