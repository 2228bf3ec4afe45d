//! A second definition of "unordered", for tests: two operations are unordered if no path of edges leads
//! from one to the other. Nothing is executed, and nothing is shared with the judge but the program and
//! the comparison of bytes.

use crate::judge::Pair;
use crate::program::{Action, Program, StreamKind, Target};

/// Edges between nodes. Each step is a node for what it enqueues, and one for the host's call itself.
struct Graph {
    edges: Vec<Vec<usize>>,
}

impl Graph {
    fn new(program: &Program) -> Self {
        let count = program.steps.len();
        let call = |step: usize| count + step;
        let mut graph = Self { edges: vec![Vec::new(); 2 * count] };
        // The last record of each event, as the step that made it.
        let mut records: Vec<Option<usize>> = vec![None; program.events.len()];
        for (step, what) in program.steps.iter().enumerate() {
            if step > 0 {
                graph.edge(call(step - 1), call(step));
            }
            let earlier = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
                (0..step).filter(|&other| enqueued_in(program, other).is_some_and(wanted)).collect()
            };
            match what.action {
                Action::Synchronize { target } | Action::Query { target, ready: true } => {
                    let covered = match target {
                        Target::Stream(stream) => earlier(&|other| {
                            let kinds = (program.streams[stream].kind, program.streams[other].kind);
                            other == stream || kinds == (StreamKind::LegacyDefault, StreamKind::Blocking)
                        }),
                        Target::Event(event) => records[event].into_iter().collect(),
                        Target::Device => earlier(&|_| true),
                    };
                    for node in covered {
                        graph.edge(node, call(step));
                    }
                }
                Action::Query { ready: false, .. } => {}
                Action::Wait { event, .. } if records[event].is_none() => {}
                Action::Operation { stream, .. }
                | Action::Record { stream, .. }
                | Action::Wait { stream, .. } => {
                    graph.edge(call(step), step);
                    let kind = |other: usize| program.streams[other].kind;
                    let before = earlier(&|other| {
                        other == stream
                            || matches!(
                                (kind(other), kind(stream)),
                                (StreamKind::LegacyDefault, StreamKind::Blocking)
                                    | (StreamKind::Blocking, StreamKind::LegacyDefault)
                            )
                    });
                    for node in before {
                        graph.edge(node, step);
                    }
                    match what.action {
                        Action::Record { event, .. } => records[event] = Some(step),
                        Action::Wait { event, .. } => {
                            records[event].into_iter().for_each(|node| graph.edge(node, step));
                        }
                        _ => {}
                    }
                }
            }
        }
        graph
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.edges[from].push(to);
    }

    /// All nodes on paths from `start`.
    fn reached(&self, start: usize) -> Vec<bool> {
        let mut reached = vec![false; self.edges.len()];
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(&self.edges[node]);
            }
        }
        reached
    }
}

/// The stream in which a step enqueues something. Waits without a record count too, which
/// adds no order: edges start at their nodes but none leads to one.
fn enqueued_in(program: &Program, step: usize) -> Option<usize> {
    match program.steps[step].action {
        Action::Operation { stream, .. } | Action::Record { stream, .. } | Action::Wait { stream, .. } => {
            Some(stream)
        }
        Action::Synchronize { .. } | Action::Query { .. } => None,
    }
}

/// Conflicting operations without a path either way, sorted by the later and then the earlier.
pub fn unordered_pairs(program: &Program) -> Vec<Pair> {
    let graph = Graph::new(program);
    let operations: Vec<usize> =
        (0..program.steps.len()).filter(|&step| !program.accesses(step).is_empty()).collect();
    let reached: Vec<Vec<bool>> = operations.iter().map(|&step| graph.reached(step)).collect();
    let mut pairs = Vec::new();
    for (later, &second) in operations.iter().enumerate() {
        for (earlier, &first) in operations[..later].iter().enumerate() {
            let ordered = reached[earlier][second] || reached[later][first];
            if !ordered && program.conflict(first, second) {
                pairs.push(Pair { first, second });
            }
        }
    }
    pairs
}
