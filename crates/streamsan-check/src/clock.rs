//! Vector clocks and epochs.
//!
//! A *chain* is a sequence of events that are ordered among themselves: a stream, or the host. A vector
//! clock says of each chain how far it is known. Its components are numbers of the log ([`OpNumber`]), which
//! rise along a chain, so a component points at the operation it stands for without a second table.
//!
//! Origin: vector clocks of Mattern (1989) and Fidge (1988); epochs as in FastTrack (Flanagan and Freund,
//! PLDI 2009). Here a chain keeps its own component apart from the shared part, so that an operation changes
//! no shared clock; a shared clock is copied only when a wait teaches a chain something new, into a buffer
//! that an earlier clock has left.

mod join;
mod limit;

use join::raise_all;
pub(crate) use limit::ClockBytes;
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
struct VectorClock {
    components: Arc<Vec<u64>>,
}

impl VectorClock {
    fn get(&self, chain: ChainId) -> u64 {
        self.components.get(chain.index()).copied().unwrap_or(0)
    }

    /// The components, to be changed: those of this clock alone, if need be copied into a buffer of the pool.
    fn own(&mut self, pool: &mut ClockPool) -> &mut Vec<u64> {
        if Arc::get_mut(&mut self.components).is_none() {
            let mut buffer = pool.spare();
            let components = Arc::make_mut(&mut buffer);
            let before = components.capacity();
            components.clear();
            components.extend_from_slice(&self.components);
            pool.note_growth(before, components.capacity());
            self.components = buffer;
        }
        Arc::make_mut(&mut self.components)
    }
}

/// Buffers of clocks that nobody needs any more.
#[derive(Debug, Default)]
pub(crate) struct ClockPool {
    spare: Vec<Arc<Vec<u64>>>,
    /// Bytes of the spare ones.
    spare_bytes: usize,
    /// Bytes that were made and may be in use.
    made: usize,
    /// From how many on it is to be counted what is in use: 0 before the first time.
    look_at: usize,
}

/// More than this are given back to the system.
const SPARE_CLOCKS: usize = 1 << 13;
/// And if they take more bytes than this.
const SPARE_BYTES: usize = 16 << 20;

fn bytes(components: &Vec<u64>) -> usize {
    components.capacity() * size_of::<u64>()
}

impl ClockPool {
    fn spare(&mut self) -> Arc<Vec<u64>> {
        let Some(buffer) = self.spare.pop() else { return Arc::default() };
        self.spare_bytes -= bytes(&buffer);
        buffer
    }

    fn note_growth(&mut self, before: usize, after: usize) {
        self.made += after.saturating_sub(before) * size_of::<u64>();
    }

    /// Takes back what a snapshot held, if it held it alone.
    pub(crate) fn take_back(&mut self, snapshot: Snapshot) {
        let mut components = snapshot.others.components;
        // The first test is cheap and most often enough.
        if Arc::strong_count(&components) == 1 && Arc::get_mut(&mut components).is_some() {
            let bytes = bytes(&components);
            if self.spare.len() < SPARE_CLOCKS && self.spare_bytes + bytes <= SPARE_BYTES {
                self.spare_bytes += bytes;
                self.spare.push(components);
            } else {
                self.made = self.made.saturating_sub(bytes);
            }
        }
    }
}

/// What one chain knows at one moment: what an event record keeps.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    chain: ChainId,
    /// Number of the chain's last operation or effective wait.
    own: u64,
    others: VectorClock,
}

impl Snapshot {
    /// How far `chain` is known.
    pub(crate) fn knows(&self, chain: ChainId) -> OpNumber {
        OpNumber(if chain == self.chain { self.own } else { self.others.get(chain) })
    }

    /// Whether an earlier event of the log is ordered before everything that is ordered after this snapshot.
    pub(crate) fn is_after(&self, epoch: Epoch) -> bool {
        self.knows(epoch.chain) >= epoch.number
    }

