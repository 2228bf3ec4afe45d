//! Graphs: what is enqueued in a capturing stream becomes nodes, and a launch does what the nodes do.
//!
//! A capture has an engine of its own, in which only its streams, records and waits order anything: it finds nodes that
//! conflict and are ordered by no edge of the graph. Outside, a launch is one operation of its stream that touches what
//! all nodes touch, each with the line that captured it, and comes after the launch before of the same executable
//! (CUDA programming guide, "CUDA graphs": work of one executable does not run concurrently with itself).
//!
//! Memory that is allocated in a capture is the graph's: torch keeps it for the next launch whatever is freed, and may
//! give the same bytes to several blocks of one graph, or of graphs that share a pool. So all accesses to such
//! memory are compared by address, whatever the block. The same holds for what is taken from a graph's pool outside of
//! a capture, such as the inputs that `torch.compile` copies to before each launch. Accesses to other memory keep the
//! block of the capture: a launch after its free is SS204.
//!
//! What it can miss: graphs that were put together without a capture (a gap), and the pool of a graph that was destroyed
//! while a launch of it may still run.

use super::{Engine, Sink, WaitCall, wait_property};
use crate::Config;
use crate::blocks::{Block, Blocks, Slot};
use crate::clock::Snapshot;
use crate::edges::Edges;
use crate::finding::Actor;
use crate::hazard::{Hazard, Origin, pair_rule};
use crate::order::{HappensBefore, WaitOutcome};
use crate::overlap::Shapes;
use crate::rules::Rule;
use crate::rules::events::Call;
use crate::shadow::Touch;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use streamsan_trace::{
    Access, BlockId, DeviceId, Event, EventId, EventKind, ExecutableId, GapReason, GraphId, LabelId,
    MemorySpace, OpKind, OpNumber, StreamId, Tables,
};

/// Nodes that a graph gets by launches in its capture, at most: more than programs have, and a file could ask for any
/// number.
const MOST_NODES: usize = 1 << 20;
/// Likewise accesses.
const MOST_ACCESSES: usize = 1 << 23;

/// All graphs of a log.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// Streams that belong to a capture.
    capturing: FxHashMap<StreamId, GraphId>,
    /// Events whose last record is in a capture that has not ended.
    events: FxHashMap<EventId, GraphId>,
    captures: FxHashMap<GraphId, Capture>,
    captured: FxHashMap<GraphId, Arc<Graph>>,
    executables: FxHashMap<ExecutableId, Executable>,
    /// Pairs of nodes without order, until the first launch of their graph, with the engine that found them.
    unordered: FxHashMap<GraphId, (Box<Engine>, Vec<Hazard>)>,
    /// Blocks of graphs' memory.
    private: FxHashMap<BlockId, Private>,
    /// Other blocks that nodes touch, and where they were freed.
    outside: FxHashMap<BlockId, Option<(OpNumber, Origin)>>,
}

/// A block of a graph's memory.
#[derive(Clone, Copy, Debug)]
struct Private {
    /// The graph in whose capture it was allocated; `None` if that was outside of one.
    graph: Option<GraphId>,
    freed: bool,
    /// Whether a node touches it that is not of this graph.
    held: bool,
}

/// A capture that has not ended.
#[derive(Debug)]
struct Capture {
    engine: Box<Engine>,
    graph: Graph,
    unordered: Vec<Hazard>,
    /// Streams for which `record_stream` was called in the capture: torch does not hand such blocks out in it again.
    recorded: FxHashMap<BlockId, Vec<StreamId>>,
}

/// A captured graph.
#[derive(Debug)]
struct Graph {
    id: GraphId,
    nodes: Vec<Node>,
    accesses: Vec<Access>,
    /// Blocks of its private memory.
    private: Vec<BlockId>,
}

#[derive(Debug)]
struct Node {
    origin: Origin,
    accesses: Range<usize>,
}

#[derive(Debug, Default)]
struct Executable {
    graph: Option<Arc<Graph>>,
    /// What whoever comes after the last launch is ordered after.
    launched: Option<Snapshot>,
}

impl Graphs {
    /// Whether something is captured now.
    pub(super) fn are_captured(&self) -> bool {
        !self.captures.is_empty()
    }

    /// A block is freed. Says whether it is a graph's, and so there for the next launch.
    pub(super) fn free(&mut self, block: BlockId, at: (OpNumber, Origin)) -> bool {
        if let Some(private) = self.private.get_mut(&block) {
            private.freed = true;
            return true;
        }
        if let Some(freed) = self.outside.get_mut(&block) {
            *freed = Some(at);
        }
        false
    }

