//! The engine: reads events in log order, keeps order and shadow memory, and gives hazards.
//!
//! One pass, streaming: an event is handed in with its accesses and is not needed again. Hazards go to a
//! [`Sink`]. The same engine checks a report's fixes: `edges` are waits to be imagined before some lines.
//!
//! It reports every unordered conflicting pair of which both halves are still kept (see `shadow`), among
//! them always one whose later half is the earliest possible.

mod graphs;
mod lifetimes;
mod touches;

use crate::bindings::Bindings;
use crate::blocks::Blocks;
use crate::clock::{ChainId, Snapshot};
use crate::collectives::Collectives;
use crate::edges::{Edges, Imagined};
use crate::finding::{Actor, FixAction};
use crate::hazard::{Hazard, Origin};
use crate::ignores::IgnoreState;
use crate::order::{HappensBefore, WaitOutcome};
use crate::overlap::Effort;
use crate::report::Coverage;
use crate::rules::Rule;
use crate::rules::events::{Call, Property};
use crate::rules::lifetime::FreedInUse;
use crate::shadow::Shadow;
use crate::{Config, Region};
use graphs::Graphs;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;
use std::mem::Discriminant;
use streamsan_trace::{
    Access, BlockId, Event, EventId, EventKind, GapReason, HostWaitHow, MemorySpace, Observer, OpNumber,
    SiteId, StreamId, StringId, Tables, ThreadId, WaitTarget,
};

/// Receives what the engine finds.
pub(crate) trait Sink {
    /// An unordered conflicting pair.
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine, tables: &Tables);
    /// A call whose effect is looked at line by line, and what it did.
    fn call(&mut self, event: &Event, call: Call, property: Property, tables: &Tables);
    /// Something that could not be known.
    fn gap(&mut self, reason: GapReason, detail: StringId, number: OpNumber);
    /// So many pairs of accesses of which it could not be decided whether they share bytes.
    fn undecided(&mut self, pairs: u64, number: OpNumber);
}

/// So many waits are always remembered.
const LAST_WAITS: usize = 1 << 12;
/// Those of 500 streams that all wait for each other.
const MOST_LAST_WAITS: usize = 1 << 18;

/// A call that made a stream wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitCall {
    pub(crate) number: OpNumber,
    pub(crate) site: SiteId,
}

/// Where a thread is, for the proposals of `edges`.
#[derive(Debug, Default)]
struct Visit {
    site: SiteId,
    /// What the thread has done since it came to the lines that it is on.
    steps: Vec<(SiteId, Discriminant<EventKind>)>,
}

/// State of a check after some events.
#[derive(Debug)]
pub(crate) struct Engine {
    edges: Edges,
    pub(crate) ignores: IgnoreState,
    pub(crate) bindings: Bindings,
    region: Option<Region>,
    /// What was seen before the region.
    before: Option<Coverage>,
    pub(crate) order: HappensBefore,
    pub(crate) shadow: Shadow,
    pub(crate) blocks: Blocks,
    freed_in_use: FreedInUse,
    pub(crate) graphs: Graphs,
    pub(crate) collectives: Collectives,
    /// Last wait of one stream for another: (waiter, awaited).
    pub(crate) last_wait: FxHashMap<(StreamId, StreamId), WaitCall>,
    /// How many of them there may be before those of streams that are gone are looked for.
    last_wait_limit: usize,
    /// Last wait of a stream for any other, and for which.
    pub(crate) last_wait_of: FxHashMap<StreamId, (WaitCall, StreamId)>,
    /// Threads that have used a stream other than a default stream.
    pub(crate) used_side_streams: FxHashSet<ThreadId>,
    /// The last one that did.
    last_side_thread: Option<ThreadId>,
    /// Last wait of a stream that made no edge.
    pub(crate) last_idle_wait: FxHashMap<StreamId, (WaitCall, EventId, bool)>,
    visits: HashMap<ThreadId, Visit>,
    /// Page-locked blocks to which a pointer was given away, and to what.
    escaped: FxHashMap<BlockId, StringId>,
    coverage: Coverage,
    found: Vec<Hazard>,
    effort: Effort,
    /// Pairs of accesses of which it was not decided whether they share bytes, since the sink was told last.
    undecided: u64,
}

