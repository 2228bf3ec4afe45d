//! Captures: what is enqueued in a capturing stream becomes nodes.
//!
//! The capture's own engine orders and compares the nodes; it uses the effort and the memory for clocks of the engine that it
//! belongs to, so that many captures cost no more than one.

use super::super::{Engine, Sink, WaitCall};
use super::{Capture, Copied, Graph, MOST_ACCESSES, MOST_NODES, MOST_UNORDERED, Node, Private};
use crate::Config;
use crate::blocks::Block;
use crate::edges::Edges;
use crate::finding::Actor;
use crate::hazard::Origin;
use crate::order::WaitOutcome;
use crate::rules::Rule;
use crate::rules::events::Call;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use streamsan_trace::{
    Access, DeviceId, Event, EventKind, ExecutableId, GapReason, GraphId, LabelId, MemorySpace, OpNumber,
    StreamId, Tables,
};

impl Capture {
    fn new(id: GraphId) -> Self {
        let engine = Box::new(Engine::new(Edges::default(), &Config::default()));
        let (nodes, accesses, private) = (Vec::new(), Vec::new(), Vec::new());
        let graph = Graph { id, nodes, accesses, copied: Copied::default(), private };
        Self { engine, graph, unordered: Vec::new(), recorded: FxHashMap::default() }
    }
}

impl Engine {
    pub(in crate::engine) fn begin_capture(&mut self, graph: GraphId, stream: StreamId) {
        if self.graphs.captures.contains_key(&graph) {
            // Only in a damaged log.
            self.end_capture(graph, false);
        }
        let mut capture = Capture::new(graph);
        self.join_capture(&mut capture, graph, stream);
        self.graphs.captures.insert(graph, capture);
    }

    fn join_capture(&mut self, capture: &mut Capture, graph: GraphId, stream: StreamId) {
        self.graphs.capturing.insert(stream, graph);
        capture.engine.order.create_stream(stream, DeviceId(0), false, false);
    }

    pub(in crate::engine) fn end_capture(&mut self, id: GraphId, valid: bool) {
        self.graphs.capturing.retain(|_, graph| *graph != id);
        self.graphs.events.retain(|_, graph| *graph != id);
        let Some(capture) = self.graphs.captures.remove(&id) else { return };
        let graph = capture.graph;
        if !valid {
            self.graphs.unordered_count -= capture.unordered.len();
            self.end_graph(&graph);
            return;
        }
        let earlier = self.graphs.captured.remove(&id);
        self.let_go(earlier);
        self.graphs.take_unordered(id);
        if !capture.unordered.is_empty() {
            self.graphs.unordered.insert(id, (capture.engine, capture.unordered));
        }
        self.graphs.captured.insert(id, Arc::new(graph));
    }

    /// Takes an event that belongs to a capture. Says whether it means nothing to the world outside.
    pub(in crate::engine) fn captured(
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
        self.swap_budget(&mut capture.engine);
        let inside = self.capture(graph, &mut capture, event, accesses, tables, sink);
        self.swap_budget(&mut capture.engine);
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
                match std::mem::take(&mut capture.engine.undecided) {
                    0 => {}
                    pairs => sink.undecided(pairs, number),
                }
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
                let property = self.wait_property(outcome, awaited, event.site, tables);
                self.call(event, Call::Wait, property, tables, sink);
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
                if self.graphs.unordered_count < MOST_UNORDERED {
                    self.graphs.unordered_count += 1;
                    capture.unordered.push(hazard);
                } else {
                    engine.undecided += 1;
                }
            }
        }
        let start = capture.graph.accesses.len();
        capture.graph.accesses.extend_from_slice(accesses);
        capture.graph.nodes.push(Node { origin, accesses: start..capture.graph.accesses.len() });
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
        let (nodes, accesses) = (graph.nodes.len(), graph.accesses.len());
        let all = &mut self.graphs.copied;
        if all.nodes + nodes > MOST_NODES || all.accesses + accesses > MOST_ACCESSES {
            sink.gap(GapReason::UnseenGraph, label, number);
            return;
        }
        for copied in [all, &mut capture.graph.copied] {
            copied.nodes += nodes;
            copied.accesses += accesses;
        }
        for node in &graph.nodes {
            let origin = self.launched(event, node);
            self.node(capture, stream, (number, origin), &graph.accesses[node.accesses.clone()], tables);
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
}
