//! A stream program as plain data: what the host calls, in order.
//!
//! Nothing here runs anything. Indices are positions in the vectors of [`Program`]; a *step* is one line of
//! the program, and an *operation* is a step that enqueues work with accesses.

use crate::bytes::Bytes;
use streamsan_trace::AccessMode;

/// A parsed and validated program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Streams in order of declaration.
    pub streams: Vec<Stream>,
    /// Buffers in order of declaration.
    pub buffers: Vec<Buffer>,
    /// Names of events in order of first mention.
    pub events: Vec<String>,
    /// Names of graphs in order of first mention.
    pub graphs: Vec<String>,
    /// What the host does, in order.
    pub steps: Vec<Step>,
    /// The line of the `streams` statement, from 1.
    pub streams_line: u32,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// How it relates to the legacy default stream.
    pub kind: StreamKind,
}

/// How a stream relates to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// It is the legacy default stream of the device: the stream named `default`.
    LegacyDefault,
    /// Created without the non-blocking flag: ordered with the legacy default stream both ways.
    Blocking,
    /// Not ordered with the legacy default stream.
    NonBlocking,
}

/// Some memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Size in bytes, at least 1.
    pub size: u64,
    /// The line of its declaration, from 1.
    pub line: u32,
    /// Where its bytes lie.
    pub kind: BufferKind,
}

/// What sort of memory a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// Device memory that lives as long as the program.
    Device,
    /// Page-locked host memory, until the host frees it.
    Pinned,
    /// A block of torch's caching allocator: from its `alloc` step until its `free` step.
    Cached {
        /// The stream it is allocated on, which gets its memory back.
        owner: usize,
        /// The freed block whose memory it gets; fresh memory if there is none.
        within: Option<Within>,
    },
}

/// Part of a freed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The freed block.
    pub buffer: usize,
    /// First byte, a multiple of 512.
    pub low: u64,
    /// One past the last byte, if the program names it; else all there is.
    pub high: Option<u64>,
}

/// One thing the host does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line in the source file, from 1.
    pub line: u32,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Enqueues work.
    Operation {
        /// The stream.
        stream: usize,
        /// What sort of work it is written as.
        work: Work,
        /// The bytes it touches; none for a `launch`.
        accesses: Vec<Access>,
    },
    /// Records an event in a stream.
    Record {
        /// The stream.
        stream: usize,
        /// The event.
        event: usize,
    },
    /// Makes a stream wait for the last record of an event.
    Wait {
        /// The stream.
        stream: usize,
        /// The event.
        event: usize,
    },
    /// The host waits.
    Synchronize {
        /// For what.
        target: Target,
    },
    /// The host asks without waiting.
    Query {
        /// For what.
        target: Target,
        /// Whether the answer is "finished". "Not finished" is always possible and orders nothing.
        ready: bool,
    },
    /// The caching allocator hands a block out. Orders nothing.
    Allocate {
        /// The block, a cached buffer.
        buffer: usize,
    },
    /// The last reference to a cached block goes, or pinned memory is freed.
    Free {
        /// The cached or pinned buffer.
        buffer: usize,
    },
    /// The caching allocator is told that a stream uses a block: it records a guard there at the free.
    RecordStream {
        /// The block.
        buffer: usize,
        /// The stream. For the owner the call does nothing.
        stream: usize,
    },
    /// A stream begins to capture a graph: what follows on it, and on streams that wait for it, becomes nodes.
    Capture {
        /// The stream.
        stream: usize,
        /// The graph.
        graph: usize,
    },
    /// The capture ends.
    EndCapture {
        /// The stream in which it began.
        stream: usize,
        /// The graph.
        graph: usize,
    },
    /// A graph is launched.
    Replay {
        /// The stream.
        stream: usize,
        /// The graph.
        graph: usize,
    },
    /// The host touches pinned memory itself, now.
    HostAccess {
        /// The bytes; all accesses have one mode.
        accesses: Vec<Access>,
    },
}

/// What sort of work an operation is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A kernel.
    Kernel,
    /// A copy: one read and one write.
    Copy,
    /// A collective; it executes like any other work.
    Collective,
}

/// What the host waits for or asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All work issued to a stream so far.
    Stream(usize),
    /// The last record of an event so far.
    Event(usize),
    /// All work issued to all streams so far.
    Device,
}

/// One access of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The buffer.
    pub buffer: usize,
    /// Read, write, or read and then write. Never unknown.
    pub mode: AccessMode,
    /// The bytes.
    pub bytes: Bytes,
}

/// Whether two accesses to one byte can disagree.
pub(crate) fn modes_conflict(first: AccessMode, second: AccessMode) -> bool {
    first.writes() || second.writes()
}

impl Buffer {
    /// Bytes that the allocator sets aside for it: the caching allocator rounds up to multiples of 512.
    pub fn reserved(&self) -> u64 {
        match self.kind {
            BufferKind::Cached { .. } => self.size.next_multiple_of(GRANULE),
            BufferKind::Device | BufferKind::Pinned => self.size,
        }
    }

    /// Whether the caching allocator takes it from its pool for requests up to 1 MiB.
    pub(crate) fn is_small(&self) -> bool {
        self.reserved() <= 1 << 20
    }

    /// The owner stream of a cached block.
    pub fn owner(&self) -> Option<usize> {
        match self.kind {
            BufferKind::Cached { owner, .. } => Some(owner),
            BufferKind::Device | BufferKind::Pinned => None,
        }
    }
}

/// What the caching allocator rounds sizes to.
pub(crate) const GRANULE: u64 = 512;

impl Program {
    /// The accesses of a step; empty if it touches no memory.
    pub fn accesses(&self, step: usize) -> &[Access] {
        match self.steps.get(step).map(|step| &step.action) {
            Some(Action::Operation { accesses, .. } | Action::HostAccess { accesses }) => accesses,
            _ => &[],
        }
    }
}
