//! The engine: reads events in log order, keeps order and shadow memory, and gives hazards.
//!
//! One pass, streaming: an event is handed in with its accesses and is not needed again. Hazards go to a
//! [`Sink`]. The same engine checks a report's fixes: `edges` are waits to be imagined before some lines.
//!
//! It reports every unordered conflicting pair of which both halves are still kept (see `shadow`), among
//! them always one whose later half is the earliest possible.

use crate::blocks::{Block, Blocks};
use crate::clock::{ChainId, Epoch};
use crate::edges::{Edges, Imagined};
use crate::finding::{Actor, FixAction};
use crate::hazard::{Hazard, Origin, order_rule};
use crate::ignores::IgnoreState;
use crate::order::{HappensBefore, WaitOutcome};
use crate::report::Coverage;
use crate::rules::Rule;
use crate::rules::events::{Call, Property};
use crate::rules::lifetime::FreedInUse;
use crate::shadow::{Shadow, Space, Touch};
use crate::{Config, Region};
use std::collections::{HashMap, HashSet};
use std::mem::Discriminant;
use streamsan_trace::{
    Access, AccessMode, BlockId, Event, EventId, EventKind, GapReason, HostWaitHow, MemorySpace, Observer,
    OpNumber, SiteId, StreamId, StringId, Tables, ThreadId, WaitTarget,
};

/// Receives what the engine finds.
pub(crate) trait Sink {
    /// An unordered conflicting pair.
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine, tables: &Tables);
    /// A call whose effect is looked at line by line, and what it did.
    fn call(&mut self, event: &Event, call: Call, property: Property, tables: &Tables);
    /// Something that could not be known.
    fn gap(&mut self, reason: GapReason, detail: StringId, number: OpNumber);
}

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
    region: Option<Region>,
    /// What was seen before the region.
    before: Option<Coverage>,
    pub(crate) order: HappensBefore,
    shadow: Shadow,
    pub(crate) blocks: Blocks,
    freed_in_use: FreedInUse,
    /// Last wait of one stream for another: (waiter, awaited).
    pub(crate) last_wait: HashMap<(StreamId, StreamId), WaitCall>,
    /// Last wait of a stream for any other, and for which.
    pub(crate) last_wait_of: HashMap<StreamId, (WaitCall, StreamId)>,
    /// Threads that have used a stream other than a default stream.
    pub(crate) used_side_streams: HashSet<ThreadId>,
    /// Last wait of a stream that made no edge.
    pub(crate) last_idle_wait: HashMap<StreamId, (WaitCall, EventId)>,
    visits: HashMap<ThreadId, Visit>,
    /// Page-locked blocks to which a pointer was given away, and to what.
    escaped: HashMap<BlockId, StringId>,
    coverage: Coverage,
    found: Vec<Hazard>,
    undecided: bool,
}

