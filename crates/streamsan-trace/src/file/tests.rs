//! The file against random traces, cuts and flips.

mod agreement;
mod follower;

use proptest::collection::vec;
use proptest::prelude::*;

use super::layout::{FileHeader, PAGE, VERSION};
use super::{ReadError, read, read_bytes, write, write_bytes};
use crate::{
    Access, AccessMode, AccessRange, Binding, BlockId, CaptureKind, DeviceId, Event, EventId, EventKind,
    ExecutableId, Frame, FrameId, FrameOrigin, GapReason, GraphId, Header, HostWaitHow, MemorySpace,
    Observer, OpKind, OpNumber, Placement, Reach, Shape, ShapeDimension, ShapeId, SiteId, StreamId, StringId,
    Subject, Tables, ThreadId, Trace, VisibleStream, WaitTarget,
};

/// How many strings, frames, sites and shapes the tables have.
#[derive(Clone, Copy, Debug)]
struct Counts {
    strings: u32,
    frames: u32,
    sites: u32,
    shapes: u32,
}

fn tables() -> impl Strategy<Value = Tables> {
    (vec(".{0,20}", 0..12), vec(any::<[u32; 5]>(), 0..8), vec(vec(0_u32..8, 1..6), 0..6), vec(shape(), 0..5))
        .prop_map(|(strings, frames, sites, shapes)| {
            let mut tables = Tables::default();
            tables.strings.extend(strings);
            let strings = tables.strings.len() as u32;
            tables.frames = frames
                .into_iter()
                .map(|[file, function, line, column, origin]| Frame {
                    file: StringId(file % strings),
                    function: StringId(function % strings),
                    line,
                    end_line: line,
                    column,
                    end_column: column ^ 1,
                    origin: if origin % 2 == 0 { FrameOrigin::User } else { FrameOrigin::Library },
                })
                .collect();
            let frames = tables.frames.len() as u32;
            if frames > 0 {
                let sites =
                    sites.into_iter().map(|site| site.into_iter().map(|id| FrameId(id % frames)).collect());
                tables.sites.extend(sites);
                tables.visible_streams.push(VisibleStream {
                    frame: FrameId(frames - 1),
                    stream: StreamId(3),
                    expression: StringId(strings - 1),
                    binding: Binding::from_number(strings % 3),
                });
                let placement = Placement { line: strings, reach: Reach::from_number(strings % 4).unwrap() };
                tables.placements.insert(FrameId(frames / 2), placement);
            }
            tables.shapes.extend(shapes);
            tables
        })
}

fn shape() -> impl Strategy<Value = Shape> {
    (1..64_u64, vec((2..9_u64, 1..999_u64), 1..4)).prop_map(|(run, dimensions)| Shape {
        run,
        dimensions: dimensions.into_iter().map(|(size, stride)| ShapeDimension { size, stride }).collect(),
    })
}

fn access(counts: Counts) -> impl Strategy<Value = Access> {
    (0..99_u32, 0..4_u8, any::<u32>(), 1..=u64::from(u32::MAX), 0..counts.shapes, 0..counts.strings).prop_map(
        |(block, mode, offset, length, shape, argument)| Access {
            block: BlockId(block),
            mode: AccessMode::from_u8(mode).unwrap(),
            offset: u64::from(offset) << 16,
            length,
            shape: ShapeId(shape),
            argument: StringId(argument),
        },
    )
}

fn target() -> impl Strategy<Value = WaitTarget> {
    prop_oneof![
        (0..99_u32).prop_map(|id| WaitTarget::Event(EventId(id))),
        (0..99_u32).prop_map(|id| WaitTarget::Stream(StreamId(id))),
        (0..99_u32).prop_map(|id| WaitTarget::Device(DeviceId(id))),
    ]
}

fn space() -> impl Strategy<Value = MemorySpace> {
    prop_oneof![
        (0..9_u32).prop_map(|id| MemorySpace::Cached(DeviceId(id))),
        (0..9_u32).prop_map(|id| MemorySpace::Device(DeviceId(id))),
        Just(MemorySpace::Pinned),
        Just(MemorySpace::Pageable),
    ]
}

fn stream() -> impl Strategy<Value = StreamId> {
    (0..99_u32).prop_map(StreamId)
}

fn block() -> impl Strategy<Value = BlockId> {
    (0..99_u32).prop_map(BlockId)
}

fn event_id() -> impl Strategy<Value = EventId> {
    (0..99_u32).prop_map(EventId)
}

fn observer() -> impl Strategy<Value = Observer> {
    prop_oneof![
        Just(Observer::Program),
        Just(Observer::DeviceAllocator),
        Just(Observer::PinnedAllocator),
        Just(Observer::Library)
    ]
}

