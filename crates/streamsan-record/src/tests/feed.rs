//! Each row of the table of call sequences in `docs/design/0001-event-feed.md`.

use streamsan_trace::{
    BlockId, DeviceId, EventId, EventKind, HostWaitHow, MemorySpace, Observer, SiteId, WaitTarget,
};

use super::{DEFAULT_ID, EVENT, MEMORY, Recorded, SIDE, SIDE_ID};
use crate::table::TorchCallback as Callback;
use crate::{Library, WaitOn};

const FIRST: EventId = EventId(0);
/// The segment is block 1.
const BLOCK: BlockId = BlockId(2);

fn default_stream() -> EventKind {
    EventKind::StreamCreate {
        stream: DEFAULT_ID,
        device: DeviceId(0),
        blocking: true,
        legacy_default: true,
        priority: 0,
    }
}

fn allocated() -> EventKind {
    let space = MemorySpace::Cached(DeviceId(0));
    EventKind::Alloc { block: BLOCK, stream: DEFAULT_ID, space, address: MEMORY, size: 0 }
}

fn waited(target: WaitTarget, observer: Observer, how: HostWaitHow) -> EventKind {
    EventKind::HostWait { target, observer, how }
}

#[test]
fn wait_stream_is_the_programs_record_and_wait() {
    let recorded = Recorded::with_torch();
    recorded.event_created(EVENT);
    recorded.event_recorded(EVENT, 0, 0, Library::TorchPython);
    recorded.torch_callback(Callback::EventRecord, EVENT, 0);
    recorded.event_waited(SIDE, 0, EVENT, Library::TorchPython);
    recorded.torch_callback(Callback::EventWait, EVENT, SIDE);
    recorded.event_destroyed(EVENT);
    assert_eq!(
        recorded.kinds(),
        [
            default_stream(),
            EventKind::EventRecord { event: FIRST, stream: DEFAULT_ID },
            EventKind::EventWait { event: FIRST, stream: SIDE_ID },
            EventKind::EventDestroy { event: FIRST },
        ]
    );
}

#[test]
fn a_record_has_the_site_that_its_callback_brings() {
    let recorded = Recorded::with_torch();
    let (before, after) = (recorded.site(10), recorded.site(20));
    recorded.set_context(before, 0, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    recorded.set_context(after, 0, 0);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    let trace = recorded.finish();
    let lines: Vec<u32> =
        trace.events[2..].iter().map(|event| trace.tables.user_frame(event.site).unwrap().1.line).collect();
    assert_eq!(lines, [20, 20]);
}

#[test]
fn a_record_without_callback_keeps_the_site_of_the_call() {
    let recorded = Recorded::with_torch();
    let (before, after) = (recorded.site(10), recorded.site(20));
    recorded.set_context(before, 0, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    recorded.set_context(after, 0, 0);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    let trace = recorded.finish();
    let sites: Vec<SiteId> = trace.events[2..].iter().map(|event| event.site).collect();
    assert_eq!(sites, [SiteId(before), SiteId(after)]);
}

#[test]
fn a_free_after_record_stream_has_guards_that_end_with_their_query() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.event_created(EVENT);
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.event_created(EVENT + 1);
    recorded.event_recorded(EVENT + 1, 0, 0, Library::C10Cuda);
    assert!(recorded.event_is_allocators(EVENT) && recorded.event_is_allocators(EVENT + 1));
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    recorded.host_waited(WaitOn::Event(EVENT + 1), HostWaitHow::Query, Library::C10Cuda);
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    let kinds = recorded.kinds();
    let guard = |stream| EventKind::FreeGuard { block: BLOCK, stream };
    assert_eq!(
        kinds[..5],
        [
            default_stream(),
            allocated(),
            EventKind::FreeRequest { block: BLOCK },
            guard(SIDE_ID),
            guard(DEFAULT_ID)
        ]
    );
    assert!(matches!(kinds[5], EventKind::Op { .. }), "the first query ends nothing");
    assert_eq!(kinds[6], EventKind::FreeDone { block: BLOCK });
    assert!(matches!(kinds[7], EventKind::Alloc { block: BlockId(3), .. }));
    assert_eq!(kinds.len(), 8);
}

#[test]
fn a_handle_guards_one_block_after_the_other() {
    let recorded = Recorded::with_torch();
    for address in [MEMORY, MEMORY + 512] {
        recorded.torch_callback(Callback::MemoryAllocation, address, 0);
        recorded.torch_callback(Callback::MemoryDeallocation, address, 0);
        recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
        recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda);
    }
    let done: Vec<EventKind> =
        recorded.kinds().into_iter().filter(|kind| matches!(kind, EventKind::FreeDone { .. })).collect();
    assert_eq!(done, [BlockId(2), BlockId(3)].map(|block| EventKind::FreeDone { block }));
}