    /// Everything of the past is ordered before whatever comes.
    pub(super) fn forget_snapshots(&mut self) {
        self.executables.values_mut().for_each(|executable| executable.launched = None);
    }

    /// Whether a block was allocated in a capture.
    pub(super) fn allocated(&self, block: BlockId) -> bool {
        self.private.get(&block).is_some_and(|private| private.graph.is_some())
    }

    /// The capture that a call on a block belongs to: that of its allocation, else one with a node that touches it.
    fn capture_of(&self, block: BlockId) -> Option<GraphId> {
        let private = self.private.get(&block)?;
        let touches = |(&graph, capture): (&GraphId, &Capture)| {
            capture.engine.blocks.find(block).is_some().then_some(graph)
        };
        private.graph.or_else(|| self.captures.iter().filter_map(touches).min())
    }

    /// Blocks from graphs' pools that may not be forgotten, since nodes touch them.
    pub(super) fn held(&self) -> impl Iterator<Item = BlockId> {
        self.private.iter().filter(|(_, private)| private.held).map(|(&block, _)| block)
    }

    /// Forgets the blocks that were allocated outside of captures and of which nothing is known any more.
    pub(super) fn tidy(&mut self, blocks: &Blocks) {
        self.private.retain(|&block, private| private.graph.is_some() || blocks.find(block).is_some());
    }

    /// Where a block that a graph touches was freed.
    pub(super) fn freed(&self, block: BlockId) -> Option<(OpNumber, Origin)> {
        *self.outside.get(&block)?
    }

    /// Whether what is enqueued in the stream is captured.
    pub(crate) fn captures_from(&self, stream: StreamId) -> bool {
        self.capturing.contains_key(&stream)
    }

    /// The order that both streams belong to: that of a capture, or that of the world outside. `None` if only one of
    /// them belongs to a capture: there is no edge between them.
    pub(super) fn order_of<'a>(
        &'a mut self,
        one: StreamId,
        other: StreamId,
        outside: &'a mut HappensBefore,
    ) -> Option<&'a mut HappensBefore> {
        match (self.capturing.get(&one), self.capturing.get(&other)) {
            (None, None) => Some(outside),
            (Some(one), Some(other)) if one == other => {
                self.captures.get_mut(one).map(|capture| &mut capture.engine.order)
            }
            _ => None,
        }
    }
}

impl Capture {
    fn new(id: GraphId) -> Self {
        let engine = Box::new(Engine::new(Edges::default(), &Config::default()));
        let graph = Graph { id, nodes: Vec::new(), accesses: Vec::new(), private: Vec::new() };
        Self { engine, graph, unordered: Vec::new(), recorded: FxHashMap::default() }
    }
}

impl Engine {
    pub(super) fn begin_capture(&mut self, graph: GraphId, stream: StreamId) {
        let mut capture = Capture::new(graph);
        self.join_capture(&mut capture, graph, stream);
        self.graphs.captures.insert(graph, capture);
    }

    fn join_capture(&mut self, capture: &mut Capture, graph: GraphId, stream: StreamId) {
        self.graphs.capturing.insert(stream, graph);
        capture.engine.order.create_stream(stream, DeviceId(0), false, false);
    }

    pub(super) fn end_capture(&mut self, id: GraphId, valid: bool) {
        self.graphs.capturing.retain(|_, graph| *graph != id);
        self.graphs.events.retain(|_, graph| *graph != id);
        let Some(capture) = self.graphs.captures.remove(&id) else { return };
        let graph = capture.graph;
        if !valid {
            self.end_graph(&graph);
            return;
        }
        if !capture.unordered.is_empty() {
            self.graphs.unordered.insert(id, (capture.engine, capture.unordered));
        }
        self.graphs.captured.insert(id, Arc::new(graph));
    }

    /// Takes an event that belongs to a capture. Says whether it means nothing to the world outside.
    pub(super) fn captured(
        &mut self,
        event: &Event,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) -> bool {
        let of_stream = |stream| self.graphs.capturing.get(&stream).copied();
        let graph = match event.kind {
            EventKind::Op { stream, .. }
            | EventKind::Alloc { stream, space: MemorySpace::Cached(_), .. }
            | EventKind::EventRecord { stream, .. }
            | EventKind::GraphLaunch { stream, .. }
            | EventKind::RecordStream { stream, .. } => of_stream(stream),
            EventKind::EventWait { event, stream } => {
                self.graphs.events.get(&event).copied().or_else(|| of_stream(stream))
            }
            EventKind::BlockSize { block, .. } | EventKind::FreeRequest { block } => {
                self.graphs.capture_of(block)
            }
            _ => None,
        };
        let Some((graph, mut capture)) =
            graph.and_then(|graph| Some((graph, self.graphs.captures.remove(&graph)?)))
        else {
            if let EventKind::EventRecord { event, .. } = event.kind {
                self.graphs.events.remove(&event);
            }
            return false;
        };
        let inside = self.capture(graph, &mut capture, event, accesses, tables, sink);
        self.graphs.captures.insert(graph, capture);
        inside
    }

