//! Which block last had which addresses.

use std::collections::{BTreeMap, HashMap};
use streamsan_trace::{BlockId, MemorySpace, OpNumber};

/// A block at its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) block: BlockId,
    /// One past its last byte.
    pub(super) end: u64,
    /// When it was freed.
    pub(super) freed: Option<OpNumber>,
}

/// The last owner of each byte. As large as the memory that is in use at one time, however long the run.
#[derive(Debug, Default)]
pub(super) struct Owners {
    by_address: BTreeMap<(MemorySpace, u64), Owner>,
    /// Where the blocks are that may still grow or be freed.
    live: HashMap<BlockId, (MemorySpace, u64)>,
}

impl Owners {
    /// A block was handed out. Gives those whose addresses it takes.
    pub(super) fn alloc(
        &mut self,
        block: BlockId,
        space: MemorySpace,
        address: u64,
        size: u64,
    ) -> Vec<Owner> {
        self.live.insert(block, (space, address));
        self.take(block, space, address, size)
    }

    /// The size became known. Gives further blocks whose addresses it takes.
    pub(super) fn size(&mut self, block: BlockId, size: u64) -> Vec<Owner> {
        let Some(&(space, address)) = self.live.get(&block) else { return Vec::new() };
        let taken = self.take(block, space, address, size);
        taken.into_iter().filter(|owner| owner.block != block).collect()
    }

    /// A block was freed.
    pub(super) fn free(&mut self, block: BlockId, number: OpNumber) {
        if let Some(owner) = self.live.remove(&block).and_then(|place| self.by_address.get_mut(&place))
            && owner.block == block
        {
            owner.freed = Some(number);
        }
    }

    fn take(&mut self, block: BlockId, space: MemorySpace, address: u64, size: u64) -> Vec<Owner> {
        let end = address.saturating_add(size.max(1));
        let before = self.by_address.range(..(space, address)).next_back();
        let reaching = before.filter(|((of, _), owner)| *of == space && owner.end > address);
        let within = self.by_address.range((space, address)..(space, end));
        let keys: Vec<_> = reaching.into_iter().chain(within).map(|(&key, _)| key).collect();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(owner) = self.by_address.remove(&key) else { continue };
            taken.push(owner);
            // What is left of it on either side was still its own.
            if key.1 < address {
                self.by_address.insert(key, Owner { end: address, ..owner });
            }
            if owner.end > end {
                self.by_address.insert((space, end), owner);
            }
        }
        self.by_address.insert((space, address), Owner { block, end, freed: None });
        taken
    }
}
