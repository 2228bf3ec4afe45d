//! Blocks: generations of memory, their owners, hand-outs, frees and guards.
//!
//! torch's caching allocator gives a freed block back to the stream it was allocated on, at once, or, if
//! other streams were recorded for it, after events recorded in those streams at the free have finished
//! (`c10/cuda/CUDACachingAllocator.cpp`; `torch.Tensor.record_stream`). Neither the free nor the hand-out is
//! an edge. A guard orders whoever gets the memory next after the guarded work, and nothing else.

//!
//! A block that ended is kept while something refers to it, that is, while its accesses can still be the earlier
//! half of a hazard. Of the others the last 16,384 or so are remembered, for accesses to freed memory.

mod slots;

use crate::clock::{Epoch, Snapshot};
use crate::hazard::Origin;
use rustc_hash::FxHashSet;
use slots::Slots;
use streamsan_trace::{BlockId, DeviceId, MemorySpace, OpNumber, SiteId, StreamId};

/// One generation of memory. What an access looks at is in the first cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) space: MemorySpace,
    /// What the owner stream was ordered after when the block was handed out, while that matters.
    pub(crate) handed_out: Option<Snapshot>,
    /// The free; 0 while the block is alive.
    pub(crate) freed_at: OpNumber,
    pub(crate) id: BlockId,
    pub(crate) touched: bool,
    /// Whether it is among the blocks that were freed in use.
    pub(crate) endangered: bool,
    /// Whether it is a graph's: its accesses are kept elsewhere (`engine/graphs.rs`).
    pub(crate) private: bool,
    pub(crate) freed_origin: Origin,
    pub(crate) guards: Vec<Snapshot>,
    pub(crate) allocated: OpNumber,
    pub(crate) alloc_site: SiteId,
    pub(crate) owner: StreamId,
}

impl Block {
    /// A block that is alive.
    pub(crate) fn new(id: BlockId, space: MemorySpace, address: u64, size: u64) -> Self {
        Self {
            id,
            space,
            address,
            size,
            owner: StreamId(0),
            allocated: OpNumber(0),
            alloc_site: SiteId(0),
            handed_out: None,
            guards: Vec::new(),
            freed_at: OpNumber(0),
            freed_origin: Origin::default(),
            touched: false,
            endangered: false,
            private: false,
        }
    }

    /// Bytes that torch's caching allocator sets aside for a request: multiples of 512.
    pub(crate) fn rounded(&self) -> u64 {
        rounded(self.size)
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

    fn facts(&self) -> Facts {
        Facts {
            id: self.id,
            space: self.space,
            address: self.address,
            size: self.size,
            owner: self.owner,
            alloc_site: self.alloc_site,
            // What a graph keeps is there for its launches, whatever was freed.
            freed: self.freed().filter(|_| !self.private),
        }
    }

    /// Where it was freed, if it was.
    pub(crate) fn freed(&self) -> Option<(OpNumber, Origin)> {
        (self.freed_at != OpNumber(0)).then_some((self.freed_at, self.freed_origin))
    }

    /// One past the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// The device of the block, if it is device memory.
    pub(crate) fn device(&self) -> Option<DeviceId> {
        device_of(self.space)
    }
}

fn device_of(space: MemorySpace) -> Option<DeviceId> {
    match space {
        MemorySpace::Cached(device) | MemorySpace::Device(device) => Some(device),
        MemorySpace::Pinned | MemorySpace::Pageable => None,
    }
}

fn rounded(size: u64) -> u64 {
    size.max(1).div_ceil(512).saturating_mul(512)
}

/// What a report says of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    id: BlockId,
    pub(crate) space: MemorySpace,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) owner: StreamId,
    pub(crate) alloc_site: SiteId,
    pub(crate) freed: Option<(OpNumber, Origin)>,
}

impl Facts {
    /// As [`Block::rounded`].
    pub(crate) fn rounded(&self) -> u64 {
        rounded(self.size)
    }
}

/// Place of a block in the tables of blocks and of shadow memory. Places are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) const fn at(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The blocks of a trace that still matter.
#[derive(Debug)]
pub(crate) struct Blocks {
    slots: Slots,
    table: Vec<Block>,
    free_slots: Vec<Slot>,
    /// How many have a slot though they were freed.
    freed: usize,
    /// How many of them there may be before those that nothing refers to are looked for.
    freed_limit: usize,
    sweeps: u32,
    /// Blocks that nothing refers to, at the remainder of their id.
    ended: Vec<Option<Facts>>,
    /// Empty lists of guards, for later.
    spare_guards: Vec<Vec<Snapshot>>,
}

const FREED_LIMIT: usize = 128;
/// So many times the search comes with each free: small programs are to take the same ways as large ones.
const EARLY_SWEEPS: u32 = 64;
const ENDED: usize = 1 << 14;

