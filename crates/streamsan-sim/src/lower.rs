//! A program as a trace: the events that a recorder would have written for it.

use crate::memory::Memory;
use crate::program::{Access, Action, BufferKind, Program, StreamKind, Target, Work};
use streamsan_trace as trace;
use streamsan_trace::{
    AccessMode, Binding, BlockId, DeviceId, EventId, EventKind, ExecutableId, Frame, FrameId, FrameOrigin,
    GraphId, HostWaitHow, MemorySpace, Observer, OpKind, OpNumber, SiteId, StreamId, StringId, Subject,
    ThreadId, Trace, VisibleStream, WaitTarget,
};

/// A trace of a program, and where its events come from.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The trace.
    pub trace: Trace,
    /// For each event, by number, the step of the program; `None` for declarations.
    steps: Vec<Option<u32>>,
    /// For each event, by number, the source line.
    lines: Vec<u32>,
}

impl Lowered {
    /// The step that an event comes from.
    pub fn step(&self, number: OpNumber) -> Option<usize> {
        self.steps.get((number.0 as usize).checked_sub(1)?).copied().flatten().map(|step| step as usize)
    }

    /// The source line that an event comes from.
    pub fn line(&self, number: OpNumber) -> Option<u32> {
        self.lines.get((number.0 as usize).checked_sub(1)?).copied()
    }
}

/// The device of all programs.
const DEVICE: DeviceId = DeviceId(0);
/// Lowers a program. `path` is the file that its line numbers refer to, `function` stands for the function
/// that its lines are in: the test's name.
pub fn lower(program: &Program, path: &str, function: &str) -> Lowered {
    let mut builder = Builder::new(path, function);
    builder.declarations(program);
    for (index, step) in program.steps.iter().enumerate() {
        let place = (step.line, Some(index as u32));
        match step.action {
            Action::Allocate { buffer } => builder.allocate(program, buffer, place),
            Action::Free { buffer } => builder.free(program, buffer, index, place),
            Action::EndCapture { stream, graph } => builder.end_capture(stream, graph, place),
            _ => {
                if let Some(kind) = builder.step(program, &step.action) {
                    builder.push(place.0, place.1, kind);
                }
            }
        }
    }
    builder.lowered
}

struct Builder {
    lowered: Lowered,
    file: StringId,
    function: StringId,
    // Line and site of the last event: steps follow each other, so this is all the interning needed.
    last: (u32, SiteId),
    labels: Labels,
    stream_names: Vec<StringId>,
    buffer_names: Vec<StringId>,
    memory: Memory,
    /// Blocks freed with guards, which the allocator has not seen finished yet.
    pending: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Labels {
    read: StringId,
    write: StringId,
    update: StringId,
    kernel: StringId,
    copy: StringId,
    collective: StringId,
    replay: StringId,
}

impl Builder {
    fn new(path: &str, function: &str) -> Self {
        let mut trace = Trace::default();
        trace.header.capture = trace::CaptureKind::Sim;
        trace.header.devices = 1;
        trace.header.closed = true;
        trace.header.command = format!("streamsan sim {path}");
        let mut string = |text: &str| push_string(&mut trace, text);
        let (file, function) = (string(path), string(function));
        let labels = Labels {
            read: string("read"),
            write: string("write"),
            update: string("update"),
            kernel: string("kernel"),
            copy: string("copy"),
            collective: string("collective"),
            replay: string("replay"),
        };
        Self {
            lowered: Lowered { trace, steps: Vec::new(), lines: Vec::new() },
            file,
            function,
            last: (0, SiteId(0)),
            labels,
            stream_names: Vec::new(),
            buffer_names: Vec::new(),
            memory: Memory::default(),
            pending: Vec::new(),
        }
    }

    fn push(&mut self, line: u32, step: Option<u32>, kind: EventKind) {
        let site = self.site(line);
        let number = OpNumber(self.lowered.trace.events.len() as u64 + 1);
        self.lowered.trace.events.push(trace::Event { number, thread: ThreadId(0), site, kind });
        self.lowered.steps.push(step);
        self.lowered.lines.push(line);
    }

    fn site(&mut self, line: u32) -> SiteId {
        if self.last.0 != line {
            let tables = &mut self.lowered.trace.tables;
            let frame = FrameId(tables.frames.len() as u32);
            tables.frames.push(Frame {
                file: self.file,
                function: self.function,
                line,
                end_line: line,
                column: 0,
                end_column: 0,
                origin: FrameOrigin::User,
            });
            // Every line of a program can name every stream.
            tables.visible_streams.extend(self.stream_names.iter().enumerate().map(
                |(stream, &expression)| VisibleStream {
                    frame,
                    stream: StreamId(stream as u32),
                    expression,
                    binding: Binding::Lasting,
                },
            ));
            self.last = (line, SiteId(tables.sites.len() as u32));
            tables.sites.push(vec![frame]);
        }
        self.last.1
    }