    fn capture(
        &mut self,
        graph: GraphId,
        capture: &mut Capture,
        event: &Event,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) -> bool {
        let number = event.number;
        match event.kind {
            EventKind::Op { stream, .. } => {
                self.coverage.operations += 1;
                let origin = self.origin(event);
                self.node(capture, stream, (number, origin), accesses, tables);
                match std::mem::take(&mut capture.engine.undecided) {
                    0 => {}
                    pairs => sink.undecided(pairs, number),
                }
                true
            }
            EventKind::GraphLaunch { executable, stream, label } => {
                self.child(capture, event, (executable, stream, label), tables, sink);
                true
            }
            EventKind::EventRecord { event, stream } => {
                self.graphs.events.insert(event, graph);
                capture.engine.order.record(event, stream, number);
                true
            }
            EventKind::EventWait { event: awaited, stream } => {
                if !self.graphs.events.contains_key(&awaited) {
                    // Of the world outside: CUDA takes no such edge into the graph.
                    return true;
                }
                if !self.graphs.capturing.contains_key(&stream) {
                    self.join_capture(capture, graph, stream);
                }
                let outcome = capture.engine.order.wait(awaited, stream, number);
                let call = WaitCall { number, site: event.site };
                match outcome {
                    WaitOutcome::Edge { from, .. } => {
                        self.coverage.waits += 1;
                        capture.engine.last_wait.insert((stream, from), call);
                        capture.engine.last_wait_of.insert(stream, (call, from));
                    }
                    WaitOutcome::SelfWait | WaitOutcome::Unrecorded => {
                        let own = outcome == WaitOutcome::SelfWait;
                        capture.engine.last_idle_wait.insert(stream, (call, awaited, own));
                    }
                }
                self.call(event, Call::Wait, wait_property(outcome), tables, sink);
                true
            }
            EventKind::RecordStream { block, stream } => {
                capture.recorded.entry(block).or_default().push(stream);
                false
            }
            EventKind::Alloc { block, stream, space, address, size } => {
                capture.engine.allocate(event, block, stream, space, address, size);
                capture.graph.private.push(block);
                let block = Block {
                    owner: stream,
                    allocated: number,
                    alloc_site: event.site,
                    private: true,
                    ..Block::new(block, space, address, size)
                };
                self.allocate_private(graph, block);
                true
            }
            EventKind::BlockSize { block, size } => {
                if let Some(block) = capture.engine.blocks.get_mut(block) {
                    block.size = size;
                }
                false
            }
            EventKind::FreeRequest { block } => {
                capture.engine.free(event, block);
                capture.engine.found.clear();
                for stream in capture.recorded.remove(&block).unwrap_or_default() {
                    if self.graphs.capturing.get(&stream) == Some(&graph) {
                        let guard = capture.engine.order.guard(stream, number);
                        capture.engine.guard(block, guard);
                    }
                }
                false
            }
            _ => false,
        }
    }

    /// An operation is captured.
    fn node(
        &mut self,
        capture: &mut Capture,
        stream: StreamId,
        (number, origin): (OpNumber, Origin),
        accesses: &[Access],
        tables: &Tables,
    ) {
        let engine = &mut capture.engine;
        let epoch = engine.order.operation(stream, number);
        for access in accesses {
            if let Some(private) = self.graphs.private.get_mut(&access.block) {
                private.held |= private.graph != Some(capture.graph.id);
            } else {
                let freed = self.blocks.get(access.block).and_then(|block| block.freed);
                self.graphs.outside.entry(access.block).or_insert(freed);
            }
            if engine.blocks.find(access.block).is_none()
                && let Some(block) = self.blocks.find(access.block)
            {
                // Memory of the world outside, which neither begins nor ends in a graph.
                let Block { id, space, address, size, owner, allocated, alloc_site, .. } = *block;
                let known = Block {
                    owner,
                    allocated,
                    alloc_site,
                    touched: true,
                    ..Block::new(id, space, address, size)
                };
                let slot = engine.blocks.insert(known);
                engine.shadow.begin(slot, address);
            }
            engine.touch(epoch, Actor::Stream(stream), origin, access, tables);
            // That memory freed in use was not handed out again (SS203) is left out: the graph is what it is.
            // One by one: a pair on several blocks is one as long as one of them is there at the launch.
            for hazard in engine.found.drain(..).filter(|hazard| hazard.rule != Rule::Ss203) {
                capture.unordered.push(hazard);
            }
        }
        let start = capture.graph.accesses.len();
        capture.graph.accesses.extend_from_slice(accesses);
        capture.graph.nodes.push(Node { origin, accesses: start..capture.graph.accesses.len() });
    }

