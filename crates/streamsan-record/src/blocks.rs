//! Memory by address: what torch's caching allocator handed out, and the allocations of the runtime below it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use streamsan_trace::{BlockId, MemorySpace, StreamId};

#[derive(Clone, Copy, Debug)]
struct Block {
    id: BlockId,
    /// 0: not known yet.
    size: u64,
    owner: StreamId,
    live: bool,
    /// Whether it is torch's pinned allocator's.
    page_locked: bool,
    /// Whether it got a guard when it was freed.
    guarded: bool,
}

/// A block that was given back to the caching allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    pub block: BlockId,
    pub address: u64,
}

/// A runtime allocation.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub id: BlockId,
    pub size: u64,
    pub space: MemorySpace,
}

/// All memory that is known.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Blocks of the caching allocator. A freed one stays until its bytes are handed out again, so that a use of it
    /// is still seen as one.
    cached: BTreeMap<u64, Block>,
    /// The ids of the same blocks: most operations touch a block from its start on.
    starts: FxHashMap<u64, BlockId>,
    regions: BTreeMap<u64, Region>,
    /// How many guards of a freed block have not finished.
    guards: FxHashMap<BlockId, u32>,
    ids: u32,
}

impl Blocks {
    fn keep(&mut self, address: u64, block: Block) {
        self.starts.insert(address, block.id);
        self.cached.insert(address, block);
    }

    fn forget(&mut self, address: u64) {
        self.starts.remove(&address);
        self.cached.remove(&address);
    }

    fn next(&mut self) -> BlockId {
        self.ids += 1;
        BlockId(self.ids)
    }

    /// The runtime handed out memory.
    pub fn add_region(&mut self, space: MemorySpace, address: u64, size: u64) -> BlockId {
        let id = self.next();
        self.regions.insert(address, Region { id, size, space });
        id
    }

    /// The runtime takes memory back.
    pub fn remove_region(&mut self, address: u64) -> Option<Region> {
        let region = self.regions.remove(&address)?;
        let inside: Vec<u64> = self
            .cached
            .range(address..address.saturating_add(region.size))
            .map(|(&start, _)| start)
            .collect();
        for start in inside {
            self.forget(start);
        }
        Some(region)
    }

    /// The runtime allocation that holds `address`.
    pub fn region(&self, address: u64) -> Option<(u64, Region)> {
        let (&start, region) = self.regions.range(..=address).next_back()?;
        (address - start < region.size).then_some((start, *region))
    }

    /// The caching allocator handed out a block of a size not known yet.
    pub fn add_cached(&mut self, address: u64, owner: StreamId) -> BlockId {
        let id = self.next();
        self.keep(address, Block { id, size: 0, owner, live: true, page_locked: false, guarded: false });
        id
    }

    /// torch's pinned allocator handed out these bytes, if they are page-locked: the block's id.
    pub fn add_page_locked(&mut self, address: u64, size: u64) -> Option<BlockId> {
        let (start, region) = self.region(address)?;
        let inside = size <= region.size - (address - start);
        if region.space != MemorySpace::Pinned || !inside || size == 0 {
            return None;
        }
        let end = address.saturating_add(size);
        let reaches_in = |start: u64, block: &Block| start.saturating_add(block.size) > address;
        let before =
            self.cached.range(..address).next_back().filter(|&(&start, block)| reaches_in(start, block));
        let stale: Vec<u64> = before
            .into_iter()
            .chain(self.cached.range(address..end))
            .filter(|(_, block)| block.page_locked)
            .map(|(&start, _)| start)
            .collect();
        for start in stale {
            self.forget(start);
        }
        let id = self.next();
        let owner = StreamId(0);
        self.keep(address, Block { id, size, owner, live: true, page_locked: true, guarded: false });
        Some(id)
    }

    /// Whether `address` is in page-locked memory.
    pub fn is_page_locked(&self, address: u64) -> bool {
        self.region(address).is_some_and(|(_, region)| region.space == MemorySpace::Pinned)
    }

    /// The caching allocator's block, live or freed, that holds `address`.
    pub fn cached(&self, address: u64) -> Option<BlockId> {
        let (_, block) = self.cached.range(..=address).next_back()?;
        let (id, _) = self.resolve(address)?;
        (!block.page_locked && block.id == id).then_some(id)
    }

    /// The caching allocator was given the block at `address` back.
    pub fn free_cached(&mut self, address: u64) -> Option<Freed> {
        let block = self.cached.get_mut(&address).filter(|block| block.live)?;
        block.live = false;
        Some(Freed { block: block.id, address })
    }

    /// The block at `address` has `size` bytes: its id if that is news.
    pub fn set_size(&mut self, address: u64, size: u64) -> Option<BlockId> {
        let block =
            self.cached.get_mut(&address).filter(|block| block.live && block.size == 0 && size > 0)?;
        block.size = size;
        let id = block.id;
        // What was freed inside these bytes has a new owner now.
        let stale: Vec<u64> = self
            .cached
            .range(address.saturating_add(1)..address.saturating_add(size))
            .filter(|(_, block)| !block.live)
            .map(|(&start, _)| start)
            .collect();
        for start in stale {
            self.forget(start);
        }
        Some(id)
    }

    /// The block that holds `address` and the offset in it: torch's block if there is one, else the runtime's.
    pub fn resolve(&self, address: u64) -> Option<(BlockId, u64)> {
        if let Some(&block) = self.starts.get(&address) {
            return Some((block, 0));
        }
        if let Some((&start, block)) = self.cached.range(..=address).next_back() {
            let offset = address - start;
            // A block of unknown size reaches to the end of its region at most.
            let inside = if block.size > 0 {
                offset < block.size
            } else {
                offset == 0 || self.region(start).is_some_and(|(base, region)| address - base < region.size)
            };
            if inside {
                return Some((block.id, offset));
            }
        }
        self.region(address).map(|(start, region)| (region.id, address - start))
    }

    /// A freed block got one more guard.
    pub fn add_guard(&mut self, freed: Freed) {
        *self.guards.entry(freed.block).or_default() += 1;
        if let Some(block) = self.cached.get_mut(&freed.address).filter(|block| block.id == freed.block) {
            block.guarded = true;
        }
    }

    /// Freed blocks without a guard that were not handed out again and may have been used on `stream`: those to
    /// which a guard may belong that is recorded late. `same_device` says which owners are possible.
    pub fn unguarded(&self, stream: StreamId, same_device: impl Fn(StreamId) -> bool) -> Vec<Freed> {
        self.cached
            .iter()
            .filter(|(_, block)| {
                !block.live && !block.guarded && block.owner != stream && same_device(block.owner)
            })
            .map(|(&address, block)| Freed { block: block.id, address })
            .collect()
    }

    /// One guard of a freed block finished: whether it was the last.
    pub fn finish_guard(&mut self, block: BlockId) -> bool {
        match self.guards.get_mut(&block) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) => self.guards.remove(&block).is_some(),
            None => false,
        }
    }
}
