//! Records: 32 bytes each. An event is one record, followed by one record for each of its accesses (or, for an
//! allocation, one with address and size); all of them are committed together.

use bytemuck::{Pod, Zeroable};

use crate::{
    Access, AccessMode, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, ExecutableId, GapReason,
    GraphId, HostWaitHow, MemorySpace, Observer, OpKind, OpNumber, RangeKind, ShapeId, SiteId, StreamId,
    StringId, Subject, ThreadId, WaitTarget,
};

/// One record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Record {
    /// Event: its number. Access: block, and shape in the upper half. Place: 0.
    pub first: u64,
    /// Event: its site. Access: argument. Place: device.
    pub second: u32,
    /// What the record is.
    pub tag: u8,
    /// A small enumeration; see [`encode`].
    pub small: u8,
    /// Another one.
    pub half: u16,
    /// Ids and sizes.
    pub words: [u32; 4],
}

/// Bytes of a record.
pub const RECORD: usize = size_of::<Record>();
const _: () = assert!(RECORD == 32);

/// Tags. A number is never used for something else later.
mod tag {
    pub const STREAM_CREATE: u8 = 1;
    pub const STREAM_DESTROY: u8 = 2;
    pub const EVENT_RECORD: u8 = 3;
    pub const EVENT_WAIT: u8 = 4;
    pub const HOST_WAIT_BEGIN: u8 = 5;
    pub const HOST_WAIT: u8 = 6;
    pub const OP: u8 = 7;
    pub const ALLOC: u8 = 8;
    pub const BLOCK_SIZE: u8 = 9;
    pub const FREE_REQUEST: u8 = 10;
    pub const FREE_GUARD: u8 = 11;
    pub const FREE_DONE: u8 = 12;
    pub const HOST_ACCESS: u8 = 13;
    pub const ESCAPE: u8 = 14;
    pub const NAME: u8 = 15;
    pub const GAP: u8 = 16;
    pub const RECORD_STREAM: u8 = 17;
    pub const STREAM_OBJECT: u8 = 18;
    pub const RANGE_BEGIN: u8 = 19;
    pub const RANGE_END: u8 = 20;
    pub const EVENT_DESTROY: u8 = 21;
    pub const CAPTURE_BEGIN: u8 = 22;
    pub const CAPTURE_END: u8 = 23;
    pub const GRAPH_INSTANTIATE: u8 = 24;
    pub const GRAPH_LAUNCH: u8 = 25;
    pub const GRAPH_DESTROY: u8 = 26;
    pub const EXECUTABLE_DESTROY: u8 = 27;
    pub const GRAPH_MEMORY: u8 = 28;
    /// An access of the event before.
    pub const ACCESS: u8 = 64;
    /// Where the allocation before lies.
    pub const PLACE: u8 = 65;
    /// A number without an event.
    pub const UNUSED: u8 = 66;
}

/// The tag of a number that was taken for an event which then did not happen.
pub(super) const UNUSED: u8 = tag::UNUSED;

const BLOCKING: u8 = 1;
const LEGACY_DEFAULT: u8 = 2;

/// How many records [`encode`] writes for an event.
pub const fn record_count(kind: &EventKind, accesses: usize) -> usize {
    match kind {
        EventKind::Op { .. } | EventKind::HostAccess { .. } => 1 + accesses,
        EventKind::Alloc { .. } => 2,
        _ => 1,
    }
}

