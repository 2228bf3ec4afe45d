//! Ranges, and kernels whose accesses the program tells.

use streamsan_trace::{AccessMode, BlockId, EventKind, GapReason, OpNumber, RangeKind};

use super::{MEMORY, Recorded, SIDE};
use crate::table::RawAccess;

fn raw(address: u64, length: u64) -> RawAccess {
    RawAccess { address, length, shape: 0, mode: AccessMode::Write as u32, argument: 0, reserved: 0 }
}

#[test]
fn a_launch_touches_what_the_program_says_and_is_a_gap_without_that() {
    let recorded = Recorded::with_torch();
    assert_eq!(recorded.annotate(Some(&[raw(MEMORY + 8, 4)])), 0);
    recorded.launch(SIDE, 0, || "mine");
    recorded.launch(SIDE, 0, || "mine");
    assert_eq!(recorded.annotate(None), 2);
    recorded.launch(SIDE, 0, || "mine");
    let trace = recorded.finish();
    let kinds: Vec<&EventKind> = trace.events.iter().skip(2).map(|event| &event.kind).collect();
    let [EventKind::Op { label, accesses, .. }, EventKind::Op { .. }, EventKind::Gap { reason, .. }] =
        kinds[..]
    else {
        panic!("{kinds:?}")
    };
    assert_eq!((trace.tables.string(*label), *reason), ("mine", GapReason::OpaqueKernel));
    let access = trace.accesses(*accesses)[0];
    assert_eq!((access.block, access.offset, access.length), (BlockId(1), 8, 4));
}

#[test]
fn ranges_have_a_label_and_the_place_of_the_call() {
    let recorded = Recorded::with_torch();
    let site = recorded.site(7);
    let label = recorded.string("SS101 because");
    recorded.set_context(site, 0, 0);
    recorded.range_began(RangeKind::Ignore as u32, label.0);
    recorded.range_ended(RangeKind::Ignore as u32);
    recorded.range_began(77, label.0);
    let last = recorded.settled();
    assert_eq!(recorded.file.path(), recorded.path());
    let trace = recorded.finish();
    let [begin, end] = trace.events[2..] else { panic!("{:?}", trace.events) };
    assert_eq!(begin.kind, EventKind::RangeBegin { kind: RangeKind::Ignore, label });
    assert_eq!((begin.site.0, end.number), (site, OpNumber(last)));
    assert_eq!(end.kind, EventKind::RangeEnd { kind: RangeKind::Ignore });
}
