//! The two orders of the advisor: with the waits of the host, and by streams alone.
//!
//! Both leave out what a query of the program answered. Work that is captured runs in no stream, and what one stream waits
//! for there orders nothing outside.

use crate::order::{HappensBefore, WaitOutcome};
use rustc_hash::FxHashSet;
use streamsan_trace::{Event, EventId, EventKind, HostWaitHow, Observer, OpNumber, StreamId};

#[derive(Debug)]
pub(super) struct Orders {
    /// The host learns by its waits.
    pub(super) whole: HappensBefore,
    /// As if the host never waited.
    pub(super) streams: HappensBefore,
    /// Streams in which work is captured now.
    capturing: FxHashSet<StreamId>,
    /// Events that were recorded in such a stream last.
    captured: FxHashSet<EventId>,
    /// Whether the past had to be forgotten to keep the clocks within their memory.
    pub(super) forgotten: bool,
}

/// What an event did to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing that advice is about.
    None,
    /// A stream waited for an event: what that did by streams alone.
    Wait(WaitOutcome),
    /// The host waited, as the program; whether it learned anything.
    HostWait(bool),
    /// An operation, or a graph, was enqueued.
    Operation,
}

impl Orders {
    pub(super) fn new() -> Self {
        Self {
            whole: HappensBefore::new(),
            streams: HappensBefore::new(),
            capturing: FxHashSet::default(),
            captured: FxHashSet::default(),
            forgotten: false,
        }
    }

    fn both(&mut self, mut act: impl FnMut(&mut HappensBefore)) {
        act(&mut self.whole);
        act(&mut self.streams);
    }

    /// Whether work in the stream is captured now.
    pub(super) fn is_capturing(&self, stream: StreamId) -> bool {
        self.capturing.contains(&stream)
    }

    /// A stream waits for an event. In the legacy default stream, and in blocking ones, any call also comes after what these
    /// wait for among themselves, and who waits for the stream later relies on that: such a wait may add nothing else and be
    /// needed all the same.
    fn wait(&mut self, event: EventId, stream: StreamId, number: OpNumber) -> WaitOutcome {
        let order = &mut self.streams;
        let known = |order: &HappensBefore| {
            order.chain_of(stream).map_or(OpNumber(0), |chain| order.ordered_up_to(chain, chain))
        };
        let before = known(order);
        match order.wait(event, stream, number) {
            WaitOutcome::Edge { from, new: false }
                if order.is_synchronizing(stream) && known(order) != before =>
            {
                WaitOutcome::Edge { from, new: true }
            }
            outcome => outcome,
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Step {
        let number = event.number;
        let step = match event.kind {
            EventKind::StreamCreate { stream, device, blocking, legacy_default, .. } => {
                self.both(|order| order.create_stream(stream, device, blocking, legacy_default));
                Step::None
            }
            EventKind::StreamDestroy { stream } => {
                self.both(|order| order.destroy_stream(stream));
                Step::None
            }
            EventKind::EventDestroy { event } => {
                self.both(|order| order.destroy_event(event));
                Step::None
            }
            EventKind::CaptureBegin { stream, .. } => {
                self.capturing.insert(stream);
                Step::None
            }
            EventKind::CaptureEnd { .. } => {
                // Captures of several threads at once are rare; a stream that still captures then joins again.
                self.capturing.clear();
                self.captured.clear();
                Step::None
            }
            EventKind::EventRecord { event, stream } if self.is_capturing(stream) => {
                self.captured.insert(event);
                Step::None
            }
            EventKind::EventRecord { event, stream } => {
                self.captured.remove(&event);
                self.both(|order| order.record(event, stream, number));
                Step::None
            }
            EventKind::EventWait { event, stream } if self.captured.contains(&event) => {
                self.capturing.insert(stream);
                Step::None
            }
            EventKind::EventWait { stream, .. } if self.is_capturing(stream) => Step::None,
            EventKind::EventWait { event, stream } => {
                self.whole.wait(event, stream, number);
                Step::Wait(self.wait(event, stream, number))
            }
            EventKind::HostWaitBegin { target } => {
                self.whole.begin_host_wait(event.thread, target);
                Step::None
            }
            EventKind::HostWait { how: HostWaitHow::Query, .. } => {
                self.whole.end_host_wait(event.thread);
                Step::None
            }
            EventKind::HostWait { target, observer: Observer::Program, .. } => {
                Step::HostWait(self.whole.host_wait(event.thread, target, number))
            }
            EventKind::HostWait { .. } => {
                self.whole.end_host_wait(event.thread);
                Step::None
            }
            EventKind::Op { stream, .. } | EventKind::GraphLaunch { stream, .. }
                if !self.is_capturing(stream) =>
            {
                self.both(|order| _ = order.operation(stream, number));
                Step::Operation
            }
            EventKind::HostAccess { .. } => {
                self.both(|order| _ = order.host_access(number));
                Step::None
            }
            _ => Step::None,
        };
        let mut forgotten = false;
        self.both(|order| {
            if order.should_count_clocks() && order.clocks_are_too_many(std::iter::empty()) {
                order.forget(number);
                forgotten = true;
            }
        });
        self.forgotten |= forgotten;
        step
    }
}
