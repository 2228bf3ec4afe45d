//! Cells: intervals of addresses on which the same accesses are kept.
//!
//! Of each chain the last accesses are kept that can still be the earlier half of a hazard. An access that is
//! ordered before a newer one which covers it can be forgotten, since whatever is unordered with it is unordered
//! with the newer one too (the argument of FastTrack's epochs, applied to intervals). As FastTrack does for
//! memory that many threads read, reads are kept by chain: a read replaces its chain's last one without a look at
//! those of all other chains.

use super::few::Few;
use super::{Conflict, Touch, conflicting, is_definite};
use crate::clock::ChainId;
use crate::overlap::{Effort, Footprint, Overlap, Shapes, overlap};
use streamsan_trace::AccessMode;

/// With more reads than this in a cell, a read leaves alone those of other chains.
const FEW: usize = 8;

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Cell {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Accesses that certainly change the bytes.
    writes: Few<Touch, 1>,
    /// Reads and unknown accesses, by chain.
    others: Few<Touch, 2>,
}

impl Cell {
    pub(super) fn new(start: u64, end: u64) -> Self {
        Self { start, end, ..Self::default() }
    }

    /// Forgets everything, and lets go of memory for many accesses.
    pub(super) fn reset(&mut self) {
        self.writes.reset();
        self.others.reset();
    }

    /// How many accesses are kept.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.writes.len() + self.others.len()
    }

    /// Whether one access is all that is kept.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.count() == 1
    }

    /// The two kinds of accesses, one after the other.
    pub(super) fn touches(&self) -> [&[Touch]; 2] {
        [&self.writes, &self.others]
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Touch) -> bool) {
        if !self.writes.iter().all(&mut keep) {
            self.writes.retain(|touch| keep(touch));
        }
        if !self.others.iter().all(&mut keep) {
            self.others.retain(|touch| keep(touch));
        }
    }

    /// A cell for a part of this one.
    fn part(&self, start: u64, end: u64) -> Self {
        let mut part = Self { start, end, ..self.clone() };
        part.retain(|touch| touch.start < end && touch.end > start);
        part
    }

    /// Cuts the cell at `position` and gives the upper part.
    pub(super) fn split_off(&mut self, position: u64) -> Self {
        let upper = self.part(position, self.end);
        self.end = position;
        self.retain(|touch| touch.start < position);
        upper
    }

    /// Hands every unordered conflicting earlier access to `report`. Says whether each that was looked at is ordered
    /// before this one, or part of it.
    #[inline]
    pub(super) fn examine(
        &self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) -> bool {
        let matters = |earlier: &Touch| earlier.number != touch.number && !ordered(earlier);
        let mut all_ordered = true;
        for earlier in &*self.writes {
            if matters(earlier) {
                all_ordered = false;
                self.compare(earlier, touch, shapes, report);
            }
        }
        if is_definite(touch.mode) {
            for earlier in &*self.others {
                if matters(earlier) {
                    all_ordered = false;
                    self.compare(earlier, touch, shapes, report);
                }
            }
        }
        all_ordered
    }

    /// [Examines](Self::examine), and keeps an access that covers the cell, in place of those that it makes needless.
    #[inline]
    pub(super) fn touch(
        &mut self,
        touch: &Touch,
        shapes: Shapes<'_>,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        let all_ordered = self.examine(touch, shapes, ordered, report);
        if !is_definite(touch.mode) {
            self.store_other(touch, ordered);
        } else if all_ordered {
            // None of them is needed any more.
            self.others.clear();
            if let [only] = &mut *self.writes {
                *only = *touch;
            } else {
                self.writes.clear();
                self.writes.push(*touch);
            }
        } else {
            self.store_beside(touch, ordered);
        }
    }

    #[cold]
    fn compare(&self, earlier: &Touch, touch: &Touch, shapes: Shapes<'_>, report: &mut impl FnMut(Conflict)) {
        let bytes = self.footprint(earlier, shapes);
        earlier.meet(&bytes, &self.footprint(touch, shapes), shapes.effort, report);
    }

    /// The bytes of the cell that an access touches. A strided one is taken as it is.
    fn footprint<'a>(&self, touch: &Touch, shapes: Shapes<'a>) -> Footprint<'a> {
        let mut footprint = touch.footprint(shapes);
        if footprint.shape.is_none() {
            footprint.start = footprint.start.max(self.start);
            footprint.end = footprint.end.min(self.end);
        }
        footprint
    }

    /// Keeps a definite change that some earlier access is not ordered before.
    #[cold]
    fn store_beside(&mut self, touch: &Touch, ordered: &impl Fn(&Touch) -> bool) {
        let needed = |earlier: &Touch| {
            let own = earlier.number == touch.number;
            // A use of an older generation is reported against the first access that conflicts with it.
            let reported = earlier.block != touch.block && conflicting(earlier.mode, touch.mode);
            !(own || reported || ordered(earlier))
        };
        self.others.retain(|earlier| needed(earlier));
        self.writes.retain(|earlier| needed(earlier));
        self.writes.push(*touch);
    }

    /// Where the accesses of a chain begin among the others.
    fn place_of(&self, chain: ChainId) -> usize {
        // Where all chains read, each is where its number says.
        let first = self.others.first().map_or(0, |first| first.chain.0);
        let guess = chain.0.wrapping_sub(first) as usize;
        let before = guess.checked_sub(1).and_then(|before| self.others.get(before));
        if self.others.get(guess).is_some_and(|other| other.chain == chain)
            && before.is_none_or(|before| before.chain < chain)
        {
            return guess;
        }
        self.others.partition_point(|other| other.chain < chain)
    }

    #[inline]
    fn store_other(&mut self, touch: &Touch, ordered: &impl Fn(&Touch) -> bool) {
        // An unknown access may be a write: a read does not stand for it.
        let stands_for =
            |earlier: &Touch| touch.mode == AccessMode::Unknown || earlier.mode == AccessMode::Read;
        let chain = touch.chain;
        match &mut *self.others {
            [] => {
                self.others.push(*touch);
                return;
            }
            [only] if only.chain == chain && stands_for(only) => {
                *only = *touch;
                return;
            }
            _ => {}
        }
        if self.others.len() <= FEW || self.others.len().is_power_of_two() {
            self.others
                .retain(|earlier| !(stands_for(earlier) && (earlier.chain == chain || ordered(earlier))));
        }
        let place = self.place_of(chain);
        match self.others.get_mut(place) {
            Some(last) if last.chain == chain && stands_for(last) => *last = *touch,
            _ => self.others.insert(place, *touch),
        }
    }
}

impl Touch {
    /// The bytes of an access.
    pub(super) fn footprint<'a>(&self, shapes: Shapes<'a>) -> Footprint<'a> {
        Footprint { start: self.start, end: self.end, shape: shapes.shape(self.shape) }
    }

    /// Reports this earlier access if its bytes meet those of a later one.
    pub(super) fn meet(
        &self,
        bytes: &Footprint<'_>,
        later: &Footprint<'_>,
        effort: &Effort,
        report: &mut impl FnMut(Conflict),
    ) {
        match overlap(bytes, later, effort) {
            Overlap::Disjoint => {}
            Overlap::Shared => report(Conflict { earlier: *self, decided: true }),
            Overlap::Undecided => report(Conflict { earlier: *self, decided: false }),
        }
    }
}
