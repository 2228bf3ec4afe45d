//! What is kept of the accesses to a block: cells by address, most often one that is all of it, and accesses aside.
//!
//! Strided accesses split no cells: the bounding interval of a column is nearly the whole matrix, so a cache
//! written column by column would be cut into cells that each hold every column. They lie in a list, each once,
//! until a later one stands for them or a write covers their bounding interval.

use super::cell::Cell;
use super::few::Few;
use super::{Conflict, Touch, conflicting, is_definite};
use crate::clock::ChainId;
use crate::overlap::Shapes;
use rustc_hash::FxHashMap;
use std::ops::Range;
use streamsan_trace::{AccessMode, BlockId, ShapeId};

/// Stands for several accesses that are not kept one by one: which bytes of the interval they touch is not known.
/// No trace has so many shapes.
const SOME_BYTES: ShapeId = ShapeId(u32::MAX);

/// For so many accesses aside the memory stays.
const KEPT_ASIDE: usize = 32;

/// What most accesses look at is in the first two cache lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Cells {
    /// How many accesses lie aside.
    aside_count: usize,
    /// Sorted, without overlap; where there is none nothing is kept.
    list: Few<Cell, 2>,
    aside: Vec<Touch>,
}

impl Cells {
    /// Whether there is any place where accesses are kept.
    pub(super) fn has_cells(&self) -> bool {
        !self.list.is_empty() || self.aside_count != 0
    }

    /// Whether no access is kept.
    pub(super) fn is_without_touches(&self) -> bool {
        self.aside_count == 0 && self.list.iter().all(|cell| cell.count() == 0)
    }

    pub(super) fn list(&self) -> &[Cell] {
        &self.list
    }

    pub(super) fn list_mut(&mut self) -> &mut [Cell] {
        &mut self.list
    }

    /// Accesses that are in no cell.
    pub(super) fn aside(&self) -> &[Touch] {
        if self.aside_count == 0 { &[] } else { &self.aside }
    }

    /// Changes the accesses that are in no cell. Memory for many does not stay when there are none.
    fn change_aside<T>(&mut self, change: impl FnOnce(&mut Vec<Touch>) -> T) -> T {
        let result = change(&mut self.aside);
        if self.aside.is_empty() && self.aside.capacity() > KEPT_ASIDE {
            self.aside = Vec::new();
        }
        self.aside_count = self.aside.len();
        result
    }