fn how() -> impl Strategy<Value = HostWaitHow> {
    prop_oneof![
        Just(HostWaitHow::Synchronize),
        Just(HostWaitHow::Query),
        Just(HostWaitHow::Elapsed),
        Just(HostWaitHow::Blocking)
    ]
}

/// Every kind of event, with the accesses that belong to it.
fn kind(counts: Counts) -> impl Strategy<Value = (EventKind, Vec<Access>)> {
    let string = (0..counts.strings).prop_map(StringId);
    let site = (0..counts.sites).prop_map(SiteId);
    let plain = prop_oneof![
        (stream(), 0..9_u32, any::<bool>(), any::<bool>(), any::<i32>()).prop_map(
            |(stream, device, blocking, legacy_default, priority)| EventKind::StreamCreate {
                stream,
                device: DeviceId(device),
                blocking,
                legacy_default,
                priority
            }
        ),
        stream().prop_map(|stream| EventKind::StreamDestroy { stream }),
        (event_id(), stream()).prop_map(|(event, stream)| EventKind::EventRecord { event, stream }),
        (event_id(), stream()).prop_map(|(event, stream)| EventKind::EventWait { event, stream }),
        event_id().prop_map(|event| EventKind::EventDestroy { event }),
        target().prop_map(|target| EventKind::HostWaitBegin { target }),
        (target(), observer(), how()).prop_map(|(target, observer, how)| EventKind::HostWait {
            target,
            observer,
            how
        }),
        (block(), stream(), space(), any::<u32>(), any::<u32>()).prop_map(
            |(block, stream, space, page, size)| {
                EventKind::Alloc { block, stream, space, address: u64::from(page) << 12, size: size.into() }
            }
        ),
        (block(), any::<u64>()).prop_map(|(block, size)| EventKind::BlockSize { block, size }),
        block().prop_map(|block| EventKind::FreeRequest { block }),
        (block(), stream()).prop_map(|(block, stream)| EventKind::FreeGuard { block, stream }),
        block().prop_map(|block| EventKind::FreeDone { block }),
        block().prop_map(|block| EventKind::GraphMemory { block }),
        (block(), string.clone()).prop_map(|(block, label)| EventKind::Escape { block, label }),
        (block(), stream()).prop_map(|(block, stream)| EventKind::RecordStream { block, stream }),
        (stream(), any::<u32>(), any::<u32>())
            .prop_map(|(stream, object, sharers)| EventKind::StreamObject { stream, object, sharers }),
        (any::<bool>(), 0..99_u32, string.clone(), any::<bool>()).prop_map(
            |(of_stream, id, name, by_user)| {
                let subject =
                    if of_stream { Subject::Stream(StreamId(id)) } else { Subject::Block(BlockId(id)) };
                EventKind::Name { subject, name, by_user }
            }
        ),
        (0..2_u8, string.clone()).prop_map(|(kind, label)| EventKind::RangeBegin {
            kind: super::record::range_kind(kind).unwrap(),
            label
        }),
        (0..2_u8).prop_map(|kind| EventKind::RangeEnd { kind: super::record::range_kind(kind).unwrap() }),
        (0..6_u8, 0..99_u32, stream(), string.clone(), any::<bool>()).prop_map(
            |(which, id, stream, label, valid)| {
                let (graph, executable) = (GraphId(id), ExecutableId(id));
                match which {
                    0 => EventKind::CaptureBegin { graph, stream },
                    1 => EventKind::CaptureEnd { graph, stream, valid },
                    2 => EventKind::GraphInstantiate { graph, executable: ExecutableId(98 - id) },
                    3 => EventKind::GraphLaunch { executable, stream, label },
                    4 => EventKind::GraphDestroy { graph },
                    _ => EventKind::ExecutableDestroy { executable },
                }
            }
        ),
        (0..10_u8, string.clone()).prop_map(|(reason, detail)| EventKind::Gap {
            reason: super::record::gap_reason(reason).unwrap(),
            detail
        }),
    ];
    let none = AccessRange::default();
    prop_oneof![
        3 => plain.prop_map(|kind| (kind, Vec::new())),
        2 => (stream(), string.clone(), 0..9_u8, site, vec(access(counts), 0..5)).prop_map(
            move |(stream, label, kind, forward_site, accesses)| {
                let kind: OpKind = super::record::op_kind(kind).unwrap();
                (EventKind::Op { stream, label, kind, forward_site, accesses: none }, accesses)
            }
        ),
        1 => (string, vec(access(counts), 0..5))
            .prop_map(move |(label, accesses)| (EventKind::HostAccess { label, accesses: none }, accesses)),
    ]
}

