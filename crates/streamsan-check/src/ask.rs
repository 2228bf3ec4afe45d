//! Questions to a live check: whether an access would be ordered if it were made now.

use crate::blocks::Facts;
use crate::clock::{ChainId, Snapshot};
use crate::engine::{Engine, Sink};
use crate::finding::Actor;
use crate::group::Grouper;
use crate::hazard::{Hazard, Origin, pair_rule};
use crate::overlap::{Effort, Shapes};
use crate::rules::Rule;
use crate::shadow::{Extent, Touch};
use crate::{Finding, LiveCheck};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use streamsan_trace::{
    Access, BlockId, Event, EventKind, LabelId, MemorySpace, OpKind, OpNumber, SiteId, StreamId, Tables,
    ThreadId,
};

/// Work that a thread is about to enqueue.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The stream that it would run in.
    pub stream: StreamId,
    /// The thread that would enqueue it.
    pub thread: ThreadId,
    /// Where the program is.
    pub site: SiteId,
    /// What to call it.
    pub label: LabelId,
    /// The bytes that it would touch.
    pub access: &'a Access,
}

/// Streams for which `record_stream` was called, by block that is in use.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Most often one: they lie in the map itself.
    streams: FxHashMap<BlockId, SmallVec<[StreamId; 4]>>,
}

impl Recorded {
    /// Takes the next event of the log.
    pub(crate) fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::RecordStream { block, stream } if block != BlockId(0) => {
                let streams = self.streams.entry(block).or_default();
                if !streams.contains(&stream) {
                    streams.push(stream);
                }
            }
            EventKind::FreeRequest { block } => {
                self.streams.remove(&block);
            }
            _ => {}
        }
    }
}

impl LiveCheck {
    /// What would be found if the access were made now: one finding for each operation before it that it conflicts
    /// with and is not ordered after, none verified. Nothing is noted, so the check goes on as if nobody had asked.
    ///
    /// The bytes are compared exactly, those of earlier owners of the memory included. What was left out with an ignore is
    /// left out here too. Where the search for a common byte was given up, nothing is found.
    pub fn ask(&mut self, question: &Question<'_>, tables: &Tables) -> Vec<Finding> {
        let mut grouper = Grouper::default();
        for hazard in self.engine.ask(question, tables) {
            if !self.engine.ignores.hides(&hazard, tables) {
                grouper.hazard(&hazard, &self.engine, tables);
            }
        }
        let mut findings = grouper.finish(tables);
        findings.retain(|finding| !self.config.ignore.contains(&finding.rule));
        for finding in &mut findings {
            finding.set_level = self.config.level(finding.rule);
        }
        findings
    }

    /// The stream that owns a block of torch's caching allocator, if that is another one than this and
    /// `record_stream` was not called for this one: then nothing is known yet that keeps the memory until the stream is
    /// done with it.
    pub fn unrecorded_owner(&self, block: BlockId, stream: StreamId) -> Option<StreamId> {
        let Facts { space, owner, .. } = self.engine.blocks.get(block)?;
        let cached = matches!(space, MemorySpace::Cached(_));
        let recorded = self.recorded.streams.get(&block).is_some_and(|streams| streams.contains(&stream));
        (cached && owner != stream && !recorded).then_some(owner)
    }
}

impl Engine {
    /// The hazards that an access would have.
    fn ask(&mut self, question: &Question<'_>, tables: &Tables) -> Vec<Hazard> {
        // A node of a graph does not run now; what it will meet at a launch is said then.
        if self.graphs.captures_from(question.stream) {
            return Vec::new();
        }
        let number = OpNumber(self.last().0 + 1);
        let knowledge = self.order.knowledge(question.stream, number);
        let hazards = self.unordered(question, number, &knowledge, tables);
        self.order.take_back(knowledge);
        hazards
    }

    fn unordered(
        &self,
        question: &Question<'_>,
        number: OpNumber,
        knowledge: &Snapshot,
        tables: &Tables,
    ) -> Vec<Hazard> {
        let access = question.access;
        let Some(facts) = self.blocks.get(access.block) else { return Vec::new() };
        // The chain decides nothing here: the stream may have none yet.
        let touch = Touch {
            number,
            chain: ChainId::HOST,
            block: access.block,
            mode: access.mode,
            start: facts.address.saturating_add(access.offset),
            end: facts.address.saturating_add(access.end()),
            shape: access.shape,
            origin: Origin {
                thread: question.thread,
                site: question.site,
                label: question.label,
                kind: Some(OpKind::Kernel),
                ranges: self.ignores.ranges_of(question.thread),
                ..Origin::default()
            },
        };
        let asker = Actor::Stream(question.stream);
        let hazard = |rule, earlier: &Touch| {
            let actor = self.actor_of(earlier.chain);
            let ordered_up_to = knowledge.knows(earlier.chain);
            let hazard = self.hazard(rule, earlier, &touch);
            Hazard { second_actor: asker, first_actor: actor, ordered_up_to, ..hazard }
        };
        let memory = match facts.space {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => {
                Some(Extent { device, start: facts.address, end: facts.address.saturating_add(facts.size) })
            }
            MemorySpace::Pinned | MemorySpace::Pageable => None,
        };
        if let (Some((number, origin)), Some(_)) = (facts.freed, memory) {
            return vec![hazard(Rule::Ss204, &Touch { number, origin, ..touch })];
        }
        let Some(slot) = self.blocks.slot(access.block) else { return Vec::new() };
        let pool = self.pool_of(access.block);
        let (place, memory) = pool.map_or((slot, memory), |pool| (pool, None));
        let ordered = |earlier: &Touch| {
            knowledge.is_after(earlier.epoch())
                || (earlier.block != touch.block
                    && match pool {
                        Some(_) => self.blocks.find(earlier.block).is_none(),
                        None => self.blocks.handed_on_after(earlier.block, earlier.epoch()),
                    })
        };
        let mut seen = BTreeSet::new();
        let mut hazards = Vec::new();
        // Its own effort: who asks changes nothing of what is found later.
        let shapes = Shapes { tables, effort: &Effort::default() };
        self.shadow.examine(place, memory, &touch, shapes, ordered, |conflict| {
            let mut earlier = conflict.earlier;
            if pool.is_some() {
                earlier.block = touch.block;
            }
            if !conflict.decided {
                return;
            }
            let rule = if earlier.block == touch.block {
                pair_rule((self.actor_of(earlier.chain), &earlier), (asker, &touch))
            } else if self.blocks.at(slot).handed_out_after(earlier.epoch()) {
                Rule::Ss201
            } else {
                Rule::Ss202
            };
            if seen.insert((rule, earlier.number)) {
                hazards.push(hazard(rule, &earlier));
            }
        });
        hazards
    }
}
