//! A whole trace in memory.

use crate::{Access, AccessRange, Event, OpNumber, Tables};

/// What produced a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CaptureKind {
    /// PyTorch on the virtual device.
    #[default]
    Virtual = 0,
    /// PyTorch on a GPU.
    Cuda = 1,
    /// A stream program of `streamsan-sim`.
    Sim = 2,
}

/// What a trace says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What produced it.
    pub capture: CaptureKind,
    /// The process.
    pub pid: u32,
    /// How many devices it saw.
    pub devices: u32,
    /// The command that was run, for people.
    pub command: String,
    /// Working directory of the run: paths below it are shown relative to it.
    pub directory: String,
    /// Versions of torch, CUDA and Python, for people.
    pub versions: String,
    /// Whether the recorder closed the file.
    pub closed: bool,
    /// The first and the last event of the part that was asked for (`streamsan.record`). What lies before is there for
    /// its order.
    pub region: Option<(OpNumber, OpNumber)>,
}

/// A trace in memory: events in log order, the accesses they refer to, and the interned tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What it says of itself.
    pub header: Header,
    /// Strings, frames, stacks, shapes.
    pub tables: Tables,
    /// Events by rising number.
    pub events: Vec<Event>,
    /// Accesses of all operations, in runs.
    pub accesses: Vec<Access>,
}

impl Trace {
    /// The accesses of one operation.
    pub fn accesses(&self, range: AccessRange) -> &[Access] {
        let start = range.start as usize;
        self.accesses.get(start..start + range.count as usize).unwrap_or(&[])
    }

    /// Appends accesses and says where they are.
    pub fn push_accesses(&mut self, accesses: &[Access]) -> AccessRange {
        let start = self.accesses.len() as u32;
        self.accesses.extend_from_slice(accesses);
        AccessRange { start, count: accesses.len() as u32 }
    }

    /// The event with this number.
    pub fn event(&self, number: crate::OpNumber) -> Option<&Event> {
        self.events.binary_search_by_key(&number, |event| event.number).ok().map(|index| &self.events[index])
    }
}