#[test]
fn a_guard_may_be_seen_finished_by_another_thread_first() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    std::thread::scope(|scope| {
        scope.spawn(|| recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda));
    });
    let kinds = recorded.kinds();
    assert_eq!(
        kinds[3..],
        [EventKind::FreeGuard { block: BLOCK, stream: SIDE_ID }, EventKind::FreeDone { block: BLOCK }]
    );
}

#[test]
fn out_of_memory_synchronizes_guards_for_the_allocator_only() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.host_wait_begin(WaitOn::Event(EVENT));
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Synchronize, Library::C10Cuda);
    let kinds = recorded.kinds();
    assert_eq!(kinds.last(), Some(&EventKind::FreeDone { block: BLOCK }));
    assert!(!kinds.iter().any(|kind| matches!(kind, EventKind::HostWait { .. })));
}

#[test]
fn a_free_without_record_stream_has_no_guard() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.operation(SIDE, 0, 0, 0, &[]);
    let kinds = recorded.kinds();
    assert_eq!(kinds[2], EventKind::FreeRequest { block: BLOCK });
    assert!(matches!(kinds[3], EventKind::Op { .. }));
    assert_eq!(kinds.len(), 4);
}

#[test]
fn a_deferred_free_gets_its_guards_at_a_later_allocation() {
    // `use_mem_pool` and graph capture put off the records of a free until the next allocation after them.
    let recorded = Recorded::with_torch();
    let site = recorded.site(9);
    for index in 0..3 {
        recorded.torch_callback(Callback::MemoryAllocation, MEMORY + index * 512, 0);
    }
    // The last one is the side stream's own: no stream but another one can be recorded for it.
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY + 4096, SIDE);
    for address in [MEMORY, MEMORY + 512, MEMORY + 4096] {
        recorded.set_context(site, 0, 0);
        recorded.torch_callback(Callback::MemoryDeallocation, address, 0);
    }
    recorded.set_context(site, 0, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda);
    let guard = |block| EventKind::FreeGuard { block: BlockId(block), stream: SIDE_ID };
    let done = |block| EventKind::FreeDone { block: BlockId(block) };
    assert_eq!(recorded.kinds()[8..], [guard(2), guard(3), done(2), done(3)]);
}

#[test]
fn a_program_query_is_the_programs() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::EventSynchronization, 1, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchPython);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    assert!(!recorded.event_is_allocators(EVENT));
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchPython);
    assert_eq!(recorded.kinds()[1], waited(WaitTarget::Event(FIRST), Observer::Program, HostWaitHow::Query));
}

#[test]
fn torch_event_is_told_by_its_callback() {
    // torch.Event records and queries through libc10_cuda, as the allocator does.
    let recorded = Recorded::with_torch();
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    assert!(!recorded.event_is_allocators(EVENT));
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda);
    assert_eq!(
        recorded.kinds(),
        [
            EventKind::EventRecord { event: FIRST, stream: SIDE_ID },
            waited(WaitTarget::Event(FIRST), Observer::Program, HostWaitHow::Query),
        ]
    );
}

#[test]
fn a_record_confirmed_right_after_a_free_is_no_guard() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, 0);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::C10Cuda);
    let kinds = recorded.kinds();
    assert_eq!(kinds[3], EventKind::EventRecord { event: FIRST, stream: SIDE_ID });
    assert_eq!(kinds[4..], [waited(WaitTarget::Event(FIRST), Observer::Program, HostWaitHow::Query)]);
}

#[test]
fn a_dropped_pinned_tensor_is_polled_by_its_allocator() {
    let recorded = Recorded::with_torch();
    recorded.event_recorded(EVENT, SIDE, 0, Library::TorchCuda);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    assert!(recorded.event_is_allocators(EVENT));
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Query, Library::TorchCuda);
    assert_eq!(
        recorded.kinds(),
        [
            EventKind::EventRecord { event: FIRST, stream: SIDE_ID },
            waited(WaitTarget::Event(FIRST), Observer::PinnedAllocator, HostWaitHow::Query),
        ]
    );
}

#[test]
fn the_engines_records_and_waits_are_the_programs() {
    let recorded = Recorded::with_torch();
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.torch_callback(Callback::EventRecord, EVENT, SIDE);
    recorded.event_waited(0, 0, EVENT, Library::C10Cuda);
    recorded.torch_callback(Callback::EventWait, EVENT, 0);
    assert_eq!(
        recorded.kinds(),
        [
            EventKind::EventRecord { event: FIRST, stream: SIDE_ID },
            default_stream(),
            EventKind::EventWait { event: FIRST, stream: DEFAULT_ID },
        ]
    );
}

