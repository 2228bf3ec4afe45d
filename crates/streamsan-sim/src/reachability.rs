//! A second definition of "unordered", for tests: two operations are unordered if no path of edges leads
//! from one to the other. Nothing is executed, and nothing is shared with the judge but the program, where
//! its memory lies, and the comparison of bytes.

use crate::captures::Captures;
use crate::judge::{Found, Kind, Pair};
use crate::memory::Memory;
use crate::program::{Action, BufferKind, Program, StreamKind, Target};

/// Edges between nodes. Each step is a node for what it enqueues, and one for the host's call itself. An
/// allocation enqueues nothing: its node is what the owner stream would be given then. Guards come last.
struct Graph {
    edges: Vec<Vec<usize>>,
    /// By buffer, the nodes of its guards.
    guards: Vec<Vec<usize>>,
    /// The nodes of launched graphs, in order of the launches.
    launched: Vec<usize>,
}

impl Graph {
    fn new(program: &Program) -> Self {
        let count = program.steps.len();
        let call = |step: usize| count + step;
        let mut graph = Self {
            edges: vec![Vec::new(); 2 * count],
            guards: vec![Vec::new(); program.buffers.len()],
            launched: Vec::new(),
        };
        let captures = Captures::of(program);
        // By graph, the last launch.
        let mut launches: Vec<Option<usize>> = vec![None; program.graphs.len()];
        // All that was enqueued so far: node and stream.
        let mut enqueued: Vec<(usize, usize)> = Vec::new();
        // The last record of each event, as the step that made it.
        let mut records: Vec<Option<usize>> = vec![None; program.events.len()];
        for (step, what) in program.steps.iter().enumerate() {
            if step > 0 {
                graph.edge(call(step - 1), call(step));
            }
            let earlier = |wanted: &dyn Fn(&usize) -> bool| -> Vec<usize> {
                enqueued.iter().filter(|(_, stream)| wanted(stream)).map(|(node, _)| *node).collect()
            };
            let kind = |stream: usize| program.streams[stream].kind;
            let before = |stream: usize| {
                earlier(&|&other| {
                    other == stream
                        || matches!(
                            (kind(other), kind(stream)),
                            (StreamKind::LegacyDefault, StreamKind::Blocking)
                                | (StreamKind::Blocking, StreamKind::LegacyDefault)
                        )
                })
            };
            if Captures::is_inside(captures.as_ref(), step) {
                continue;
            }
            match what.action {
                Action::Replay { stream, graph: replayed } => {
                    // The step is where all of it is done; a node before it is where it begins.
                    let begin = graph.node();
                    let nodes = before(stream);
                    graph.enter(call(step), begin, nodes);
                    graph.edge(begin, step);
                    if let Some(earlier) = launches[replayed].replace(step) {
                        graph.edge(earlier, begin);
                    }
                    let mut own: Vec<usize> = Vec::new();
                    for node in captures.iter().flat_map(|captures| &captures.nodes[replayed]) {
                        let this = graph.node();
                        graph.edge(begin, this);
                        graph.edge(this, step);
                        node.after.iter().for_each(|&after| graph.edge(own[after], this));
                        own.push(this);
                    }
                    graph.launched.extend(own);
                    enqueued.push((step, stream));
                }
                Action::Synchronize { target } | Action::Query { target, ready: true } => {
                    let covered = match target {
                        Target::Stream(stream) => earlier(&|&other| {
                            let kinds = (kind(stream), kind(other));
                            other == stream || kinds == (StreamKind::LegacyDefault, StreamKind::Blocking)
                        }),
                        Target::Event(event) => records[event].into_iter().collect(),
                        Target::Device => earlier(&|_| true),
                    };
                    for node in covered {
                        graph.edge(node, call(step));
                    }
                }
                Action::Query { ready: false, .. }
                | Action::RecordStream { .. }
                | Action::HostAccess { .. }
                | Action::Capture { .. }
                | Action::EndCapture { .. } => {}
                Action::Allocate { buffer } => {
                    let owner = program.buffers[buffer].owner().unwrap_or(0);
                    let nodes = before(owner);
                    graph.enter(call(step), step, nodes);
                }
                Action::Free { buffer } => {
                    for stream in recorded(program, step, buffer) {
                        let node = graph.node();
                        let nodes = before(stream);
                        graph.enter(call(step), node, nodes);
                        graph.guards[buffer].push(node);
                    }
                    enqueued
                        .extend(graph.guards[buffer].iter().copied().zip(recorded(program, step, buffer)));
                }
                Action::Wait { event, .. } if records[event].is_none() => {}
                Action::Operation { stream, .. }
                | Action::Record { stream, .. }
                | Action::Wait { stream, .. } => {
                    let nodes = before(stream);
                    graph.enter(call(step), step, nodes);
                    match what.action {
                        Action::Record { event, .. } => records[event] = Some(step),
                        Action::Wait { event, .. } => {
                            records[event].into_iter().for_each(|node| graph.edge(node, step));
                        }
                        _ => {}
                    }
                    enqueued.push((step, stream));
                }
            }
        }
        graph
    }

