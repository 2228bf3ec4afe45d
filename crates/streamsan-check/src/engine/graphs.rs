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

mod capture;
mod launch;
mod memory;

use super::Engine;
use crate::blocks::Blocks;
use crate::clock::Snapshot;
use crate::hazard::{Hazard, Origin};
use crate::order::HappensBefore;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use streamsan_trace::{Access, BlockId, DeviceId, EventId, ExecutableId, GraphId, OpNumber, StreamId};

/// Nodes that graphs get by launches in their captures, at most, all graphs together: more than programs have, and a file
/// could ask for any number.
const MOST_NODES: usize = 1 << 20;
/// Likewise accesses.
const MOST_ACCESSES: usize = 1 << 23;
/// Pairs of nodes without order that are kept for a first launch, of all graphs together.
const MOST_UNORDERED: usize = 1 << 16;

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
    /// How many pairs there are, with those of captures.
    unordered_count: usize,
    /// What graphs have by launches in their captures.
    copied: Copied,
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

/// What a graph, or all of them, has by launches in its capture.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    nodes: usize,
    accesses: usize,
}

/// A captured graph.
#[derive(Debug)]
struct Graph {
    id: GraphId,
    nodes: Vec<Node>,
    accesses: Vec<Access>,
    copied: Copied,
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

    /// The engines of captures, and of graphs whose pairs without order are kept.
    fn engines(&self) -> impl Iterator<Item = &Engine> {
        let captures = self.captures.values().map(|capture| &*capture.engine);
        captures.chain(self.unordered.values().map(|(engine, _)| &**engine))
    }

    /// What graphs keep of the order.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        let launched = self.executables.values().filter_map(|executable| executable.launched.as_ref());
        // Boxed: an engine has snapshots of its graphs, and these have engines.
        let inside: Box<dyn Iterator<Item = &Snapshot>> =
            Box::new(self.engines().flat_map(Engine::snapshots));
        launched.chain(inside)
    }

    /// Everything of the past is ordered before whatever comes, in captures too.
    pub(super) fn forget_snapshots(&mut self, number: OpNumber) {
        self.executables.values_mut().for_each(|executable| executable.launched = None);
        self.captures.values_mut().for_each(|capture| capture.engine.forget(number));
        self.unordered.values_mut().for_each(|(engine, _)| engine.forget(number));
    }

    fn take_unordered(&mut self, graph: GraphId) -> Option<(Box<Engine>, Vec<Hazard>)> {
        let taken = self.unordered.remove(&graph);
        self.unordered_count -= taken.as_ref().map_or(0, |(_, hazards)| hazards.len());
        taken
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

impl Engine {
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
        self.graphs.take_unordered(graph.id);
        self.graphs.copied.nodes -= graph.copied.nodes;
        self.graphs.copied.accesses -= graph.copied.accesses;
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
}

/// An id that no block of a log has.
fn pool_id(device: DeviceId) -> BlockId {
    BlockId(u32::MAX - device.0)
}