#[test]
fn a_synchronize_by_c10_is_the_programs_if_announced() {
    let recorded = Recorded::with_torch();
    for announced in [true, false] {
        if announced {
            recorded.torch_callback(Callback::DeviceSynchronization, 0, 0);
        }
        recorded.host_wait_begin(WaitOn::Device(0));
        recorded.host_waited(WaitOn::Device(0), HostWaitHow::Synchronize, Library::C10Cuda);
    }
    let device = WaitTarget::Device(DeviceId(0));
    assert_eq!(
        recorded.kinds(),
        [Observer::Program, Observer::DeviceAllocator].map(|observer| waited(
            device,
            observer,
            HostWaitHow::Synchronize
        ))
    );
}

#[test]
fn a_watchdog_orders_nothing_and_a_users_thread_does() {
    let recorded = Recorded::with_torch();
    recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::Other);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It may drop tensors, which fires a callback without a line of Python.
            recorded.set_context(0, 0, 0);
            recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
            recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::TorchCuda);
        });
    });
    assert_eq!(
        recorded.kinds(),
        [Observer::Program, Observer::Library].map(|observer| waited(
            WaitTarget::Stream(SIDE_ID),
            observer,
            HostWaitHow::Synchronize
        ))
    );
}

#[test]
fn a_blocking_read_back_has_copy_then_wait() {
    // `.cpu()`: the callback comes before the copy is issued.
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::StreamSynchronization, SIDE, 0);
    recorded.copy(&crate::CopyCall {
        stream: SIDE,
        device: 0,
        destination: 0x10,
        source: MEMORY,
        layout: crate::CopyLayout::Linear { bytes: 64 },
        kind: streamsan_trace::OpKind::CopyDeviceToHost,
        blocking: false,
        label: "memcpy DtoH",
    });
    recorded.host_wait_begin(WaitOn::Stream(SIDE, 0));
    recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::C10Cuda);
    let kinds = recorded.kinds();
    assert!(
        matches!(kinds[0], EventKind::Op { accesses, .. } if accesses.count == 1),
        "pageable memory is skipped"
    );
    assert_eq!(kinds[1], waited(WaitTarget::Stream(SIDE_ID), Observer::Program, HostWaitHow::Synchronize));
    assert_eq!(kinds.len(), 2);
}

#[test]
fn a_wait_says_when_it_began_if_other_threads_went_on() {
    let recorded = Recorded::with_torch();
    recorded.host_wait_begin(WaitOn::Stream(SIDE, 0));
    std::thread::scope(|scope| {
        scope.spawn(|| recorded.operation(SIDE, 0, 0, 0, &[]));
    });
    recorded.host_waited(WaitOn::Stream(SIDE, 0), HostWaitHow::Synchronize, Library::TorchPython);
    let target = WaitTarget::Stream(SIDE_ID);
    let kinds = recorded.kinds();
    assert_eq!(kinds[0], EventKind::HostWaitBegin { target });
    assert!(matches!(kinds[1], EventKind::Op { .. }));
    assert_eq!(kinds[2], waited(target, Observer::Program, HostWaitHow::Synchronize));
}

#[test]
fn without_a_torch_layer_all_waits_are_the_programs() {
    let recorded = Recorded::start();
    recorded.event_recorded(EVENT, SIDE, 0, Library::C10Cuda);
    recorded.host_waited(WaitOn::Event(EVENT), HostWaitHow::Synchronize, Library::C10Cuda);
    assert_eq!(
        recorded.kinds(),
        [
            EventKind::EventRecord { event: FIRST, stream: SIDE_ID },
            waited(WaitTarget::Event(FIRST), Observer::Program, HostWaitHow::Synchronize),
        ]
    );
}

#[test]
fn a_wait_on_an_event_without_handle_is_kept() {
    let recorded = Recorded::with_torch();
    recorded.unrecorded_wait(0xabc, SIDE, 0);
    recorded.unrecorded_wait(0xabc, SIDE, 0);
    recorded.unrecorded_wait(0xdef, SIDE, 0);
    let wait = |event| EventKind::EventWait { event: EventId(event), stream: SIDE_ID };
    assert_eq!(recorded.kinds(), [wait(0), wait(0), wait(1)]);
}

#[test]
fn a_new_event_at_an_old_handle_is_another_event() {
    let recorded = Recorded::with_torch();
    for _ in 0..2 {
        recorded.event_created(EVENT);
        recorded.event_recorded(EVENT, SIDE, 0, Library::Other);
        recorded.event_destroyed(EVENT);
    }
    let record = |event| EventKind::EventRecord { event: EventId(event), stream: SIDE_ID };
    let destroy = |event| EventKind::EventDestroy { event: EventId(event) };
    assert_eq!(recorded.kinds(), [record(0), destroy(0), record(1), destroy(1)]);
}
