//! Where the slot of each block is noted: pages of a thousand ids each.
//!
//! Ids are given out in turn and most blocks live for a short time, so the ids in use lie on few pages. A look-up is two
//! reads; a hash table takes ten times as many instructions, for each access of a log.

use super::Slot;
use streamsan_trace::BlockId;

const PAGE: usize = 1 << 10;
const NONE: u32 = u32::MAX;
/// Empty pages that are kept for later.
const SPARE: usize = 256;

#[derive(Debug)]
struct Page {
    used: usize,
    slots: [u32; PAGE],
}

/// Slots by id.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pages: Vec<Option<Box<Page>>>,
    spare: Vec<Box<Page>>,
    count: usize,
}

impl Slots {
    /// How many blocks have a slot.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn get(&self, id: BlockId) -> Option<Slot> {
        let page = self.pages.get(id.index() / PAGE)?.as_ref()?;
        let slot = page.slots[id.index() % PAGE];
        (slot != NONE).then_some(Slot(slot))
    }

    /// Notes the slot of a block that has none.
    pub(super) fn insert(&mut self, id: BlockId, slot: Slot) {
        let number = id.index() / PAGE;
        if self.pages.len() <= number {
            self.pages.resize_with(number + 1, || None);
        }
        let Self { pages, spare, .. } = self;
        let new = || spare.pop().unwrap_or_else(|| Box::new(Page { used: 0, slots: [NONE; PAGE] }));
        let page = pages[number].get_or_insert_with(new);
        page.slots[id.index() % PAGE] = slot.0;
        page.used += 1;
        self.count += 1;
    }

    pub(super) fn remove(&mut self, id: BlockId) -> Option<Slot> {
        let place = self.pages.get_mut(id.index() / PAGE)?;
        let page = place.as_mut()?;
        let slot = std::mem::replace(&mut page.slots[id.index() % PAGE], NONE);
        if slot == NONE {
            return None;
        }
        page.used -= 1;
        self.count -= 1;
        if page.used == 0 {
            let page = place.take().filter(|_| self.spare.len() < SPARE);
            self.spare.extend(page);
        }
        Some(Slot(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Slots};
    use crate::blocks::Slot;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use streamsan_trace::BlockId;

    proptest! {
        #[test]
        fn as_a_map_does_it(steps in prop::collection::vec((0..4 * PAGE as u32, any::<bool>()), 0..200)) {
            let (mut slots, mut map) = (Slots::default(), HashMap::new());
            for (number, (id, keep)) in steps.into_iter().enumerate() {
                let id = BlockId(id);
                prop_assert_eq!(slots.remove(id), map.remove(&id));
                if keep {
                    let slot = Slot::at(number);
                    slots.insert(id, slot);
                    map.insert(id, slot);
                }
                prop_assert_eq!(slots.get(id), map.get(&id).copied());
                prop_assert_eq!(slots.len(), map.len());
            }
        }
    }
}
