//! The file read while it is written: everything comes once and in order, and as when it is read afterwards.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use streamsan_trace::file::{Follower, TraceFile, read};
use streamsan_trace::{Access, Event, EventKind, GapReason, HostWaitHow, Log, OpNumber, Tables, Trace};

use super::random::call;
use super::{EVENT, MEMORY, Recorded, SIDE};
use crate::table::{RawAccess, TorchCallback};
use crate::{Library, WaitOn};

/// Adds an event to a trace, and looks whether all its names are known.
fn add(trace: &mut Trace, tables: &Tables, event: &Event, accesses: &[Access]) {
    let mut event = *event;
    let known = |access: &Access| {
        access.argument.index() < tables.strings.len() && access.shape.index() < tables.shapes.len()
    };
    assert!(accesses.iter().all(known) && event.site.index() < tables.sites.len(), "{event:?}");
    match &mut event.kind {
        EventKind::Op { label, accesses: range, .. } | EventKind::HostAccess { label, accesses: range } => {
            assert!(label.index() < tables.strings.len());
            *range = trace.push_accesses(accesses);
        }
        _ => assert!(accesses.is_empty()),
    }
    trace.events.push(event);
}

/// Follows the trace at `path` until it is closed. Adds what it takes to `taken`.
fn follow(path: &Path, taken: &AtomicU64) -> Trace {
    let mut trace = Trace::default();
    let mut follower = Follower::open(path).unwrap();
    while !follower.is_closed() {
        let events =
            follower.advance(&mut |tables, event, accesses| add(&mut trace, tables, event, accesses));
        taken.fetch_add(events.unwrap(), Ordering::Relaxed);
    }
    let missing = |_: &Tables, event: &Event, _: &[Access]| panic!("{event:?} was held back");
    assert_eq!(follower.finish(&mut { missing }).unwrap(), 0);
    trace.header = follower.header().unwrap().clone();
    trace.tables = follower.tables().unwrap().clone();
    trace
}

