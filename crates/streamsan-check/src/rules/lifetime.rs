//! SS203: freed while in use, not handed out again in this run.
//!
//! A run may be lucky: the block that was freed too early was not the one that the allocator chose next.
//! Then the hazard is shown on an allocation that might have got the block: one on the same stream, from
//! the same pool, of a size that fits, made after the free, whose first access is not ordered after the use.
//! A block that waits for its guards counts as available, with the order of the guards.

use crate::blocks::Blocks;
use crate::shadow::Touch;
use rustc_hash::FxHashMap;
use streamsan_trace::{BlockId, StreamId};

/// A freed block with uses that its owner stream is not ordered after.
#[derive(Debug)]
struct Endangered {
    block: BlockId,
    uses: Vec<Touch>,
}

/// What concerns the blocks of one owner stream.
#[derive(Debug, Default)]
struct Owned {
    endangered: Vec<Endangered>,
    /// Blocks handed out and perhaps not touched yet: those that are, or were freed, are dropped now and then.
    untouched: Vec<BlockId>,
    untouched_limit: usize,
}

/// Freed blocks with pending uses, by owner stream.
#[derive(Debug, Default)]
pub(crate) struct FreedInUse {
    by_owner: FxHashMap<StreamId, Owned>,
    /// How many blocks are endangered: most programs never have one.
    count: usize,
    /// Empty lists of uses, for later.
    spare: Vec<Vec<Touch>>,
}

/// More lists are given back to the system.
const SPARE: usize = 64;

/// Lets go of blocks whose uses are all gone or that are not `wanted` any more.
fn keep(
    endangered: &mut Vec<Endangered>,
    count: &mut usize,
    spare: &mut Vec<Vec<Touch>>,
    mut wanted: impl FnMut(&Endangered) -> bool,
) {
    endangered.retain_mut(|freed| {
        if !freed.uses.is_empty() && wanted(freed) {
            return true;
        }
        *count -= 1;
        if spare.len() < SPARE {
            let mut uses = std::mem::take(&mut freed.uses);
            uses.clear();
            spare.push(uses);
        }
        false
    });
}

fn is_untouched(blocks: &Blocks, block: BlockId) -> bool {
    blocks.find(block).is_some_and(|block| !block.touched && block.freed().is_none())
}

impl FreedInUse {
    /// An empty list for [`FreedInUse::note`].
    pub(crate) fn list(&mut self) -> Vec<Touch> {
        self.spare.pop().unwrap_or_default()
    }

    /// Notes a free with uses that the owner stream is not ordered after.
    pub(crate) fn note(&mut self, owner: StreamId, block: BlockId, uses: Vec<Touch>) {
        if !uses.is_empty() {
            self.by_owner.entry(owner).or_default().endangered.push(Endangered { block, uses });
            self.count += 1;
        } else if self.spare.len() < SPARE {
            self.spare.push(uses);
        }
    }

    /// A block is handed out by its owner stream.
    pub(crate) fn handed_out(&mut self, blocks: &Blocks, owner: StreamId, block: BlockId) {
        let Owned { untouched, untouched_limit, .. } = self.by_owner.entry(owner).or_default();
        if untouched.len() >= *untouched_limit {
            untouched.retain(|&block| is_untouched(blocks, block));
            *untouched_limit = 2 * untouched.len() + 16;
        }
        untouched.push(block);
    }

    /// The memory of `block` was handed out again: what happens to it is seen.
    pub(crate) fn reused(&mut self, blocks: &Blocks, new: BlockId) {
        if self.count == 0 {
            return;
        }
        let Some(new) = blocks.find(new) else { return };
        if let Some(owned) = self.by_owner.get_mut(&new.owner) {
            keep(&mut owned.endangered, &mut self.count, &mut self.spare, |freed| {
                blocks.find(freed.block).is_some_and(|old| {
                    old.address.saturating_add(old.rounded()) <= new.address
                        || new.address.saturating_add(new.rounded()) <= old.address
                })
            });
        }
    }

    /// Forgets uses for which `passed` holds.
    pub(crate) fn tidy(&mut self, passed: impl Fn(&Touch) -> bool) {
        if self.count == 0 {
            return;
        }
        for owned in self.by_owner.values_mut() {
            for freed in &mut owned.endangered {
                freed.uses.retain(|used| !passed(used));
            }
            keep(&mut owned.endangered, &mut self.count, &mut self.spare, |_| true);
        }
    }

    /// The blocks that may still be reported.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.by_owner.values().flat_map(|owned| &owned.endangered).map(|freed| freed.block)
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
        if self.count == 0 {
            return found;
        }
        let Some(block) = blocks.find(new) else { return found };
        let Some(owned) = self.by_owner.get_mut(&block.owner) else { return found };
        for freed in &mut owned.endangered {
            let Some(old) = blocks.find(freed.block) else { continue };
            let made_after = old.freed().is_some_and(|(number, _)| number < block.allocated);
            let fits =
                block.size > 0 && old.is_small() == block.is_small() && block.rounded() <= old.rounded();
            if made_after && fits {
                freed.uses.retain(|used| {
                    // If the owner stream was after the use, a new owner that is not is at fault itself.
                    let hazard =
                        !block.handed_out_after(used.epoch()) && !old.guarded(used.epoch()) && !ordered(used);
                    if hazard {
                        found.push((freed.block, *used));
                    }
                    !hazard
                });
            }
        }
        keep(&mut owned.endangered, &mut self.count, &mut self.spare, |_| true);
        found
    }

    /// Drops uses that every later allocation of their owner is ordered after, and every earlier one whose
    /// block has still to be touched.
    pub(crate) fn forget(&mut self, blocks: &Blocks, owner: StreamId, ordered: impl Fn(&Touch) -> bool) {
        if self.count == 0 {
            return;
        }
        if let Some(Owned { endangered, untouched, .. }) = self.by_owner.get_mut(&owner) {
            let early = |used: &Touch, block: BlockId| {
                is_untouched(blocks, block)
                    && blocks.find(block).is_some_and(|block| !block.handed_out_after(used.epoch()))
            };
            let matters = |used: &Touch| untouched.iter().any(|&block| early(used, block));
            for freed in endangered.iter_mut() {
                freed.uses.retain(|used| !ordered(used) || matters(used));
            }
            keep(endangered, &mut self.count, &mut self.spare, |_| true);
        }
    }
}