    pub(super) fn instantiate(&mut self, graph: GraphId, executable: ExecutableId) {
        let graph = self.graphs.captured.get(&graph).cloned();
        let of = &mut self.graphs.executables.entry(executable).or_default().graph;
        let earlier = std::mem::replace(of, graph);
        self.let_go(earlier);
    }

    pub(super) fn destroy_graph(&mut self, graph: GraphId) {
        let graph = self.graphs.captured.remove(&graph);
        self.let_go(graph);
    }

    pub(super) fn destroy_executable(&mut self, executable: ExecutableId) {
        if let Some(Executable { graph, launched }) = self.graphs.executables.remove(&executable) {
            if let Some(snapshot) = launched {
                self.order.take_back(snapshot);
            }
            self.let_go(graph);
        }
    }

    /// One reference to a graph is gone.
    fn let_go(&mut self, graph: Option<Arc<Graph>>) {
        if let Some(graph) = graph.and_then(Arc::into_inner) {
            self.end_graph(&graph);
        }
    }

    /// No launch can come any more: what was freed of the graph's memory has ended.
    fn end_graph(&mut self, graph: &Graph) {
        self.graphs.unordered.remove(&graph.id);
        for access in &graph.accesses {
            self.graphs.outside.remove(&access.block);
        }
        for &block in &graph.private {
            // What the program still uses ends at its free.
            if self.graphs.private.remove(&block).is_some_and(|private| private.freed) {
                self.blocks.release(block, |snapshot| self.order.take_back(snapshot));
            }
        }
    }

    /// An executable is launched.
    pub(super) fn launch(
        &mut self,
        event: &Event,
        (executable, stream, label): (ExecutableId, StreamId, LabelId),
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        self.coverage.operations += 1;
        let number = event.number;
        let state = self.graphs.executables.entry(executable).or_default();
        let graph = state.graph.clone();
        let (epoch, launched) = self.order.launch(stream, number, state.launched.as_ref());
        if let Some(earlier) = state.launched.replace(launched) {
            self.order.take_back(earlier);
        }
        let Some(graph) = graph else {
            sink.gap(GapReason::UnseenGraph, label, number);
            return;
        };
        self.give_unordered(graph.id, number, tables, sink);
        for node in &graph.nodes {
            let origin = self.launched(event, node);
            let accesses = &graph.accesses[node.accesses.clone()];
            self.touch_each(epoch, Actor::Stream(stream), origin, accesses, tables, sink);
        }
        self.give(tables, sink);
    }
    /// A graph is launched in a stream that captures: all of it is one node.
    fn child(
        &mut self,
        capture: &mut Capture,
        event: &Event,
        (executable, stream, label): (ExecutableId, StreamId, LabelId),
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        let number = event.number;
        self.coverage.operations += 1;
        let known = self.graphs.executables.get(&executable);
        let Some(graph) = known.and_then(|executable| executable.graph.clone()) else {
            sink.gap(GapReason::UnseenGraph, label, number);
            return;
        };
        let nodes = capture.graph.nodes.len() + graph.nodes.len();
        let accesses = capture.graph.accesses.len() + graph.accesses.len();
        if nodes > MOST_NODES || accesses > MOST_ACCESSES {
            sink.gap(GapReason::UnseenGraph, label, number);
            return;
        }
        for node in &graph.nodes {
            let origin = self.launched(event, node);
            self.node(capture, stream, (number, origin), &graph.accesses[node.accesses.clone()], tables);
        }
    }

    /// What is said of a node in a launch.
    fn launched(&self, event: &Event, node: &Node) -> Origin {
        Origin {
            thread: event.thread,
            site: event.site,
            forward_site: node.origin.site,
            label: node.origin.label,
            kind: Some(OpKind::GraphLaunch),
            ranges: self.ignores.ranges_of(event.thread),
        }
    }

