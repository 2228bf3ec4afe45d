//! SS706: memory that was freed and is of no use yet.
//!
//! Blocks for which `record_stream` was called: at the free torch records an event in each such stream, and hands the block
//! out again when the host has seen these finished. When that is, is chance; sure is only what the host has waited for. So
//! a block counts as held from its free until a wait of the program covers the last operation that was in the stream then.
//! Where the host never waits, it may run ahead by any number of turns, and that much memory may be held.
//!
//! Memory of a stream that is not used any more: torch keeps freed blocks for the stream that they were allocated on. What a
//! stream has had at most stays with it, while others allocate more.

use super::lines::LOOP;
use super::orders::Orders;
use super::trial::Trial;
use super::{Draft, Seen};
use crate::clock::ChainId;
use crate::edges::Line;
use crate::finding::{Actor, Advised, HeldBack, Measured, Memory, Occurrences};
use crate::hazard::Origin;
use crate::rules::Rule;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use streamsan_trace::{Event, OpNumber, StreamId, VisibleStream};

/// To hold less than this is not worth a word.
const WORTH: u64 = 8 << 20;
/// Neither is less than this where it stays with a stream for good.
const WORTH_FOR_GOOD: u64 = 64 << 20;

/// A block that was freed with a guard.
#[derive(Debug)]
struct Block {
    /// The last operation of the stream at the free.
    until: OpNumber,
    line: Line,
    bytes: u64,
}

/// What is held for the `record_stream` calls of one line.
#[derive(Debug)]
struct Holder {
    event: Event,
    origin: Origin,
    user: StreamId,
    owner: StreamId,
    memory: Memory,
    free: (Event, Line),
    names: Vec<VisibleStream>,
    blocks: u64,
    bytes: u64,
    now: (u64, u64),
    /// Most bytes at one time, in how many blocks, and when.
    peak: (u64, u64, OpNumber),
    occurrences: Occurrences,
}

/// Memory of the blocks of one owner stream.
#[derive(Debug, Default)]
struct Pool {
    live: u64,
    peak: u64,
    /// What all streams had allocated when this one did something last.
    allocated: u64,
    last: OpNumber,
    /// Its largest block.
    largest: Option<(Event, Origin, Memory)>,
}

#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: FxHashMap<StreamId, VecDeque<Block>>,
    holders: BTreeMap<Line, Holder>,
    pools: BTreeMap<StreamId, Pool>,
    /// Bytes of all allocations.
    allocated: u64,
    /// When device memory was last given back to CUDA.
    released: OpNumber,
    pub(super) live: u64,
    pub(super) peak: u64,
    bytes: u64,
    pub(super) most: u64,
}

/// A free with a guard of a stream for which the user's line called `record_stream`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarded {
    pub(super) line: Line,
    pub(super) event: Event,
    pub(super) origin: Origin,
    pub(super) user: StreamId,
    pub(super) owner: StreamId,
    pub(super) memory: Memory,
    pub(super) free: (Event, Line),
    pub(super) until: OpNumber,
}

/// Bytes that torch sets aside for a request.
fn rounded(size: u64) -> u64 {
    size.max(1).div_ceil(512).saturating_mul(512)
}

impl Held {
    pub(super) fn allocated(&mut self, owner: StreamId, memory: &Memory, event: &Event, origin: Origin) {
        let bytes = rounded(memory.size);
        self.allocated += bytes;
        self.live += bytes;
        self.peak = self.peak.max(self.live);
        let total = self.allocated;
        let pool = self.pools.entry(owner).or_default();
        pool.live += bytes;
        pool.peak = pool.peak.max(pool.live);
        (pool.allocated, pool.last) = (total, event.number);
        if pool.largest.as_ref().is_none_or(|(.., known)| known.size < memory.size) {
            pool.largest = Some((*event, origin, *memory));
        }
    }

    pub(super) fn freed(&mut self, owner: StreamId, size: u64) {
        let bytes = rounded(size);
        self.live = self.live.saturating_sub(bytes);
        if let Some(pool) = self.pools.get_mut(&owner) {
            pool.live = pool.live.saturating_sub(bytes);
        }
    }

