//! The shadow of one block: cells by address, most often one that is all of it, and accesses that lie aside.
//!
//! Strided accesses split no cells: the bounding interval of a column is nearly the whole matrix, so a cache
//! written column by column would be cut into cells that each hold every column. They lie in a list, each once,
//! until a later one stands for them or a write covers their bounding interval.

use super::cell::Cell;
use super::retired::Retired;
use super::{Conflict, Touch, conflicting, is_definite};
use crate::clock::ChainId;
use crate::overlap::Shapes;
use rustc_hash::FxHashMap;
use std::ops::Range;
use streamsan_trace::{AccessMode, BlockId, ShapeId};

/// Stands for several accesses that are not kept one by one: which bytes of the interval they touch is not known.
/// No trace has so many shapes.
const SOME_BYTES: ShapeId = ShapeId(u32::MAX);

/// For so many cells, and accesses aside, the memory stays with the place of a block.
const KEPT_ENTRIES: usize = 32;

/// As long as a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct BlockShadow {
    /// Up to here what earlier owners did is here too.
    pub(super) end: u64,
    /// Sorted, without overlap; where there is none nothing is kept.
    cells: Vec<Cell>,
    /// Accesses that are in no cell.
    aside: Vec<Touch>,
    /// The one ended block whose accesses are here, if they are nowhere else.
    from: Option<BlockId>,
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
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) -> bool {
        // Nearly always it is the same tensor again, and all of the block.
        if let [cell] = &mut *self.cells
            && (cell.start, cell.end) == (touch.start, touch.end)
            && self.aside.is_empty()
        {
            cell.touch(touch, shapes, ordered, report);
            return cell.is_single();
        }
        self.touch_cells(touch, shapes, ordered, report)
    }

    fn touch_cells(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) -> bool {
        let range = self.cover(touch.start, touch.end);
        let mut single = true;
        for cell in &mut self.cells[range.clone()] {
            cell.touch(touch, shapes, ordered, report);
            single &= cell.is_single();
        }
        if !self.aside.is_empty() {
            self.examine_aside(touch, shapes, ordered, report);
            if is_definite(touch.mode) {
                self.aside.retain(|earlier| {
                    let covered = touch.start <= earlier.start && earlier.end <= touch.end;
                    let replaced =
                        earlier.number == touch.number || earlier.block != touch.block || ordered(earlier);
                    !(covered && replaced)
                });
            }
        }
        if single && range.len() > 1 {
            // The same access is all that is kept of each.
            self.cells[range.start].end = touch.end;
            self.cells.drain(range.start + 1..range.end);
        }
        single && self.cells.len() == 1 && self.aside.is_empty()
    }

    /// The ended block whose accesses were here and are no more.
    pub(super) fn take_from(&mut self) -> Option<BlockId> {
        self.from.take()
    }

    /// An access to some bytes of an interval.
    pub(super) fn touch_strided(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        let range = self.overlapping(touch.start, touch.end);
        for cell in &self.cells[range] {
            cell.examine(touch, shapes, ordered, report);
        }
        self.examine_aside(touch, shapes, ordered, report);
        self.aside.retain(|earlier| {
            let stands_for = match touch.mode {
                AccessMode::Read => earlier.mode == AccessMode::Read,
                AccessMode::Unknown => !is_definite(earlier.mode),
                AccessMode::Write | AccessMode::Update => true,
            };
            let replaced = earlier.number == touch.number || ordered(earlier);
            !(stands_for && replaced && covers(touch, earlier, shapes))
        });
        self.aside.push(*touch);
    }

    fn examine_aside(
        &self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        shapes.effort.search(self.aside.len());
        for earlier in &self.aside {
            let meet = earlier.start < touch.end && touch.start < earlier.end;
            if meet
                && conflicting(earlier.mode, touch.mode)
                && earlier.number != touch.number
                && !ordered(earlier)
            {
                if earlier.shape == SOME_BYTES {
                    report(Conflict { earlier: *earlier, decided: false });
                } else {
                    earlier.meet(&earlier.footprint(shapes), &touch.footprint(shapes), shapes.effort, report);
                }
            }
        }
    }

    /// Hands every unordered conflicting earlier access to `report`, for an access that is not made.
    pub(super) fn examine(
        &self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        for cell in &self.cells[self.overlapping(touch.start, touch.end)] {
            cell.examine(touch, shapes, ordered, report);
        }
        self.examine_aside(touch, shapes, ordered, report);
    }

    /// How many accesses lie aside.
    #[inline]
    pub(super) fn aside(&self) -> usize {
        self.aside.len()
    }

    /// Forgets accesses aside for which `passed` holds. Of the others so many stay; the oldest become one for each stream and
    /// owner, of some bytes between the first and the last. Says how many of these were too many, and are forgotten.
    pub(super) fn thin_out(&mut self, left: usize, passed: &impl Fn(&Touch) -> bool) -> usize {
        self.aside.retain(|touch| !passed(touch));
        let oldest = self.aside.len().saturating_sub(left);
        let mut known: FxHashMap<(ChainId, BlockId, bool), usize> = FxHashMap::default();
        let mut together: Vec<Touch> = Vec::new();
        for touch in self.aside.drain(..oldest) {
            let index =
                *known.entry((touch.chain, touch.block, is_definite(touch.mode))).or_insert(together.len());
            match together.get_mut(index) {
                None => together.push(Touch { shape: SOME_BYTES, ..touch }),
                Some(all) => {
                    let (start, end) = (all.start.min(touch.start), all.end.max(touch.end));
                    // What is ordered after the last one is ordered after all.
                    let last = if touch.number > all.number { touch } else { *all };
                    *all = Touch { start, end, shape: SOME_BYTES, ..last };
                }
            }
        }
        let forgotten = together.len().saturating_sub(left / 2);
        self.aside.splice(..0, together.into_iter().skip(forgotten));
        forgotten
    }

    /// All accesses that are kept, in groups; one that lies in several cells comes several times.
    pub(super) fn touches(&self) -> impl Iterator<Item = &[Touch]> {
        self.cells.iter().flat_map(Cell::touches).chain(std::iter::once(&*self.aside))
    }

    /// Whether this holds for any access that is kept.
    pub(super) fn any(&self, mut holds: impl FnMut(&Touch) -> bool) -> bool {
        for cell in &self.cells {
            let [writes, others] = cell.touches();
            if writes.iter().any(&mut holds) || others.iter().any(&mut holds) {
                return true;
            }
        }
        self.aside.iter().any(holds)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any(|_| true)
    }

    /// Forgets all accesses for which `known` holds.
    pub(super) fn forget(&mut self, known: &impl Fn(&Touch) -> bool) {
        for cell in &mut self.cells {
            cell.retain(|touch| !known(touch));
        }
        if !self.aside.is_empty() {
            self.aside.retain(|touch| !known(touch));
        }
    }

    /// Forgets accesses of earlier owners, and those aside, for which `passed` holds.
    pub(super) fn tidy(&mut self, own: BlockId, passed: &impl Fn(&Touch) -> bool) {
        for cell in &mut self.cells {
            cell.retain(|touch| touch.block == own || !passed(touch));
        }
        self.aside.retain(|touch| !passed(touch));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        empty(&mut self.cells);
        empty(&mut self.aside);
        self.from = None;
    }

    /// The block ends. Its accesses are nowhere else.
    pub(super) fn end(&mut self, block: BlockId) {
        let alone = !self.any(|touch| touch.block != block);
        self.from = alone.then_some(block);
    }

    /// Moves everything of `piece`, which lies behind all that is here, to here.
    pub(super) fn append(&mut self, piece: &mut Self) {
        if self.cells.is_empty() && self.aside.is_empty() {
            std::mem::swap(&mut self.cells, &mut piece.cells);
            std::mem::swap(&mut self.aside, &mut piece.aside);
            self.from = piece.from.take();
        } else {
            self.from = None;
            piece.from = None;
            self.cells.append(&mut piece.cells);
            self.aside.append(&mut piece.aside);
        }
    }

    /// Puts the accesses of another block to the same bytes aside.
    pub(super) fn put_aside(&mut self, other: &Self) {
        self.aside.extend(other.touches().flatten());
        self.from = None;
    }

    /// Cuts at `position` and gives the upper part. What lies aside is in both if it reaches both.
    pub(super) fn split_off(&mut self, position: u64) -> Self {
        self.split(position);
        let first = self.cells.partition_point(|cell| cell.end <= position);
        let aside = self.aside.iter().copied().filter(|touch| touch.end > position).collect();
        let upper = Self { end: self.end, cells: self.cells.split_off(first), aside, from: None };
        self.from = None;
        self.aside.retain(|touch| touch.start < position);
        self.end = position;
        upper
    }

    fn overlapping(&self, start: u64, end: u64) -> Range<usize> {
        let first = self.cells.partition_point(|cell| cell.end <= start);
        let count = self.cells[first..].partition_point(|cell| cell.start < end);
        first..first + count
    }

    /// Makes cells that together are `start..end`.
    #[inline]
    fn cover(&mut self, start: u64, end: u64) -> Range<usize> {
        let first = self.cells.partition_point(|cell| cell.end <= start);
        if let Some(cell) = self.cells.get(first)
            && cell.start == start
            && cell.end == end
        {
            return first..first + 1;
        }
        self.split(start);
        self.split(end);
        self.fill(start, end);
        self.overlapping(start, end)
    }

    /// Makes cells where there are none.
    fn fill(&mut self, start: u64, end: u64) {
        let mut index = self.cells.partition_point(|cell| cell.end <= start);
        let mut position = start;
        while position < end {
            let next = self.cells.get(index).map_or(end, |cell| cell.start.min(end));
            if position < next {
                if self.cells.is_empty() {
                    // Most blocks never have another one.
                    self.cells.reserve_exact(1);
                }
                self.cells.insert(index, Cell::new(position, next));
            }
            position = self.cells[index].end;
            index += 1;
        }
    }

    fn split(&mut self, position: u64) {
        let index = self.cells.partition_point(|cell| cell.end <= position);
        if let Some(cell) = self.cells.get_mut(index)
            && cell.start < position
        {
            let rest = cell.split_off(position);
            self.cells.insert(index + 1, rest);
        }
    }
}

/// Removes all entries. The next block needs a few: the memory for them stays, that of many does not.
fn empty<T>(list: &mut Vec<T>) {
    if list.capacity() <= KEPT_ENTRIES {
        list.clear();
    } else {
        *list = Vec::new();
    }
}

/// Whether all bytes of `inner` are bytes of `outer`, as far as can be seen at once: the steps are the same, and
/// the runs of the inner one lie within those of the outer one.
fn covers(outer: &Touch, inner: &Touch, shapes: Shapes<'_>) -> bool {
    if outer.shape == inner.shape {
        return outer.start == inner.start;
    }
    let (Some(outer_shape), Some(inner_shape)) = (shapes.shape(outer.shape), shapes.shape(inner.shape))
    else {
        return false;
    };
    outer_shape.dimensions == inner_shape.dimensions
        && inner
            .start
            .checked_sub(outer.start)
            .is_some_and(|ahead| ahead.saturating_add(inner_shape.run) <= outer_shape.run)
}
