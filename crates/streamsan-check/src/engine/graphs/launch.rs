//! Launches: an executable does what the nodes of its graph do.

use super::super::{Engine, Sink};
use super::Node;
use crate::finding::Actor;
use crate::hazard::Origin;
use crate::rules::Rule;
use streamsan_trace::{Event, ExecutableId, GapReason, GraphId, LabelId, OpKind, OpNumber, StreamId, Tables};

impl Engine {
    /// An executable is launched.
    pub(in crate::engine) fn launch(
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

    /// What is said of a node in a launch.
    pub(super) fn launched(&self, event: &Event, node: &Node) -> Origin {
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
        if let Some((engine, hazards)) = self.graphs.take_unordered(graph) {
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
}
