//! Shadow memory: for each byte, the last writes and the reads since.
//!
//! The accesses to a block are kept with the block, so that an access finds those before it at once (`block`).
//! Within a block they lie in cells, intervals that accesses split at their borders (`cell`). The accesses to a freed
//! block of torch's caching allocator wait in an ordered map for the next owner of the bytes (`retired`); other
//! memory can be handed on only after the work on it has finished.
//!
//! What the host knows to be finished is ordered before all that is still to come, and is forgotten.

mod block;
mod cell;
mod cells;
mod few;
mod retired;

use crate::blocks::Slot;
use crate::clock::{ChainId, Epoch};
use crate::hazard::Origin;
use crate::overlap::{Effort, Shapes};
use block::{BlockShadow, Spare};
use retired::Retired;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use streamsan_trace::{AccessMode, BlockId, DeviceId, OpNumber, ShapeId};

/// One access, with absolute addresses. First what says whether it is ordered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Touch {
    pub(crate) number: OpNumber,
    pub(crate) chain: ChainId,
    pub(crate) block: BlockId,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) shape: ShapeId,
    pub(crate) mode: AccessMode,
    pub(crate) origin: Origin,
}

impl Touch {
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch { chain: self.chain, number: self.number }
    }
}

impl Default for Touch {
    /// Stands where there is no access.
    fn default() -> Self {
        Self {
            number: OpNumber(0),
            chain: ChainId::HOST,
            block: BlockId(0),
            start: 0,
            end: 0,
            shape: ShapeId(0),
            mode: AccessMode::Read,
            origin: Origin::default(),
        }
    }
}

// A cache line: a run without hazards looks at little else.
const _: () = assert!(size_of::<Touch>() <= 64);

/// Two touches share bytes and at least one of them may change them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) earlier: Touch,
    /// False if the search for a shared byte was given up.
    pub(crate) decided: bool,
}

/// The device memory of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) device: DeviceId,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Strided accesses of one block that are always kept.
const FEW_ASIDE: usize = 512;
/// And at most: each access to the block is compared with all of them. A cache of so many tokens that is written token by
/// token while the host never waits.
const MOST_ASIDE: usize = 1 << 13;

/// Shadow memory of all blocks, and of freed memory per device.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    blocks: Vec<BlockShadow>,
    retired: BTreeMap<DeviceId, Retired>,
    spare: Spare,
}

impl Shadow {
    /// A block begins in a slot.
    pub(crate) fn begin(&mut self, slot: Slot, address: u64) {
        if self.blocks.len() <= slot.index() {
            self.blocks.resize_with(slot.index() + 1, BlockShadow::default);
        }
        self.blocks[slot.index()].begin(address);
    }

    /// Notes an access to a block and hands every unordered conflicting earlier one to `report`.
    ///
    /// `memory` is the block's, if it is device memory: up to its end at least, earlier owners are looked for. `ordered(earlier)` says whether an earlier access is ordered before this one. Says whether this is a
    /// write of the whole block and all that is kept of it, so that nothing of earlier owners is left.
    #[inline]
    pub(crate) fn touch(
        &mut self,
        slot: Slot,
        memory: Option<Extent>,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: impl Fn(&Touch) -> bool,
        mut report: impl FnMut(Conflict),
    ) -> bool {
        let block = &mut self.blocks[slot.index()];
        if touch.start >= touch.end {
            return false;
        }
        if touch.end > block.end
            && let Some(memory) = &memory
        {
            block.inherit(touch.end.max(memory.end), self.retired.get_mut(&memory.device));
        }
        if shapes.shape(touch.shape).is_none() {
            let only = block.touch_all_of_it(touch, shapes, &mut self.spare, &ordered, &mut report);
            only && is_definite(touch.mode)
                && memory.is_some_and(|memory| touch.start == memory.start && touch.end == block.end)
        } else {
            block.touch_strided(touch, shapes, &mut self.spare, &ordered, &mut report);
            false
        }
    }

    /// Whether so many strided accesses of a block are kept that it is to be [thinned out](Self::thin_out).
    #[inline]
    pub(crate) fn is_crowded(&self, slot: Slot, effort: &Effort) -> bool {
        let aside = self.blocks[slot.index()].aside();
        aside > FEW_ASIDE && (aside > MOST_ASIDE || effort.is_used_up())
    }

    /// Forgets strided accesses of a block for which `passed` holds. If there are still many, the oldest are kept as one for
    /// each stream, whose bytes are not known; says how many were forgotten even so.
    pub(crate) fn thin_out(&mut self, slot: Slot, passed: impl Fn(&Touch) -> bool) -> u64 {
        let shadow = &mut self.blocks[slot.index()];
        let left = if shadow.aside() > MOST_ASIDE { MOST_ASIDE / 2 } else { FEW_ASIDE / 2 };
        shadow.thin_out(left, &passed) as u64
    }