    fn declarations(&mut self, program: &Program) {
        for (index, stream) in program.streams.iter().enumerate() {
            let id = StreamId(index as u32);
            let legacy_default = stream.kind == StreamKind::LegacyDefault;
            let blocking = legacy_default || stream.kind == StreamKind::Blocking;
            let kind =
                EventKind::StreamCreate { stream: id, device: DEVICE, blocking, legacy_default, priority: 0 };
            self.push(program.streams_line, None, kind);
            let name = push_string(&mut self.lowered.trace, &stream.name);
            self.stream_names.push(name);
            let kind = EventKind::Name { subject: Subject::Stream(id), name, by_user: false };
            self.push(program.streams_line, None, kind);
        }
        self.memory = Memory::new(program);
        for (index, buffer) in program.buffers.iter().enumerate() {
            let name = push_string(&mut self.lowered.trace, &buffer.name);
            self.buffer_names.push(name);
            if !matches!(buffer.kind, BufferKind::Cached { .. }) {
                self.block(program, index, (buffer.line, None));
            }
        }
    }

    /// A block appears, with its name.
    fn block(&mut self, program: &Program, index: usize, (line, step): (u32, Option<u32>)) {
        let buffer = &program.buffers[index];
        let (stream, space) = match buffer.kind {
            BufferKind::Device => (0, MemorySpace::Device(DEVICE)),
            BufferKind::Pinned => (0, MemorySpace::Pinned),
            BufferKind::Cached { owner, .. } => (owner, MemorySpace::Cached(DEVICE)),
        };
        let block = block_id(index);
        let address = self.memory.extents[index].start;
        let stream = StreamId(stream as u32);
        self.push(line, step, EventKind::Alloc { block, stream, space, address, size: buffer.size });
        let name = self.buffer_names[index];
        self.push(line, step, EventKind::Name { subject: Subject::Block(block), name, by_user: false });
    }

    /// The allocator polls the guards of what it is about to hand out, and hands it out.
    fn allocate(&mut self, program: &Program, buffer: usize, place: (u32, Option<u32>)) {
        let extents = &self.memory.extents;
        let new = extents[buffer];
        let overlaps = |old: &usize| extents[*old].start < new.end && new.start < extents[*old].end;
        let (done, pending): (Vec<usize>, Vec<usize>) = self.pending.drain(..).partition(overlaps);
        self.pending = pending;
        for old in done {
            self.push(place.0, place.1, EventKind::FreeDone { block: block_id(old) });
        }
        self.block(program, buffer, place);
    }

    /// The last reference goes; the allocator records its guards.
    fn free(&mut self, program: &Program, buffer: usize, step: usize, place: (u32, Option<u32>)) {
        let block = block_id(buffer);
        self.push(place.0, place.1, EventKind::FreeRequest { block });
        let mut guards: Vec<usize> = Vec::new();
        for earlier in &program.steps[..step] {
            if let Action::RecordStream { buffer: used, stream } = earlier.action
                && used == buffer
                && program.buffers[buffer].owner() != Some(stream)
                && !guards.contains(&stream)
            {
                guards.push(stream);
            }
        }
        if !guards.is_empty() {
            self.pending.push(buffer);
        }
        for stream in guards {
            let stream = StreamId(stream as u32);
            self.push(place.0, place.1, EventKind::FreeGuard { block, stream });
        }
    }

    /// The capture ends; an executable is made of the graph, which is not needed after that.
    fn end_capture(&mut self, stream: usize, graph: usize, place: (u32, Option<u32>)) {
        let (graph, executable) = graph_ids(graph);
        let stream = StreamId(stream as u32);
        self.push(place.0, place.1, EventKind::CaptureEnd { graph, stream, valid: true });
        self.push(place.0, place.1, EventKind::GraphInstantiate { graph, executable });
        self.push(place.0, place.1, EventKind::GraphDestroy { graph });
    }

