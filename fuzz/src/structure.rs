//! Traces made of events: mostly such as a program gives, some as nobody would write them. All of them can lie
//! in a file.

use arbitrary::{Arbitrary, Result, Unstructured};
use streamsan_trace::{
    Access, AccessMode, Binding, BlockId, CaptureKind, DeviceId, Event, EventId, EventKind, ExecutableId,
    Frame, FrameId, FrameOrigin, GapReason, GraphId, Header, HostWaitHow, MemorySpace, Observer, OpKind,
    OpNumber, RangeKind, Shape, ShapeDimension, ShapeId, SiteId, StreamId, StringId, Subject, ThreadId,
    Trace, VisibleStream, WaitTarget,
};

/// Events of one trace: enough for any interplay, few enough to be quick.
const EVENTS: usize = 400;

/// Reads a trace out of `bytes`.
pub(crate) fn trace(bytes: &mut Unstructured<'_>) -> Result<Trace> {
    let mut trace = Trace {
        header: Header {
            capture: *bytes.choose(&[CaptureKind::Virtual, CaptureKind::Cuda, CaptureKind::Sim])?,
            pid: 7,
            devices: u32::arbitrary(bytes)? % 3,
            command: "python train.py".to_owned(),
            directory: (*bytes.choose(&["", "/home/user", "/", "a\u{1b}"])?).to_owned(),
            versions: String::new(),
            closed: true,
            region: None,
        },
        ..Trace::default()
    };
    tables(bytes, &mut trace)?;
    let mut number = 0_u64;
    while !bytes.is_empty() && trace.events.len() < EVENTS {
        let step = match u8::arbitrary(bytes)? {
            0 => u64::arbitrary(bytes)? >> 8,
            _ => 1,
        };
        let Some(next) = number.checked_add(step.max(1)) else { break };
        number = next;
        let thread = ThreadId(id(bytes, 3)? % 300);
        let site = SiteId(below(bytes, trace.tables.sites.len())?);
        let kind = kind(bytes, &mut trace)?;
        trace.events.push(Event { number: OpNumber(number), thread, site, kind });
    }
    Ok(trace)
}

fn tables(bytes: &mut Unstructured<'_>, trace: &mut Trace) -> Result<()> {
    let tables = &mut trace.tables;
    let words = [
        "side",
        "x",
        "/home/user/train.py",
        "<string>",
        "aten::mul",
        "a\n\u{1b}[2J\u{7}",
        "\u{202e}é",
        "SS101,SS202 why",
    ];
    tables.strings.extend(words.map(str::to_owned));
    if bool::arbitrary(bytes)? {
        tables.strings.push(String::arbitrary(bytes)?);
    }
    let strings = tables.strings.len();
    for _ in 0..1 + u8::arbitrary(bytes)? % 5 {
        let line = u32::from(u8::arbitrary(bytes)?) % 50;
        let wild = u8::arbitrary(bytes)? < 16;
        let mut place = |usual: u32| if wild { u32::arbitrary(bytes) } else { Ok(usual) };
        let (line, end_line, column, end_column) = (place(line)?, place(line)?, place(5)?, place(9)?);
        let origin = if bool::arbitrary(bytes)? { FrameOrigin::User } else { FrameOrigin::Library };
        let (file, function) = (StringId(below(bytes, strings)?), StringId(below(bytes, strings)?));
        tables.frames.push(Frame { file, function, line, end_line, column, end_column, origin });
    }
    let frames = tables.frames.len();
    for _ in 0..1 + u8::arbitrary(bytes)? % 6 {
        let depth = u8::arbitrary(bytes)? % 5;
        let site = (0..depth).map(|_| Ok(FrameId(below(bytes, frames)?))).collect::<Result<_>>()?;
        tables.sites.push(site);
    }
    for _ in 0..u8::arbitrary(bytes)? % 4 {
        tables.shapes.push(shape(bytes)?);
    }
    for _ in 0..u8::arbitrary(bytes)? % 3 {
        let frame = FrameId(below(bytes, frames)?);
        let stream = StreamId(id(bytes, 4)?);
        let expression = StringId(below(bytes, strings)?);
        // Not from the input: those that are kept would mean other traces.
        let binding = Binding::from_number(expression.0 % 3);
        let visible = VisibleStream { frame, stream, expression, binding };
        tables.visible_streams.push(visible);
    }
    Ok(())
}