const fn low(value: u64) -> u32 {
    value as u32
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

const fn wide(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn target_words(target: WaitTarget) -> (u8, u32) {
    match target {
        WaitTarget::Event(id) => (0, id.0),
        WaitTarget::Stream(id) => (1, id.0),
        WaitTarget::Device(id) => (2, id.0),
    }
}

const fn space_words(space: MemorySpace) -> (u8, u32) {
    match space {
        MemorySpace::Cached(device) => (0, device.0),
        MemorySpace::Device(device) => (1, device.0),
        MemorySpace::Pinned => (2, 0),
        MemorySpace::Pageable => (3, 0),
    }
}

fn access_record(access: &Access) -> Record {
    Record {
        first: wide(access.block.0, access.shape.0),
        second: access.argument.0,
        tag: tag::ACCESS,
        small: access.mode as u8,
        half: 0,
        words: [low(access.offset), high(access.offset), low(access.length), high(access.length)],
    }
}

/// Writes an event and its accesses to the start of `target`, which has room for [`record_count`] records.
///
/// The event's thread is not written: it is the chunk's. The ranges inside the event are not used.
///
/// # Panics
///
/// If `target` is too short.
pub fn encode(number: OpNumber, site: SiteId, kind: &EventKind, accesses: &[Access], target: &mut [Record]) {
    let (tag, small, half, words) = match *kind {
        EventKind::StreamCreate { stream, device, blocking, legacy_default, priority } => {
            let flags = (u8::from(blocking) * BLOCKING) | (u8::from(legacy_default) * LEGACY_DEFAULT);
            (tag::STREAM_CREATE, flags, 0, [stream.0, device.0, priority.cast_unsigned(), 0])
        }
        EventKind::StreamDestroy { stream } => (tag::STREAM_DESTROY, 0, 0, [stream.0, 0, 0, 0]),
        EventKind::EventRecord { event, stream } => (tag::EVENT_RECORD, 0, 0, [event.0, stream.0, 0, 0]),
        EventKind::EventWait { event, stream } => (tag::EVENT_WAIT, 0, 0, [event.0, stream.0, 0, 0]),
        EventKind::EventDestroy { event } => (tag::EVENT_DESTROY, 0, 0, [event.0, 0, 0, 0]),
        EventKind::HostWaitBegin { target } => {
            let (which, id) = target_words(target);
            (tag::HOST_WAIT_BEGIN, which, 0, [id, 0, 0, 0])
        }
        EventKind::HostWait { target, observer, how } => {
            let (which, id) = target_words(target);
            (tag::HOST_WAIT, which, u16::from(observer as u8) | u16::from(how as u8) << 8, [id, 0, 0, 0])
        }
        EventKind::Op { stream, label, kind, forward_site, accesses: _ } => {
            (tag::OP, kind as u8, 0, [stream.0, label.0, forward_site.0, accesses.len() as u32])
        }
        EventKind::Alloc { block, stream, space, address, size } => {
            let (which, device) = space_words(space);
            let words = [low(address), high(address), low(size), high(size)];
            target[1] = Record { second: device, tag: tag::PLACE, words, ..Record::default() };
            (tag::ALLOC, which, 0, [block.0, stream.0, 0, 0])
        }
        EventKind::BlockSize { block, size } => (tag::BLOCK_SIZE, 0, 0, [block.0, 0, low(size), high(size)]),
        EventKind::FreeRequest { block } => (tag::FREE_REQUEST, 0, 0, [block.0, 0, 0, 0]),
        EventKind::FreeGuard { block, stream } => (tag::FREE_GUARD, 0, 0, [block.0, stream.0, 0, 0]),
        EventKind::FreeDone { block } => (tag::FREE_DONE, 0, 0, [block.0, 0, 0, 0]),
        EventKind::HostAccess { label, accesses: _ } => {
            (tag::HOST_ACCESS, 0, 0, [0, label.0, 0, accesses.len() as u32])
        }
        EventKind::Escape { block, label } => (tag::ESCAPE, 0, 0, [block.0, label.0, 0, 0]),
        EventKind::RecordStream { block, stream } => (tag::RECORD_STREAM, 0, 0, [block.0, stream.0, 0, 0]),
        EventKind::StreamObject { stream, object, sharers } => {
            (tag::STREAM_OBJECT, 0, 0, [stream.0, object, sharers, 0])
        }
        EventKind::Name { subject, name, by_user } => {
            let (which, id) = match subject {
                Subject::Stream(id) => (0, id.0),
                Subject::Block(id) => (1, id.0),
            };
            (tag::NAME, which, u16::from(by_user), [id, name.0, 0, 0])
        }
        EventKind::RangeBegin { kind, label } => (tag::RANGE_BEGIN, kind as u8, 0, [0, label.0, 0, 0]),
        EventKind::RangeEnd { kind } => (tag::RANGE_END, kind as u8, 0, [0; 4]),
        EventKind::CaptureBegin { graph, stream } => (tag::CAPTURE_BEGIN, 0, 0, [graph.0, stream.0, 0, 0]),
        EventKind::CaptureEnd { graph, stream, valid } => {
            (tag::CAPTURE_END, u8::from(valid), 0, [graph.0, stream.0, 0, 0])
        }
        EventKind::GraphInstantiate { graph, executable } => {
            (tag::GRAPH_INSTANTIATE, 0, 0, [graph.0, executable.0, 0, 0])
        }
        EventKind::GraphLaunch { executable, stream, label } => {
            (tag::GRAPH_LAUNCH, 0, 0, [executable.0, stream.0, label.0, 0])
        }
        EventKind::GraphDestroy { graph } => (tag::GRAPH_DESTROY, 0, 0, [graph.0, 0, 0, 0]),
        EventKind::ExecutableDestroy { executable } => {
            (tag::EXECUTABLE_DESTROY, 0, 0, [executable.0, 0, 0, 0])
        }
        EventKind::GraphMemory { block } => (tag::GRAPH_MEMORY, 0, 0, [block.0, 0, 0, 0]),
        EventKind::Gap { reason, detail } => (tag::GAP, reason as u8, 0, [0, detail.0, 0, 0]),
    };
    target[0] = Record { first: number.0, second: site.0, tag, small, half, words };
    if matches!(kind, EventKind::Op { .. } | EventKind::HostAccess { .. }) {
        for (slot, access) in target[1..=accesses.len()].iter_mut().zip(accesses) {
            *slot = access_record(access);
        }
    }
}

/// The record that says that no event has this number, so that nobody who reads along waits for it.
pub fn unused(number: OpNumber) -> Record {
    Record { first: number.0, tag: tag::UNUSED, ..Record::default() }
}

/// How many records follow an event's own, or `None` if the record is not an event's.
pub(super) const fn followers(record: &Record) -> Option<usize> {
    match record.tag {
        tag::OP | tag::HOST_ACCESS => Some(record.words[3] as usize),
        tag::ALLOC => Some(1),
        tag::STREAM_CREATE..=tag::GRAPH_MEMORY | tag::UNUSED => Some(0),
        _ => None,
    }
}

/// The event of `record`, with `place` as the record after it. Its access range starts at 0.
/// `None` if a field has no meaning. Ids are not checked against tables here.
pub(super) fn decode(record: &Record, place: Option<&Record>, thread: ThreadId) -> Option<Event> {
    let [first, second, third, fourth] = record.words;
    let kind = match record.tag {
        tag::STREAM_CREATE if record.small <= (BLOCKING | LEGACY_DEFAULT) => EventKind::StreamCreate {
            stream: StreamId(first),
            device: DeviceId(second),
            blocking: record.small & BLOCKING != 0,
            legacy_default: record.small & LEGACY_DEFAULT != 0,
            priority: third.cast_signed(),
        },
        tag::STREAM_DESTROY => EventKind::StreamDestroy { stream: StreamId(first) },
        tag::EVENT_RECORD => EventKind::EventRecord { event: EventId(first), stream: StreamId(second) },
        tag::EVENT_WAIT => EventKind::EventWait { event: EventId(first), stream: StreamId(second) },
        tag::EVENT_DESTROY => EventKind::EventDestroy { event: EventId(first) },
        tag::HOST_WAIT_BEGIN => EventKind::HostWaitBegin { target: wait_target(record.small, first)? },
        tag::HOST_WAIT => EventKind::HostWait {
            target: wait_target(record.small, first)?,
            observer: observer(record.half as u8)?,
            how: host_wait_how((record.half >> 8) as u8)?,
        },
        tag::OP => EventKind::Op {
            stream: StreamId(first),
            label: StringId(second),
            kind: op_kind(record.small)?,
            forward_site: SiteId(third),
            accesses: AccessRange { start: 0, count: fourth },
        },
        tag::ALLOC => {
            let place = place.filter(|place| place.tag == tag::PLACE)?;
            EventKind::Alloc {
                block: BlockId(first),
                stream: StreamId(second),
                space: memory_space(record.small, place.second)?,
                address: wide(place.words[0], place.words[1]),
                size: wide(place.words[2], place.words[3]),
            }
        }
        tag::BLOCK_SIZE => EventKind::BlockSize { block: BlockId(first), size: wide(third, fourth) },
        tag::FREE_REQUEST => EventKind::FreeRequest { block: BlockId(first) },
        tag::FREE_GUARD => EventKind::FreeGuard { block: BlockId(first), stream: StreamId(second) },
        tag::FREE_DONE => EventKind::FreeDone { block: BlockId(first) },
        tag::HOST_ACCESS => EventKind::HostAccess {
            label: StringId(second),
            accesses: AccessRange { start: 0, count: fourth },
        },
        tag::ESCAPE => EventKind::Escape { block: BlockId(first), label: StringId(second) },
        tag::RECORD_STREAM => EventKind::RecordStream { block: BlockId(first), stream: StreamId(second) },
        tag::STREAM_OBJECT => {
            EventKind::StreamObject { stream: StreamId(first), object: second, sharers: third }
        }
        tag::NAME if record.half <= 1 => EventKind::Name {
            subject: match record.small {
                0 => Subject::Stream(StreamId(first)),
                1 => Subject::Block(BlockId(first)),
                _ => return None,
            },
            name: StringId(second),
            by_user: record.half == 1,
        },
        tag::RANGE_BEGIN => {
            EventKind::RangeBegin { kind: range_kind(record.small)?, label: StringId(second) }
        }
        tag::RANGE_END => EventKind::RangeEnd { kind: range_kind(record.small)? },
        tag::CAPTURE_BEGIN => EventKind::CaptureBegin { graph: GraphId(first), stream: StreamId(second) },
        tag::CAPTURE_END if record.small <= 1 => EventKind::CaptureEnd {
            graph: GraphId(first),
            stream: StreamId(second),
            valid: record.small == 1,
        },
        tag::GRAPH_INSTANTIATE => {
            EventKind::GraphInstantiate { graph: GraphId(first), executable: ExecutableId(second) }
        }
        tag::GRAPH_LAUNCH => EventKind::GraphLaunch {
            executable: ExecutableId(first),
            stream: StreamId(second),
            label: StringId(third),
        },
        tag::GRAPH_DESTROY => EventKind::GraphDestroy { graph: GraphId(first) },
        tag::EXECUTABLE_DESTROY => EventKind::ExecutableDestroy { executable: ExecutableId(first) },
        tag::GRAPH_MEMORY => EventKind::GraphMemory { block: BlockId(first) },
        tag::GAP => EventKind::Gap { reason: gap_reason(record.small)?, detail: StringId(second) },
        _ => return None,
    };
    Some(Event { number: OpNumber(record.first), thread, site: SiteId(record.second), kind })
}

/// The access of an access record.
pub(super) fn decode_access(record: &Record) -> Option<Access> {
    if record.tag != tag::ACCESS {
        return None;
    }
    let [offset_low, offset_high, length_low, length_high] = record.words;
    Some(Access {
        block: BlockId(low(record.first)),
        mode: AccessMode::from_u8(record.small)?,
        offset: wide(offset_low, offset_high),
        length: wide(length_low, length_high),
        shape: ShapeId(high(record.first)),
        argument: StringId(record.second),
    })
}

const fn wait_target(which: u8, id: u32) -> Option<WaitTarget> {
    Some(match which {
        0 => WaitTarget::Event(EventId(id)),
        1 => WaitTarget::Stream(StreamId(id)),
        2 => WaitTarget::Device(DeviceId(id)),
        _ => return None,
    })
}

const fn memory_space(which: u8, device: u32) -> Option<MemorySpace> {
    Some(match which {
        0 => MemorySpace::Cached(DeviceId(device)),
        1 => MemorySpace::Device(DeviceId(device)),
        2 => MemorySpace::Pinned,
        3 => MemorySpace::Pageable,
        _ => return None,
    })
}

const fn observer(value: u8) -> Option<Observer> {
    Some(match value {
        0 => Observer::Program,
        1 => Observer::DeviceAllocator,
        2 => Observer::PinnedAllocator,
        3 => Observer::Library,
        _ => return None,
    })
}

const fn host_wait_how(value: u8) -> Option<HostWaitHow> {
    Some(match value {
        0 => HostWaitHow::Synchronize,
        1 => HostWaitHow::Query,
        2 => HostWaitHow::Elapsed,
        3 => HostWaitHow::Blocking,
        _ => return None,
    })
}

/// The kind of operation stored as `value`, if there is one.
pub const fn op_kind(value: u8) -> Option<OpKind> {
    Some(match value {
        0 => OpKind::Kernel,
        1 => OpKind::CopyHostToDevice,
        2 => OpKind::CopyDeviceToHost,
        3 => OpKind::CopyDeviceToDevice,
        4 => OpKind::CopyHostToHost,
        5 => OpKind::Memset,
        6 => OpKind::HostFunction,
        7 => OpKind::Collective,
        8 => OpKind::GraphLaunch,
        _ => return None,
    })
}

/// The kind of range stored as `value`, if there is one.
pub const fn range_kind(value: u8) -> Option<RangeKind> {
    Some(match value {
        0 => RangeKind::Region,
        1 => RangeKind::Ignore,
        _ => return None,
    })
}

/// The reason for a gap stored as `value`, if there is one.
pub const fn gap_reason(value: u8) -> Option<GapReason> {
    Some(match value {
        0 => GapReason::OpaqueKernel,
        1 => GapReason::UnsupportedCall,
        2 => GapReason::Lost,
        3 => GapReason::UnknownOperator,
        4 => GapReason::Forked,
        5 => GapReason::NotClosed,
        6 => GapReason::Damaged,
        7 => GapReason::Undecided,
        8 => GapReason::Escaped,
        9 => GapReason::UnseenGraph,
        10 => GapReason::Forgotten,
        11 => GapReason::NotComputed,
        _ => return None,
    })
}
