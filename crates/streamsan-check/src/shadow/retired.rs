//! Memory of blocks that were freed and not touched by a new owner yet, with the accesses of their owners.
//!
//! When a block ends, those of its accesses move here that something may still be unordered with. When a
//! later block's bytes are touched for the first time they move on to that block, so that reuse is reported with
//! both owners. An allocator hands most blocks out again as they were: then everything moves as a whole, and its place
//! here stays for the next time.

use super::Touch;
use super::block::BlockShadow;
use std::collections::BTreeMap;

/// Freed memory of one device, by address, without overlap.
#[derive(Debug, Default)]
pub(super) struct Retired {
    pieces: BTreeMap<u64, BlockShadow>,
}

impl Retired {
    /// Takes in what is left of the block that began at `start`.
    pub(super) fn put(&mut self, start: u64, shadow: &mut BlockShadow) {
        if let Some(place) = self.pieces.get_mut(&start)
            && place.end == shadow.end
            && place.is_empty()
        {
            std::mem::swap(place, shadow);
            return;
        }
        let mut piece = std::mem::take(shadow);
        self.split(start);
        self.split(piece.end);
        let inside: Vec<u64> = self.pieces.range(start..piece.end).map(|(&start, _)| start).collect();
        for inside in inside {
            if let Some(there) = self.pieces.remove(&inside) {
                // Two blocks had the bytes at once: only in a damaged log.
                piece.put_aside(&there);
            }
        }
        self.pieces.insert(start, piece);
    }

    /// Moves all that is kept of `start..end` to the empty end of a block.
    pub(super) fn take(&mut self, start: u64, end: u64, block: &mut BlockShadow) {
        if self.pieces.is_empty() || start >= end {
            return;
        }
        if let Some(piece) = self.pieces.get_mut(&start)
            && piece.end == end
        {
            block.append(piece);
            return;
        }
        self.split(start);
        self.split(end);
        for piece in self.pieces.range_mut(start..end).map(|(_, piece)| piece) {
            block.append(piece);
        }
    }

    /// What is kept of freed memory that reaches into `start..end`.
    pub(super) fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &BlockShadow> {
        let first = self.pieces.range(..start).next_back().filter(|(_, piece)| piece.end > start);
        let rest = self.pieces.range(start..end.max(start));
        first.into_iter().chain(rest).map(|(_, piece)| piece)
    }

    /// Forgets all accesses to an interval for which `known` holds.
    pub(super) fn forget(&mut self, start: u64, end: u64, known: impl Fn(&Touch) -> bool) {
        if self.pieces.is_empty() || start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        for piece in self.pieces.range_mut(start..end).map(|(_, piece)| piece) {
            piece.forget(&known);
        }
    }

    /// Forgets all accesses for which `passed` holds, and places without any.
    pub(super) fn tidy(&mut self, passed: &impl Fn(&Touch) -> bool) {
        self.pieces.retain(|_, piece| {
            piece.forget(passed);
            !piece.is_empty()
        });
    }

    pub(super) fn touches(&self) -> impl Iterator<Item = &Touch> {
        self.pieces.values().flat_map(BlockShadow::touches).flatten()
    }

    fn split(&mut self, position: u64) {
        let Some((_, piece)) = self.pieces.range_mut(..position).next_back() else { return };
        if piece.end > position {
            let upper = piece.split_off(position);
            if !upper.is_empty() {
                self.pieces.insert(position, upper);
            }
        }
    }
}
