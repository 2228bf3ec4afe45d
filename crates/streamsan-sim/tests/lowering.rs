//! A program's trace holds what a recorder would have written.

use streamsan_sim::{lower, parse};
use streamsan_trace::{
    AccessMode, BlockId, DeviceId, EventId, EventKind, HostWaitHow, MemorySpace, Observer, OpKind, OpNumber,
    StreamId, WaitTarget,
};

const TEXT: &str = "streams default, side, outer(blocking)\nbuffer x 1000\nbuffer y 4KiB\n\
default: write x[8..100 step 32 run 4]\ndefault: record e\nside: wait e\nside: copy x[0..8] -> y[8..16]\n\
host: query e pending\nhost: query e ready\nhost: sync device\nouter: read x, y\n";

#[test]
fn events_follow_the_model() {
    let program = parse("p.md", TEXT).unwrap();
    let lowered = lower(&program, "p.md", "A / B");
    let trace = &lowered.trace;
    for (index, event) in trace.events.iter().enumerate() {
        assert_eq!(event.number, OpNumber(index as u64 + 1));
        let (_, frame) = trace.tables.user_frame(event.site).unwrap();
        assert_eq!(trace.tables.string(frame.file), "p.md");
        assert_eq!(trace.tables.string(frame.function), "A / B");
        assert_eq!(Some(frame.line), lowered.line(event.number));
        if let Some(step) = lowered.step(event.number) {
            assert_eq!(program.steps[step].line, frame.line);
        }
    }
    let kinds: Vec<_> = trace.events.iter().map(|event| event.kind).collect();
    let created = |stream, blocking, legacy_default| EventKind::StreamCreate {
        stream: StreamId(stream),
        device: DeviceId(0),
        blocking,
        legacy_default,
        priority: 0,
    };
    assert_eq!(
        (kinds[0], kinds[2], kinds[4]),
        (created(0, true, true), created(1, false, false), created(2, true, false))
    );
    let mut blocks = kinds.iter().filter_map(|kind| match *kind {
        EventKind::Alloc { block, space, address, size, .. } => Some((block, space, address, size)),
        _ => None,
    });
    let (x, y) = (blocks.next().unwrap(), blocks.next().unwrap());
    assert_eq!((x.0, x.1, x.3), (BlockId(1), MemorySpace::Device(DeviceId(0)), 1000));
    assert_eq!((y.0, y.3, y.2), (BlockId(2), 4096, x.2 + 1024));
    let rest = &kinds[kinds.len() - 7..];
    let EventKind::Op { stream: StreamId(0), kind: OpKind::Kernel, accesses, .. } = rest[0] else { panic!() };
    let access = trace.accesses(accesses)[0];
    assert_eq!((access.mode, access.offset, access.length), (AccessMode::Write, 8, 68));
    let shape = trace.tables.shape(access.shape).unwrap();
    assert_eq!(
        (shape.run, shape.length(), shape.dimensions[0].size, shape.dimensions[0].stride),
        (4, 68, 3, 32)
    );
    assert_eq!(rest[1], EventKind::EventRecord { event: EventId(0), stream: StreamId(0) });
    assert_eq!(rest[2], EventKind::EventWait { event: EventId(0), stream: StreamId(1) });
    let EventKind::Op { kind: OpKind::CopyDeviceToDevice, accesses, label, .. } = rest[3] else { panic!() };
    assert_eq!(trace.tables.string(label), "copy");
    let modes: Vec<_> = trace.accesses(accesses).iter().map(|access| (access.block, access.mode)).collect();
    assert_eq!(modes, [(BlockId(1), AccessMode::Read), (BlockId(2), AccessMode::Write)]);
    let wait = |target, how| EventKind::HostWait { target, observer: Observer::Program, how };
    assert_eq!(rest[4], wait(WaitTarget::Event(EventId(0)), HostWaitHow::Query));
    assert_eq!(rest[5], wait(WaitTarget::Device(DeviceId(0)), HostWaitHow::Synchronize));
    assert!(matches!(rest[6], EventKind::Op { stream: StreamId(2), .. }));
}

#[test]
fn lifetimes_are_what_the_allocator_shows() {
    let text = "streams default, side, third\npinned p 64\ndefault: alloc x 1000\nside: copy p -> x[0..64]\n\
                host: record_stream x third\nhost: record_stream x default\nhost: record_stream x side\n\
                host: free x\ndefault: alloc y 512 in x[512..1024]\nside: copy y[0..64] -> p\n\
                host: read p[0..8]\nhost: free p\n";
    let program = parse("p.md", text).unwrap();
    let lowered = lower(&program, "p.md", "A");
    let trace = &lowered.trace;
    let steps: Vec<_> = trace
        .events
        .iter()
        .filter(|event| !matches!(event.kind, EventKind::StreamCreate { .. } | EventKind::Name { .. }))
        .map(|event| (lowered.step(event.number), event.kind))
        .collect();
    let alloc = |kind| match kind {
        EventKind::Alloc { block, stream, space, address, size } => (block, stream, space, address, size),
        other => panic!("{other:?} is no allocation"),
    };
    let (pinned, x, y) = (alloc(steps[0].1), alloc(steps[1].1), alloc(steps[10].1));
    assert_eq!((pinned.0, pinned.2, pinned.4), (BlockId(1), MemorySpace::Pinned, 64));
    let cached = MemorySpace::Cached(DeviceId(0));
    assert_eq!((x.0, x.1, x.2, x.4), (BlockId(2), StreamId(0), cached, 1000));
    assert_eq!((y.0, y.2, y.3, y.4), (BlockId(3), cached, x.3 + 512, 512));
    let block = BlockId(2);
    let expected = [
        EventKind::RecordStream { block, stream: StreamId(2) },
        EventKind::RecordStream { block, stream: StreamId(0) },
        EventKind::RecordStream { block, stream: StreamId(1) },
        EventKind::FreeRequest { block },
        // The owner stream needs no guard.
        EventKind::FreeGuard { block, stream: StreamId(2) },
        EventKind::FreeGuard { block, stream: StreamId(1) },
        EventKind::FreeDone { block },
    ];
    let kinds: Vec<_> = steps.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds[3..10], expected);
    assert!(steps[6..9].iter().all(|(step, _)| *step == Some(5)) && steps[9].0 == Some(6));
    let copies: Vec<OpKind> = kinds
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Op { kind, .. } => Some(*kind),
            _ => None,
        })
        .collect();
    assert_eq!(copies, [OpKind::CopyHostToDevice, OpKind::CopyDeviceToHost]);
    let EventKind::HostAccess { accesses, .. } = kinds[12] else { panic!("{:?}", kinds[12]) };
    let access = trace.accesses(accesses)[0];
    assert_eq!((access.block, access.mode, access.length), (BlockId(1), AccessMode::Read, 8));
    assert_eq!(kinds[13], EventKind::FreeRequest { block: BlockId(1) });
    assert_eq!(kinds.len(), 14);
}
