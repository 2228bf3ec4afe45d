//! Vector clocks and epochs.
//!
//! A *chain* is a sequence of events that are ordered among themselves: a stream, or the host. A vector
//! clock says of each chain how far it is known. Its components are numbers of the log ([`OpNumber`]), which
//! rise along a chain, so a component points at the operation it stands for without a second table.
//!
//! Origin: vector clocks of Mattern (1989) and Fidge (1988); epochs as in FastTrack (Flanagan and Freund,
//! PLDI 2009). Here a chain keeps its own component apart from the shared part, so that an operation changes
//! no shared clock; a shared clock is copied only when a wait teaches a chain something new.

use std::sync::Arc;
use streamsan_trace::OpNumber;

/// Index of a chain: 0 is the host, streams follow in order of their first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChainId(pub(crate) u32);

impl ChainId {
    /// The host's chain.
    pub(crate) const HOST: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One event of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch {
    pub(crate) chain: ChainId,
    pub(crate) number: OpNumber,
}

/// How far each chain is known. Missing components are 0: nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorClock {
    components: Arc<Vec<u64>>,
}

impl VectorClock {
    fn get(&self, chain: ChainId) -> u64 {
        self.components.get(chain.index()).copied().unwrap_or(0)
    }

    fn raise(&mut self, chain: ChainId, number: u64) {
        if self.get(chain) < number {
            let components = Arc::make_mut(&mut self.components);
            if components.len() <= chain.index() {
                components.resize(chain.index() + 1, 0);
            }
            components[chain.index()] = number;
        }
    }

    fn join(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.components, &other.components) {
            return;
        }
        if self.components.iter().all(|&component| component == 0) {
            self.components = Arc::clone(&other.components);
            return;
        }
        let components = Arc::make_mut(&mut self.components);
        if components.len() < other.components.len() {
            components.resize(other.components.len(), 0);
        }
        for (mine, theirs) in components.iter_mut().zip(other.components.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// What one chain knows at one moment: what an event record keeps.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    chain: ChainId,
    own: u64,
    others: VectorClock,
}

impl Snapshot {
    /// Whether the event is ordered before everything that is ordered after this snapshot.
    pub(crate) fn is_after(&self, epoch: Epoch) -> bool {
        let known = if epoch.chain == self.chain { self.own } else { self.others.get(epoch.chain) };
        known >= epoch.number.0
    }
}

/// A chain and what it knows.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    id: ChainId,
    /// Number of the chain's last operation or effective wait.
    own: u64,
    others: VectorClock,
}

impl Chain {
    pub(crate) fn new(id: ChainId) -> Self {
        Self { id, own: 0, others: VectorClock::default() }
    }

    /// How far `chain` is known.
    pub(crate) fn knows(&self, chain: ChainId) -> OpNumber {
        OpNumber(if chain == self.id { self.own } else { self.others.get(chain) })
    }

    /// Whether an earlier event of the log is ordered before whatever this chain does next.
    pub(crate) fn is_after(&self, epoch: Epoch) -> bool {
        self.knows(epoch.chain) >= epoch.number
    }

    /// The chain does something at this place of the log.
    pub(crate) fn advance(&mut self, number: OpNumber) {
        self.own = self.own.max(number.0);
    }

    /// What the chain knows now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { chain: self.id, own: self.own, others: self.others.clone() }
    }

    /// The chain learns what the snapshot knew; says whether that was anything new.
    ///
    /// A wait that changes something advances the chain's own component. Without that, a record made before
    /// and one made after such a wait would look alike, and the test for "nothing new" in the first line
    /// would drop waits that matter.
    pub(crate) fn learn(&mut self, snapshot: &Snapshot, number: OpNumber) -> bool {
        if self.knows(snapshot.chain).0 >= snapshot.own {
            return false;
        }
        self.others.join(&snapshot.others);
        self.others.raise(snapshot.chain, snapshot.own);
        self.advance(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Chain, ChainId, Epoch};
    use streamsan_trace::OpNumber;

    #[test]
    fn a_wait_after_a_record_does_not_hide_in_the_earlier_record() {
        let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Chain::new(ChainId(id)));
        a.advance(OpNumber(1));
        b.advance(OpNumber(2));
        let early = b.snapshot();
        assert!(c.learn(&early, OpNumber(3)));
        assert!(b.learn(&a.snapshot(), OpNumber(4)));
        let late = b.snapshot();
        assert!(c.learn(&late, OpNumber(5)), "the later record carries a's operation");
        assert!(c.is_after(Epoch { chain: ChainId(1), number: OpNumber(1) }));
        assert!(!c.learn(&early, OpNumber(6)), "nothing new in the earlier one");
    }
}