    pub(super) fn put_aside<'a>(&mut self, touches: impl Iterator<Item = &'a Touch>) {
        self.change_aside(|aside| aside.extend(touches));
    }

    /// Keeps those that are in no cell only if this holds.
    pub(super) fn retain_aside(&mut self, keep: impl Fn(&Touch) -> bool) {
        if self.aside_count != 0 {
            self.change_aside(|aside| aside.retain(keep));
        }
    }

    /// Whether this holds for any access that is kept.
    pub(super) fn any(&self, mut holds: impl FnMut(&Touch) -> bool) -> bool {
        for cell in self.list() {
            let [writes, others] = cell.touches();
            if writes.iter().any(&mut holds) || others.iter().any(&mut holds) {
                return true;
            }
        }
        self.aside().iter().any(holds)
    }

    /// An access to all bytes of an interval. Says whether it is all that is kept.
    #[inline]
    pub(super) fn touch(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) -> bool {
        // Nearly always it is the same tensor again, and all of the block.
        if let [cell] = &mut *self.list
            && (cell.start, cell.end) == (touch.start, touch.end)
            && self.aside_count == 0
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
        for cell in &mut self.list[range.clone()] {
            cell.touch(touch, shapes, ordered, report);
            single &= cell.is_single();
        }
        if self.aside_count != 0 {
            self.examine_aside(touch, shapes, ordered, report);
            if is_definite(touch.mode) {
                self.retain_aside(|earlier| {
                    let covered = touch.start <= earlier.start && earlier.end <= touch.end;
                    let replaced =
                        earlier.number == touch.number || earlier.block != touch.block || ordered(earlier);
                    !(covered && replaced)
                });
            }
        }
        if single && range.len() > 1 {
            // The same access is all that is kept of each.
            self.list[range.start].end = touch.end;
            let rest = range.start + 1..range.end;
            self.list[rest.clone()].iter_mut().for_each(Cell::reset);
            self.list.remove(rest);
        }
        single && self.list.len() == 1 && self.aside_count == 0
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
        for cell in &self.list[range] {
            cell.examine(touch, shapes, ordered, report);
        }
        self.examine_aside(touch, shapes, ordered, report);
        self.retain_aside(|earlier| {
            let stands_for = match touch.mode {
                AccessMode::Read => earlier.mode == AccessMode::Read,
                AccessMode::Unknown => !is_definite(earlier.mode),
                AccessMode::Write | AccessMode::Update => true,
            };
            let replaced = earlier.number == touch.number || ordered(earlier);
            !(stands_for && replaced && covers(touch, earlier, shapes))
        });
        self.put_aside(std::iter::once(touch));
    }

    fn examine_aside(
        &self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        shapes.effort.search(self.aside_count);
        for earlier in self.aside() {
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
        for cell in &self.list[self.overlapping(touch.start, touch.end)] {
            cell.examine(touch, shapes, ordered, report);
        }
        self.examine_aside(touch, shapes, ordered, report);
    }

    /// Forgets accesses aside for which `passed` holds. Of the others so many stay; the oldest become one for each stream and
    /// owner, of some bytes between the first and the last. Says how many of these were too many, and are forgotten.
    pub(super) fn thin_out(&mut self, left: usize, passed: &impl Fn(&Touch) -> bool) -> usize {
        self.retain_aside(|touch| !passed(touch));
        self.change_aside(|aside| join_oldest(aside, left))
    }

    /// Forgets everything. The next block needs a little memory: that stays, much does not.
    pub(super) fn clear(&mut self) {
        self.list.iter_mut().for_each(Cell::reset);
        self.list.reset();
        if self.aside_count != 0 {
            self.change_aside(Vec::clear);
        }
    }

    /// Moves everything of others, which lie behind all that is here, to here.
    pub(super) fn append(&mut self, others: &mut Self) {
        self.list.append(&mut others.list);
        others.change_aside(|others| self.change_aside(|aside| aside.append(others)));
    }

    /// Cuts at `position` and gives the upper part. What lies aside is in both if it reaches both.
    pub(super) fn split_off(&mut self, position: u64) -> Self {
        self.split(position);
        let first = self.list.partition_point(|cell| cell.end <= position);
        let mut upper = Self { list: self.list.split_off(first), ..Self::default() };
        upper.put_aside(self.aside().iter().filter(|touch| touch.end > position));
        self.retain_aside(|touch| touch.start < position);
        upper
    }

    fn overlapping(&self, start: u64, end: u64) -> Range<usize> {
        let first = self.list.partition_point(|cell| cell.end <= start);
        let count = self.list[first..].partition_point(|cell| cell.start < end);
        first..first + count
    }

    /// Makes cells that together are `start..end`.
    #[inline]
    fn cover(&mut self, start: u64, end: u64) -> Range<usize> {
        let first = self.list.partition_point(|cell| cell.end <= start);
        if let Some(cell) = self.list.get(first)
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
        let mut index = self.list.partition_point(|cell| cell.end <= start);
        let mut position = start;
        while position < end {
            let next = self.list.get(index).map_or(end, |cell| cell.start.min(end));
            if position < next {
                self.list.insert(index, Cell::new(position, next));
            }
            position = self.list[index].end;
            index += 1;
        }
    }

    fn split(&mut self, position: u64) {
        let index = self.list.partition_point(|cell| cell.end <= position);
        if let Some(cell) = self.list.get_mut(index)
            && cell.start < position
        {
            let rest = cell.split_off(position);
            self.list.insert(index + 1, rest);
        }
    }
}

/// Keeps so many, the latest, and makes the others one for each stream and owner. Says how many of these were too many.
fn join_oldest(aside: &mut Vec<Touch>, left: usize) -> usize {
    let oldest = aside.len().saturating_sub(left);
    let mut known: FxHashMap<(ChainId, BlockId, bool), usize> = FxHashMap::default();
    let mut together: Vec<Touch> = Vec::new();
    for touch in aside.drain(..oldest) {
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
    aside.splice(..0, together.into_iter().skip(forgotten));
    forgotten
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