    /// The graph runs: so do its nodes without order.
    fn give_unordered(&mut self, graph: GraphId, number: OpNumber, tables: &Tables, sink: &mut impl Sink) {
        if self.graphs.unordered.is_empty() || !self.is_in_region(number) {
            return;
        }
        if let Some((engine, hazards)) = self.graphs.unordered.remove(&graph) {
            let mut given: Vec<(OpNumber, OpNumber, Rule)> = Vec::new();
            for hazard in &hazards {
                // On memory that is gone by now each access is one too many (SS204).
                let gone = self.graphs.freed(hazard.block).is_some();
                let pair = (hazard.first, hazard.second, hazard.rule);
                if !gone && !given.contains(&pair) && !self.ignores.hides(hazard, tables) {
                    given.push(pair);
                    sink.hazard(hazard, &engine, tables);
                }
            }
        }
    }

    /// A block of a graph's memory begins.
    fn allocate_private(&mut self, graph: GraphId, block: Block) {
        self.coverage.blocks += 1;
        let id = block.id;
        let address = block.address;
        let slot = self.blocks.insert(block);
        self.shadow.begin(slot, address);
        self.graphs.private.insert(id, Private { graph: Some(graph), freed: false, held: false });
    }

    /// A block that was just handed out comes from the pool of a graph.
    pub(super) fn keep_for_graphs(&mut self, id: BlockId) {
        let Some(slot) = self.blocks.slot(id) else { return };
        let block = self.blocks.at_mut(slot);
        if block.device().is_none() || block.freed().is_some() {
            return;
        }
        block.private = true;
        if let Some(known) = block.handed_out.take() {
            self.order.take_back(known);
        }
        self.graphs.private.entry(id).or_insert(Private { graph: None, freed: false, held: false });
    }

    /// A guard of a block from a graph's pool: its next owner is ordered after all that the guard is after.
    pub(super) fn guard_private(&mut self, id: BlockId, guard: Snapshot) {
        if let Some(pool) = self.pool_of(id) {
            self.shadow.forget_known(pool, |used| used.block == id && guard.is_after(used.epoch()));
        }
        self.order.take_back(guard);
    }

    /// Memory is given back to the device, for which the call waits.
    pub(super) fn end_pool(&mut self, device: DeviceId, start: u64, end: u64) {
        if let Some(pool) = self.blocks.slot(pool_id(device)) {
            self.shadow.forget_known(pool, |used| start <= used.start && used.end <= end);
        }
    }

    /// An access to a block of a graph's memory.
    pub(super) fn touch_private(&mut self, touch: &Touch, actor: Actor, device: DeviceId, tables: &Tables) {
        self.effort.access();
        let slot = self.pool(device);
        let (order, blocks, undecided) = (&self.order, &self.blocks, &mut self.undecided);
        let now = order.chain(touch.chain);
        let ordered = |earlier: &Touch| {
            earlier.chain == touch.chain
                || now.is_after(earlier.epoch())
                // The memory of a graph that is gone.
                || (earlier.block != touch.block && blocks.find(earlier.block).is_none())
        };
        let mut conflicts: Vec<(Rule, Touch)> = Vec::new();
        let shapes = Shapes { tables, effort: &self.effort };
        self.shadow.touch(slot, None, touch, shapes, ordered, |conflict| {
            if !conflict.decided {
                *undecided += 1;
                return;
            }
            let earlier = conflict.earlier;
            let first = (order.stream(earlier.chain).map_or(Actor::Host, Actor::Stream), &earlier);
            conflicts.push((pair_rule(first, (actor, touch)), earlier));
        });
        for (rule, earlier) in conflicts {
            // Of a graph's blocks that share bytes the one that the world outside knows.
            let launched = touch.origin.kind == Some(OpKind::GraphLaunch);
            let block = if launched { earlier.block } else { touch.block };
            let hazard = self.hazard(rule, &Touch { block, ..earlier }, &Touch { block, ..*touch });
            self.push(hazard);
        }
    }

    /// Where accesses to a block are kept if it is a graph's and was used.
    pub(crate) fn pool_of(&self, block: BlockId) -> Option<Slot> {
        let block = self.blocks.find(block).filter(|block| block.private)?;
        self.blocks.slot(pool_id(block.device()?))
    }

    /// The place where accesses to graphs' memory on a device are kept, by address.
    fn pool(&mut self, device: DeviceId) -> Slot {
        let id = pool_id(device);
        if let Some(slot) = self.blocks.slot(id) {
            return slot;
        }
        let slot = self.blocks.insert(Block::new(id, MemorySpace::Device(device), 0, u64::MAX));
        self.shadow.begin(slot, 0);
        slot
    }
}

/// An id that no block of a log has.
fn pool_id(device: DeviceId) -> BlockId {
    BlockId(u32::MAX - device.0)
}
