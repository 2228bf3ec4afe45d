//! Where each piece of freed memory begins, in order of addresses.
//!
//! An allocator hands out the same addresses again and again. So each address that was looked up is noted in a table by a
//! hash of it, one address a place: most look-ups are one read, where a search of the ordered map is a dozen comparisons
//! that no processor can foresee.

use std::collections::BTreeMap;
use std::ops::Range;

/// Noted addresses at most: 1 MiB of them.
const MOST_NOTED: usize = 1 << 16;
const FEWEST_NOTED: usize = 1 << 6;

/// The index of the piece that begins at each address.
#[derive(Debug)]
pub(super) struct Places {
    ordered: BTreeMap<u64, u32>,
    /// Looked up last among those with the same hash: each is in the map too.
    noted: Vec<Note>,
}

/// Where a piece begins.
#[derive(Clone, Copy, Debug)]
struct Note {
    start: u64,
    index: u32,
}

impl Note {
    const NONE: Self = Self { start: 0, index: u32::MAX };
}

impl Default for Places {
    fn default() -> Self {
        Self { ordered: BTreeMap::new(), noted: vec![Note::NONE; FEWEST_NOTED] }
    }
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    fn noted_at(&self, start: u64) -> usize {
        // The upper bits of the product depend on all bits of the address.
        let hash = start.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.noted.len() - 1)
    }

    /// The piece that begins at this address.
    #[inline]
    pub(super) fn get(&mut self, start: u64) -> Option<usize> {
        let at = self.noted_at(start);
        let noted = self.noted[at];
        if noted.start == start && noted.index != Note::NONE.index {
            return Some(noted.index as usize);
        }
        let index = *self.ordered.get(&start)?;
        self.noted[at] = Note { start, index };
        Some(index as usize)
    }

    pub(super) fn insert(&mut self, start: u64, index: usize) {
        self.ordered.insert(start, index as u32);
        if self.ordered.len() * 2 > self.noted.len() && self.noted.len() < MOST_NOTED {
            self.noted = vec![Note::NONE; self.noted.len() * 2];
        }
        let at = self.noted_at(start);
        self.noted[at] = Note { start, index: index as u32 };
    }

    pub(super) fn remove(&mut self, start: u64) {
        self.ordered.remove(&start);
        let at = self.noted_at(start);
        if self.noted[at].start == start {
            self.noted[at] = Note::NONE;
        }
    }

    /// Removes all for which `keep` does not hold.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.ordered.retain(|_, index| keep(*index as usize));
        self.noted.fill(Note::NONE);
    }

    /// The last piece that begins before this address.
    pub(super) fn before(&self, position: u64) -> Option<usize> {
        self.ordered.range(..position).next_back().map(|(_, &index)| index as usize)
    }

    /// Where pieces begin in an interval, and which.
    pub(super) fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
        // An interval with its ends the wrong way round is empty.
        let range = range.start..range.end.max(range.start);
        self.ordered.range(range).map(|(&start, &index)| (start, index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn as_a_map_does_it(steps in prop::collection::vec((0..200_u64, 0..4_u8), 0..600)) {
            let (mut places, mut map) = (Places::default(), BTreeMap::new());
            for (number, (start, what)) in steps.into_iter().enumerate() {
                let start = start << 9;
                match what {
                    0 => {
                        places.insert(start, number);
                        map.insert(start, number);
                    }
                    1 => {
                        places.remove(start);
                        map.remove(&start);
                    }
                    2 => {
                        places.retain(|index| index % 7 != 0);
                        map.retain(|_, index| *index % 7 != 0);
                    }
                    _ => {}
                }
                prop_assert_eq!(places.get(start), map.get(&start).copied());
                prop_assert_eq!(places.len(), map.len());
            }
            let all: Vec<(u64, usize)> = places.range(0..u64::MAX).collect();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }
}
