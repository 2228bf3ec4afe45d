//! What a program's host calls put into the stream queues.
//!
//! The host's order is fixed by the program, so the content of the queues is too; only the moments at which
//! items execute are not. Each item holds what was *captured at its call*: for a wait the record it waits
//! for, and for the legacy default stream and the blocking streams what had been issued on the other side.
//! Requirements are counts of executed items per stream and are never combined here; that the rest follows
//! is left to execution.
//!
//! Corners of the legacy default stream, tried on an H200 with CUDA 13: a record, a wait for a finished event
//! and a self-wait there hold back blocking streams like any work; a wait on an event that was never
//! recorded does not, it enqueues nothing; a record in a blocking stream comes after the default stream's
//! work; synchronizing or querying the default stream covers what was issued to the blocking streams, but
//! not the other way round.

//! The caching allocator orders nothing: a free and a hand-out put nothing into a queue, but for the events
//! ("guards") that it records at a free in the streams named by `record_stream`. Who has to wait for a guard
//! is no stream and not the host, only the accesses of whoever gets the memory; see [`Watch`].

//! A launch of a graph is two items of its stream, where it begins and where it is done, and one item for each
//! node, in a queue of the node's own: after the begin and the nodes that it comes after. It begins when the launch
//! before of the same graph is done.

use crate::captures::{Captures, Node};
use crate::program::{Action, BufferKind, Program, StreamKind, Target};
use std::ops::Range;

/// At least `count` items of `stream` have executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) stream: u32,
    pub(crate) count: u32,
}

/// One entry of a stream's queue.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// What must have executed before, beside the items in front of it.
    pub(crate) needs: Range<usize>,
    /// Which operation it is; records and waits are none.
    pub(crate) operation: Option<u32>,
}

/// One call of the host.
#[derive(Clone, Debug)]
pub(crate) enum HostStep {
    /// Puts the next item into the queue of this stream.
    Enqueue(u32),
    /// Returns when this has executed.
    Block(Range<usize>),
    /// Touches memory itself, or frees page-locked memory: this operation.
    Act(u32),
}

/// Something that is not in a queue: what it was not held back by is what it can overtake.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// The host has come to this call.
    pub(crate) host: usize,
    /// This has executed.
    pub(crate) needs: Range<usize>,
    /// And this operation, if any.
    pub(crate) operation: Option<u32>,
}

/// All queues of a program, and the host's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) streams: Vec<Vec<Item>>,
    pub(crate) host: Vec<HostStep>,
    /// By operation, the act that touches memory (see `memory`).
    pub(crate) operations: Vec<usize>,
    /// Held accesses and imaginary operations.
    pub(crate) watches: Vec<Watch>,
    /// For each buffer that is a cached block, the watch that stands for an imaginary operation which its
    /// owner stream is given when the block is handed out.
    pub(crate) hand_outs: Vec<Option<usize>>,
    /// By buffer, the guards recorded at its free.
    guards: Vec<Vec<Need>>,
    recorded: Vec<Vec<usize>>,
    needs: Vec<Need>,
    // Last record per event: stream and number of items up to and with it.
    records: Vec<Option<Need>>,
}

impl Queues {
    pub(crate) fn new(program: &Program) -> Self {
        let mut queues = Self::default();
        queues.fill(program);
        queues
    }

