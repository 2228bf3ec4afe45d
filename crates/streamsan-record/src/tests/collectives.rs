//! Collectives, as torch's process group makes them.

use streamsan_trace::{Access, AccessMode, EventId, EventKind, HostWaitHow, Observer, OpKind, WaitTarget};

use super::{EVENT, MEMORY, Recorded, SIDE, SIDE_ID};
use crate::collectives::{Collective, CollectiveCall, Rank};
use crate::table::TorchCallback as Callback;
use crate::{Library, WaitOn};

/// A gather of 16 bytes into the 32 after them, asked for at line 10 and enqueued at line 20; then its end is recorded.
fn gather(recorded: &Recorded) {
    recorded.set_context(recorded.site(10), 0, 0);
    let place = recorded.call_place();
    recorded.set_context(recorded.site(20), 0, 0);
    let touched = Collective::AllGather.touches(MEMORY, MEMORY + 16, 16, Rank { own: 0, all: 2 });
    let call = CollectiveCall { stream: SIDE, device: 0, name: "nccl:all_gather", touched: &touched };
    recorded.collective(&call, place);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchCuda);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
}

#[test]
fn it_is_an_operation_at_the_place_of_its_call() {
    let recorded = Recorded::with_torch();
    gather(&recorded);
    let trace = recorded.finish();
    let operation = trace.events.iter().find(|event| matches!(event.kind, EventKind::Op { .. })).unwrap();
    assert_eq!(trace.tables.user_frame(operation.site).unwrap().1.line, 10);
    let EventKind::Op { stream, label, kind, .. } = operation.kind else { unreachable!() };
    assert_eq!((stream, kind), (SIDE_ID, OpKind::Collective));
    assert_eq!(trace.tables.string(label), "nccl:all_gather");
    let bytes = |access: &Access| (access.mode, access.offset, access.length);
    let touched: Vec<_> = trace.accesses.iter().map(bytes).collect();
    assert_eq!(touched, [(AccessMode::Read, 0, 16), (AccessMode::Write, 16, 32)]);
}

/// Who is said to have asked for the end of the gather.
fn observers(ask: impl FnOnce(&Recorded) + Send) -> Vec<Observer> {
    let recorded = Recorded::with_torch();
    gather(&recorded);
    std::thread::scope(|scope| scope.spawn(|| ask(&recorded)).join()).unwrap();
    let kinds = recorded.kinds();
    let target = WaitTarget::Event(EventId(0));
    kinds
        .iter()
        .filter_map(|kind| match *kind {
            EventKind::HostWait { target: on, observer, .. } if on == target => Some(observer),
            _ => None,
        })
        .collect()
}

#[test]
fn a_program_that_asks_whether_it_is_done_knows_it_then() {
    let asked = observers(|recorded| {
        recorded.set_context(recorded.site(30), 0, 0);
        assert!(!recorded.event_is_allocators(EVENT), "answered as late as may be");
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
    });
    assert_eq!(asked, [Observer::Program]);
}

#[test]
fn a_watchdog_that_asks_orders_nothing() {
    let asked = observers(|recorded| {
        assert!(recorded.event_is_allocators(EVENT), "answered at once");
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
    });
    assert_eq!(asked, [Observer::Library]);
}

#[test]
fn only_the_first_record_in_its_stream_is_its_end() {
    let recorded = Recorded::with_torch();
    gather(&recorded);
    recorded.event_recorded(EVENT + 1, SIDE, 0, Library::TorchCuda);
    recorded.torch_callback(Callback::EventRecord, EVENT + 1, SIDE);
    assert!(!recorded.event_is_allocators(EVENT));
    assert!(recorded.event_is_allocators(EVENT + 1), "the pinned allocator's");
}
