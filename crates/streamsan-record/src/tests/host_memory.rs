//! Page-locked memory: generations that torch announces, pointers that are given away; and what the program says of
//! streams and blocks without a runtime call.

use std::sync::atomic::{AtomicU32, Ordering};

use streamsan_trace::{
    AccessMode, BlockId, EventKind, GapReason, MemorySpace, OpKind, StreamId, StringId, Trace,
};

use super::{MEMORY, Recorded, SIDE, SIDE_ID};
use crate::table::{RawAccess, TorchCallback as Callback};
use crate::{CopyCall, CopyLayout};

const PINNED: u64 = 0x3000_0000;
/// Memory allocated by the set-up, and the runtime's page-locked allocation.
const REGION: BlockId = BlockId(2);

fn with_pinned() -> Recorded {
    let recorded = Recorded::with_torch();
    recorded.memory_allocated(MemorySpace::Pinned, PINNED, 4096);
    recorded
}

fn download(recorded: &Recorded, destination: u64) {
    recorded.copy(&CopyCall {
        stream: SIDE,
        device: 0,
        kind: OpKind::CopyDeviceToHost,
        label: "memcpy DtoH",
        source: MEMORY,
        destination,
        layout: CopyLayout::Linear { bytes: 64 },
        blocking: false,
    });
}

fn host_write(recorded: &Recorded, address: u64) {
    let mode = AccessMode::Write as u32;
    recorded.host_access(&[RawAccess { address, length: 4, shape: 0, mode, argument: 0, reserved: 0 }]);
}

fn written(trace: &Trace) -> Vec<(u32, u64)> {
    let writes = trace.accesses.iter().filter(|access| access.mode == AccessMode::Write);
    writes.map(|access| (access.block.0, access.offset)).collect()
}

#[test]
fn a_block_that_is_handed_out_again_is_a_new_generation_and_the_old_one_is_not_freed() {
    let recorded = with_pinned();
    recorded.host_block(PINNED, 1024);
    download(&recorded, PINNED + 128);
    recorded.host_block(PINNED, 512);
    host_write(&recorded, PINNED + 128);
    host_write(&recorded, PINNED + 512);
    let trace = recorded.finish();
    let blocks: Vec<(BlockId, u64)> = trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Alloc { block, space: MemorySpace::Pinned, size, .. } => Some((block, size)),
            _ => None,
        })
        .collect();
    assert_eq!(blocks, [(REGION, 4096), (BlockId(3), 1024), (BlockId(4), 512)]);
    assert!(!trace.events.iter().any(|event| matches!(event.kind, EventKind::FreeRequest { .. })));
    // What is behind the new block is no longer the old one's.
    assert_eq!(written(&trace), [(3, 128), (4, 128), (2, 512)]);
}

#[test]
fn a_new_block_ends_those_that_it_overlaps_and_no_others() {
    let recorded = with_pinned();
    recorded.host_block(PINNED, 512);
    recorded.host_block(PINNED + 512, 512);
    recorded.host_block(PINNED + 1024, 512);
    recorded.host_block(PINNED + 256, 512);
    for address in [PINNED, PINNED + 256, PINNED + 900, PINNED + 1024] {
        host_write(&recorded, address);
    }
    assert_eq!(written(&recorded.finish()), [(2, 0), (6, 0), (2, 900), (5, 0)]);
}

#[test]
fn only_page_locked_memory_has_such_blocks() {
    let recorded = with_pinned();
    recorded.host_block(MEMORY, 64);
    recorded.host_block(0x10, 64);
    recorded.host_block(PINNED, 0);
    recorded.host_block(PINNED + 4000, 200);
    assert_eq!(recorded.kinds().len(), 1, "the allocation of the set-up");
}

#[test]
fn freed_runtime_memory_takes_its_blocks_with_it() {
    let recorded = with_pinned();
    assert!(recorded.has_page_locked());
    recorded.host_block(PINNED, 512);
    recorded.memory_freed(PINNED);
    assert!(!recorded.has_page_locked());
    host_write(&recorded, PINNED);
    let kinds = recorded.kinds();
    assert_eq!(kinds.last(), Some(&EventKind::FreeRequest { block: REGION }), "no access after it");
}

#[test]
fn item_reads_back_through_memory_that_is_nobodys() {
    let recorded = with_pinned();
    let label = recorded.string("aten::_local_scalar_dense").0;
    recorded.set_context(recorded.site(2), 0, label);
    download(&recorded, PINNED);
    let other = recorded.string("aten::copy_").0;
    recorded.set_context(recorded.site(3), 0, other);
    download(&recorded, PINNED);
    let modes: Vec<AccessMode> = recorded.finish().accesses.iter().map(|access| access.mode).collect();
    assert_eq!(modes, [AccessMode::Read, AccessMode::Read, AccessMode::Write]);
}

#[test]
fn a_pointer_to_page_locked_memory_is_noted_and_no_other() {
    let recorded = with_pinned();
    let label = recorded.string("numpy()");
    recorded.escape(PINNED + 8, label.0);
    recorded.escape(MEMORY, label.0);
    recorded.escape(0x10, label.0);
    recorded.escape(0, label.0);
    assert_eq!(recorded.kinds()[1..], [EventKind::Escape { block: REGION, label }]);
}

#[test]
fn record_stream_names_blocks_of_the_caching_allocator_only() {
    let recorded = with_pinned();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, SIDE);
    recorded.block_size(MEMORY, 512);
    recorded.host_block(PINNED, 512);
    for address in [MEMORY + 8, MEMORY + 600, PINNED, PINNED + 600, 0x10, 0] {
        recorded.record_stream(address, SIDE, 0);
    }
    let blocks: Vec<(u32, StreamId)> = recorded
        .kinds()
        .iter()
        .filter_map(|kind| match *kind {
            EventKind::RecordStream { block, stream } => Some((block.0, stream)),
            _ => None,
        })
        .collect();
    assert_eq!(blocks, [3, 0, 0, 0, 0, 0].map(|block| (block, SIDE_ID)));
}

#[test]
fn stream_objects_carry_their_count() {
    let recorded = Recorded::with_torch();
    recorded.stream_object(SIDE, 0, 1, 0);
    recorded.stream_object(SIDE, 0, 2, 1);
    let made = |object, sharers| EventKind::StreamObject { stream: SIDE_ID, object, sharers };
    assert_eq!(recorded.kinds(), [made(1, 0), made(2, 1)]);
}

static LOCATED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn locate(_may_wait: u32) {
    LOCATED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn the_torch_layer_is_asked_for_the_place_of_what_has_no_context() {
    let recorded = Recorded::with_torch();
    recorded.locator.set(locate).unwrap();
    recorded.launch(SIDE, 0, || "kernel");
    recorded.unsupported("cudaThing");
    assert_eq!(LOCATED.load(Ordering::Relaxed), 2);
    let label = recorded.string("aten::mul");
    recorded.set_context(recorded.site(2), 0, label.0);
    recorded.launch(SIDE, 0, || "kernel of the operator");
    assert_eq!(LOCATED.load(Ordering::Relaxed), 2);
    let gaps = recorded.kinds();
    assert!(matches!(
        gaps[..],
        [
            EventKind::Gap { reason: GapReason::OpaqueKernel, .. },
            EventKind::Gap { reason: GapReason::UnsupportedCall, .. }
        ]
    ));
    assert_ne!(label, StringId(0));
}
