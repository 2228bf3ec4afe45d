//! A list that is nearly always short: a few entries lie where the list is, more in a place of their own.
//!
//! Its length comes first, beside what stands before the list: a list type that keeps it behind the entries costs another
//! cache line for each look at a cell.

use std::array::from_fn;
use std::ops::{Deref, DerefMut, Range};

/// An emptied list keeps memory of its own for so many entries.
const KEPT_ENTRIES: usize = 32;

#[derive(Clone, Debug)]
#[repr(u8)]
pub(super) enum Few<T, const N: usize> {
    /// So many of these; what is behind them means nothing.
    Here(u8, [T; N]),
    There(Vec<T>),
}

impl<T: Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self::Here(0, from_fn(|_| T::default()))
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Here(length, entries) => &entries[..usize::from(*length)],
            Self::There(entries) => entries,
        }
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Here(length, entries) => &mut entries[..usize::from(*length)],
            Self::There(entries) => entries,
        }
    }
}

impl<T: Default, const N: usize> Few<T, N> {
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        match self {
            Self::Here(length, entries) if usize::from(*length) < N => {
                entries[usize::from(*length)] = entry;
                *length += 1;
            }
            _ => self.insert(self.len(), entry),
        }
    }

    /// Puts an entry before the one at this place.
    pub(super) fn insert(&mut self, place: usize, entry: T) {
        match self {
            Self::Here(length, entries) if usize::from(*length) < N => {
                let last = usize::from(*length);
                entries[last] = entry;
                if place < last {
                    entries[place..=last].rotate_right(1);
                }
                *length += 1;
            }
            Self::Here(..) => self.move_out(place, entry),
            Self::There(entries) => entries.insert(place, entry),
        }
    }

    #[cold]
    fn move_out(&mut self, place: usize, entry: T) {
        let mut entries = Vec::with_capacity(2 * N);
        entries.extend(self.iter_mut().map(std::mem::take));
        entries.insert(place, entry);
        *self = Self::There(entries);
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        match self {
            Self::Here(length, entries) => {
                let mut kept = 0;
                for index in 0..usize::from(*length) {
                    if keep(&entries[index]) {
                        entries.swap(kept, index);
                        kept += 1;
                    }
                }
                *length = kept as u8;
            }
            Self::There(entries) => entries.retain(keep),
        }
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        match self {
            Self::Here(length, entries) => {
                entries[range.start..usize::from(*length)].rotate_left(range.len());
                *length -= range.len() as u8;
            }
            Self::There(entries) => drop(entries.drain(range)),
        }
    }

    /// Takes the entries from this place on.
    pub(super) fn split_off(&mut self, place: usize) -> Self {
        let mut upper = Self::default();
        for entry in &mut self[place..] {
            upper.push(std::mem::take(entry));
        }
        self.remove(place..self.len());
        upper
    }

    /// Moves all entries of another list to the end of this one.
    pub(super) fn append(&mut self, other: &mut Self) {
        for entry in &mut **other {
            self.push(std::mem::take(entry));
        }
        other.clear();
    }

    /// Removes all; the memory stays.
    #[inline]
    pub(super) fn clear(&mut self) {
        match self {
            Self::Here(length, _) => *length = 0,
            Self::There(entries) => entries.clear(),
        }
    }

    /// Removes all for another block: memory for many does not stay.
    pub(super) fn reset(&mut self) {
        match self {
            Self::There(entries) if entries.capacity() > KEPT_ENTRIES => *self = Self::default(),
            _ => self.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Few;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_vector_does_it(steps in prop::collection::vec((0..12_u8, 0..6_usize), 0..40)) {
            let (mut few, mut list) = (Few::<Box<usize>, 2>::default(), Vec::new());
            for (number, (what, place)) in steps.into_iter().enumerate() {
                let place = place.min(list.len());
                match what {
                    0..3 => {
                        few.push(Box::new(number));
                        list.push(Box::new(number));
                    }
                    3..5 => {
                        few.insert(place, Box::new(number));
                        list.insert(place, Box::new(number));
                    }
                    5 => {
                        few.retain(|entry| **entry % 3 != 0);
                        list.retain(|entry| **entry % 3 != 0);
                    }
                    6 => {
                        few.remove(place / 2..place);
                        list.drain(place / 2..place);
                    }
                    7 => few = few.split_off(place),
                    8 => {
                        let mut other = few.split_off(place);
                        few.append(&mut other);
                        prop_assert!(other.is_empty());
                    }
                    9 => few.clear(),
                    10 => few.reset(),
                    _ => few = few.clone(),
                }
                match what {
                    7 => list = list.split_off(place),
                    9 | 10 => list.clear(),
                    _ => {}
                }
                prop_assert_eq!(&*few, &*list);
            }
        }
    }
}
