//! Memory of blocks that were freed and not touched by a new owner yet, with the accesses of their owners.
//!
//! When a block ends, those of its accesses move here that something may still be unordered with. When a
//! later block's bytes are touched for the first time they move on to that block, so that reuse is reported with
//! both owners. An allocator hands most blocks out again as they were: then everything moves as a whole, and its place
//! here stays for the next time.

mod places;

use super::Touch;
use super::block::{BlockShadow, Spare};
use places::Places;

/// So many places without any access are always kept for the next time.
const EMPTY_PLACES: usize = 256;

/// Freed memory of one device, by address, without overlap.
#[derive(Debug, Default)]
pub(super) struct Retired {
    places: Places,
    pieces: Vec<BlockShadow>,
    /// Pieces that have no place.
    unused: Vec<usize>,
}

impl Retired {
    /// Takes in what is left of the block that began at `start`.
    #[inline]
    pub(super) fn put(&mut self, start: u64, shadow: &mut BlockShadow) {
        if let Some(index) = self.places.get(start) {
            let piece = &mut self.pieces[index];
            if piece.end == shadow.end && piece.is_empty() {
                std::mem::swap(piece, shadow);
                return;
            }
        }
        self.make_place(start, shadow);
    }

    #[cold]
    fn make_place(&mut self, start: u64, shadow: &mut BlockShadow) {
        self.split(start);
        let shadow_end = shadow.end;
        self.split(shadow_end);
        let first = |places: &Places| places.range(start..shadow_end).next();
        while let Some((inside, index)) = first(&self.places) {
            self.places.remove(inside);
            if !self.pieces[index].is_empty() {
                // Two blocks had the bytes at once: only in a damaged log.
                shadow.put_aside(&self.pieces[index]);
            }
            self.pieces[index].clear();
            self.unused.push(index);
        }
        let index = self.unused();
        std::mem::swap(&mut self.pieces[index], shadow);
        self.places.insert(start, index);
    }

    /// An empty piece without a place.
    fn unused(&mut self) -> usize {
        self.unused.pop().unwrap_or_else(|| {
            self.pieces.push(BlockShadow::default());
            self.pieces.len() - 1
        })
    }

    /// Moves all that is kept of `start..end` to the empty end of a block.
    #[inline]
    pub(super) fn take(&mut self, start: u64, end: u64, block: &mut BlockShadow) {
        if start >= end {
            return;
        }
        if let Some(index) = self.places.get(start)
            && self.pieces[index].end == end
        {
            block.append(&mut self.pieces[index]);
            return;
        }
        self.take_parts(start, end, block);
    }

    fn take_parts(&mut self, start: u64, end: u64, block: &mut BlockShadow) {
        self.split(start);
        self.split(end);
        for (_, index) in self.places.range(start..end) {
            if !self.pieces[index].is_empty() {
                block.append(&mut self.pieces[index]);
            }
        }
    }

    /// What is kept of freed memory that reaches into `start..end`.
    pub(super) fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &BlockShadow> {
        let first = self.places.before(start).filter(|&index| self.pieces[index].end > start);
        let rest = self.places.range(start..end).map(|(_, index)| index);
        first.into_iter().chain(rest).map(|index| &self.pieces[index])
    }

    /// Forgets all accesses to an interval for which `known` holds.
    pub(super) fn forget(&mut self, start: u64, end: u64, known: impl Fn(&Touch) -> bool) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        for (_, index) in self.places.range(start..end) {
            self.pieces[index].forget(&known);
        }
    }

    /// Forgets all accesses for which `passed` holds, and places without any if there are more of them than blocks.
    pub(super) fn tidy(&mut self, blocks: usize, spare: &mut Spare, passed: &impl Fn(&Touch) -> bool) {
        let mut kept = 0;
        for piece in &mut self.pieces {
            piece.forget(passed);
            kept += usize::from(!piece.release(spare));
        }
        if self.places.len() <= kept + blocks + EMPTY_PLACES {
            return;
        }
        let Self { places, pieces, unused } = self;
        places.retain(|index| {
            let keep = !pieces[index].is_empty();
            if !keep {
                pieces[index].clear();
                unused.push(index);
            }
            keep
        });
    }

    pub(super) fn touches(&self) -> impl Iterator<Item = &Touch> {
        self.pieces.iter().flat_map(BlockShadow::touches).flatten()
    }

    /// Makes sure that no piece lies on both sides of a position.
    fn split(&mut self, position: u64) {
        let Some(index) = self.places.before(position) else { return };
        if self.pieces[index].end > position {
            let upper = self.pieces[index].split_off(position);
            if !upper.is_empty() {
                let index = self.unused();
                self.pieces[index] = upper;
                self.places.insert(position, index);
            }
        }
    }
}