    /// Replaces the content by that of another program; keeps the memory.
    pub(crate) fn fill(&mut self, program: &Program) {
        let captures = Captures::of(program);
        let mut nodes = captures.iter().flat_map(|captures| &captures.nodes);
        let nodes: usize = nodes.by_ref().map(Vec::len).sum();
        self.streams.resize_with(program.streams.len() + nodes, Vec::new);
        let mut act = program.steps.len();
        self.streams.iter_mut().for_each(Vec::clear);
        self.host.clear();
        self.operations.clear();
        self.needs.clear();
        self.records.clear();
        self.records.resize(program.events.len(), None);
        self.watches.clear();
        self.recorded.iter_mut().for_each(Vec::clear);
        self.recorded.resize_with(program.buffers.len(), Vec::new);
        self.guards.iter_mut().for_each(Vec::clear);
        self.guards.resize_with(program.buffers.len(), Vec::new);
        self.hand_outs.clear();
        self.hand_outs.resize(program.buffers.len(), None);
        for (index, step) in program.steps.iter().enumerate() {
            if Captures::is_inside(captures.as_ref(), index) {
                continue;
            }
            match &step.action {
                Action::Capture { .. } | Action::EndCapture { .. } => {}
                Action::Replay { stream, graph } => {
                    if let Some(captures) = &captures {
                        let before: usize = captures.nodes[..*graph].iter().map(Vec::len).sum();
                        let first = program.streams.len() + before;
                        self.launch(program, *stream, first, &captures.nodes[*graph], &mut act);
                    }
                }
                Action::Operation { stream, .. } => {
                    let operation = self.operations.len() as u32;
                    self.operations.push(index);
                    self.enqueue(program, *stream, None, Some(operation));
                }
                Action::Record { stream, event } => {
                    self.enqueue(program, *stream, None, None);
                    self.records[*event] = Some(self.issued(*stream));
                }
                Action::Wait { stream, event } => match self.records[*event] {
                    Some(record) => self.enqueue(program, *stream, Some(record), None),
                    None => self.block(None),
                },
                Action::Synchronize { target } | Action::Query { target, ready: true } => match target {
                    Target::Stream(stream) => {
                        let mut covered = vec![self.issued(*stream)];
                        if program.streams[*stream].kind == StreamKind::LegacyDefault {
                            covered.extend(self.issued_to(program, StreamKind::Blocking));
                        }
                        self.block(covered);
                    }
                    Target::Event(event) => self.block(self.records[*event]),
                    Target::Device => {
                        let all: Vec<_> = (0..self.streams.len()).map(|stream| self.issued(stream)).collect();
                        self.block(all);
                    }
                },
                Action::Query { ready: false, .. } => self.block(None),
                Action::Allocate { buffer } => self.hand_out(program, *buffer),
                Action::RecordStream { buffer, stream } => {
                    let recorded = &mut self.recorded[*buffer];
                    if program.buffers[*buffer].owner() != Some(*stream) && !recorded.contains(stream) {
                        recorded.push(*stream);
                    }
                    self.block(None);
                }
                Action::Free { buffer } if program.buffers[*buffer].kind != BufferKind::Pinned => {
                    for stream in self.recorded[*buffer].clone() {
                        self.enqueue(program, stream, None, None);
                        let guard = self.issued(stream);
                        self.guards[*buffer].push(guard);
                    }
                    self.block(None);
                }
                Action::HostAccess { .. } | Action::Free { .. } => {
                    self.host.push(HostStep::Act(self.operations.len() as u32));
                    self.operations.push(index);
                }
            }
        }
    }

    /// The host gets a block. An operation that the owner stream were given now would start after this:
    fn hand_out(&mut self, program: &Program, buffer: usize) {
        let Some(owner) = program.buffers[buffer].owner() else { return };
        let start = self.needs.len();
        self.needs.push(self.issued(owner));
        self.default_stream_needs(program, owner);
        self.hand_outs[buffer] = Some(self.watches.len());
        self.watches.push(Watch { host: self.host.len(), needs: start..self.needs.len(), operation: None });
        self.block(None);
    }

    /// A watch for the accesses of an operation to memory that was freed with guards before: they can be seen
    /// when the operation has executed and all guards of these blocks have. `None` if there are no guards.
    pub(crate) fn hold(&mut self, operation: u32, blocks: impl Iterator<Item = usize>) -> Option<usize> {
        let start = self.needs.len();
        for block in blocks {
            self.needs.extend(&self.guards[block]);
        }
        let needs = start..self.needs.len();
        if needs.is_empty() {
            return None;
        }
        self.watches.push(Watch { host: 0, needs, operation: Some(operation) });
        Some(self.watches.len() - 1)
    }

