//! The file while it grows: many threads, large groups, kill, a full disk, close.

use std::fs;

use streamsan_trace::{CaptureKind, EventKind, GapReason, file::read};

use super::{MEMORY, Recorded, SIDE};
use crate::table::RawAccess;
use crate::{RecordError, Recorder, StartOptions};

#[test]
fn a_trace_that_was_not_closed_is_readable_at_any_time() {
    let recorded = Recorded::with_torch();
    let label = recorded.string("aten::relu").0;
    recorded.set_context(recorded.site(7), 0, label);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    let trace = read(&recorded.path()).unwrap();
    assert_eq!(trace.events.len(), 4);
    assert!(
        matches!(trace.events[2].kind, EventKind::Op { label, .. } if trace.tables.string(label) == "aten::relu")
    );
    assert!(matches!(trace.events[3].kind, EventKind::Gap { reason: GapReason::NotClosed, .. }));
}

#[test]
fn nothing_is_recorded_after_closing() {
    let recorded = Recorded::with_torch();
    recorded.close();
    recorded.operation(SIDE, 0, 0, 0, &[]);
    recorded.close();
    assert!(!recorded.is_recording());
    assert_eq!(read(&recorded.path()).unwrap().events.len(), 2);
}

#[test]
fn a_file_that_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parents.sstrace");
    fs::write(&path, "parent").unwrap();
    let options = StartOptions { path: path.clone(), capture: CaptureKind::Virtual, devices: 1 };
    let error = Recorder::create(&options).unwrap_err();
    assert!(matches!(error, RecordError::File { .. }));
    assert!(error.to_string().ends_with("the file exists; remove it, or name another one"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"parent");
}

#[test]
fn threads_write_chunks_of_their_own_and_the_log_is_one() {
    let recorded = Recorded::with_torch();
    let access = RawAccess { address: MEMORY, length: 4, shape: 0, mode: 1, argument: 0, reserved: 0 };
    std::thread::scope(|scope| {
        for index in 0..4 {
            let recorded = &recorded;
            scope.spawn(move || {
                let label = recorded.string(&format!("operator {index}")).0;
                recorded.set_context(0, 0, label);
                for _ in 0..5_000 {
                    recorded.operation(SIDE, 0, 0, 0, &[access, access]);
                }
            });
        }
    });
    let trace = recorded.finish();
    assert_eq!(trace.events.len(), 2 + 4 * 5_000);
    assert_eq!(trace.accesses.len(), 2 * 4 * 5_000);
    assert!(trace.events.windows(2).all(|pair| pair[0].number.0 + 1 == pair[1].number.0));
    for event in &trace.events[2..] {
        let EventKind::Op { label, accesses, .. } = event.kind else { panic!("{event:?}") };
        let label = trace.tables.string(label);
        let of_thread = trace.events[2..].iter().find(|first| first.thread == event.thread).unwrap();
        let EventKind::Op { label: first, .. } = of_thread.kind else { panic!("{of_thread:?}") };
        assert_eq!(label, trace.tables.string(first));
        assert_eq!(accesses.count, 2);
    }
}

#[test]
fn a_group_larger_than_a_chunk_has_a_chunk_of_its_own() {
    let recorded = Recorded::with_torch();
    let access = RawAccess { address: MEMORY, length: 4, shape: 0, mode: 0, argument: 0, reserved: 0 };
    recorded.operation(SIDE, 0, 0, 0, &vec![access; 10_000]);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    let text = "x".repeat(200_000);
    let label = recorded.string(&text).0;
    recorded.set_context(0, 0, label);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    let trace = recorded.finish();
    assert_eq!((trace.events.len(), trace.accesses.len()), (5, 10_000));
    assert!(
        matches!(trace.events[4].kind, EventKind::Op { label, .. } if trace.tables.string(label) == text)
    );
}

#[test]
fn a_held_call_is_written_at_the_close() {
    let recorded = Recorded::with_torch();
    recorded.event_recorded(super::EVENT, SIDE, 0, crate::Library::TorchPython);
    assert!(matches!(recorded.kinds()[..], [EventKind::EventRecord { .. }]));
}

#[test]
fn a_fork_is_a_gap_in_the_parent() {
    let recorded = Recorded::with_torch();
    recorded.forked();
    recorded.forked();
    assert!(matches!(recorded.kinds()[..], [EventKind::Gap { reason: GapReason::Forked, .. }]));
}