    /// The stream was given work.
    pub(super) fn used(&mut self, stream: StreamId, number: OpNumber) {
        let total = self.allocated;
        if let Some(pool) = self.pools.get_mut(&stream) {
            (pool.allocated, pool.last) = (total, number);
        }
    }

    /// Device memory went back to CUDA.
    pub(super) fn released(&mut self, number: OpNumber) {
        self.released = number;
    }

    pub(super) fn guarded(&mut self, seen: &Seen<'_>, guarded: &Guarded) {
        let Guarded { line, event, origin, user, owner, memory, free, until } = *guarded;
        let bytes = rounded(memory.size);
        self.waiting.entry(user).or_default().push_back(Block { until, line, bytes });
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
        let holder = self.holders.entry(line).or_insert_with(|| Holder {
            event,
            origin,
            user,
            owner,
            memory,
            free,
            names: seen.engine.bindings.at(seen.event.number, seen.event.site, &[owner, user], seen.tables),
            blocks: 0,
            bytes: 0,
            now: (0, 0),
            peak: (0, 0, OpNumber(0)),
            occurrences: Occurrences::default(),
        });
        holder.blocks += 1;
        holder.bytes += bytes;
        holder.now = (holder.now.0 + bytes, holder.now.1 + 1);
        if holder.now.0 > holder.peak.0 {
            holder.peak = (holder.now.0, holder.now.1, seen.event.number);
        }
        holder.occurrences.add(event.number);
    }

    /// The host waited: what it knows to be done holds nothing any more.
    pub(super) fn waited(&mut self, orders: &Orders) {
        for (&stream, blocks) in &mut self.waiting {
            let Some(chain) = orders.whole.chain_of(stream) else { continue };
            let known = orders.whole.ordered_up_to(chain, ChainId::HOST);
            while blocks.front().is_some_and(|block| block.until <= known) {
                let Some(block) = blocks.pop_front() else { break };
                self.bytes -= block.bytes;
                if let Some(holder) = self.holders.get_mut(&block.line) {
                    holder.now = (holder.now.0 - block.bytes, holder.now.1 - 1);
                }
            }
        }
    }

    pub(super) fn drafts(&self) -> Vec<Draft> {
        let worth = |holder: &Holder| holder.peak.0 >= WORTH && holder.peak.1 >= LOOP;
        let held = self.holders.iter().filter(|(_, holder)| worth(holder)).map(|(&line, holder)| Draft {
            rule: Rule::Ss706,
            event: holder.event,
            origin: holder.origin,
            actor: Actor::Stream(holder.user),
            memory: Some(holder.memory),
            count: holder.blocks,
            occurrences: holder.occurrences.clone(),
            advised: Advised {
                executions: holder.blocks,
                operations: holder.peak.1,
                bytes: holder.peak.0,
                measured: Measured::HeldBack(Box::new(HeldBack {
                    user: holder.user,
                    owner: holder.owner,
                    peak_at: holder.peak.2,
                    total: holder.bytes,
                    at_end: holder.now.0,
                    free_site: holder.free.0.site,
                    names: holder.names.clone(),
                })),
                verified: None,
                unseen: false,
            },
            trial: Some(Trial::WaitAtFree {
                record: line,
                free: holder.free.1,
                waiter: holder.owner,
                awaited: holder.user,
            }),
        });
        let idle = self.pools.iter().filter_map(|(&owner, pool)| self.idle(owner, pool));
        held.chain(idle).collect()
    }

    /// The memory of a stream that does nothing any more, while others allocate as much again.
    fn idle(&self, owner: StreamId, pool: &Pool) -> Option<Draft> {
        let later = self.allocated - pool.allocated;
        if pool.live > 0 || pool.peak < WORTH_FOR_GOOD || later < pool.peak || self.released > pool.last {
            return None;
        }
        let (event, origin, memory) = pool.largest?;
        Some(Draft {
            rule: Rule::Ss706,
            event,
            origin,
            actor: Actor::Stream(owner),
            memory: Some(memory),
            count: 1,
            occurrences: Occurrences::default(),
            advised: Advised {
                executions: 1,
                operations: 0,
                bytes: pool.peak,
                measured: Measured::IdlePool { owner, last: pool.last, later },
                verified: None,
                unseen: false,
            },
            trial: None,
        })
    }
}
