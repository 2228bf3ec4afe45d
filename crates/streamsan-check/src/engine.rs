//! The engine: reads events in log order, keeps order and shadow memory, and gives hazards.
//!
//! One pass, streaming: an event is handed in with its accesses and is not needed again. Hazards go to a
//! [`Sink`]. The same engine checks a report's fixes: `edges` are waits to be imagined before the operations
//! of some lines.
//!
//! It reports every unordered conflicting pair of which both halves are still kept (see `shadow`), among
//! them always one whose later half is the earliest possible.

use crate::clock::ChainId;
use crate::edges::Edges;
use crate::finding::Actor;
use crate::hazard::{Hazard, order_rule};
use crate::order::{HappensBefore, WaitOutcome};
use crate::report::Coverage;
use crate::shadow::{Shadow, Space, Touch};
use std::collections::{BTreeMap, HashMap};
use streamsan_trace::{
    Access, BlockId, Event, EventKind, HostWaitHow, MemorySpace, Observer, OpNumber, SiteId, StreamId,
    Tables, WaitTarget,
};

/// Receives what the engine finds.
pub(crate) trait Sink {
    /// An unordered conflicting pair.
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine<'_>);
    /// A wait of a stream or of the host on an event, and what it did.
    fn event_wait(&mut self, event: &Event, outcome: WaitOutcome);
    /// A pair whose overlap could not be decided.
    fn undecided(&mut self, second: OpNumber);
}

/// A block: one generation of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) space: MemorySpace,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) alloc_site: SiteId,
}

