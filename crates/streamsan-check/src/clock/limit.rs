//! How much memory clocks may take.
//!
//! With `n` streams that all know of each other the clocks have `n * n` components, and each event that is recorded
//! keeps one clock more. A program has some hundred streams at most; a damaged or hostile log can have any number. So
//! the bytes are counted, and beyond a limit all that is past is forgotten.

use super::{Chain, ChainId, ClockPool, Snapshot, VectorClock, bytes};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use streamsan_trace::OpNumber;

/// Bytes that clocks may take: several times what 2,048 streams need that all know of each other.
const LIMIT: usize = 128 << 20;

/// Counts the bytes of clocks that are in use, each once.
#[derive(Debug, Default)]
pub(crate) struct ClockBytes {
    seen: FxHashSet<*const Vec<u64>>,
    bytes: usize,
}

impl ClockBytes {
    /// Counts what a snapshot keeps.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) {
        let components = &snapshot.others.components;
        if self.seen.insert(Arc::as_ptr(components)) {
            self.bytes += bytes(components);
        }
    }

    /// Whether that is more than clocks may take.
    pub(crate) fn too_many(&self) -> bool {
        self.bytes > LIMIT
    }
}

impl ClockPool {
    /// Whether so much was made that what is in use should be counted.
    #[inline]
    pub(crate) fn should_count(&self) -> bool {
        self.made > self.look_at.max(LIMIT)
    }

    /// What is in use was counted. The next time comes when half the limit more was made, so that a count costs little
    /// for each clock that was made before it.
    pub(crate) fn counted(&mut self, in_use: &ClockBytes) {
        self.made = in_use.bytes + self.spare_bytes;
        self.look_at = self.made + LIMIT / 2;
    }

    /// Nothing is in use any more.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Chain {
    /// Chains that all know everything up to a number. They share one clock.
    pub(crate) fn all_at(number: OpNumber, count: usize) -> Vec<Self> {
        let others = VectorClock { components: Arc::new(vec![number.0; count]) };
        let chain = |index| Snapshot { chain: ChainId(index), own: number.0, others: others.clone() };
        (0..count as u32).map(|index| Self { now: chain(index) }).collect()
    }
}