impl Engine {
    pub(crate) fn new(edges: Edges, config: &Config) -> Self {
        Self {
            edges,
            ignores: IgnoreState::new(&config.ignores),
            bindings: Bindings::default(),
            region: config.region,
            before: None,
            order: HappensBefore::new(),
            shadow: Shadow::default(),
            blocks: Blocks::new(),
            freed_in_use: FreedInUse::default(),
            graphs: Graphs::default(),
            collectives: Collectives::default(),
            last_wait: FxHashMap::default(),
            last_wait_limit: LAST_WAITS,
            last_wait_of: FxHashMap::default(),
            used_side_streams: FxHashSet::default(),
            last_side_thread: None,
            last_idle_wait: FxHashMap::default(),
            visits: HashMap::new(),
            escaped: FxHashMap::default(),
            coverage: Coverage::default(),
            found: Vec::new(),
            effort: Effort::default(),
            undecided: 0,
        }
    }

    /// Takes the next event of the log. `tables` hold at least what the event and its accesses refer to.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        let number = event.number;
        self.bindings.event(event, tables);
        self.collectives.event(event);
        if let Some(region) = self.region {
            if number > region.last {
                return;
            }
            if number >= region.first {
                self.before.get_or_insert(self.coverage);
            }
        }
        self.ignores.event(event, tables);
        self.coverage.events += 1;
        // The reader puts gaps behind the last event that it could read.
        if !matches!(event.kind, EventKind::Gap { .. }) {
            self.coverage.last = number;
        }
        if !self.edges.is_empty() {
            self.imagine(event);
        }
        if self.graphs.are_captured() && self.captured(event, accesses, tables, sink) {
            self.limit_clocks(number, sink);
            return;
        }
        match event.kind {
            EventKind::StreamCreate { stream, device, blocking, legacy_default, .. } => {
                self.order.create_stream(stream, device, blocking, legacy_default);
            }
            EventKind::EventRecord { event, stream } => self.order.record(event, stream, number),
            EventKind::EventWait { event: awaited, stream } => {
                let outcome = self.order.wait(awaited, stream, number);
                let call = WaitCall { number, site: event.site };
                match outcome {
                    WaitOutcome::Edge { from, .. } => {
                        self.coverage.waits += 1;
                        self.last_wait.insert((stream, from), call);
                        if self.last_wait.len() > self.last_wait_limit {
                            self.tidy_waits();
                        }
                        self.last_wait_of.insert(stream, (call, from));
                    }
                    WaitOutcome::SelfWait | WaitOutcome::Unrecorded => {
                        let own = outcome == WaitOutcome::SelfWait;
                        self.last_idle_wait.insert(stream, (call, awaited, own));
                    }
                }
                let property = self.wait_property(outcome, awaited, event.site, tables);
                self.call(event, Call::Wait, property, tables, sink);
            }
            EventKind::RecordStream { block, stream } => {
                if let Some(property) = self.record_stream_property(block, stream) {
                    self.call(event, Call::RecordStream, property, tables, sink);
                }
            }
            EventKind::StreamObject { sharers, .. } => {
                let property = if sharers > 0 { Property::Always(Rule::Ss405) } else { Property::Fine };
                self.call(event, Call::StreamObject, property, tables, sink);
            }
            EventKind::HostWaitBegin { target } => self.order.begin_host_wait(event.thread, target),
            EventKind::HostWait { target, observer, how } => {
                if observer == Observer::Program {
                    self.coverage.host_waits += 1;
                    self.order.host_wait(event.thread, target, number);
                    self.host_event_wait(event, target, how, tables, sink);
                } else {
                    self.order.end_host_wait(event.thread);
                }
            }
            EventKind::Op { stream, .. } => {
                self.coverage.operations += 1;
                if self.last_side_thread != Some(event.thread) && !self.order.is_legacy_default(stream) {
                    self.last_side_thread = Some(event.thread);
                    self.used_side_streams.insert(event.thread);
                }
                let epoch = self.order.operation(stream, number);
                self.touch_all(epoch, Actor::Stream(stream), self.origin(event), accesses, tables, sink);
            }
            EventKind::HostAccess { .. } => {
                let epoch = self.order.host_access(number);
                self.touch_all(epoch, Actor::Host, self.origin(event), accesses, tables, sink);
            }
            EventKind::Alloc { block, stream, space, address, size } => {
                self.allocate(event, block, stream, space, address, size);
            }
            EventKind::BlockSize { block, size } => {
                if let Some(block) = self.blocks.get_mut(block) {
                    block.size = size;
                }
                self.freed_in_use.reused(&self.blocks, block);
            }
            EventKind::FreeRequest { block } => {
                self.free(event, block);
                self.give(tables, sink);
            }
            EventKind::Escape { block, label } => self.escape(block, label, number, sink),
            EventKind::FreeGuard { block, stream } => {
                let guard = self.order.guard(stream, number);
                self.guard(block, guard);
            }
            EventKind::Gap { reason, detail } if self.is_in_region(number) => {
                sink.gap(reason, detail, number);
            }
            EventKind::StreamDestroy { stream } => self.order.destroy_stream(stream),
            EventKind::EventDestroy { event } => self.order.destroy_event(event),
            EventKind::CaptureBegin { graph, stream } => self.begin_capture(graph, stream),
            EventKind::CaptureEnd { graph, valid, .. } => self.end_capture(graph, valid),
            EventKind::GraphInstantiate { graph, executable } => self.instantiate(graph, executable),
            EventKind::GraphLaunch { executable, stream, label } => {
                self.launch(event, (executable, stream, label), tables, sink);
            }
            EventKind::GraphDestroy { graph } => self.destroy_graph(graph),
            EventKind::GraphMemory { block } => self.keep_for_graphs(block),
            EventKind::ExecutableDestroy { executable } => self.destroy_executable(executable),
            EventKind::FreeDone { .. }
            | EventKind::RangeBegin { .. }
            | EventKind::RangeEnd { .. }
            | EventKind::Gap { .. }
            | EventKind::Name { .. } => {}
        }
        self.limit_clocks(number, sink);
    }

    /// Keeps the clocks within the memory that they may take, if need be by forgetting the past.
    #[inline]
    fn limit_clocks(&mut self, number: OpNumber, sink: &mut impl Sink) {
        if self.order.should_count_clocks() {
            self.count_clocks(number, sink);
        }
    }

    #[cold]
    fn count_clocks(&mut self, number: OpNumber, sink: &mut impl Sink) {
        if self.order.clocks_are_too_many(self.blocks.snapshots().chain(self.graphs.snapshots())) {
            self.forget(number);
            self.graphs.forget_snapshots(number);
            sink.gap(GapReason::Forgotten, StringId(0), number);
        }
    }

    /// Takes everything up to here for ordered before everything that comes.
    fn forget(&mut self, number: OpNumber) {
        self.order.forget(number);
        self.blocks.forget_snapshots();
        self.tidy();
    }

    /// Exchanges with another engine what is left of the effort that a check may take, and the memory for clocks: a
    /// capture's engine uses those of the engine that it belongs to.
    fn swap_budget(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.effort, &mut other.effort);
        self.order.swap_pool(&mut other.order);
    }

    /// What this engine keeps of the order.
    fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.order.snapshots().chain(self.blocks.snapshots())
    }

    /// Lets go of the waits of streams that are gone and of which the host knows everything. If there are too many
    /// waits without these, all but the last of each stream go: they are there for notes only.
    #[cold]
    fn tidy_waits(&mut self) {
        let order = &self.order;
        self.last_wait.retain(|&(waiter, awaited), _| order.is_known(waiter) && order.is_known(awaited));
        self.last_wait_of.retain(|&waiter, _| order.is_known(waiter));
        self.last_idle_wait.retain(|&waiter, _| order.is_known(waiter));
        if self.last_wait.len() > MOST_LAST_WAITS {
            self.last_wait.clear();
        }
        self.last_wait_limit = self.last_wait.len() * 2 + LAST_WAITS;
    }

    /// Does what is proposed for the lines that begin with this event.
    fn imagine(&mut self, event: &Event) {
        if event.site.0 == 0 {
            return;
        }
        let edges = &self.edges;
        let visit = self.visits.entry(event.thread).or_default();
        let previous = std::mem::replace(&mut visit.site, event.site);
        let step = (event.site, std::mem::discriminant(&event.kind));
        // The same step of a line again: the line runs again, with nothing of this thread in between.
        let again = edges.hold(event.site) && visit.steps.contains(&step);
        let entering = edges.entering(if again { SiteId(0) } else { previous }, event.site);
        if again || !edges.hold(previous) {
            visit.steps.clear();
        }
        visit.steps.push(step);
        for action in entering {
            match action {
                Imagined::Fix(FixAction::WaitStream { waiter, awaited, .. }) => {
                    if let Some(order) = self.graphs.order_of(waiter, awaited, &mut self.order) {
                        order.wait_for_stream(waiter, awaited, event.number);
                    }
                }
                Imagined::Everything => self.order.host_wait_for_everything(event.number),
                Imagined::Fix(FixAction::SynchronizeStream { awaited }) => {
                    self.order.host_wait_for_stream(awaited, event.number);
                }
            }
        }
    }

    /// A pointer to page-locked memory was given away. What is done through it is not seen: that matters while
    /// a copy is pending, and for every later one.
    fn escape(&mut self, id: BlockId, label: StringId, number: OpNumber, sink: &mut impl Sink) {
        let Some(slot) = self.blocks.slot(id) else { return };
        if !matches!(self.blocks.at(slot).space, MemorySpace::Pinned) {
            return;
        }
        if !self.shadow.of_block(slot, id, |used| !self.order.passed(used.epoch())).is_empty() {
            sink.gap(GapReason::Escaped, label, number);
        }
        self.escaped.entry(id).or_insert(label);
    }

    /// A host wait on an event that was never recorded does nothing either.
    fn host_event_wait(
        &mut self,
        event: &Event,
        target: WaitTarget,
        how: HostWaitHow,
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        if let WaitTarget::Event(awaited) = target
            && how == HostWaitHow::Synchronize
        {
            let recorded = self.order.last_record(awaited).is_some();
            let property = if recorded { Property::Fine } else { Property::Has(Rule::Ss401) };
            self.call(event, Call::Wait, property, tables, sink);
        }
    }

    /// Tells what a call did, unless that is not to be looked at.
    fn call(&mut self, event: &Event, call: Call, property: Property, tables: &Tables, sink: &mut impl Sink) {
        if !self.is_in_region(event.number) {
            return;
        }
        let hidden = match property {
            Property::Fine => false,
            Property::Has(rule) | Property::Always(rule) => self.ignores.hides_call(rule, event, tables),
        };
        if !hidden {
            sink.call(event, call, property, tables);
        }
    }

    fn is_in_region(&self, number: OpNumber) -> bool {
        self.region.is_none_or(|region| region.first <= number)
    }

    fn origin(&self, event: &Event) -> Origin {
        Origin::of(event, self.ignores.ranges_of(event.thread))
    }

    /// What a wait of a stream did. One for a collective is torch's own: no one chose the stream that it waits for.
    fn wait_property(
        &self,
        outcome: WaitOutcome,
        awaited: EventId,
        site: SiteId,
        tables: &Tables,
    ) -> Property {
        match outcome {
            WaitOutcome::Unrecorded => Property::Has(Rule::Ss401),
            WaitOutcome::SelfWait if self.collectives.ends_with(awaited, site, tables) => Property::Fine,
            WaitOutcome::SelfWait => Property::Has(Rule::Ss403),
            WaitOutcome::Edge { .. } => Property::Fine,
        }
    }

    /// `record_stream` is skipped for the stream that owns the block, and for memory that is not torch's. `None`: the block
    /// ended so long ago that nothing is known of it, so the call says nothing about its line.
    fn record_stream_property(&self, block: BlockId, stream: StreamId) -> Option<Property> {
        match self.blocks.get(block) {
            None if block == BlockId(0) => Some(Property::Always(Rule::Ss406)),
            None => None,
            Some(block) if !matches!(block.space, MemorySpace::Cached(_)) => {
                Some(Property::Always(Rule::Ss406))
            }
            Some(block) if block.owner == stream => Some(Property::Has(Rule::Ss406)),
            Some(_) => Some(Property::Fine),
        }
    }

    /// Coverage with the counts that follow from the order.
    pub(crate) fn coverage(&self) -> Coverage {
        let before = self.before.unwrap_or_default();
        Coverage {
            operations: self.coverage.operations - before.operations,
            waits: self.coverage.waits - before.waits,
            host_waits: self.coverage.host_waits - before.host_waits,
            blocks: self.coverage.blocks - before.blocks,
            streams: self.order.active_streams() as u64,
            devices: self.order.active_devices() as u64,
            ..self.coverage
        }
    }

    /// The last event of the log so far.
    pub(crate) fn last(&self) -> OpNumber {
        self.coverage.last
    }

    /// Who a chain is.
    pub(crate) fn actor_of(&self, chain: ChainId) -> Actor {
        self.order.stream(chain).map_or(Actor::Host, Actor::Stream)
    }
}
