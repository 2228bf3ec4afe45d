//! What a thread holds back is written for it, and a callback that comes after still counts.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use streamsan_trace::file::{Follower, read};
use streamsan_trace::{BlockId, EventId, EventKind, OpNumber};

use super::{EVENT, MEMORY, Recorded, SIDE, SIDE_ID};
use crate::table::TorchCallback as Callback;
use crate::{Library, Recorder};

/// Frees a block on another thread, which records a guard, or a program's event, and makes no further call until `then`
/// has run.
fn freed_elsewhere(recorded: &Recorded, then: impl FnOnce(), confirmed: bool) {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
            recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
            recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
            barrier.wait();
            barrier.wait();
            if confirmed {
                recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
            }
        });
        barrier.wait();
        then();
        barrier.wait();
    });
}

#[test]
fn a_thread_that_goes_quiet_after_a_free_holds_nothing_back() {
    let recorded = Recorded::with_torch();
    let path = recorded.path();
    let mut follower = Follower::open(&path).unwrap();
    freed_elsewhere(
        &recorded,
        || {
            recorded.operation(SIDE, 0, 0, 0, &[]);
            let last = recorded.settled();
            follower.advance(&mut |_, _, _| ()).unwrap();
            assert!(follower.last() < OpNumber(last), "the guard is held back");
            recorded.settle_others(last - 2);
            follower.advance(&mut |_, _, _| ()).unwrap();
            assert!(follower.last() < OpNumber(last), "it is too young");
            recorded.settle_others(last);
            follower.advance(&mut |_, _, _| ()).unwrap();
            assert_eq!(follower.last(), OpNumber(last));
        },
        false,
    );
    let kinds = recorded.kinds();
    let guard = EventKind::FreeGuard { block: BlockId(2), stream: SIDE_ID };
    assert_eq!(kinds.iter().filter(|&&kind| kind == guard).count(), 1);
}

#[test]
fn a_late_callback_makes_the_record_the_programs() {
    let recorded = Recorded::with_torch();
    freed_elsewhere(&recorded, || recorded.settle_others(recorded.settled()), true);
    recorded.event_waited(0, 0, EVENT, Library::TorchPython);
    recorded.torch_callback(Callback::EventWait, EVENT, 0);
    let kinds = recorded.kinds();
    let record = EventKind::EventRecord { event: EventId(0), stream: SIDE_ID };
    let place = kinds.iter().position(|&kind| kind == record).expect("it is there");
    assert!(matches!(kinds[place + 1], EventKind::EventWait { event: EventId(0), .. }));
    assert!(!kinds.iter().any(|kind| matches!(kind, EventKind::FreeDone { .. })));
}

#[test]
fn what_a_callback_follows_for_certain_is_left_alone() {
    let recorded = Recorded::with_torch();
    let held = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
            held.wait();
            held.wait();
            recorded.set_context(recorded.site(77), 0, 0);
            recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
        });
        held.wait();
        recorded.settle_others(u64::MAX);
        held.wait();
    });
    let trace = recorded.finish();
    let record =
        trace.events.iter().find(|event| matches!(event.kind, EventKind::EventRecord { .. })).unwrap();
    assert_eq!(trace.tables.user_frame(record.site).unwrap().1.line, 77);
}

/// One thread's calls: frees with and without guards, and records of the program, whose callback comes. Gives how many
/// records and how many guards it made.
fn calls(recorder: &Recorder, index: u64, random: &mut Rng) -> (usize, usize) {
    let (mut records, mut guards) = (0, 0);
    for _ in 0..500 {
        let event = EVENT + 16 * index + random.u64(0..4);
        let address = MEMORY + (1 << 16) * (index + 1) + 512 * random.u64(0..8);
        match random.u8(0..4) {
            0 | 1 => {
                recorder.torch_callback(Callback::MemoryAllocation, address, 0);
                recorder.torch_callback(Callback::MemoryDeallocation, address, 0);
                if random.bool() {
                    recorder.event_recorded(event, SIDE, 0, Library::C10Cuda);
                    guards += 1;
                }
            }
            2 => {
                let by = [Library::C10Cuda, Library::TorchPython][random.usize(0..2)];
                recorder.event_recorded(event, SIDE, 0, by);
                if random.bool() {
                    std::thread::yield_now();
                }
                recorder.torch_callback(Callback::EventRecord, event, SIDE);
                records += 1;
            }
            _ => recorder.operation(SIDE, 0, 0, 0, &[]),
        }
    }
    (records, guards)
}

/// However calls and settling are interleaved: each record of the program is there once, so is each guard, and a reader
/// comes to the end while all threads are quiet.
#[test]
fn settling_for_others_loses_nothing() {
    for seed in 0..4 {
        let recorded = Recorded::with_torch();
        let path = recorded.path();
        let done = AtomicUsize::new(0);
        let ready = Barrier::new(4);
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|index| {
                    let (recorded, done, ready) = (&recorded, &done, &ready);
                    scope.spawn(move || {
                        let made = calls(recorded, index, &mut Rng::with_seed(seed * 3 + index));
                        done.fetch_add(1, Ordering::Relaxed);
                        // Alive and quiet.
                        ready.wait();
                        made
                    })
                })
                .collect();
            while done.load(Ordering::Relaxed) < 3 {
                recorded.settle_others(u64::MAX);
            }
            let last = recorded.settled();
            // A thread may be about to leave its last call.
            let mut follower = Follower::open(&path).unwrap();
            let deadline = Instant::now() + Duration::from_secs(120);
            while follower.last() < OpNumber(last) && Instant::now() < deadline {
                recorded.settle_others(u64::MAX);
                follower.advance(&mut |_, _, _| ()).unwrap();
            }
            assert!(follower.last() >= OpNumber(last), "seed {seed}");
            ready.wait();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        recorded.close();
        let trace = read(&path).unwrap();
        let count =
            |wanted: fn(&EventKind) -> bool| trace.events.iter().filter(|event| wanted(&event.kind)).count();
        let records = count(|kind| matches!(kind, EventKind::EventRecord { .. }));
        assert_eq!(records, made.iter().map(|made| made.0).sum::<usize>(), "seed {seed}");
        // A record that was settled too early left a guard behind; none is lost.
        let guards = count(|kind| matches!(kind, EventKind::FreeGuard { .. }));
        assert!(guards >= made.iter().map(|made| made.1).sum(), "seed {seed}");
        let numbers: Vec<_> = trace.events.iter().map(|event| event.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "seed {seed}");
    }
}
