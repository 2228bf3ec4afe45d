//! Calls in any order, from several threads at once, with handles that nobody made: the trace is always sound.

use fastrand::Rng;
use streamsan_trace::{DeviceId, EventKind, GapReason, HostWaitHow, MemorySpace, OpKind};

use super::{EVENT, MEMORY, Recorded, SIDE};
use crate::collectives::CollectiveCall;
use crate::table::{RawAccess, TorchCallback as Callback};
use crate::{CopyCall, CopyLayout, Library, Recorder, WaitOn};

fn library(random: &mut Rng) -> Library {
    [Library::TorchPython, Library::C10Cuda, Library::TorchCuda, Library::Other][random.usize(0..4)]
}

fn target(random: &mut Rng) -> WaitOn {
    match random.u8(0..3) {
        0 => WaitOn::Event(EVENT + random.u64(0..4)),
        1 => WaitOn::Stream([0, 1, 2, SIDE, SIDE + 1][random.usize(0..5)], random.u32(0..2)),
        _ => WaitOn::Device(random.u32(0..2)),
    }
}

fn access(random: &mut Rng) -> RawAccess {
    RawAccess {
        address: [0, MEMORY, MEMORY + 512, u64::MAX][random.usize(0..4)].wrapping_add(random.u64(0..600)),
        length: [0, 1, 64, u64::MAX][random.usize(0..4)],
        shape: random.u32(0..4),
        mode: random.u32(0..6),
        argument: random.u32(0..4),
        reserved: 0,
    }
}

pub(super) fn call(recorder: &Recorder, random: &mut Rng) {
    let event = EVENT + random.u64(0..4);
    let stream = [0, 1, 2, SIDE, SIDE + 1, SIDE + 2][random.usize(0..6)];
    let device = random.u32(0..2);
    let address = MEMORY + 512 * random.u64(0..6);
    let by = library(random);
    match random.u8(0..27) {
        0 => recorder.stream_created(stream | SIDE, device, random.bool(), 0),
        1 => recorder.stream_destroyed(stream),
        2 => recorder.event_created(event),
        3 => recorder.event_destroyed(event),
        4..=6 => recorder.event_recorded(event, stream, device, by),
        7 => recorder.event_waited(stream, device, event, by),
        8 => recorder.host_wait_begin(target(random)),
        9 => recorder.host_waited(target(random), HostWaitHow::Query, by),
        10 => recorder.host_waited(target(random), HostWaitHow::Synchronize, by),
        11 => recorder.memory_allocated(MemorySpace::Device(DeviceId(device)), address, 4096),
        12 => recorder.memory_freed(address),
        13 => recorder.copy(&CopyCall {
            stream,
            device,
            destination: address,
            source: random.u64(..),
            layout: CopyLayout::Pitched {
                width: random.u64(0..100),
                height: random.u64(0..9),
                destination_pitch: random.u64(..),
                source_pitch: random.u64(0..200),
            },
            kind: OpKind::CopyDeviceToDevice,
            blocking: random.bool(),
            label: "memcpy",
        }),
        14 => {
            recorder.launch(stream, device, || "kernel");
        }
        15 => recorder.set_context(random.u32(0..4), random.u32(0..4), random.u32(0..4)),
        16 => {
            let accesses: Vec<RawAccess> = (0..random.usize(0..5)).map(|_| access(random)).collect();
            recorder.operation(stream, device, random.u32(0..12), random.u32(0..2), &accesses);
        }
        17 => recorder.host_access(&[access(random)]),
        18 => recorder.torch_callback(Callback::MemoryAllocation, address, stream),
        19 | 20 => recorder.torch_callback(Callback::MemoryDeallocation, address, 0),
        21 => recorder.block_size(address, random.u64(..)),
        22 => recorder.unrecorded_wait(random.u64(0..3), stream, device),
        23 => recorder.work_begin(random.bool()),
        24 => recorder.work_end(recorder.collective_end(), stream, random.u32(0..4)),
        25 => {
            let call = CollectiveCall { stream, device, name: "gather", touched: &[] };
            recorder.collective(&call, recorder.call_place());
        }
        _ => {
            let callbacks = [
                Callback::EventRecord,
                Callback::EventWait,
                Callback::EventSynchronization,
                Callback::StreamSynchronization,
                Callback::DeviceSynchronization,
            ];
            recorder.torch_callback(callbacks[random.usize(0..5)], event, stream);
        }
    }
}

#[test]
fn any_calls_give_a_sound_trace() {
    for seed in 0..40 {
        let recorded = Recorded::start();
        for text in ["a", "b"] {
            recorded.string(text);
        }
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let shared: &Recorder = &recorded;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(seed * 3 + thread);
                    for _ in 0..1_000 {
                        call(shared, &mut random);
                    }
                });
            }
        });
        let trace = recorded.finish();
        assert!(trace.events.len() > 1_000);
        for event in &trace.events {
            let damaged = matches!(event.kind, EventKind::Gap { reason: GapReason::Damaged, .. });
            assert!(!damaged, "seed {seed}: {:?}", trace.tables.strings);
        }
        introduced_before_use(&trace, seed);
        guards_are_balanced(&trace, seed);
    }
}

/// Streams and blocks are announced before anything names them.
fn introduced_before_use(trace: &streamsan_trace::Trace, seed: u64) {
    let (mut streams, mut blocks) = (0, 1);
    for event in &trace.events {
        match event.kind {
            EventKind::StreamCreate { stream, .. } => {
                assert_eq!(stream.0, streams, "seed {seed}: {event:?}");
                streams += 1;
            }
            EventKind::Alloc { block, .. } => {
                assert_eq!(block.0, blocks, "seed {seed}: {event:?}");
                blocks += 1;
            }
            EventKind::EventRecord { stream, .. } | EventKind::EventWait { stream, .. } => {
                assert!(stream.0 < streams, "seed {seed}: {event:?}");
            }
            EventKind::Op { stream, accesses, .. } => {
                assert!(stream.0 < streams, "seed {seed}: {event:?}");
                assert!(trace.accesses(accesses).iter().all(|access| access.block.0 < blocks));
            }
            _ => {}
        }
    }
}

/// No block is done that has no guard.
fn guards_are_balanced(trace: &streamsan_trace::Trace, seed: u64) {
    let mut guarded = std::collections::HashSet::new();
    for event in &trace.events {
        match event.kind {
            EventKind::FreeGuard { block, .. } => {
                guarded.insert(block);
            }
            EventKind::FreeDone { block } => assert!(guarded.contains(&block), "seed {seed}: {event:?}"),
            _ => {}
        }
    }
}