#[test]
fn what_threads_write_comes_once_and_in_order() {
    let recorded = Recorded::with_torch();
    let path = recorded.path();
    let taken = AtomicU64::new(0);
    let followed = thread::scope(|scope| {
        let reader = scope.spawn(|| follow(&path, &taken));
        let writers: Vec<_> = (0..4)
            .map(|index| {
                let (recorded, taken) = (&recorded, &taken);
                scope.spawn(move || {
                    for turn in 0..15_000_u32 {
                        // The follower keeps up, however the threads are scheduled.
                        while turn % 5_000 == 0 && taken.load(Ordering::Relaxed) < u64::from(turn) {
                            thread::yield_now();
                        }
                        // New names all along: the tables grow with the events.
                        let label = recorded.string(&format!("operator {index} {}", turn / 50)).0;
                        let argument = recorded.string(&format!("argument {}", turn / 70)).0;
                        let site =
                            if turn % 100 == 0 { recorded.site(index * 1_000 + turn / 100) } else { 1 };
                        recorded.set_context(site, 0, label);
                        let access = RawAccess {
                            address: MEMORY,
                            length: 4,
                            shape: 0,
                            mode: 1,
                            argument,
                            reserved: 0,
                        };
                        recorded.operation(SIDE, 0, 0, 0, &vec![access; turn as usize % 7]);
                        if turn % 1_000 == 0 {
                            recorded.operation(SIDE, 0, 0, 0, &vec![access; 9_000]);
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        recorded.close();
        reader.join().unwrap()
    });
    let whole = read(&path).unwrap();
    assert_eq!(whole.events.len(), 2 + 4 * 15_000 + 4 * 15);
    assert!(followed == whole, "as read afterwards");
}

#[test]
fn calls_that_come_to_nothing_hold_nothing_back() {
    for seed in 0..20 {
        let recorded = Recorded::with_torch();
        let path = recorded.path();
        for text in ["a", "b"] {
            recorded.string(text);
        }
        let taken = AtomicU64::new(0);
        let followed = thread::scope(|scope| {
            let reader = scope.spawn(|| follow(&path, &taken));
            let writers: Vec<_> = (0..3)
                .map(|index| {
                    let recorded = &recorded;
                    scope.spawn(move || {
                        let mut random = Rng::with_seed(seed * 3 + index);
                        for _ in 0..2_000 {
                            call(recorded, &mut random);
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.join().unwrap();
            }
            recorded.close();
            reader.join().unwrap()
        });
        assert!(followed == read(&path).unwrap(), "seed {seed}");
    }
}

/// The numbers that a follower takes now.
fn advance(follower: &mut Follower) -> Vec<u64> {
    let mut numbers = Vec::new();
    let events = follower.advance(&mut |_, event, _| numbers.push(event.number.0)).unwrap();
    assert_eq!(events, numbers.len() as u64);
    numbers
}

#[test]
fn a_call_that_waits_for_its_callback_holds_back_what_follows() {
    let recorded = Recorded::with_torch();
    let mut follower = Follower::open(&recorded.path()).unwrap();
    assert_eq!(advance(&mut follower), [1, 2]);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    let other =
        || thread::scope(|scope| scope.spawn(|| recorded.operation(SIDE, 0, 0, 0, &[])).join().unwrap());
    other();
    assert_eq!(advance(&mut follower), []);
    recorded.torch_callback(TorchCallback::EventRecord, EVENT, SIDE);
    assert_eq!(advance(&mut follower), [3, 4]);

    recorded.host_wait_begin(WaitOn::Stream(SIDE, 0));
    other();
    assert_eq!((advance(&mut follower), follower.last()), (vec![], OpNumber(4)));
    recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::TorchPython);
    assert_eq!(advance(&mut follower), [5, 6, 7]);

    // A wait that fails.
    recorded.host_wait_begin(WaitOn::Device(0));
    other();
    assert_eq!(advance(&mut follower), []);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    assert_eq!(advance(&mut follower), [9, 10]);

    // A last number without an event is taken too: nobody waits for it.
    recorded.host_wait_begin(WaitOn::Device(0));
    drop(recorded.begin());
    assert_eq!((advance(&mut follower), follower.last()), (vec![], OpNumber(11)));
}

#[test]
fn at_the_end_missing_numbers_hold_nothing_back() {
    let recorded = Recorded::with_torch();
    let path = recorded.path();
    let mut follower = Follower::open(&path).unwrap();
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    thread::scope(|scope| scope.spawn(|| recorded.operation(SIDE, 0, 0, 0, &[])).join().unwrap());
    assert_eq!(advance(&mut follower), [1, 2]);
    let mut rest = Vec::new();
    let taken = follower.finish(&mut |_, event, _| rest.push(*event)).unwrap();
    assert_eq!((taken, rest.len()), (2, 2));
    assert_eq!(rest, read(&path).unwrap().events[2..]);
    assert_eq!(rest[0].number, OpNumber(4));
    assert!(matches!(rest[1].kind, EventKind::Gap { reason: GapReason::NotClosed, .. }));
    assert_eq!(follower.finish(&mut |_, event, _| panic!("{event:?}")).unwrap(), 0);
}

#[test]
fn a_follower_may_come_before_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut follower = Follower::open(&path).unwrap();
            assert!(follower.header().is_none());
            ready.store(true, Ordering::Release);
            let mut events = 0;
            while !follower.is_closed() {
                events += follower.advance(&mut |_, _, _| ()).unwrap();
            }
            events
        });
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let recorder = crate::Recorder::create(&crate::StartOptions {
            path: path.clone(),
            capture: streamsan_trace::CaptureKind::Virtual,
            devices: 1,
        });
        let recorder = recorder.unwrap();
        for _ in 0..100 {
            recorder.operation(SIDE, 0, 0, 0, &[]);
        }
        recorder.close();
        assert_eq!(reader.join().unwrap(), 101, "the stream and the operations");
    });
}

#[test]
fn a_trace_opened_while_it_is_written_has_no_holes() {
    let recorded = Recorded::with_torch();
    let path = recorded.path();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for index in 0..4 {
            let (recorded, done) = (&recorded, &done);
            scope.spawn(move || {
                for turn in 0..200_000_u32 {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let label = recorded.string(&format!("operator {index} {}", turn / 200)).0;
                    recorded.set_context(1, 0, label);
                    recorded.operation(SIDE, 0, 0, 0, &[]);
                }
            });
        }
        let mut before = 0;
        for _ in 0..30 {
            let trace = TraceFile::open(&path).unwrap();
            let mut last = 0;
            trace.read(&mut |event, _| {
                assert_eq!(event.number.0, last + 1, "{event:?}");
                last += 1;
            });
            assert_eq!(last, trace.events());
            assert!(last >= before);
            before = last;
        }
        done.store(true, Ordering::Relaxed);
    });
}