    /// The event of a step; a query that is not ready leaves none.
    fn step(&mut self, program: &Program, action: &Action) -> Option<EventKind> {
        let stream_id = |stream: usize| StreamId(stream as u32);
        let event_id = |event: usize| EventId(event as u32);
        let host_wait = |target: Target, how| EventKind::HostWait {
            target: match target {
                Target::Stream(stream) => WaitTarget::Stream(stream_id(stream)),
                Target::Event(event) => WaitTarget::Event(event_id(event)),
                Target::Device => WaitTarget::Device(DEVICE),
            },
            observer: Observer::Program,
            how,
        };
        Some(match action {
            Action::Operation { stream, work, accesses } => self.operation(program, *stream, *work, accesses),
            Action::Capture { stream, graph } => {
                EventKind::CaptureBegin { graph: graph_ids(*graph).0, stream: stream_id(*stream) }
            }
            Action::Replay { stream, graph } => EventKind::GraphLaunch {
                executable: graph_ids(*graph).1,
                stream: stream_id(*stream),
                label: self.labels.replay,
            },
            Action::HostAccess { accesses } => {
                let label = if accesses.iter().any(|access| access.mode.writes()) {
                    self.labels.write
                } else {
                    self.labels.read
                };
                EventKind::HostAccess { label, accesses: self.accesses(accesses) }
            }
            Action::Record { stream, event } => {
                EventKind::EventRecord { event: event_id(*event), stream: stream_id(*stream) }
            }
            Action::Wait { stream, event } => {
                EventKind::EventWait { event: event_id(*event), stream: stream_id(*stream) }
            }
            Action::Synchronize { target } => host_wait(*target, HostWaitHow::Synchronize),
            Action::Query { target, ready: true } => host_wait(*target, HostWaitHow::Query),
            // No CUDA call: torch's allocator makes a note, and the torch layer sees it.
            Action::RecordStream { buffer, stream } => {
                EventKind::RecordStream { block: block_id(*buffer), stream: stream_id(*stream) }
            }
            Action::Query { ready: false, .. }
            | Action::Allocate { .. }
            | Action::Free { .. }
            | Action::EndCapture { .. } => {
                return None;
            }
        })
    }

    fn accesses(&mut self, accesses: &[Access]) -> trace::AccessRange {
        let start = self.lowered.trace.accesses.len() as u32;
        for access in accesses {
            let lowered = self.access(access);
            self.lowered.trace.accesses.push(lowered);
        }
        trace::AccessRange { start, count: accesses.len() as u32 }
    }

    fn operation(&mut self, program: &Program, stream: usize, work: Work, accesses: &[Access]) -> EventKind {
        let range = self.accesses(accesses);
        let pinned = |access: &Access| program.buffers[access.buffer].kind == BufferKind::Pinned;
        let label = match accesses {
            _ if work == Work::Copy => self.labels.copy,
            _ if work == Work::Collective => self.labels.collective,
            [one] => match one.mode {
                AccessMode::Read => self.labels.read,
                AccessMode::Write => self.labels.write,
                AccessMode::Update | AccessMode::Unknown => self.labels.update,
            },
            _ => self.labels.kernel,
        };
        EventKind::Op {
            stream: StreamId(stream as u32),
            label,
            kind: match accesses {
                _ if work == Work::Collective => OpKind::Collective,
                [source, target] if work == Work::Copy => match (pinned(source), pinned(target)) {
                    (false, false) => OpKind::CopyDeviceToDevice,
                    (true, false) => OpKind::CopyHostToDevice,
                    (false, true) => OpKind::CopyDeviceToHost,
                    (true, true) => OpKind::CopyHostToHost,
                },
                _ => OpKind::Kernel,
            },
            forward_site: SiteId(0),
            accesses: range,
        }
    }

    fn access(&mut self, access: &Access) -> trace::Access {
        let shape = access.bytes.runs.and_then(|runs| {
            let count = access.bytes.count();
            // A single run is contiguous.
            (count > 1).then(|| trace::Shape {
                run: runs.run,
                dimensions: vec![trace::ShapeDimension { size: count, stride: runs.step }],
            })
        });
        trace::Access {
            block: block_id(access.buffer),
            mode: access.mode,
            offset: access.bytes.low,
            length: access.bytes.end() - access.bytes.low,
            shape: shape.map_or(trace::ShapeId(0), |shape| self.lowered.trace.tables.intern_shape(shape)),
            argument: self.buffer_names[access.buffer],
        }
    }
}

/// The ids of a graph and of its executable.
fn graph_ids(graph: usize) -> (GraphId, ExecutableId) {
    (GraphId(graph as u32 + 1), ExecutableId(graph as u32 + 1))
}

/// The id of a buffer's block.
fn block_id(buffer: usize) -> BlockId {
    BlockId(buffer as u32 + 1)
}

/// Appends a string. Names of one program differ, so nothing is looked up.
fn push_string(trace: &mut Trace, text: &str) -> StringId {
    if text.is_empty() {
        return StringId(0);
    }
    trace.tables.strings.push(text.to_owned());
    StringId(trace.tables.strings.len() as u32 - 1)
}
