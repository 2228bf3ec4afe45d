//! The engine: reads events in log order, keeps order and shadow memory, and gives hazards.
//!
//! One pass, streaming: an event is handed in with its accesses and is not needed again. Hazards go to a
//! [`Sink`]. The same engine checks a report's fixes: `edges` are waits to be imagined before some lines.
//!
//! It reports every unordered conflicting pair of which both halves are still kept (see `shadow`), among
//! them always one whose later half is the earliest possible.

use crate::blocks::{Block, Blocks, Slot};
use crate::clock::{ChainId, Epoch, Snapshot};
use crate::edges::{Edges, Imagined};
use crate::finding::{Actor, FixAction};
use crate::hazard::{Hazard, Origin, order_rule};
use crate::ignores::IgnoreState;
use crate::order::{HappensBefore, WaitOutcome};
use crate::report::Coverage;
use crate::rules::Rule;
use crate::rules::events::{Call, Property};
use crate::rules::lifetime::FreedInUse;
use crate::shadow::{Extent, Shadow, Touch};
use crate::{Config, Region};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;
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
    pub(crate) last_wait: FxHashMap<(StreamId, StreamId), WaitCall>,
    /// Last wait of a stream for any other, and for which.
    pub(crate) last_wait_of: FxHashMap<StreamId, (WaitCall, StreamId)>,
    /// Threads that have used a stream other than a default stream.
    pub(crate) used_side_streams: FxHashSet<ThreadId>,
    /// Last wait of a stream that made no edge.
    pub(crate) last_idle_wait: FxHashMap<StreamId, (WaitCall, EventId)>,
    visits: HashMap<ThreadId, Visit>,
    /// Page-locked blocks to which a pointer was given away, and to what.
    escaped: FxHashMap<BlockId, StringId>,
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
            blocks: Blocks::new(),
            freed_in_use: FreedInUse::default(),
            last_wait: FxHashMap::default(),
            last_wait_of: FxHashMap::default(),
            used_side_streams: FxHashSet::default(),
            last_idle_wait: FxHashMap::default(),
            visits: HashMap::new(),
            escaped: FxHashMap::default(),
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
                self.guard(block, guard);
            }
            EventKind::Gap { reason, detail } if self.is_in_region(number) => {
                sink.gap(reason, detail, number);
            }
            EventKind::StreamDestroy { stream } => self.order.destroy_stream(stream),
            EventKind::FreeDone { .. }
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

    /// `record_stream` is skipped for the stream that owns the block, and for memory that is not torch's.
    fn record_stream_property(&self, block: BlockId, stream: StreamId) -> Property {
        match self.blocks.get(block) {
            None if block == BlockId(0) => Property::Always(Rule::Ss406),
            Some(block) if !matches!(block.space, MemorySpace::Cached(_)) => Property::Always(Rule::Ss406),
            Some(block) if block.owner == stream => Property::Has(Rule::Ss406),
            // Of a block that ended long ago nothing is known.
            Some(_) | None => Property::Fine,
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
            self.freed_in_use.forget(&self.blocks, owner, |used| known.is_after(used.epoch()));
        }
        let block = Block {
            id,
            space,
            address,
            size,
            owner,
            allocated: event.number,
            alloc_site: event.site,
            handed_out,
            guards: Vec::new(),
            freed_at: OpNumber(0),
            freed_origin: Origin::default(),
            touched: false,
            endangered: false,
        };
        if let Some(slot) = self.blocks.insert(block) {
            self.shadow.begin(slot, address);
        }
        if cached {
            self.freed_in_use.handed_out(&self.blocks, owner, id);
            self.freed_in_use.reused(&self.blocks, id);
        }
    }

    /// A guard orders whoever gets the bytes next after all that it is after: also after uses by owners before
    /// this block's.
    fn guard(&mut self, id: BlockId, guard: Snapshot) {
        // A block whose own accesses do not matter may be released by now.
        let Some(block) = self.blocks.get(id) else { return };
        let slot = self.blocks.slot(id);
        if let MemorySpace::Cached(device) = block.space {
            let end = block.address.saturating_add(block.rounded());
            let known = |used: &Touch| guard.is_after(used.epoch());
            self.shadow.forget_retired(device, block.address, end, known);
            if let Some(slot) = slot {
                self.shadow.forget_known(slot, known);
            }
        }
        match slot {
            Some(slot) => self.blocks.at_mut(slot).guards.push(guard),
            None => self.order.take_back(guard),
        }
    }

    fn free(&mut self, event: &Event, id: BlockId) {
        let origin = self.origin(event);
        let Some(slot) = self.blocks.slot(id) else { return };
        let block = self.blocks.at_mut(slot);
        let again = block.freed().is_some();
        (block.freed_at, block.freed_origin) = (event.number, origin);
        let (space, start, owner, touched) = (block.space, block.address, block.owner, block.touched);
        let needed = match space {
            MemorySpace::Cached(device) => {
                let mut uses =
                    self.shadow.of_block(slot, id, |used| !self.order.before_all_of(used.epoch(), owner));
                if !uses.is_empty() {
                    let known = self.order.knowledge(owner, event.number);
                    uses.retain(|used| !known.is_after(used.epoch()));
                    self.order.take_back(known);
                    self.blocks.at_mut(slot).endangered = !uses.is_empty();
                    self.freed_in_use.note(owner, id, uses);
                }
                let kept =
                    self.shadow.retire(slot, id, (device, start), |used| self.order.passed(used.epoch()));
                // The guards of a block that was not touched are for those who had its bytes before.
                kept || !touched || self.blocks.at(slot).endangered
            }
            // The call waits before the memory can come back (`cudaFree`).
            MemorySpace::Device(device) => {
                let end = block.end();
                self.shadow.forget_block(slot);
                self.shadow.forget_retired(device, start, end, |_| true);
                false
            }
            MemorySpace::Pinned | MemorySpace::Pageable => {
                for used in self.shadow.of_block(slot, id, |used| !self.order.passed(used.epoch())) {
                    let touch = Touch {
                        number: event.number,
                        chain: ChainId::HOST,
                        mode: AccessMode::Write,
                        origin,
                        ..used
                    };
                    let hazard = self.hazard(Rule::Ss303, &used, &touch);
                    self.found.push(hazard);
                }
                self.shadow.forget_block(slot);
                false
            }
        };
        if again {
            return;
        }
        if !needed {
            self.blocks.release(id, |snapshot| self.order.take_back(snapshot));
        } else if self.blocks.keep_freed() {
            self.tidy();
        }
    }

    /// Lets go of what no later event can be unordered with.
    fn tidy(&mut self) {
        let (order, blocks) = (&self.order, &self.blocks);
        let mut used = self.shadow.tidy(|touch| order.passed(touch.epoch()), |slot| blocks.at(slot).id);
        self.freed_in_use.tidy(|touch| order.passed(touch.epoch()));
        used.extend(self.freed_in_use.blocks());
        self.blocks.sweep(&used, |snapshot| self.order.take_back(snapshot));
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
        if self.found.is_empty() {
            return;
        }
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
        let Some(slot) = self.blocks.slot(access.block) else {
            self.touch_ended(epoch, origin, access);
            return;
        };
        let block = self.blocks.at_mut(slot);
        let first_touch = !std::mem::replace(&mut block.touched, true);
        let memory = block.device().map(|device| Extent { device, start: block.address, end: block.end() });
        let touch = touch_of(block, epoch, origin, access);
        if let (Some(freed), Some(_)) = (block.freed(), memory) {
            self.use_after_free(freed, &touch);
            return;
        }
        let (order, blocks, undecided) = (&self.order, &self.blocks, &mut self.undecided);
        let now = order.chain(epoch.chain);
        let ordered = |earlier: &Touch| {
            earlier.chain == epoch.chain
                || now.is_after(earlier.epoch())
                || (earlier.block != touch.block && blocks.handed_on_after(earlier.block, earlier.epoch()))
        };
        let mut conflicts: Vec<(Rule, Touch)> = Vec::new();
        let only = self.shadow.touch(slot, memory, &touch, tables, ordered, |conflict| {
            if !conflict.decided {
                *undecided = true;
                return;
            }
            let earlier = conflict.earlier;
            let rule = if earlier.block == touch.block {
                let first_actor = order.stream(earlier.chain).map_or(Actor::Host, Actor::Stream);
                order_rule((first_actor, earlier.mode), (actor, touch.mode))
            } else if blocks.at(slot).handed_out_after(earlier.epoch()) {
                Rule::Ss201
            } else {
                Rule::Ss202
            };
            conflicts.push((rule, earlier));
        });
        if first_touch && memory.is_some() {
            let lucky = self
                .freed_in_use
                .first_access(blocks, touch.block, |used| order.ordered(used.epoch(), epoch.chain));
            conflicts.extend(lucky.into_iter().map(|(_, used)| (Rule::Ss203, used)));
        }
        if !conflicts.is_empty() {
            self.conflicts(&conflicts, &touch);
        }
        if only && memory.is_some() {
            self.leave_earlier_owners(slot);
        }
    }

    #[cold]
    fn conflicts(&mut self, conflicts: &[(Rule, Touch)], touch: &Touch) {
        for (rule, earlier) in conflicts {
            let hazard = self.hazard(*rule, earlier, touch);
            self.push(hazard);
        }
    }

    /// All accesses of earlier owners of a block's bytes were replaced.
    fn leave_earlier_owners(&mut self, slot: Slot) {
        if let Some(known) = self.blocks.at_mut(slot).handed_out.take() {
            self.order.take_back(known);
        }
        if let Some(earlier) = self.shadow.take_from(slot)
            && self.blocks.get(earlier).is_some_and(|block| !block.endangered)
        {
            self.blocks.release_kept(earlier, |snapshot| self.order.take_back(snapshot));
        }
    }

    /// An access to a block that nothing refers to any more, if it is remembered.
    fn touch_ended(&mut self, epoch: Epoch, origin: Origin, access: &Access) {
        if let Some(block) = self.blocks.get(access.block)
            && let (Some(freed), Some(_)) = (block.freed(), block.device())
        {
            let touch = touch_of(block, epoch, origin, access);
            self.use_after_free(freed, &touch);
        }
    }

    fn use_after_free(&mut self, freed: (OpNumber, Origin), touch: &Touch) {
        let free = Touch { number: freed.0, origin: freed.1, ..*touch };
        let hazard = self.hazard(Rule::Ss204, &free, touch);
        self.push(hazard);
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
            first: first.number,
            second: second.number,
            first_origin: first.origin,
            second_origin: second.origin,
            first_actor: self.actor_of(first.chain),
            second_actor: self.actor_of(second.chain),
            first_mode: first.mode,
            second_mode: second.mode,
            block: second.block,
            old_block: old,
            offset: second.start.saturating_sub(start),
            overlap: first.end.min(second.end).saturating_sub(first.start.max(second.start)),
            ordered_up_to: self.order.ordered_up_to(first.chain, second.chain),
            first_chain: first.chain,
            freed: old.and_then(|block| self.blocks.get(block)?.freed()),
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

fn touch_of(block: &Block, epoch: Epoch, origin: Origin, access: &Access) -> Touch {
    Touch {
        number: epoch.number,
        chain: epoch.chain,
        block: access.block,
        mode: access.mode,
        start: block.address.saturating_add(access.offset),
        end: block.address.saturating_add(access.end()),
        shape: access.shape,
        origin,
    }
}

fn wait_property(outcome: WaitOutcome) -> Property {
    match outcome {
        WaitOutcome::Unrecorded => Property::Has(Rule::Ss401),
        WaitOutcome::SelfWait => Property::Has(Rule::Ss403),
        WaitOutcome::Edge { .. } => Property::Fine,
    }
}