    /// Hands every unordered conflicting earlier access to `report`, as [`Shadow::touch`] does, and notes nothing.
    pub(crate) fn examine(
        &self,
        slot: Slot,
        memory: Option<Extent>,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: impl Fn(&Touch) -> bool,
        mut report: impl FnMut(Conflict),
    ) {
        let block = &self.blocks[slot.index()];
        if touch.start >= touch.end {
            return;
        }
        block.examine(touch, shapes, &ordered, &mut report);
        if touch.end > block.end
            && let Some(retired) = memory.and_then(|memory| self.retired.get(&memory.device))
        {
            // What earlier owners did behind this place comes to the block with its first use there.
            for piece in retired.overlapping(block.end, touch.end) {
                piece.examine(touch, shapes, &ordered, &mut report);
            }
        }
    }

    /// The ended block whose accesses to this one's bytes were the last of it, when all were replaced.
    pub(crate) fn take_from(&mut self, slot: Slot) -> Option<BlockId> {
        self.blocks[slot.index()].take_from()
    }

    /// Whether any access of a block is kept for which `wanted` holds.
    #[inline]
    pub(crate) fn any_of_block(&self, slot: Slot, block: BlockId, wanted: impl Fn(&Touch) -> bool) -> bool {
        self.blocks[slot.index()].any(|touch| touch.block == block && wanted(touch))
    }

    /// The accesses of a block that are kept and for which `wanted` holds, each once.
    pub(crate) fn of_block(&self, slot: Slot, block: BlockId, wanted: impl Fn(&Touch) -> bool) -> Vec<Touch> {
        let mut found = Vec::new();
        self.put_of_block(slot, block, wanted, &mut found);
        found
    }

    /// Puts the accesses of a block that are kept and for which `wanted` holds into an empty list, each once.
    pub(crate) fn put_of_block(
        &self,
        slot: Slot,
        block: BlockId,
        wanted: impl Fn(&Touch) -> bool,
        found: &mut Vec<Touch>,
    ) {
        let shadow = &self.blocks[slot.index()];
        let wanted = |touch: &Touch| touch.block == block && wanted(touch);
        if !shadow.any(wanted) {
            return;
        }
        for touch in shadow.touches().flatten().filter(|touch| wanted(touch)) {
            if !found.iter().any(|known| known.number == touch.number && known.mode == touch.mode) {
                found.push(*touch);
            }
        }
    }

    /// A block of the caching allocator ends; accesses for which `passed` holds are forgotten. Says whether any are
    /// left.
    pub(crate) fn retire(
        &mut self,
        slot: Slot,
        id: BlockId,
        (device, start): (DeviceId, u64),
        passed: impl Fn(&Touch) -> bool,
    ) -> bool {
        let shadow = &mut self.blocks[slot.index()];
        shadow.forget(&passed);
        if shadow.release(&mut self.spare) {
            return false;
        }
        shadow.end(id);
        self.retired.entry(device).or_default().put(start, shadow);
        true
    }

    /// Forgets the accesses to a block.
    pub(crate) fn forget_block(&mut self, slot: Slot) {
        self.blocks[slot.index()].clear();
    }

    /// Forgets those accesses to freed memory for which `known` holds.
    pub(crate) fn forget_retired(
        &mut self,
        device: DeviceId,
        start: u64,
        end: u64,
        known: impl Fn(&Touch) -> bool,
    ) {
        if let Some(retired) = self.retired.get_mut(&device) {
            retired.forget(start, end, known);
        }
    }

    /// Forgets those accesses to a block for which `known` holds.
    pub(crate) fn forget_known(&mut self, slot: Slot, known: impl Fn(&Touch) -> bool) {
        self.blocks[slot.index()].forget(&known);
    }

    /// Forgets the accesses of ended blocks, and strided ones, for which `passed` holds; gives the blocks whose
    /// accesses are kept elsewhere than with themselves. `block_of` says whose a slot is.
    pub(crate) fn tidy(
        &mut self,
        passed: impl Fn(&Touch) -> bool,
        block_of: impl Fn(Slot) -> BlockId,
    ) -> FxHashSet<BlockId> {
        let mut elsewhere = FxHashSet::default();
        for retired in self.retired.values_mut() {
            retired.tidy(self.blocks.len(), &mut self.spare, &passed);
            elsewhere.extend(retired.touches().map(|touch| touch.block));
        }
        for (index, shadow) in self.blocks.iter_mut().enumerate() {
            let block = block_of(Slot::at(index));
            shadow.tidy(block, &passed);
            elsewhere
                .extend(shadow.touches().flatten().map(|touch| touch.block).filter(|&other| other != block));
        }
        elsewhere
    }
}

/// Whether the access certainly changes its bytes.
fn is_definite(mode: AccessMode) -> bool {
    matches!(mode, AccessMode::Write | AccessMode::Update)
}

/// Whether two accesses to one byte can disagree. Two unknown accesses may both be reads, and so may an
/// unknown one beside a read: only a definite write makes a conflict with an unknown access.
fn conflicting(a: AccessMode, b: AccessMode) -> bool {
    is_definite(a) || is_definite(b)
}
