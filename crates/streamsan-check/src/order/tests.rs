//! Tests of chains and host waits.

use super::{HappensBefore, WaitOutcome};
use streamsan_trace::{DeviceId, EventId, OpNumber, StreamId, ThreadId, WaitTarget};

fn with_streams(streams: u32) -> HappensBefore {
    let mut order = HappensBefore::new();
    (0..streams).for_each(|stream| order.create_stream(StreamId(stream), DeviceId(0), false, false));
    order
}

#[test]
fn a_wait_of_the_allocator_does_not_stand_for_the_next_one() {
    let mut order = with_streams(2);
    let thread = ThreadId(0);
    order.operation(StreamId(0), OpNumber(1));
    order.begin_host_wait(thread, WaitTarget::Stream(StreamId(0)));
    order.end_host_wait(thread);
    let second = order.operation(StreamId(1), OpNumber(2));
    order.host_wait(thread, WaitTarget::Stream(StreamId(1)), OpNumber(3));
    assert!(order.passed(second));
}

#[test]
fn the_end_of_an_event_takes_no_order_away() {
    let mut order = with_streams(3);
    let [event, begun] = [EventId(0), EventId(1)];
    let first = order.operation(StreamId(0), OpNumber(1));
    order.record(event, StreamId(0), OpNumber(2));
    order.wait(event, StreamId(1), OpNumber(3));
    order.record(begun, StreamId(0), OpNumber(4));
    order.begin_host_wait(ThreadId(0), WaitTarget::Event(begun));
    order.destroy_event(event);
    order.destroy_event(begun);
    let second = order.operation(StreamId(1), OpNumber(5));
    assert!(order.ordered(first, second.chain), "the wait was issued before");
    assert_eq!(order.wait(event, StreamId(2), OpNumber(6)), WaitOutcome::Unrecorded);
    order.host_wait(ThreadId(0), WaitTarget::Event(begun), OpNumber(7));
    assert!(order.passed(first), "the host wait had begun before");
}

#[test]
fn a_chain_is_continued_when_the_host_knows_all_of_it() {
    let mut order = with_streams(3);
    let first = order.operation(StreamId(0), OpNumber(1));
    order.destroy_stream(StreamId(0));
    let second = order.operation(StreamId(1), OpNumber(2));
    assert_ne!(first.chain, second.chain, "nobody has waited for the first stream");
    order.host_wait(ThreadId(0), WaitTarget::Device(DeviceId(0)), OpNumber(3));
    let third = order.operation(StreamId(2), OpNumber(4));
    assert_eq!(first.chain, third.chain);
    assert!(order.ordered(first, second.chain) || order.passed(first));
    assert!(!order.ordered(third, second.chain), "what the chain does now is new");
    assert_eq!((order.stream(third.chain), order.active_streams()), (Some(StreamId(2)), 3));
}
