//! SS707: `record_stream` that order already makes needless.
//!
//! The call makes torch record an event in the stream when the block is freed, and keep the block until the host has seen
//! that event finished. It is needless if the owner stream is ordered after the last use in that stream by the time of the
//! free: whoever gets the block next comes after the owner.
//!
//! An operation whose accesses are not known counts as a use of every block.

use super::held::{Guarded, Held};
use super::orders::{Orders, Step};
use super::trial::Trial;
use super::{Draft, Had, Seen};
use crate::clock::Epoch;
use crate::edges::Line;
use crate::finding::{Actor, Advised, Measured, Memory};
use crate::hazard::Origin;
use crate::rules::Rule;
use crate::rules::events::{Call, is_users};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use streamsan_trace::{BlockId, DeviceId, Event, EventKind, MemorySpace, OpKind, OpNumber, StreamId};

/// A block of the caching allocator that is alive.
#[derive(Debug)]
struct Live {
    owner: StreamId,
    device: DeviceId,
    size: u64,
    allocated: Event,
    origin: Origin,
    /// The last use in each stream but the owner.
    uses: SmallVec<[(StreamId, OpNumber); 2]>,
    /// Calls of `record_stream`, one for each stream and line.
    recorded: SmallVec<[Recorded; 1]>,
}

