//! Graphs: captures, executables and launches by raw handle.
//!
//! What is enqueued in a capturing stream is recorded as ever, by the torch layer and by runtime calls; a reader of the
//! trace knows from the events here that it is a node. A graph that was put together by other calls than a capture is
//! not known: an executable of it has graph 0, and its launches are a gap of the report.

use rustc_hash::FxHashMap;
use streamsan_trace::{EventKind, ExecutableId, GapReason, GraphId, StreamId, StringId};

use crate::Recorder;

/// Graphs and executables.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// Captures that have begun, by the stream in which they did.
    capturing: FxHashMap<StreamId, GraphId>,
    captured: FxHashMap<u64, GraphId>,
    executables: FxHashMap<u64, ExecutableId>,
    graph_ids: u32,
    executable_ids: u32,
}

impl Graphs {
    fn begin(&mut self, stream: StreamId) -> GraphId {
        self.graph_ids += 1;
        let graph = GraphId(self.graph_ids);
        self.capturing.insert(stream, graph);
        graph
    }

    /// The graph whose capture ends, and binds its handle if there is one.
    fn end(&mut self, stream: StreamId, handle: u64) -> Option<GraphId> {
        let graph = self.capturing.remove(&stream)?;
        if handle != 0 {
            self.captured.insert(handle, graph);
        }
        Some(graph)
    }

    /// The graph with this handle, 0 if it was not captured; and the executable, taken up if it is new.
    fn instantiate(&mut self, graph: u64, executable: u64) -> (GraphId, ExecutableId) {
        (self.captured.get(&graph).copied().unwrap_or_default(), self.executable(executable))
    }

    fn executable(&mut self, handle: u64) -> ExecutableId {
        *self.executables.entry(handle).or_insert_with(|| {
            self.executable_ids += 1;
            ExecutableId(self.executable_ids)
        })
    }
}

impl Recorder {
    /// A capture has begun in a stream (`cudaStreamBeginCapture` succeeded).
    pub fn capture_begun(&self, stream: u64, device: u32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let graph = known.graphs.begin(stream);
        drop(known);
        thread.emit(&self.file, &EventKind::CaptureBegin { graph, stream }, &[]);
    }

    /// The capture that began in this stream has ended: `cudaStreamEndCapture` returned this graph, or none (0)
    /// because the capture was invalid. To be called whether or not that call succeeded.
    pub fn capture_ended(&self, stream: u64, device: u32, graph: u64) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let ended = known.graphs.end(stream, graph);
        drop(known);
        if let Some(ended) = ended {
            let kind = EventKind::CaptureEnd { graph: ended, stream, valid: graph != 0 };
            thread.emit(&self.file, &kind, &[]);
        }
    }

    /// An executable was made of a graph, or got its nodes by an update that succeeded.
    pub fn graph_instantiated(&self, graph: u64, executable: u64) {
        let mut thread = self.begin();
        let (graph, executable) = self.known().graphs.instantiate(graph, executable);
        thread.emit(&self.file, &EventKind::GraphInstantiate { graph, executable }, &[]);
    }

    /// An executable was launched in a stream.
    pub fn graph_launched(&self, executable: u64, stream: u64, device: u32) {
        self.locate(true);
        let mut thread = self.begin();
        let label = if thread.context.label == StringId(0) {
            self.string("graph launch")
        } else {
            thread.context.label
        };
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let executable = known.graphs.executable(executable);
        drop(known);
        self.count_operation();
        thread.emit(&self.file, &EventKind::GraphLaunch { executable, stream, label }, &[]);
    }

    /// A graph that was launched has a kernel of which nothing is known. Recorded once a thread, site and kernel.
    pub fn launched_kernel_of_graph(&self, kernel_name: &str) {
        let mut thread = self.begin();
        self.put_gap_once(&mut thread, GapReason::OpaqueKernel, &format!("{kernel_name}, in a graph"));
    }

    /// A graph is about to be destroyed: called before the runtime call, so that its handle is not reused yet.
    pub fn graph_destroyed(&self, graph: u64) {
        let mut thread = self.begin();
        let graph = self.known().graphs.captured.remove(&graph);
        if let Some(graph) = graph {
            thread.emit(&self.file, &EventKind::GraphDestroy { graph }, &[]);
        }
    }

    /// An executable is about to be destroyed: called before the runtime call.
    pub fn executable_destroyed(&self, executable: u64) {
        let mut thread = self.begin();
        let executable = self.known().graphs.executables.remove(&executable);
        if let Some(executable) = executable {
            thread.emit(&self.file, &EventKind::ExecutableDestroy { executable }, &[]);
        }
    }
}