impl Engine {
    pub(crate) fn new(edges: Edges, config: &Config) -> Self {
        Self {
            edges,
            ignores: IgnoreState::new(&config.ignores),
            region: config.region,
            before: None,
            order: HappensBefore::new(),
            shadow: Shadow::default(),
            blocks: Blocks::default(),
            freed_in_use: FreedInUse::default(),
            last_wait: HashMap::new(),
            last_wait_of: HashMap::new(),
            used_side_streams: HashSet::new(),
            last_idle_wait: HashMap::new(),
            visits: HashMap::new(),
            escaped: HashMap::new(),
            coverage: Coverage::default(),
            found: Vec::new(),
            undecided: false,
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
                        self.last_wait_of.insert(stream, (call, from));
                    }
                    WaitOutcome::SelfWait | WaitOutcome::Unrecorded => {
                        self.last_idle_wait.insert(stream, (call, awaited));
                    }
                }
                self.call(event, Call::Wait, wait_property(outcome), tables, sink);
            }
            EventKind::RecordStream { block, stream } => {
                let property = self.record_stream_property(block, stream);
                self.call(event, Call::RecordStream, property, tables, sink);
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
                }
            }
            EventKind::Op { stream, .. } => {
                self.coverage.operations += 1;
                if !self.order.is_legacy_default(stream) {
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
                if let Some(block) = self.blocks.get_mut(block) {
                    // The guard orders whoever gets these bytes next after all that it is after: also after
                    // uses by owners before this block's.
                    if let MemorySpace::Cached(device) = block.space {
                        let end = block.address.saturating_add(block.rounded());
                        let known = |used: &Touch| guard.is_after(used.epoch);
                        self.shadow.forget_known(Space::Device(device), block.address, end, known);
                    }
                    block.guards.push(guard);
                }
            }
            EventKind::Gap { reason, detail } if self.is_in_region(number) => {
                sink.gap(reason, detail, number);
            }
            EventKind::StreamDestroy { .. }
            | EventKind::FreeDone { .. }
            | EventKind::RangeBegin { .. }
            | EventKind::RangeEnd { .. }
            | EventKind::Gap { .. }
            | EventKind::Name { .. } => {}
        }
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
                    self.order.wait_for_stream(waiter, awaited, event.number);
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
        let Some(block) = self.blocks.get(id) else { return };
        if !matches!(block.space, MemorySpace::Pinned) {
            return;
        }
        let end = block.address.saturating_add(block.size);
        let uses = self.shadow.of_block(Space::Host, block.address, end, id);
        if uses.iter().any(|used| !self.order.ordered(used.epoch, ChainId::HOST)) {
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

    /// `record_stream` is skipped for the stream that owns the block, and for memory that is not torch's.
    fn record_stream_property(&self, block: BlockId, stream: StreamId) -> Property {
        match self.blocks.get(block) {
            None => Property::Always(Rule::Ss406),
            Some(block) if !matches!(block.space, MemorySpace::Cached(_)) => Property::Always(Rule::Ss406),
            Some(block) if block.owner == stream => Property::Has(Rule::Ss406),
            Some(_) => Property::Fine,
        }
    }

    fn allocate(
        &mut self,
        event: &Event,
        id: BlockId,
        owner: StreamId,
        space: MemorySpace,
        address: u64,
        size: u64,
    ) {
        let cached = matches!(space, MemorySpace::Cached(_));
        self.coverage.blocks += u64::from(cached);
        let handed_out = cached.then(|| self.order.knowledge(owner, event.number));
        if let Some(known) = &handed_out {
            self.freed_in_use.forget(&self.blocks, owner, |used| known.is_after(used.epoch));
        }
        let block = Block {
            space,
            address,
            size,
            owner,
            allocated: event.number,
            alloc_site: event.site,
            handed_out,
            guards: Vec::new(),
            freed: None,
            touched: false,
        };
        self.blocks.insert(id, block);
        if cached {
            self.freed_in_use.handed_out(owner, id);
            self.freed_in_use.reused(&self.blocks, id);
        }
    }

    fn free(&mut self, event: &Event, id: BlockId) {
        let origin = self.origin(event);
        let Some(block) = self.blocks.get_mut(id) else { return };
        block.freed = Some((event.number, origin));
        let (space, start, end, owner) =
            (block.space, block.address, block.address.saturating_add(block.size), block.owner);
        match space {
            MemorySpace::Cached(device) => {
                self.freed_in_use.no_longer_untouched(owner, id);
                let known = self.order.knowledge(owner, event.number);
                let mut uses = self.shadow.of_block(Space::Device(device), start, end, id);
                uses.retain(|used| !known.is_after(used.epoch));
                self.freed_in_use.note(owner, id, uses);
            }
            // The call waits before the memory can come back (`cudaFree`).
            MemorySpace::Device(device) => self.shadow.forget(Space::Device(device), start, end),
            MemorySpace::Pinned | MemorySpace::Pageable => {
                for used in self.shadow.of_block(Space::Host, start, end, id) {
                    if !self.order.ordered(used.epoch, ChainId::HOST) {
                        let touch = Touch {
                            epoch: Epoch { chain: ChainId::HOST, number: event.number },
                            mode: AccessMode::Write,
                            origin,
                            ..used
                        };
                        let hazard = self.hazard(Rule::Ss303, &used, &touch);
                        self.found.push(hazard);
                    }
                }
                self.shadow.forget(Space::Host, start, end);
            }
        }
    }

    fn touch_all(
        &mut self,
        epoch: Epoch,
        actor: Actor,
        origin: Origin,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        for access in accesses {
            if actor != Actor::Host
                && let Some(&label) = self.escaped.get(&access.block)
            {
                sink.gap(GapReason::Escaped, label, epoch.number);
            }
            self.touch(epoch, actor, origin, access, tables);
            if std::mem::take(&mut self.undecided) {
                sink.gap(GapReason::Undecided, StringId(0), epoch.number);
            }
        }
        self.give(tables, sink);
    }

    fn give(&mut self, tables: &Tables, sink: &mut impl Sink) {
        let mut found = std::mem::take(&mut self.found);
        for hazard in &found {
            if self.is_in_region(hazard.second) && !self.ignores.hides(hazard, tables) {
                sink.hazard(hazard, self, tables);
            }
        }
        found.clear();
        self.found = found;
    }

    fn touch(&mut self, epoch: Epoch, actor: Actor, origin: Origin, access: &Access, tables: &Tables) {
        let Some(block) = self.blocks.get_mut(access.block) else { return };
        let first_touch = !std::mem::replace(&mut block.touched, true);
        let space = match block.space {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => Space::Device(device),
            MemorySpace::Pinned | MemorySpace::Pageable => Space::Host,
        };
        let touch = Touch {
            epoch,
            block: access.block,
            mode: access.mode,
            start: block.address.saturating_add(access.offset),
            end: block.address.saturating_add(access.end()),
            shape: access.shape,
            origin,
        };
        if let (Some(freed), Space::Device(_)) = (block.freed, space) {
            let used = Touch { epoch: Epoch { number: freed.0, ..epoch }, origin: freed.1, ..touch };
            let hazard = self.hazard(Rule::Ss204, &used, &touch);
            self.push(hazard);
            return;
        }
        let (order, blocks, undecided) = (&self.order, &self.blocks, &mut self.undecided);
        let ordered = |earlier: &Touch| {
            order.ordered(earlier.epoch, epoch.chain)
                || (earlier.block != touch.block && blocks.handed_on_after(earlier.block, earlier.epoch))
        };
        let mut conflicts: Vec<(Rule, Touch)> = Vec::new();
        self.shadow.touch(space, touch, tables, ordered, |conflict| {
            if !conflict.decided {
                *undecided = true;
                return;
            }
            let earlier = conflict.earlier;
            let rule = if earlier.block == touch.block {
                let first_actor = order.stream(earlier.epoch.chain).map_or(Actor::Host, Actor::Stream);
                order_rule((first_actor, earlier.mode), (actor, touch.mode))
            } else {
                let known =
                    blocks.get(touch.block).is_some_and(|block| block.handed_out_after(earlier.epoch));
                if known { Rule::Ss201 } else { Rule::Ss202 }
            };
            conflicts.push((rule, earlier));
        });
        if first_touch && matches!(space, Space::Device(_)) {
            if let Some(block) = blocks.get(touch.block) {
                self.freed_in_use.no_longer_untouched(block.owner, touch.block);
            }
            let lucky = self
                .freed_in_use
                .first_access(blocks, touch.block, |used| order.ordered(used.epoch, epoch.chain));
            conflicts.extend(lucky.into_iter().map(|(_, used)| (Rule::Ss203, used)));
        }
        for (rule, earlier) in conflicts {
            let hazard = self.hazard(rule, &earlier, &touch);
            self.push(hazard);
        }
    }

    /// One hazard per rule and pair of operations.
    fn push(&mut self, hazard: Hazard) {
        if !self.found.iter().any(|known| known.first == hazard.first && known.rule == hazard.rule) {
            self.found.push(hazard);
        }
    }

    fn hazard(&self, rule: Rule, first: &Touch, second: &Touch) -> Hazard {
        let old = (first.block != second.block || rule == Rule::Ss204).then_some(first.block);
        let start = self.blocks.get(second.block).map_or(0, |block| block.address);
        Hazard {
            rule,
            first: first.epoch.number,
            second: second.epoch.number,
            first_origin: first.origin,
            second_origin: second.origin,
            first_actor: self.actor_of(first.epoch.chain),
            second_actor: self.actor_of(second.epoch.chain),
            first_mode: first.mode,
            second_mode: second.mode,
            block: second.block,
            old_block: old,
            offset: second.start.saturating_sub(start),
            overlap: first.end.min(second.end).saturating_sub(first.start.max(second.start)),
            ordered_up_to: self.order.ordered_up_to(first.epoch.chain, second.epoch.chain),
            first_chain: first.epoch.chain,
            freed: old.and_then(|block| self.blocks.get(block)?.freed),
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

    /// Who a chain is.
    pub(crate) fn actor_of(&self, chain: ChainId) -> Actor {
        self.order.stream(chain).map_or(Actor::Host, Actor::Stream)
    }
}

fn wait_property(outcome: WaitOutcome) -> Property {
    match outcome {
        WaitOutcome::Unrecorded => Property::Has(Rule::Ss401),
        WaitOutcome::SelfWait => Property::Has(Rule::Ss403),
        WaitOutcome::Edge { .. } => Property::Fine,
    }
}