impl Live {
    fn memory(&self, block: BlockId) -> Memory {
        Memory {
            block,
            offset: 0,
            overlap: self.size,
            size: self.size,
            alloc_site: self.allocated.site,
            owner: Some(self.owner),
            device: Some(self.device),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Recorded {
    stream: StreamId,
    line: Line,
    event: Event,
    origin: Origin,
}

#[derive(Debug, Default)]
pub(super) struct Records {
    live: FxHashMap<BlockId, Live>,
    /// Device memory that CUDA gave, such as what the caching allocator cuts its blocks from.
    segments: FxHashSet<BlockId>,
    /// The last operation of each stream whose accesses are not known.
    opaque: FxHashMap<StreamId, OpNumber>,
    lines: BTreeMap<Line, Needless>,
    /// The last operation of each stream.
    last: FxHashMap<StreamId, OpNumber>,
    /// The block that was freed last: its guards follow.
    freed: Option<(BlockId, Live, Event, Line)>,
    pub(super) held: Held,
}

/// What became of the blocks that a line's calls were for.
#[derive(Debug, Default)]
struct Needless {
    had: Had,
    bytes: u64,
    memory: Option<Memory>,
}

impl Records {
    pub(super) fn event(&mut self, seen: &Seen<'_>, orders: &mut Orders) {
        let number = seen.event.number;
        match seen.event.kind {
            EventKind::Alloc { block, stream, space: MemorySpace::Cached(device), size, .. } => {
                let (allocated, origin) = (*seen.event, seen.origin);
                let (uses, recorded) = (SmallVec::new(), SmallVec::new());
                let live = Live { owner: stream, device, size, allocated, origin, uses, recorded };
                if size > 0 {
                    self.held.allocated(stream, &live.memory(block), seen.event, seen.origin);
                }
                self.live.insert(block, live);
            }
            EventKind::Alloc { block, space: MemorySpace::Device(_), .. } => {
                self.segments.insert(block);
            }
            EventKind::BlockSize { block, size } => {
                if let Some(live) = self.live.get_mut(&block).filter(|live| live.size == 0) {
                    live.size = size;
                    let (memory, allocated, origin) = (live.memory(block), live.allocated, live.origin);
                    self.held.allocated(live.owner, &memory, &allocated, origin);
                }
            }
            EventKind::Op { stream, kind, .. } => {
                self.last.insert(stream, number);
                self.held.used(stream, number);
                if seen.accesses.is_empty() && kind == OpKind::Kernel {
                    self.opaque.insert(stream, number);
                }
                for access in seen.accesses {
                    self.used(access.block, stream, number);
                }
            }
            EventKind::GraphLaunch { stream, .. } => {
                self.last.insert(stream, number);
                self.held.used(stream, number);
                self.opaque.insert(stream, number);
            }
            EventKind::RecordStream { block, stream } => self.recorded(seen, block, stream),
            EventKind::FreeRequest { block } if self.segments.remove(&block) => self.held.released(number),
            EventKind::FreeRequest { block } => self.freed(seen, block, orders),
            EventKind::FreeGuard { block, stream } if seen.counts => self.guarded(seen, block, stream),
            _ => {}
        }
    }

    fn used(&mut self, block: BlockId, stream: StreamId, number: OpNumber) {
        let Some(live) = self.live.get_mut(&block).filter(|live| live.owner != stream) else { return };
        match live.uses.iter_mut().find(|(user, _)| *user == stream) {
            Some(known) => known.1 = number,
            None => live.uses.push((stream, number)),
        }
    }

    fn recorded(&mut self, seen: &Seen<'_>, block: BlockId, stream: StreamId) {
        if !is_users(seen.event, Call::RecordStream, seen.tables) {
            return;
        }
        let Some(tensor) = self.live.get_mut(&block).filter(|live| live.owner != stream) else { return };
        let (line, event, origin) = (seen.line, *seen.event, seen.origin);
        if !tensor.recorded.iter().any(|known| (known.stream, known.line) == (stream, line)) {
            tensor.recorded.push(Recorded { stream, line, event, origin });
        }
    }

    /// The allocator recorded an event at the free that came right before.
    fn guarded(&mut self, seen: &Seen<'_>, block: BlockId, user: StreamId) {
        let Some((freed, tensor, event, line)) = &self.freed else { return };
        let Some(recorded) = tensor.recorded.iter().find(|recorded| recorded.stream == user) else { return };
        let Some(&until) = self.last.get(&user).filter(|_| *freed == block) else { return };
        let guarded = Guarded {
            line: recorded.line,
            event: recorded.event,
            origin: recorded.origin,
            user,
            owner: tensor.owner,
            memory: tensor.memory(block),
            free: (*event, *line),
            until,
        };
        self.held.guarded(seen, &guarded);
    }

    /// Takes what the event did to the order.
    pub(super) fn step(&mut self, step: Step, orders: &Orders) {
        if let Step::HostWait(true) = step {
            self.held.waited(orders);
        }
    }

    fn freed(&mut self, seen: &Seen<'_>, block: BlockId, orders: &mut Orders) {
        let Some(live) = self.live.remove(&block) else { return };
        self.held.freed(live.owner, live.size);
        if live.recorded.is_empty() || !seen.counts {
            return;
        }
        let order = &mut orders.streams;
        let known = order.knowledge(live.owner, seen.event.number);
        for recorded in &live.recorded {
            let user = recorded.stream;
            let last = live.uses.iter().find(|(stream, _)| *stream == user).map(|&(_, number)| number);
            let opaque = self.opaque.get(&user).copied().filter(|&number| number > live.allocated.number);
            // Without a use in that stream nothing says what the call is for: the tensor may be used there in another run.
            let covered = last.is_some_and(|number| {
                let epoch =
                    |chain| Epoch { chain, number: opaque.map_or(number, |opaque| number.max(opaque)) };
                order.chain_of(user).is_some_and(|chain| known.is_after(epoch(chain)))
            });
            let needless = self.lines.entry(recorded.line).or_default();
            needless.had.executions += 1;
            if covered {
                needless.had.count += 1;
                let first = (recorded.event, recorded.origin, Actor::Stream(user));
                needless.had.first.get_or_insert(first);
                needless.had.occurrences.add(recorded.event.number);
                needless.bytes += live.size;
                needless.memory.get_or_insert(live.memory(block));
            }
        }
        order.take_back(known);
        self.freed = Some((block, live, *seen.event, seen.line));
    }

    pub(super) fn drafts(&self) -> Vec<Draft> {
        let draft = |(&line, needless): (&Line, &Needless)| {
            let had = &needless.had;
            let (event, origin, actor) = had.first.filter(|_| had.count == had.executions)?;
            Some(Draft {
                rule: Rule::Ss707,
                event,
                origin,
                actor,
                memory: needless.memory,
                count: had.count,
                occurrences: had.occurrences.clone(),
                advised: Advised {
                    executions: had.executions,
                    operations: had.count,
                    bytes: needless.bytes,
                    measured: Measured::OversizedRecord,
                    verified: None,
                    unseen: false,
                },
                trial: Some(Trial::RecordStream(line)),
            })
        };
        let mut drafts: Vec<Draft> = self.lines.iter().filter_map(draft).collect();
        // What is held by a call that is needless anyway needs no word of its own.
        let needless = |draft: &Draft| {
            drafts.iter().any(|known| (known.event.number, known.rule) == (draft.event.number, Rule::Ss707))
        };
        let held: Vec<Draft> = self.held.drafts().into_iter().filter(|draft| !needless(draft)).collect();
        drafts.extend(held);
        drafts
    }
}