/// A shape that a file may hold: of any size up to the whole of memory.
fn shape(bytes: &mut Unstructured<'_>) -> Result<Shape> {
    let wild = u8::arbitrary(bytes)? < 32;
    let mut shape = Shape { run: 1 + u64::from(u8::arbitrary(bytes)? % 16), dimensions: Vec::new() };
    for _ in 0..1 + u8::arbitrary(bytes)? % 4 {
        let dimension = if wild {
            ShapeDimension { size: u64::arbitrary(bytes)?.max(2), stride: u64::arbitrary(bytes)?.max(1) }
        } else {
            ShapeDimension {
                size: 2 + u64::from(u8::arbitrary(bytes)? % 8),
                stride: 1 + u64::from(u8::arbitrary(bytes)?),
            }
        };
        shape.dimensions.push(dimension);
        // As the reader has it: the whole must be a length.
        if shape.length() == u64::MAX {
            shape.dimensions.pop();
        }
    }
    if shape.dimensions.is_empty() {
        shape.dimensions.push(ShapeDimension { size: 2, stride: 64 });
    }
    Ok(shape)
}

fn below(bytes: &mut Unstructured<'_>, count: usize) -> Result<u32> {
    Ok(u32::from(u8::arbitrary(bytes)?) % count.max(1) as u32)
}

/// An id: nearly always one of a few.
fn id(bytes: &mut Unstructured<'_>, few: u8) -> Result<u32> {
    Ok(match u8::arbitrary(bytes)? {
        255 => u32::from(u16::arbitrary(bytes)?),
        other => u32::from(other % few),
    })
}

fn size(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u8::arbitrary(bytes)? {
        0 => 0,
        1 => u64::arbitrary(bytes)?,
        2 => 1 << (u8::arbitrary(bytes)? % 64),
        3 => u64::from(u16::arbitrary(bytes)?),
        other => 64 * u64::from(other % 32),
    })
}

fn stream(bytes: &mut Unstructured<'_>) -> Result<StreamId> {
    Ok(StreamId(id(bytes, 5)?))
}

fn block(bytes: &mut Unstructured<'_>) -> Result<BlockId> {
    Ok(BlockId(id(bytes, 9)?))
}

fn target(bytes: &mut Unstructured<'_>) -> Result<WaitTarget> {
    Ok(match u8::arbitrary(bytes)? % 3 {
        0 => WaitTarget::Event(EventId(id(bytes, 6)?)),
        1 => WaitTarget::Stream(stream(bytes)?),
        _ => WaitTarget::Device(DeviceId(id(bytes, 2)?)),
    })
}

fn accesses(bytes: &mut Unstructured<'_>, trace: &Trace) -> Result<Vec<Access>> {
    let count = match u8::arbitrary(bytes)? {
        255 => 40,
        other => other % 4,
    };
    (0..count)
        .map(|_| {
            let (offset, length) = (size(bytes)?, size(bytes)?.max(1));
            Ok(Access {
                block: block(bytes)?,
                mode: AccessMode::from_u8(u8::arbitrary(bytes)? % 4).expect("one of four"),
                offset,
                length: length.min(u64::MAX - offset).max(1),
                shape: ShapeId(below(bytes, trace.tables.shapes.len())?),
                argument: StringId(below(bytes, trace.tables.strings.len())?),
            })
        })
        .filter(|access| {
            access.as_ref().is_ok_and(|access| access.offset.checked_add(access.length).is_some())
        })
        .collect()
}