    /// Whether what a watch stands for can have happened.
    pub(crate) fn reached(
        &self,
        watch: &Watch,
        host: usize,
        executed: impl Fn(usize) -> u32,
        operation: impl Fn(u32) -> bool,
    ) -> bool {
        host >= watch.host && watch.operation.is_none_or(operation) && self.met(&watch.needs, executed)
    }

    /// All that has been issued to a stream so far.
    fn issued(&self, stream: usize) -> Need {
        Need { stream: stream as u32, count: self.streams[stream].len() as u32 }
    }

    /// All that has been issued so far to the streams of a kind.
    fn issued_to(&self, program: &Program, kind: StreamKind) -> Vec<Need> {
        let streams = program.streams.iter().enumerate().filter(|(_, declared)| declared.kind == kind);
        streams.map(|(stream, _)| self.issued(stream)).collect()
    }

    fn block(&mut self, needs: impl IntoIterator<Item = Need>) {
        let start = self.needs.len();
        self.needs.extend(needs);
        self.host.push(HostStep::Block(start..self.needs.len()));
    }

    /// Launches a graph whose first node has the queue `first`; its acts are counted on from `act`.
    fn launch(&mut self, program: &Program, stream: usize, first: usize, nodes: &[Node], act: &mut usize) {
        let start = self.needs.len();
        self.default_stream_needs(program, stream);
        let before: Vec<Need> = (first..first + nodes.len()).map(|queue| self.issued(queue)).collect();
        self.needs.extend(before);
        self.put(stream, start, None);
        let begin = self.issued(stream);
        for (index, node) in nodes.iter().enumerate() {
            let start = self.needs.len();
            self.needs.push(begin);
            for &after in &node.after {
                let need = self.issued(first + after);
                self.needs.push(need);
            }
            let operation = self.operations.len() as u32;
            self.operations.push(*act);
            *act += 1;
            self.put(first + index, start, Some(operation));
        }
        let start = self.needs.len();
        let done: Vec<Need> = (first..first + nodes.len()).map(|queue| self.issued(queue)).collect();
        self.needs.extend(done);
        self.put(stream, start, None);
    }

    /// Puts an item into a queue that needs what was noted from `start` on.
    fn put(&mut self, queue: usize, start: usize, operation: Option<u32>) {
        self.streams[queue].push(Item { needs: start..self.needs.len(), operation });
        self.host.push(HostStep::Enqueue(queue as u32));
    }

    fn enqueue(&mut self, program: &Program, stream: usize, record: Option<Need>, operation: Option<u32>) {
        let start = self.needs.len();
        self.needs.extend(record);
        self.default_stream_needs(program, stream);
        self.put(stream, start, operation);
    }

    /// What the next item of a stream requires because of the legacy default stream.
    fn default_stream_needs(&mut self, program: &Program, stream: usize) {
        let synchronizes_with = match program.streams[stream].kind {
            StreamKind::LegacyDefault => Some(StreamKind::Blocking),
            StreamKind::Blocking => Some(StreamKind::LegacyDefault),
            StreamKind::NonBlocking => None,
        };
        if let Some(kind) = synchronizes_with {
            for (other, declared) in program.streams.iter().enumerate() {
                if declared.kind == kind && !self.streams[other].is_empty() {
                    self.needs.push(self.issued(other));
                }
            }
        }
    }

    /// Whether the requirements are met when `executed(stream)` items of each stream have executed.
    pub(crate) fn met(&self, needs: &Range<usize>, executed: impl Fn(usize) -> u32) -> bool {
        self.needs[needs.clone()].iter().all(|need| executed(need.stream as usize) >= need.count)
    }
}
