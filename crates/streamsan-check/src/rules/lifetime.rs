//! SS203: freed while in use, not handed out again in this run.
//!
//! A run may be lucky: the block that was freed too early was not the one that the allocator chose next.
//! Then the hazard is shown on an allocation that might have got the block: one on the same stream, from
//! the same pool, of a size that fits, made after the free, whose first access is not ordered after the use.
//! A block that waits for its guards counts as available, with the order of the guards.

use crate::blocks::Blocks;
use crate::shadow::Touch;
use std::collections::BTreeMap;
use streamsan_trace::{BlockId, OpNumber, StreamId};

/// A freed block with uses that its owner stream is not ordered after.
#[derive(Debug)]
struct Endangered {
    block: BlockId,
    uses: Vec<Touch>,
}

/// Freed blocks with pending uses, by owner stream.
#[derive(Debug, Default)]
pub(crate) struct FreedInUse {
    by_owner: BTreeMap<StreamId, Vec<Endangered>>,
}

impl FreedInUse {
    /// Notes a free with uses that the owner stream is not ordered after.
    pub(crate) fn note(&mut self, owner: StreamId, block: BlockId, uses: Vec<Touch>) {
        if !uses.is_empty() {
            self.by_owner.entry(owner).or_default().push(Endangered { block, uses });
        }
    }

    /// The memory of `block` was handed out again: what happens to it is seen.
    pub(crate) fn reused(&mut self, blocks: &Blocks, new: BlockId) {
        let Some(new) = blocks.get(new) else { return };
        if let Some(list) = self.by_owner.get_mut(&new.owner) {
            list.retain(|freed| {
                blocks.get(freed.block).is_some_and(|old| {
                    old.address.saturating_add(old.rounded()) <= new.address
                        || new.address.saturating_add(new.rounded()) <= old.address
                })
            });
        }
    }

    /// A block is touched for the first time: the uses of freed blocks it might have been.
    ///
    /// Each use is given once; `ordered` says whether it is ordered before this first access.
    pub(crate) fn first_access(
        &mut self,
        blocks: &Blocks,
        new: BlockId,
        ordered: impl Fn(&Touch) -> bool,
    ) -> Vec<(BlockId, Touch)> {
        let mut found = Vec::new();
        let Some(block) = blocks.get(new) else { return found };
        let Some(list) = self.by_owner.get_mut(&block.owner) else { return found };
        for freed in list.iter_mut() {
            let Some(old) = blocks.get(freed.block) else { continue };
            let made_after = old.freed.is_some_and(|(number, _): (OpNumber, _)| number < block.allocated);
            let fits =
                block.size > 0 && old.is_small() == block.is_small() && block.rounded() <= old.rounded();
            if made_after && fits {
                freed.uses.retain(|used| {
                    let hazard = !old.guarded(used.epoch) && !ordered(used);
                    if hazard {
                        found.push((freed.block, *used));
                    }
                    !hazard
                });
            }
        }
        list.retain(|freed| !freed.uses.is_empty());
        found
    }

    /// Drops uses that every later allocation of their owner is ordered after.
    pub(crate) fn forget(&mut self, owner: StreamId, ordered: impl Fn(&Touch) -> bool) {
        if let Some(list) = self.by_owner.get_mut(&owner) {
            for freed in list.iter_mut() {
                freed.uses.retain(|used| !ordered(used));
            }
            list.retain(|freed| !freed.uses.is_empty());
        }
    }
}
