//! A trace of another process, read while that process writes it and then is killed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use streamsan_record::table::{RawAccess, TorchCallback};
use streamsan_record::{Library, StartOptions, recorder, start, table};
use streamsan_trace::file::{Follower, read};
use streamsan_trace::{Access, CaptureKind, DeviceId, Event, EventKind, GapReason, MemorySpace, Trace};

/// Names the trace of the child.
const TRACE: &str = "STREAMSAN_TEST_FOLLOWED";
const SIDE: u64 = 0x5000;
const MEMORY: u64 = 0x7000_0000;

/// Records until it is killed.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let path = std::env::var_os(TRACE).expect("the test sets it").into();
    start(StartOptions { path, capture: CaptureKind::Virtual, devices: 1 }).unwrap();
    let recorder = recorder().unwrap();
    recorder.stream_created(SIDE, 0, false, 0);
    recorder.memory_allocated(MemorySpace::Device(DeviceId(0)), MEMORY, 1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            scope.spawn(move || {
                let table = table();
                for turn in 0.. {
                    let name = format!("operator {thread} {}", turn / 64);
                    let access = RawAccess {
                        address: MEMORY + thread * 4096,
                        length: 64,
                        shape: 0,
                        mode: 2,
                        argument: 0,
                        reserved: 0,
                    };
                    // SAFETY: the pointers are of values that live through the calls.
                    unsafe {
                        let label = (table.intern_string)(name.as_ptr(), name.len());
                        (table.set_context)(0, 0, label);
                        (table.operation)(SIDE, 0, 0, 0, &raw const access, 1);
                        recorder.event_recorded(0x9000 + thread, SIDE, 0, Library::TorchPython);
                        (table.torch_callback)(TorchCallback::EventRecord as u32, 0x9000 + thread, SIDE);
                    }
                }
            });
        }
    });
}

fn add(trace: &mut Trace, event: &Event, accesses: &[Access]) {
    let mut event = *event;
    if let EventKind::Op { accesses: range, .. } = &mut event.kind {
        *range = trace.push_accesses(accesses);
    }
    trace.events.push(event);
}

/// Follows a process until there are `events` events, then kills it.
fn follow_and_kill(path: &Path, events: usize) {
    let mut follower = Follower::open(path).unwrap();
    let mut recording = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(TRACE, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut trace = Trace::default();
    let begin = Instant::now();
    while trace.events.len() < events {
        assert!(begin.elapsed() < Duration::from_secs(300), "{} events", trace.events.len());
        follower.advance(&mut |_, event, accesses| add(&mut trace, event, accesses)).unwrap();
    }
    recording.kill().unwrap();
    recording.wait().unwrap();
    follower.advance(&mut |_, event, accesses| add(&mut trace, event, accesses)).unwrap();
    assert!(!follower.is_closed());
    follower.finish(&mut |_, event, accesses| add(&mut trace, event, accesses)).unwrap();
    trace.header = follower.header().unwrap().clone();
    trace.tables = follower.tables().unwrap().clone();
    let last = trace.events.last().unwrap().kind;
    assert!(matches!(last, EventKind::Gap { reason: GapReason::NotClosed, .. }), "{last:?}");
    assert!(trace == read(path).unwrap(), "as read afterwards");
}

#[test]
fn a_process_is_followed_until_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for events in [1, 100, 3_000, 50_000] {
        follow_and_kill(&folder.path().join(format!("{events}.sstrace")), events);
    }
}
