//! The checker's events for what the runtime does, so that it can be checked by `streamsan-check`.

use crate::backend::{Address, Space, StreamIndex};
use crate::order::Point;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, CaptureKind, DeviceId, Event, EventId, EventKind, Frame,
    FrameOrigin, HostWaitHow, MemorySpace, Observer, OpKind, OpNumber, SiteId, StreamId, StringId, Subject,
    ThreadId, Trace, WaitTarget,
};

/// One access of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) block: BlockId,
    pub(crate) mode: AccessMode,
    pub(crate) bytes: usize,
}

/// A log in memory.
#[derive(Debug)]
pub(crate) struct Journal {
    trace: Trace,
    /// The event that stands for each point.
    events: BTreeMap<(StreamIndex, u64), EventId>,
    /// Streams that were told of; the same stream may be given out again under another name.
    streams: BTreeSet<StreamIndex>,
    /// Blocks that were handed out.
    blocks: u32,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let mut trace = Trace::default();
        trace.header.capture = CaptureKind::Sim;
        trace.header.devices = 1;
        trace.header.closed = true;
        Self { trace, events: BTreeMap::new(), streams: BTreeSet::new(), blocks: 0 }
    }

    pub(crate) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    fn push(&mut self, site: SiteId, kind: EventKind) {
        let number = OpNumber(self.trace.events.len() as u64 + 1);
        self.trace.events.push(Event { number, thread: ThreadId(0), site, kind });
    }

    fn site(&mut self, place: &Location<'_>) -> SiteId {
        let frame = Frame {
            file: self.trace.tables.intern_string(place.file()),
            function: StringId(0),
            line: place.line(),
            end_line: place.line(),
            column: place.column(),
            end_column: 0,
            origin: FrameOrigin::User,
        };
        let frame = self.trace.tables.intern_frame(frame);
        self.trace.tables.intern_site(vec![frame])
    }

    pub(crate) fn stream(&mut self, stream: StreamIndex, name: &str, place: &Location<'_>) {
        let (site, first) = (self.site(place), self.streams.insert(stream));
        let stream = stream_id(stream);
        if first {
            let device = DeviceId(0);
            let kind = EventKind::StreamCreate {
                stream,
                device,
                blocking: false,
                legacy_default: false,
                priority: 0,
            };
            self.push(site, kind);
        }
        let name = self.trace.tables.intern_string(name);
        self.push(site, EventKind::Name { subject: Subject::Stream(stream), name, by_user: true });
    }

    pub(crate) fn allocate(
        &mut self,
        space: Space,
        owner: StreamIndex,
        address: Address,
        bytes: usize,
        place: &Location<'_>,
    ) -> BlockId {
        let site = self.site(place);
        self.blocks += 1;
        let block = BlockId(self.blocks);
        let space = match space {
            Space::Device => MemorySpace::Cached(DeviceId(0)),
            Space::Host => MemorySpace::Pinned,
        };
        let (stream, address) = (stream_id(owner), address.0 as u64);
        self.push(site, EventKind::Alloc { block, stream, space, address, size: bytes as u64 });
        block
    }

    pub(crate) fn free(&mut self, block: BlockId) {
        self.push(SiteId(0), EventKind::FreeRequest { block });
    }

    pub(crate) fn operation(
        &mut self,
        point: &Point,
        label: &str,
        kind: OpKind,
        touches: &[Touch],
        place: &Location<'_>,
    ) {
        let site = self.site(place);
        let label = self.trace.tables.intern_string(label);
        let accesses = self.accesses(touches);
        let stream = stream_id(point.stream);
        self.push(site, EventKind::Op { stream, label, kind, forward_site: SiteId(0), accesses });
        self.record_at(site, point);
    }

    /// A point that is no operation's was asked for.
    pub(crate) fn record(&mut self, point: &Point, place: &Location<'_>) {
        let site = self.site(place);
        self.record_at(site, point);
    }

    fn record_at(&mut self, site: SiteId, point: &Point) {
        let next = EventId(self.events.len() as u32 + 1);
        let event = *self.events.entry((point.stream, point.number)).or_insert(next);
        if event == next {
            self.push(site, EventKind::EventRecord { event, stream: stream_id(point.stream) });
        }
    }

    pub(crate) fn host_access(&mut self, touch: Touch, place: &Location<'_>) {
        let site = self.site(place);
        let label = self.trace.tables.intern_string("memory access");
        let accesses = self.accesses(&[touch]);
        self.push(site, EventKind::HostAccess { label, accesses });
    }

    fn accesses(&mut self, touches: &[Touch]) -> AccessRange {
        let accesses: Vec<Access> = touches
            .iter()
            .filter(|touch| touch.bytes > 0)
            .map(|touch| Access {
                block: touch.block,
                mode: touch.mode,
                offset: 0,
                length: touch.bytes as u64,
                shape: streamsan_trace::ShapeId(0),
                argument: StringId(0),
            })
            .collect();
        self.trace.push_accesses(&accesses)
    }

    pub(crate) fn wait(&mut self, waiter: StreamIndex, point: &Point, place: &Location<'_>) {
        let site = self.site(place);
        if let Some(&event) = self.events.get(&(point.stream, point.number)) {
            self.push(site, EventKind::EventWait { event, stream: stream_id(waiter) });
        }
    }

    /// The host has seen a point pass.
    pub(crate) fn host_wait(&mut self, point: &Point, how: HostWaitHow) {
        if let Some(&event) = self.events.get(&(point.stream, point.number)) {
            let target = WaitTarget::Event(event);
            self.push(SiteId(0), EventKind::HostWait { target, observer: Observer::Program, how });
        }
    }
}

fn stream_id(stream: StreamIndex) -> StreamId {
    StreamId(stream.0 as u32 + 1)
}