    fn node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.edges[from].push(to);
    }

    /// What is enqueued at a call is after the call and after these.
    fn enter(&mut self, call: usize, node: usize, before: Vec<usize>) {
        self.edge(call, node);
        for earlier in before {
            self.edge(earlier, node);
        }
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

/// The streams that guard a block which is freed at this step.
fn recorded(program: &Program, step: usize, buffer: usize) -> Vec<usize> {
    let mut streams = Vec::new();
    if let BufferKind::Cached { owner, .. } = program.buffers[buffer].kind {
        for earlier in &program.steps[..step] {
            match earlier.action {
                Action::RecordStream { buffer: of, stream }
                    if of == buffer && stream != owner && !streams.contains(&stream) =>
                {
                    streams.push(stream);
                }
                _ => {}
            }
        }
    }
    streams
}

/// All that is wrong with a program, as [`crate::Verdict::found`].
pub fn found(program: &Program) -> Vec<Found> {
    let memory = Memory::new(program);
    let graph = Graph::new(program);
    let count = program.steps.len();
    // The node at which an act touches memory: the host does so in its call.
    let acts = |act: usize| match program.steps[memory.step(act)].action {
        Action::HostAccess { .. } | Action::Free { .. } => count + act,
        _ => act.checked_sub(count).map_or(act, |node| graph.launched[node]),
    };
    let all = memory.touches.len();
    let reached: Vec<Option<Vec<bool>>> =
        (0..all).map(|step| (!memory.touches[step].is_empty()).then(|| graph.reached(acts(step)))).collect();
    let ordered = |first: usize, node: usize| reached[first].as_ref().is_some_and(|nodes| nodes[node]);
    let guarded =
        |first: usize, buffer: usize| graph.guards[buffer].iter().any(|&guard| ordered(first, guard));
    let touches = |act: usize, buffer| memory.touches[act].iter().any(|touch| touch.buffer == buffer);
    let mut found: Vec<Found> = Vec::new();
    for second in 0..all {
        for first in 0..all {
            // Nodes of one launch are captured in the order of their acts.
            let issued = (memory.step(first), first) < (memory.step(second), second);
            if !issued || ordered(first, acts(second)) {
                continue;
            }
            for conflict in memory.conflicts(first, second) {
                if memory.generations(conflict).any(|buffer| guarded(first, buffer)) {
                    continue;
                }
                let handed_out = memory.extents[conflict.new].allocated;
                let kind = match program.steps[memory.step(second)].action {
                    Action::HostAccess { .. } => Kind::Host,
                    Action::Free { .. } => Kind::HostFree,
                    _ if conflict.old == conflict.new => Kind::Order,
                    _ if handed_out.is_some_and(|step| ordered(first, step)) => Kind::UseBeforeAllocation,
                    _ => Kind::ReuseWhileInUse,
                };
                found.push(Found { pair: memory.pair(first, second), kind });
            }
        }
    }
    for &(second, buffer) in &memory.dead {
        let freed = memory.extents[buffer].freed.into_iter();
        found.extend(freed.map(|first| Found { pair: Pair { first, second }, kind: Kind::UseAfterFree }));
    }
    for (old, had) in memory.extents.iter().enumerate() {
        for (new, gets) in memory.extents.iter().enumerate() {
            let (Some(freed), Some(handed_out), Some(second)) =
                (had.freed, gets.allocated, memory.first_touch(new))
            else {
                continue;
            };
            let [was, is] = [old, new].map(|buffer| &program.buffers[buffer]);
            let suits = was.owner().is_some() && was.owner() == is.owner() && was.is_small() == is.is_small();
            let reused = memory.extents.iter().any(|other| {
                other.allocated.is_some_and(|step| freed < step && step < second)
                    && other.start < had.end
                    && had.start < other.end
            });
            if !suits || is.reserved() > was.reserved() || handed_out < freed || reused {
                continue;
            }
            // Of a launch as many nodes as touch it first; all of it is done where the step is.
            let firsts = |act: &usize| memory.step(*act) == second && touches(*act, new);
            let new_owners: Vec<usize> = (0..all).filter(firsts).map(acts).collect();
            for first in (0..all).filter(|&first| memory.step(first) < freed) {
                let uses = touches(first, old);
                let unordered = new_owners.iter().any(|&node| !ordered(first, node));
                if uses && !guarded(first, old) && !ordered(first, handed_out) && unordered {
                    let pair = Pair { first: memory.step(first), second };
                    found.push(Found { pair, kind: Kind::FreedWhileInUse });
                }
            }
        }
    }
    found.sort_unstable_by_key(|found| (found.pair.second, found.pair.first, found.kind));
    found.dedup();
    found
}

/// Conflicting operations without a path either way, sorted by the later and then the earlier.
pub fn unordered_pairs(program: &Program) -> Vec<Pair> {
    let unordered = |found: &Found| found.kind.is_unordered().then_some(found.pair);
    let mut pairs: Vec<Pair> = found(program).iter().filter_map(unordered).collect();
    pairs.dedup();
    pairs
}
