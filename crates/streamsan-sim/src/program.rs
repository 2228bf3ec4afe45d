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

/// A device buffer that lives as long as the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Size in bytes, at least 1.
    pub size: u64,
    /// The line of its declaration, from 1.
    pub line: u32,
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
        /// Whether it is written as a copy; then there is one read and one write.
        copy: bool,
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

impl Access {
    /// Whether both touch a common byte and at least one of them writes.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.buffer == other.buffer
            && (self.mode.writes() || other.mode.writes())
            && self.bytes.overlaps(&other.bytes)
    }
}

impl Program {
    /// The accesses of a step; empty if it is no operation.
    pub fn accesses(&self, step: usize) -> &[Access] {
        match self.steps.get(step).map(|step| &step.action) {
            Some(Action::Operation { accesses, .. }) => accesses,
            _ => &[],
        }
    }

    /// Whether two steps are operations that touch a common byte which at least one of them writes.
    pub fn conflict(&self, first: usize, second: usize) -> bool {
        let others = self.accesses(second);
        self.accesses(first).iter().any(|access| others.iter().any(|other| access.conflicts(other)))
    }
}
