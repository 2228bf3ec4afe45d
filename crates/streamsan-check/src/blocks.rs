//! Blocks: generations of memory, their owners, hand-outs, frees and guards.
//!
//! torch's caching allocator gives a freed block back to the stream it was allocated on, at once, or, if
//! other streams were recorded for it, after events recorded in those streams at the free have finished
//! (`c10/cuda/CUDACachingAllocator.cpp`; `torch.Tensor.record_stream`). Neither the free nor the hand-out is
//! an edge. A guard orders whoever gets the memory next after the guarded work, and nothing else.

use crate::clock::{Epoch, Snapshot};
use crate::hazard::Origin;
use std::collections::BTreeMap;
use streamsan_trace::{BlockId, DeviceId, MemorySpace, OpNumber, SiteId, StreamId};

/// One generation of memory.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) space: MemorySpace,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) owner: StreamId,
    pub(crate) allocated: OpNumber,
    pub(crate) alloc_site: SiteId,
    /// What the owner stream was ordered after when the block was handed out.
    pub(crate) handed_out: Option<Snapshot>,
    pub(crate) guards: Vec<Snapshot>,
    pub(crate) freed: Option<(OpNumber, Origin)>,
    pub(crate) touched: bool,
}

impl Block {
    /// Bytes that torch's caching allocator sets aside for a request: multiples of 512.
    pub(crate) fn rounded(&self) -> u64 {
        self.size.max(1).div_ceil(512).saturating_mul(512)
    }

    /// Requests up to 1 MiB come from another pool than larger ones.
    pub(crate) fn is_small(&self) -> bool {
        self.rounded() <= 1 << 20
    }

    /// Whether the owner stream was ordered after this event when the block was handed out.
    pub(crate) fn handed_out_after(&self, epoch: Epoch) -> bool {
        self.handed_out.as_ref().is_some_and(|known| known.is_after(epoch))
    }

    /// Whether the memory is handed on only after this event.
    pub(crate) fn guarded(&self, epoch: Epoch) -> bool {
        self.guards.iter().any(|guard| guard.is_after(epoch))
    }
}

/// All blocks of a trace.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    blocks: BTreeMap<BlockId, Block>,
}

impl Blocks {
    pub(crate) fn insert(&mut self, id: BlockId, block: Block) {
        self.blocks.insert(id, block);
    }

    pub(crate) fn get(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: BlockId) -> Option<&mut Block> {
        self.blocks.get_mut(&id)
    }

    /// The device of a block, if it is device memory.
    pub(crate) fn device(&self, id: BlockId) -> Option<DeviceId> {
        match self.get(id)?.space {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => Some(device),
            MemorySpace::Pinned | MemorySpace::Pageable => None,
        }
    }

    /// Whether an access to the old generation is ordered before any access to a newer one by the way the
    /// memory was handed on.
    ///
    /// torch's caching allocator waits for guards. `cudaFree` waits before the memory can come back, and
    /// torch's pinned allocator hands memory out again only after the copies that torch issued on it.
    pub(crate) fn handed_on_after(&self, old: BlockId, epoch: Epoch) -> bool {
        self.get(old).is_none_or(|block| match block.space {
            MemorySpace::Cached(_) => block.guarded(epoch),
            MemorySpace::Device(_) | MemorySpace::Pinned | MemorySpace::Pageable => true,
        })
    }
}