fn header() -> impl Strategy<Value = Header> {
    (0..3_u8, any::<[u32; 2]>(), ".{0,30}", ".{0,30}", ".{0,30}").prop_map(
        |(capture, [pid, devices], command, directory, versions)| Header {
            region: (pid % 3 == 0).then_some((OpNumber(u64::from(pid)), OpNumber(u64::MAX))),
            capture: [CaptureKind::Virtual, CaptureKind::Cuda, CaptureKind::Sim][capture as usize],
            pid,
            devices,
            command,
            directory,
            versions,
            closed: true,
        },
    )
}

/// Traces of up to `length` events.
fn traces(length: usize) -> impl Strategy<Value = Trace> {
    (header(), tables()).prop_flat_map(move |(header, tables)| {
        let counts = Counts {
            strings: tables.strings.len() as u32,
            frames: tables.frames.len() as u32,
            sites: tables.sites.len() as u32,
            shapes: tables.shapes.len() as u32,
        };
        let events = vec((1..4_u64, 0..4_u32, 0..counts.sites, kind(counts)), 0..length);
        (Just(header), Just(tables), events).prop_map(move |(header, tables, events)| {
            assert!(counts.frames as usize == tables.frames.len());
            let mut trace = Trace { header, tables, ..Trace::default() };
            let mut number = 0;
            for (step, thread, site, (mut kind, accesses)) in events {
                number += step;
                if let EventKind::Op { accesses: range, .. } | EventKind::HostAccess { accesses: range, .. } =
                    &mut kind
                {
                    *range = trace.push_accesses(&accesses);
                }
                trace.events.push(Event {
                    number: OpNumber(number),
                    thread: ThreadId(thread),
                    site: SiteId(site),
                    kind,
                });
            }
            trace
        })
    })
}

/// Whether the events are those of `whole` up to some point, then gaps that say what is missing.
fn is_checked_prefix(part: &Trace, whole: &Trace) -> bool {
    let same = part.events.iter().zip(&whole.events).take_while(|(a, b)| a == b).count();
    let rest = &part.events[same..];
    let said = rest.iter().all(|event| {
        matches!(
            event.kind,
            EventKind::Gap { reason: GapReason::Damaged | GapReason::NotClosed | GapReason::Lost, .. }
        )
    });
    said && (same == whole.events.len() || !rest.is_empty())
}