/// State of a check after some events.
#[derive(Debug)]
pub(crate) struct Engine<'a> {
    tables: &'a Tables,
    edges: &'a Edges,
    pub(crate) order: HappensBefore,
    shadow: Shadow,
    pub(crate) blocks: BTreeMap<BlockId, Block>,
    /// Last wait of one stream for another: (waiter, awaited).
    pub(crate) last_wait: HashMap<(StreamId, StreamId), OpNumber>,
    /// Last wait of a stream that made no edge.
    pub(crate) last_idle_wait: HashMap<StreamId, OpNumber>,
    pub(crate) coverage: Coverage,
    found: Vec<Hazard>,
    undecided: bool,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(tables: &'a Tables, edges: &'a Edges) -> Self {
        Self {
            tables,
            edges,
            order: HappensBefore::new(),
            shadow: Shadow::default(),
            blocks: BTreeMap::new(),
            last_wait: HashMap::new(),
            last_idle_wait: HashMap::new(),
            coverage: Coverage::default(),
            found: Vec::new(),
            undecided: false,
        }
    }

    /// Takes the next event of the log.
    pub(crate) fn event(&mut self, event: &Event, accesses: &[Access], sink: &mut impl Sink) {
        let number = event.number;
        match event.kind {
            EventKind::StreamCreate { stream, device, blocking, legacy_default, .. } => {
                self.order.create_stream(stream, device, blocking, legacy_default);
            }
            EventKind::EventRecord { event, stream } => self.order.record(event, stream, number),
            EventKind::EventWait { event: awaited, stream } => {
                let outcome = self.order.wait(awaited, stream, number);
                match outcome {
                    WaitOutcome::Edge { from, .. } => {
                        self.coverage.waits += 1;
                        self.last_wait.insert((stream, from), number);
                    }
                    WaitOutcome::SelfWait | WaitOutcome::Unrecorded => {
                        self.last_idle_wait.insert(stream, number);
                    }
                }
                sink.event_wait(event, outcome);
            }
            EventKind::HostWaitBegin { target } => self.order.begin_host_wait(event.thread, target),
            EventKind::HostWait { target, observer, how } => {
                if observer == Observer::Program {
                    self.coverage.host_waits += 1;
                    self.order.host_wait(event.thread, target, number);
                    self.host_event_wait(event, target, how, sink);
                }
            }
            EventKind::Op { stream, .. } => {
                self.coverage.operations += 1;
                for &awaited in self.edges.before(event.site, stream) {
                    self.order.wait_for_stream(stream, awaited, number);
                }
                let epoch = self.order.operation(stream, number);
                self.touch_all(epoch, Actor::Stream(stream), accesses, sink);
            }
            EventKind::HostAccess { .. } => {
                let epoch = self.order.host_access(number);
                self.touch_all(epoch, Actor::Host, accesses, sink);
            }
            EventKind::Alloc { block, space, address, size, .. } => {
                self.coverage.blocks += u64::from(matches!(space, MemorySpace::Cached(_)));
                self.blocks.insert(block, Block { space, address, size, alloc_site: event.site });
            }
            EventKind::BlockSize { block, size } => {
                if let Some(block) = self.blocks.get_mut(&block) {
                    block.size = size;
                }
            }
            EventKind::StreamDestroy { .. }
            | EventKind::FreeRequest { .. }
            | EventKind::FreeGuard { .. }
            | EventKind::FreeDone { .. }
            | EventKind::Escape { .. }
            | EventKind::Name { .. }
            | EventKind::Gap { .. } => {}
        }
    }

    /// A host wait on an event that was never recorded does nothing either.
    fn host_event_wait(&self, event: &Event, target: WaitTarget, how: HostWaitHow, sink: &mut impl Sink) {
        if let WaitTarget::Event(awaited) = target
            && how == HostWaitHow::Synchronize
        {
            let outcome = match self.order.last_record(awaited) {
                Some(record) => WaitOutcome::Edge { from: record.stream, new: true },
                None => WaitOutcome::Unrecorded,
            };
            sink.event_wait(event, outcome);
        }
    }

    fn touch_all(
        &mut self,
        epoch: crate::clock::Epoch,
        actor: Actor,
        accesses: &[Access],
        sink: &mut impl Sink,
    ) {
        for access in accesses {
            self.touch(epoch, actor, access);
            if std::mem::take(&mut self.undecided) {
                sink.undecided(epoch.number);
            }
        }
        let found = std::mem::take(&mut self.found);
        for hazard in &found {
            sink.hazard(hazard, self);
        }
        self.found = found;
        self.found.clear();
    }

    fn touch(&mut self, epoch: crate::clock::Epoch, actor: Actor, access: &Access) {
        let Some(block) = self.blocks.get(&access.block).copied() else { return };
        let space = match block.space {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => Space::Device(device),
            // Order between the host and copies is the next family of rules.
            MemorySpace::Pinned | MemorySpace::Pageable => Space::Host,
        };
        let touch = Touch {
            epoch,
            block: access.block,
            mode: access.mode,
            start: block.address.saturating_add(access.offset),
            end: block.address.saturating_add(access.end()),
            shape: access.shape,
        };
        let (order, found, undecided) = (&self.order, &mut self.found, &mut self.undecided);
        self.shadow.touch(
            space,
            touch,
            self.tables,
            |earlier| order.ordered(earlier, epoch.chain),
            |conflict| {
                let earlier = conflict.earlier;
                if earlier.block != touch.block {
                    return; // Another generation of the same bytes: rules on lifetimes.
                }
                if !conflict.decided {
                    *undecided = true;
                    return;
                }
                let first_actor = order.stream(earlier.epoch.chain).map_or(Actor::Host, Actor::Stream);
                if first_actor == Actor::Host || actor == Actor::Host {
                    return; // The host against a copy: rules on host memory.
                }
                let rule = order_rule(earlier.mode, touch.mode);
                if found.iter().any(|known| known.first == earlier.epoch.number && known.rule == rule) {
                    return;
                }
                found.push(Hazard {
                    rule,
                    first: earlier.epoch.number,
                    second: epoch.number,
                    first_actor,
                    second_actor: actor,
                    first_mode: earlier.mode,
                    second_mode: touch.mode,
                    block: touch.block,
                    offset: access.offset,
                    overlap: earlier.end.min(touch.end) - earlier.start.max(touch.start),
                    ordered_up_to: order.ordered_up_to(earlier.epoch.chain, epoch.chain),
                    first_chain: earlier.epoch.chain,
                });
            },
        );
    }

    /// The device of a block, if it is device memory.
    pub(crate) fn device_of(&self, block: BlockId) -> Option<streamsan_trace::DeviceId> {
        match self.blocks.get(&block)?.space {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => Some(device),
            MemorySpace::Pinned | MemorySpace::Pageable => None,
        }
    }

    /// Coverage with the counts that follow from the order.
    pub(crate) fn coverage(&self) -> Coverage {
        Coverage {
            streams: self.order.active_streams() as u64,
            devices: self.order.active_devices() as u64,
            ..self.coverage
        }
    }

    /// Whether a chain is the host's.
    pub(crate) fn actor_of(&self, chain: ChainId) -> Actor {
        self.order.stream(chain).map_or(Actor::Host, Actor::Stream)
    }
}
