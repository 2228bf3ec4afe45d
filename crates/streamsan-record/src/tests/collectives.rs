//! Collectives, as torch's process group makes them.

use streamsan_trace::{
    Access, AccessMode, EventId, EventKind, HostWaitHow, Observer, OpKind, StreamId, WaitTarget,
};

use super::{EVENT, MEMORY, Recorded, SIDE, SIDE_ID};
use crate::collectives::{Collective, CollectiveCall, Rank};
use crate::table::{RawEnd, TorchCallback as Callback};
use crate::works::{HOST_KNOWS, STREAM_WAITS};
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
        recorded.work_begin(true);
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
        recorded.work_end(recorded.collective_end(), 0, HOST_KNOWS);
    });
    assert_eq!(asked, [Observer::Program]);
}

#[test]
fn a_poll_by_the_way_orders_nothing() {
    let asked = observers(|recorded| {
        recorded.set_context(recorded.site(30), 0, 0);
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
        recorded.work_begin(false);
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
        recorded.work_end(RawEnd::default(), 0, 0);
    });
    assert_eq!(asked, [Observer::Library; 2]);
}

/// What is recorded when a method of the gather's work object returns; `meanwhile` is what it asked of the runtime.
fn after_method(holds: u32, meanwhile: impl FnOnce(&Recorded)) -> Vec<EventKind> {
    after_method_on(SIDE + 1, holds, meanwhile)
}

/// The same where this stream is current; the gather is in `SIDE`.
fn after_method_on(stream: u64, holds: u32, meanwhile: impl FnOnce(&Recorded)) -> Vec<EventKind> {
    let recorded = Recorded::with_torch();
    gather(&recorded);
    let end = recorded.collective_end();
    assert_eq!(end, RawEnd { event: EVENT, number: 1, device: 0, reserved: 0 });
    let before = recorded.settled() as usize;
    recorded.work_begin(false);
    meanwhile(&recorded);
    recorded.work_end(end, stream, holds);
    recorded.finish().events.iter().map(|event| event.kind).skip(before).collect()
}

const OTHER: StreamId = StreamId(1);
const END: EventId = EventId(0);

#[test]
fn a_wait_that_was_left_out_is_written() {
    let kinds = after_method(STREAM_WAITS, |_| {});
    assert!(matches!(kinds[0], EventKind::StreamCreate { stream: OTHER, .. }));
    assert_eq!(kinds[1..], [EventKind::EventWait { event: END, stream: OTHER }]);
}

#[test]
fn a_wait_that_was_made_is_not_written_twice() {
    let kinds = after_method(STREAM_WAITS, |recorded| {
        recorded.event_waited(SIDE + 1, 0, EVENT, Library::TorchCuda);
        recorded.torch_callback(Callback::EventWait, EVENT, SIDE + 1);
    });
    assert_eq!(kinds[1..], [EventKind::EventWait { event: END, stream: OTHER }]);
}

#[test]
fn a_collective_on_the_current_stream_needs_no_wait() {
    assert_eq!(after_method_on(SIDE, STREAM_WAITS, |_| {}), []);
}

#[test]
fn that_the_host_knows_the_end_is_written_once() {
    let (target, how) = (WaitTarget::Event(END), HostWaitHow::Query);
    let wait = EventKind::HostWait { target, observer: Observer::Program, how };
    assert_eq!(after_method(HOST_KNOWS, |_| {}), [wait]);
    let kinds = after_method(HOST_KNOWS, |recorded| {
        recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::TorchCuda);
    });
    assert_eq!(kinds.len(), 1, "it has waited: {kinds:?}");
}

#[test]
fn an_end_is_gone_when_its_event_is_recorded_again() {
    let kinds = after_method(STREAM_WAITS | HOST_KNOWS, |recorded| {
        recorded.event_recorded(EVENT, SIDE, 0, Library::TorchCuda);
        recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    });
    assert_eq!(kinds, [EventKind::EventRecord { event: END, stream: SIDE_ID }]);
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