    /// Whether everything that `other` knows is known here.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        self.knows(other.chain).0 >= other.own
    }
}

/// A chain and what it knows now.
#[derive(Debug)]
pub(crate) struct Chain {
    now: Snapshot,
}

impl Chain {
    pub(crate) fn new(id: ChainId) -> Self {
        Self { now: Snapshot { chain: id, own: 0, others: VectorClock::default() } }
    }

    /// A chain that continues from a snapshot.
    pub(crate) fn from(now: Snapshot) -> Self {
        Self { now }
    }

    /// What the chain knows now.
    pub(crate) fn now(&self) -> &Snapshot {
        &self.now
    }

    /// What the chain knew last, at its end.
    pub(crate) fn into_now(self) -> Snapshot {
        self.now
    }

    /// How far `chain` is known.
    pub(crate) fn knows(&self, chain: ChainId) -> OpNumber {
        self.now.knows(chain)
    }

    /// Whether an earlier event of the log is ordered before whatever this chain does next.
    pub(crate) fn is_after(&self, epoch: Epoch) -> bool {
        self.now.is_after(epoch)
    }

    /// The chain does something at this place of the log.
    pub(crate) fn advance(&mut self, number: OpNumber) {
        self.now.own = self.now.own.max(number.0);
    }

    /// The chain learns what the snapshot knew; says whether that was anything new.
    ///
    /// A wait that changes something advances the chain's own component. Without that, a record made before
    /// and one made after such a wait would look alike, and the test for "nothing new" in the first line
    /// would drop waits that matter.
    pub(crate) fn learn(&mut self, snapshot: &Snapshot, number: OpNumber, pool: &mut ClockPool) -> bool {
        if self.now.includes(snapshot) {
            return false;
        }
        let theirs = &snapshot.others.components;
        let same = Arc::ptr_eq(&self.now.others.components, theirs);
        let mine = self.now.others.own(pool);
        let length = theirs.len().max(snapshot.chain.index() + 1);
        if mine.len() < length {
            let before = mine.capacity();
            mine.resize(length, 0);
            pool.note_growth(before, mine.capacity());
        }
        if !same {
            raise_all(mine, theirs);
        }
        let component = &mut mine[snapshot.chain.index()];
        *component = (*component).max(snapshot.own);
        self.advance(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Chain, ChainId, ClockPool, Epoch};
    use streamsan_trace::OpNumber;

    #[test]
    fn a_wait_after_a_record_does_not_hide_in_the_earlier_record() {
        let pool = &mut ClockPool::default();
        let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Chain::new(ChainId(id)));
        a.advance(OpNumber(1));
        b.advance(OpNumber(2));
        let early = b.now().clone();
        assert!(c.learn(&early, OpNumber(3), pool));
        assert!(b.learn(a.now(), OpNumber(4), pool));
        let late = b.now().clone();
        assert!(c.learn(&late, OpNumber(5), pool), "the later record carries a's operation");
        assert!(c.is_after(Epoch { chain: ChainId(1), number: OpNumber(1) }));
        assert!(!c.learn(&early, OpNumber(6), pool), "nothing new in the earlier one");
    }

    #[test]
    fn a_snapshot_keeps_what_it_was_and_leaves_its_buffer() {
        let pool = &mut ClockPool::default();
        let [mut a, mut b, mut c] = [1, 2, 3].map(|id| Chain::new(ChainId(id)));
        a.advance(OpNumber(1));
        c.learn(a.now(), OpNumber(2), pool);
        let kept = c.now().clone();
        b.advance(OpNumber(3));
        c.learn(b.now(), OpNumber(4), pool);
        assert_eq!(kept.knows(ChainId(2)), OpNumber(0));
        assert_eq!(c.knows(ChainId(2)), OpNumber(3));
        pool.take_back(kept);
        pool.take_back(c.now().clone());
        assert_eq!(pool.spare.len(), 1, "the clock of `c` is in use");
    }
}