fn kind(bytes: &mut Unstructured<'_>, trace: &mut Trace) -> Result<EventKind> {
    let strings = trace.tables.strings.len();
    let which = u8::arbitrary(bytes)?;
    if which >= 240 {
        return graph(bytes, strings);
    }
    Ok(match which % 32 {
        0..=7 => {
            let accesses = accesses(bytes, trace)?;
            let kind = *bytes.choose(&[
                OpKind::Kernel,
                OpKind::CopyHostToDevice,
                OpKind::CopyDeviceToHost,
                OpKind::CopyDeviceToDevice,
                OpKind::CopyHostToHost,
                OpKind::Memset,
                OpKind::HostFunction,
                OpKind::Collective,
                OpKind::GraphLaunch,
            ])?;
            EventKind::Op {
                stream: stream(bytes)?,
                label: StringId(below(bytes, strings)?),
                kind,
                forward_site: SiteId(below(bytes, trace.tables.sites.len())?),
                accesses: trace.push_accesses(&accesses),
            }
        }
        8 | 9 => {
            let accesses = accesses(bytes, trace)?;
            EventKind::HostAccess {
                label: StringId(below(bytes, strings)?),
                accesses: trace.push_accesses(&accesses),
            }
        }
        10 | 11 => EventKind::EventRecord { event: EventId(id(bytes, 6)?), stream: stream(bytes)? },
        12 | 13 => EventKind::EventWait { event: EventId(id(bytes, 6)?), stream: stream(bytes)? },
        14 => EventKind::HostWaitBegin { target: target(bytes)? },
        15 | 16 => EventKind::HostWait {
            target: target(bytes)?,
            observer: *bytes.choose(&[
                Observer::Program,
                Observer::Program,
                Observer::DeviceAllocator,
                Observer::PinnedAllocator,
                Observer::Library,
            ])?,
            how: *bytes.choose(&[
                HostWaitHow::Synchronize,
                HostWaitHow::Query,
                HostWaitHow::Elapsed,
                HostWaitHow::Blocking,
            ])?,
        },
        17..=19 => {
            let (address, size) = (size(bytes)? << 4, size(bytes)?);
            EventKind::Alloc {
                block: block(bytes)?,
                stream: stream(bytes)?,
                space: match u8::arbitrary(bytes)? % 8 {
                    0 => MemorySpace::Pageable,
                    1 | 2 => MemorySpace::Pinned,
                    3 => MemorySpace::Device(DeviceId(id(bytes, 2)?)),
                    _ => MemorySpace::Cached(DeviceId(id(bytes, 2)?)),
                },
                address,
                size: size.min(u64::MAX - address),
            }
        }
        20 => EventKind::BlockSize { block: block(bytes)?, size: size(bytes)? },
        21 | 22 => EventKind::FreeRequest { block: block(bytes)? },
        23 => EventKind::FreeGuard { block: block(bytes)?, stream: stream(bytes)? },
        24 => EventKind::FreeDone { block: block(bytes)? },
        25 => EventKind::Escape { block: block(bytes)?, label: StringId(below(bytes, strings)?) },
        26 => EventKind::RecordStream { block: block(bytes)?, stream: stream(bytes)? },
        27 => {
            EventKind::StreamObject { stream: stream(bytes)?, object: id(bytes, 7)?, sharers: id(bytes, 2)? }
        }
        28 => EventKind::StreamCreate {
            stream: stream(bytes)?,
            device: DeviceId(id(bytes, 2)?),
            blocking: bool::arbitrary(bytes)?,
            legacy_default: u8::arbitrary(bytes)? % 4 == 0,
            priority: i32::arbitrary(bytes)?,
        },
        29 => match u8::arbitrary(bytes)? % 3 {
            0 => EventKind::StreamDestroy { stream: stream(bytes)? },
            1 => EventKind::EventDestroy { event: EventId(id(bytes, 9)?) },
            _ => EventKind::Name {
                subject: if bool::arbitrary(bytes)? {
                    Subject::Stream(stream(bytes)?)
                } else {
                    Subject::Block(block(bytes)?)
                },
                name: StringId(below(bytes, strings)?),
                by_user: bool::arbitrary(bytes)?,
            },
        },
        30 => {
            let kind = if bool::arbitrary(bytes)? { RangeKind::Region } else { RangeKind::Ignore };
            if bool::arbitrary(bytes)? {
                EventKind::RangeBegin { kind, label: StringId(below(bytes, strings)?) }
            } else {
                EventKind::RangeEnd { kind }
            }
        }
        _ => EventKind::Gap {
            reason: *bytes.choose(&[
                GapReason::OpaqueKernel,
                GapReason::UnsupportedCall,
                GapReason::Lost,
                GapReason::UnknownOperator,
                GapReason::Forked,
                GapReason::NotClosed,
                GapReason::Damaged,
                GapReason::Undecided,
                GapReason::Escaped,
                GapReason::UnseenGraph,
                GapReason::Forgotten,
                GapReason::NotComputed,
            ])?,
            detail: StringId(below(bytes, strings)?),
        },
    })
}

fn graph(bytes: &mut Unstructured<'_>, strings: usize) -> Result<EventKind> {
    let (graph, executable) = (GraphId(id(bytes, 4)?), ExecutableId(id(bytes, 4)?));
    Ok(match u8::arbitrary(bytes)? % 13 {
        0..=2 => EventKind::CaptureBegin { graph, stream: stream(bytes)? },
        3 | 4 => {
            EventKind::CaptureEnd { graph, stream: stream(bytes)?, valid: u8::arbitrary(bytes)? % 8 != 0 }
        }
        5..=7 => EventKind::GraphLaunch {
            executable,
            stream: stream(bytes)?,
            label: StringId(below(bytes, strings)?),
        },
        8 => EventKind::GraphDestroy { graph },
        9 => EventKind::ExecutableDestroy { executable },
        10 => EventKind::GraphMemory { block: block(bytes)? },
        _ => EventKind::GraphInstantiate { graph, executable },
    })
}
