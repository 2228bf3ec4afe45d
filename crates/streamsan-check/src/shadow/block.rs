//! The shadow of one block: up to where it is known, and what is kept of the accesses to it.
//!
//! With many streams the time goes to waiting for memory. So what says whether anything is kept is small, for many blocks to
//! be in a cache, and the rest is in one place. It moves as a whole to freed memory, and from there to the next owner.

use super::cell::Cell;
use super::cells::Cells;
use super::retired::Retired;
use super::{Conflict, Touch};
use crate::overlap::Shapes;
use streamsan_trace::BlockId;

#[derive(Debug, Default)]
pub(super) struct BlockShadow {
    /// Up to here what earlier owners did is here too.
    pub(super) end: u64,
    kept: Option<Box<Cells>>,
    /// The one ended block whose accesses are here, if they are nowhere else.
    from: Option<BlockId>,
}

/// Memory for what is kept of blocks, for later. The next block gets what was used last: that is in a cache.
#[derive(Debug, Default)]
pub(super) struct Spare(#[allow(clippy::vec_box, reason = "they move as they are")] Vec<Box<Cells>>);

/// More is given back to the system.
const MOST_SPARE: usize = 1 << 12;

impl Spare {
    #[cold]
    fn take(&mut self) -> Box<Cells> {
        self.0.pop().unwrap_or_default()
    }
}

impl BlockShadow {
    /// A block begins.
    pub(super) fn begin(&mut self, start: u64) {
        self.end = start;
        self.clear();
    }

    /// Has what earlier owners did up to `end` moved here.
    pub(super) fn inherit(&mut self, end: u64, earlier_owners: Option<&mut Retired>) {
        if let Some(retired) = earlier_owners {
            retired.take(self.end, end, self);
        }
        self.end = end;
    }

    /// An access to all bytes of an interval. Says whether it is all that is kept.
    #[inline]
    pub(super) fn touch_all_of_it(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        spare: &mut Spare,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) -> bool {
        self.kept_or_new(spare).touch(touch, shapes, ordered, report)
    }

    /// An access to some bytes of an interval.
    pub(super) fn touch_strided(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        spare: &mut Spare,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        self.kept_or_new(spare).touch_strided(touch, shapes, ordered, report);
    }

    #[inline]
    fn kept_or_new(&mut self, spare: &mut Spare) -> &mut Cells {
        match &mut self.kept {
            Some(kept) => kept,
            none => none.insert(spare.take()),
        }
    }

    /// The ended block whose accesses were here and are no more.
    pub(super) fn take_from(&mut self) -> Option<BlockId> {
        self.from.take()
    }

    /// Hands every unordered conflicting earlier access to `report`, for an access that is not made.
    pub(super) fn examine(
        &self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        if let Some(kept) = &self.kept {
            kept.examine(touch, shapes, ordered, report);
        }
    }

    /// How many accesses lie aside.
    #[inline]
    pub(super) fn aside(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.aside().len())
    }

    /// As [`Cells::thin_out`].
    pub(super) fn thin_out(&mut self, left: usize, passed: &impl Fn(&Touch) -> bool) -> usize {
        self.kept.as_mut().map_or(0, |kept| kept.thin_out(left, passed))
    }

    /// All accesses that are kept, in groups; one that lies in several cells comes several times.
    pub(super) fn touches(&self) -> impl Iterator<Item = &[Touch]> {
        self.kept
            .iter()
            .flat_map(|kept| kept.list().iter().flat_map(Cell::touches).chain(std::iter::once(kept.aside())))
    }

    /// Whether this holds for any access that is kept.
    pub(super) fn any(&self, holds: impl FnMut(&Touch) -> bool) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.any(holds))
    }

    /// Whether no access is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.is_without_touches())
    }

    /// Forgets all accesses for which `known` holds.
    pub(super) fn forget(&mut self, known: &impl Fn(&Touch) -> bool) {
        self.retain(|touch| !known(touch), |touch| !known(touch));
    }

    /// Forgets accesses of earlier owners, and those aside, for which `passed` holds.
    pub(super) fn tidy(&mut self, own: BlockId, passed: &impl Fn(&Touch) -> bool) {
        self.retain(|touch| touch.block == own || !passed(touch), |touch| !passed(touch));
    }

    fn retain(&mut self, keep: impl Fn(&Touch) -> bool, keep_aside: impl Fn(&Touch) -> bool) {
        let Some(kept) = &mut self.kept else { return };
        for cell in kept.list_mut() {
            cell.retain(&keep);
        }
        kept.retain_aside(keep_aside);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.from = None;
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
    }

    /// Lets go of the memory if no access is kept; says whether that is so.
    pub(super) fn release(&mut self, spare: &mut Spare) -> bool {
        if !self.is_empty() {
            return false;
        }
        self.clear();
        let kept = self.kept.take();
        spare.0.extend(kept.filter(|_| spare.0.len() < MOST_SPARE));
        true
    }

    /// The block ends. Its accesses are nowhere else.
    pub(super) fn end(&mut self, block: BlockId) {
        let alone = !self.any(|touch| touch.block != block);
        self.from = alone.then_some(block);
    }

    /// Moves everything of `piece`, which lies behind all that is here, to here.
    pub(super) fn append(&mut self, piece: &mut Self) {
        let from = piece.from.take();
        match &mut self.kept {
            Some(kept) if kept.has_cells() => {
                self.from = None;
                if let Some(others) = &mut piece.kept {
                    kept.append(others);
                }
            }
            _ => {
                std::mem::swap(&mut self.kept, &mut piece.kept);
                self.from = from;
            }
        }
    }

    /// Puts the accesses of another block to the same bytes aside.
    pub(super) fn put_aside(&mut self, other: &Self) {
        self.kept.get_or_insert_default().put_aside(other.touches().flatten());
        self.from = None;
    }

    /// Cuts at `position` and gives the upper part. What lies aside is in both if it reaches both.
    pub(super) fn split_off(&mut self, position: u64) -> Self {
        self.from = None;
        let kept = self.kept.as_mut().map(|kept| Box::new(kept.split_off(position)));
        Self { end: std::mem::replace(&mut self.end, position), kept, from: None }
    }
}
