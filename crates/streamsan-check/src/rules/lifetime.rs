//! SS203: freed while in use, not handed out again in this run.
//!
//! A run may be lucky: the block that was freed too early was not the one that the allocator chose next.
//! Then the hazard is shown on an allocation that might have got the block: one on the same stream, from
//! the same pool, of a size that fits, made after the free, whose first access is not ordered after the use.
//! A block that waits for its guards counts as available, with the order of the guards.

use crate::blocks::Blocks;
use crate::shadow::Touch;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Blocks handed out and not touched yet.
    untouched: BTreeMap<StreamId, BTreeSet<BlockId>>,
}

impl FreedInUse {
    /// Notes a free with uses that the owner stream is not ordered after.
    pub(crate) fn note(&mut self, owner: StreamId, block: BlockId, uses: Vec<Touch>) {
        if !uses.is_empty() {
            self.by_owner.entry(owner).or_default().push(Endangered { block, uses });
        }
    }

    /// A block is handed out by its owner stream.
    pub(crate) fn handed_out(&mut self, owner: StreamId, block: BlockId) {
        self.untouched.entry(owner).or_default().insert(block);
    }

    /// A block is freed or touched.
    pub(crate) fn no_longer_untouched(&mut self, owner: StreamId, block: BlockId) {
        if let Some(untouched) = self.untouched.get_mut(&owner) {
            untouched.remove(&block);
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
                    // If the owner stream was after the use, a new owner that is not is at fault itself.
                    let hazard =
                        !block.handed_out_after(used.epoch) && !old.guarded(used.epoch) && !ordered(used);
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

    /// Drops uses that every later allocation of their owner is ordered after, and every earlier one whose
    /// block has still to be touched.
    pub(crate) fn forget(&mut self, blocks: &Blocks, owner: StreamId, ordered: impl Fn(&Touch) -> bool) {
        if let Some(list) = self.by_owner.get_mut(&owner) {
            let untouched = self.untouched.get(&owner);
            let matters = |used: &Touch| {
                let early = |&block: &BlockId| {
                    blocks.get(block).is_some_and(|block| !block.handed_out_after(used.epoch))
                };
                untouched.is_some_and(|untouched| untouched.iter().any(early))
            };
            for freed in list.iter_mut() {
                freed.uses.retain(|used| !ordered(used) || matters(used));
            }
            list.retain(|freed| !freed.uses.is_empty());
        }
    }
}