proptest! {
    #[test]
    fn what_is_written_is_read(trace in traces(60)) {
        prop_assert_eq!(read_bytes(&write_bytes(&trace).unwrap()).unwrap(), trace);
    }

    #[test]
    fn a_cut_keeps_a_prefix_and_says_so(trace in traces(40), share in any::<prop::sample::Index>()) {
        let bytes = write_bytes(&trace).unwrap();
        let length = share.index(bytes.len());
        match read_bytes(&bytes[..length]) {
            Ok(part) => {
                prop_assert!(length >= PAGE);
                prop_assert!(is_checked_prefix(&part, &trace), "{part:?}");
                let said = matches!(
                    part.events.last().unwrap().kind,
                    EventKind::Gap { reason: GapReason::Damaged, .. }
                );
                prop_assert!(said);
            }
            Err(ReadError::Empty) => prop_assert_eq!(length, 0),
            Err(ReadError::HeaderCut { length: at }) => prop_assert!(at == length && length < PAGE),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn flips_never_panic_and_what_is_read_can_be_written(
        trace in traces(40),
        flips in vec((any::<prop::sample::Index>(), 0..8_u8), 1..12),
    ) {
        let mut bytes = write_bytes(&trace).unwrap();
        for (index, bit) in flips {
            let at = index.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(read) = read_bytes(&bytes) {
            let again = read_bytes(&write_bytes(&read).unwrap()).unwrap();
            prop_assert_eq!(again.events.first(), read.events.first());
        }
    }

    #[test]
    fn junk_is_no_trace(bytes in vec(any::<u8>(), 1..200)) {
        prop_assume!(bytes[0] != b'S');
        prop_assert!(matches!(read_bytes(&bytes), Err(ReadError::NotATrace)));
    }

    #[test]
    fn junk_after_a_header_never_panics(junk in vec(any::<u8>(), 0..9000), end in any::<u64>()) {
        let mut bytes = write_bytes(&Trace::default()).unwrap();
        bytes.extend(junk);
        bytes[FileHeader::END_OFFSET..FileHeader::END_OFFSET + 8].copy_from_slice(&end.to_le_bytes());
        let _ = read_bytes(&bytes);
    }
}

/// Two threads that take turns.
fn turns(events: u64) -> Trace {
    let mut trace = Trace { header: Header { closed: true, ..Header::default() }, ..Trace::default() };
    let label = trace.tables.intern_string("aten::mul");
    for number in 1..=events {
        let access = Access {
            block: BlockId(1),
            mode: AccessMode::Update,
            offset: 0,
            length: 4,
            shape: ShapeId(0),
            argument: label,
        };
        let accesses = trace.push_accesses(&[access, access]);
        let kind = EventKind::Op {
            stream: StreamId(0),
            label,
            kind: OpKind::Kernel,
            forward_site: SiteId(0),
            accesses,
        };
        let thread = ThreadId((number % 2) as u32);
        trace.events.push(Event { number: OpNumber(number), thread, site: SiteId(0), kind });
    }
    trace
}

#[test]
fn every_truncation_of_a_trace_of_many_chunks_is_a_prefix() {
    let trace = turns(3_000);
    let bytes = write_bytes(&trace).unwrap();
    assert!(bytes.len() > 4 * super::write::CHUNK);
    let mut kept = 0;
    for length in (PAGE..bytes.len()).step_by(509) {
        let part = read_bytes(&bytes[..length]).unwrap();
        assert!(is_checked_prefix(&part, &trace), "{length}");
        assert!(part.events.len() >= kept, "a longer file holds no less: {length}");
        kept = part.events.len();
    }
    assert!(kept > 2_000, "{kept}");
}

#[test]
fn every_byte_may_be_any_other() {
    let trace = turns(6);
    let bytes = write_bytes(&trace).unwrap();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let _ = read_bytes(&bytes);
        }
    }
}

#[test]
fn damage_in_one_thread_ends_the_log_for_all() {
    let trace = turns(100);
    let mut bytes = write_bytes(&trace).unwrap();
    // The first record of event 51: thread 1 has the odd numbers, three records each.
    let chunk = (PAGE..bytes.len())
        .step_by(PAGE)
        .find(|&at| bytes[at..at + 4] == *b"SSCK" && bytes[at + 4] == 1 && bytes[at + 8] == 1)
        .unwrap();
    let at = chunk + super::layout::CHUNK_HEADER + 25 * 3 * super::record::RECORD;
    bytes[at + 12] = 200;
    let read = read_bytes(&bytes).unwrap();
    assert_eq!(read.events[..49], trace.events[..49]);
    assert_eq!(read.events.len(), 50);
    let EventKind::Gap { reason, detail } = read.events[49].kind else { panic!() };
    assert_eq!(reason, GapReason::Damaged);
    assert_eq!(read.tables.string(detail), format!("damaged at byte {at}: a record of unknown kind"));
}

#[test]
fn what_is_missing_is_said_in_words() {
    let mut bytes = write_bytes(&turns(10)).unwrap();
    bytes[FileHeader::CLOSED_OFFSET] = 0;
    bytes[FileHeader::LOST_FROM_OFFSET] = 6;
    let read = read_bytes(&bytes).unwrap();
    let gaps: Vec<_> = read.events[5..]
        .iter()
        .map(|event| match event.kind {
            EventKind::Gap { reason, detail } => (reason, read.tables.string(detail)),
            _ => panic!("{event:?}"),
        })
        .collect();
    assert_eq!(
        gaps,
        [(GapReason::Lost, "the trace could not be written from #6 on"), (GapReason::NotClosed, "")]
    );
}

#[test]
fn files_that_are_no_traces_are_named_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &std::path::Path| read(path).unwrap_err().to_string();
    assert_eq!(message(folder.path()), "it is a directory; name a .sstrace file");
    assert_eq!(message(&folder.path().join("nowhere")), "no such file");
    let path = folder.path().join("file");
    let say = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        message(&path)
    };
    assert_eq!(say(b""), "the file is empty; was the recorded program stopped before it began?");
    assert_eq!(say(b"import torch"), "it is not a streamsan trace (it does not start with SSTRACE)");
    assert_eq!(say(b"SSTR"), "the file is cut off at byte 4, inside its header of 4096 bytes");
    let mut bytes = write_bytes(&Trace::default()).unwrap();
    bytes[8] = VERSION as u8 + 1;
    assert_eq!(
        say(&bytes),
        "it has version 2 of the format and this build reads up to 1; use a newer streamsan"
    );
    bytes[8] = VERSION as u8;
    bytes[16] = 9;
    assert_eq!(say(&bytes), "the header is damaged at byte 16: capture kind is 9");
}

#[test]
fn a_trace_goes_to_a_file_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let trace = turns(5);
    write(&trace, &path).unwrap();
    assert_eq!(read(&path).unwrap(), trace);
}

#[test]
fn unsound_traces_are_not_written() {
    let mut trace = turns(2);
    trace.events.swap(0, 1);
    assert_eq!(write_bytes(&trace).unwrap_err().to_string(), "event #1 is out of order");
    let mut trace = turns(1);
    trace.accesses.clear();
    assert_eq!(write_bytes(&trace).unwrap_err().to_string(), "event #1 has accesses outside the trace");
}
