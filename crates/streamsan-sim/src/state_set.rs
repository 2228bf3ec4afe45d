//! A set of packed states, made for millions of small explorations: open addressing, no deletion.

/// States seen so far. A state is any number below 2^127.
#[derive(Clone, Debug)]
pub(crate) struct StateSet {
    // A slot is a state with its top bit set, or 0.
    slots: Vec<u128>,
    length: usize,
}

const SMALLEST: usize = 1 << 9;
const TAKEN: u128 = 1 << 127;

impl StateSet {
    pub(crate) fn new() -> Self {
        Self { slots: vec![0; SMALLEST], length: 0 }
    }

    /// Forgets all states; gives memory back after a large exploration.
    pub(crate) fn clear(&mut self) {
        if self.slots.len() > SMALLEST << 3 {
            self.slots = vec![0; SMALLEST];
        } else {
            self.slots.fill(0);
        }
        self.length = 0;
    }

    /// Adds a state. Whether it is new.
    pub(crate) fn insert(&mut self, state: u128) -> bool {
        debug_assert!(state < TAKEN);
        if self.length * 2 >= self.slots.len() {
            let larger = vec![0; self.slots.len() * 4];
            let old = std::mem::replace(&mut self.slots, larger);
            for state in old.into_iter().filter(|state| *state != 0) {
                self.place(state);
            }
        }
        let new = self.place(state | TAKEN);
        self.length += usize::from(new);
        new
    }

    fn place(&mut self, state: u128) -> bool {
        let mask = self.slots.len() - 1;
        // Both halves count; the multipliers are odd and have bits all over.
        let mixed = (state as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ ((state >> 64) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mut index = (mixed >> 32) as usize & mask;
        loop {
            if self.slots[index] == state {
                return false;
            }
            if self.slots[index] == 0 {
                self.slots[index] = state;
                return true;
            }
            index = (index + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StateSet;

    #[test]
    fn it_is_a_set_and_can_be_cleared() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut set = StateSet::new();
        for round in [100, 50_000, 200] {
            let mut reference = std::collections::HashSet::new();
            for _ in 0..round {
                let state = u128::from(random.u64(0..20_000)) << random.u32(0..100);
                assert_eq!(set.insert(state), reference.insert(state));
            }
            set.clear();
        }
    }
}