impl Blocks {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slots::default(),
            table: Vec::new(),
            free_slots: Vec::new(),
            freed: 0,
            freed_limit: 0,
            sweeps: 0,
            ended: Vec::new(),
            spare_guards: Vec::new(),
        }
    }

    /// A block appears; gives its slot.
    pub(crate) fn insert(&mut self, block: Block) -> Slot {
        if let Some(slot) = self.slots.get(block.id) {
            self.table[slot.index()] = block;
            return slot;
        }
        let id = block.id;
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.table[slot.index()] = block;
            slot
        } else {
            self.table.push(block);
            Slot::at(self.table.len() - 1)
        };
        self.slots.insert(id, slot);
        slot
    }

    /// Whoever gets the bytes of the block next is ordered after the guard.
    pub(crate) fn guard(&mut self, slot: Slot, guard: Snapshot) {
        let guards = &mut self.table[slot.index()].guards;
        if guards.capacity() == 0 {
            *guards = self.spare_guards.pop().unwrap_or_default();
        }
        guards.push(guard);
    }

    pub(crate) fn slot(&self, id: BlockId) -> Option<Slot> {
        self.slots.get(id)
    }

    pub(crate) fn at(&self, slot: Slot) -> &Block {
        &self.table[slot.index()]
    }

    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Block {
        &mut self.table[slot.index()]
    }

    /// The block, if it has a slot.
    pub(crate) fn find(&self, id: BlockId) -> Option<&Block> {
        Some(self.at(self.slot(id)?))
    }

    /// What is known of a block, also of one that ended not long ago.
    pub(crate) fn get(&self, id: BlockId) -> Option<Facts> {
        match self.find(id) {
            Some(block) => Some(block.facts()),
            None => (*self.ended.get(id.index() % ENDED)?).filter(|facts| facts.id == id),
        }
    }

    pub(crate) fn get_mut(&mut self, id: BlockId) -> Option<&mut Block> {
        let slot = self.slot(id)?;
        Some(self.at_mut(slot))
    }

    /// The device of a block, if it is device memory.
    pub(crate) fn device(&self, id: BlockId) -> Option<DeviceId> {
        device_of(self.get(id)?.space)
    }

    /// Whether an access to the old generation is ordered before any access to a newer one by the way the
    /// memory was handed on.
    ///
    /// torch's caching allocator waits for guards. `cudaFree` waits before the memory can come back, and
    /// torch's pinned allocator hands memory out again only after the copies that torch issued on it.
    pub(crate) fn handed_on_after(&self, old: BlockId, epoch: Epoch) -> bool {
        self.find(old).is_none_or(|block| match block.space {
            MemorySpace::Cached(_) => block.guarded(epoch),
            MemorySpace::Device(_) | MemorySpace::Pinned | MemorySpace::Pageable => true,
        })
    }

    /// What blocks keep of the order.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.table.iter().flat_map(|block| block.handed_out.iter().chain(&block.guards))
    }

    /// Everything of the past is ordered before whatever comes: nothing of it needs to be kept.
    pub(crate) fn forget_snapshots(&mut self) {
        for block in &mut self.table {
            block.handed_out = None;
            block.guards.clear();
        }
    }

    /// A freed block is kept until it is released or swept; says whether it is time to [sweep](Self::sweep).
    pub(crate) fn keep_freed(&mut self) -> bool {
        self.freed += 1;
        self.freed > self.freed_limit
    }

    /// Nothing refers to this freed block any more: only what is needed to speak of it is remembered.
    pub(crate) fn release(&mut self, id: BlockId, take_back: impl FnMut(Snapshot)) {
        let Some(slot) = self.slots.remove(id) else { return };
        let block = &mut self.table[slot.index()];
        block.handed_out.take().into_iter().chain(block.guards.drain(..)).for_each(take_back);
        if block.guards.capacity() > 0 {
            self.spare_guards.push(std::mem::take(&mut block.guards));
        }
        let (facts, place) = (block.facts(), id.index() % ENDED);
        if self.ended.len() <= place {
            self.ended.resize((place + 1).next_power_of_two(), None);
        }
        self.ended[place] = Some(facts);
        self.free_slots.push(slot);
    }

    /// A block that was [kept](Self::keep_freed) is not needed any more.
    pub(crate) fn release_kept(&mut self, id: BlockId, take_back: impl FnMut(Snapshot)) {
        self.freed = self.freed.saturating_sub(1);
        self.release(id, take_back);
    }

    /// Lets go of freed blocks that nothing refers to; hands what they held to `take_back`.
    ///
    /// The next time comes when as many were freed as there are blocks now, so that each free pays for a bounded
    /// part of the search.
    pub(crate) fn sweep(&mut self, used: &FxHashSet<BlockId>, mut take_back: impl FnMut(Snapshot)) {
        let mut kept = 0;
        for index in 0..self.table.len() {
            let Block { id, freed_at, .. } = self.table[index];
            if freed_at == OpNumber(0) || self.slot(id) != Some(Slot::at(index)) {
                continue;
            }
            if used.contains(&id) {
                kept += 1;
            } else {
                self.release(id, &mut take_back);
            }
        }
        self.freed = kept;
        self.sweeps = self.sweeps.saturating_add(1);
        let limit = kept + self.slots.len() + FREED_LIMIT;
        self.freed_limit = if self.sweeps < EARLY_SWEEPS { 0 } else { limit };
    }
}
