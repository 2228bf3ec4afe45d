//! What a check gives: findings, gaps, and what was seen.

use crate::{Finding, Ignored, Measures};
use streamsan_trace::{GapReason, OpNumber, StringId};

/// The outcome of checking one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Findings, by level and then by the place of their first occurrence.
    pub findings: Vec<Finding>,
    /// What could not be seen, by reason and detail.
    pub gaps: Vec<Gap>,
    /// What was seen.
    pub coverage: Coverage,
    /// How many findings [`Config::ignore`](crate::Config::ignore) left out.
    pub hidden: u64,
    /// What was counted, if advice was asked for.
    pub measures: Option<Measures>,
    /// Ignores in the program and for its files, and what each left out.
    pub ignored: Vec<Ignored>,
}

/// Something that could not be seen, with a count. Not a fault of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub reason: GapReason,
    /// What: a kernel, a call.
    pub detail: StringId,
    /// How often.
    pub count: u64,
    /// The first one.
    pub first: OpNumber,
}

/// What was seen of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Events of the log.
    pub events: u64,
    /// Number of the last event that is no gap; 0 if there is none.
    pub last: OpNumber,
    /// Operations enqueued in streams.
    pub operations: u64,
    /// Those whose accesses are not known.
    pub opaque: u64,
    /// Streams with at least one operation.
    pub streams: u64,
    /// Devices with at least one operation.
    pub devices: u64,
    /// Waits of a stream for a recorded event.
    pub waits: u64,
    /// Host waits of the program.
    pub host_waits: u64,
    /// Blocks handed out.
    pub blocks: u64,
}

impl Report {
    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level() == crate::Level::Error)
    }

    /// Whether any finding is a warning.
    pub fn has_warnings(&self) -> bool {
        self.findings.iter().any(|finding| finding.level() == crate::Level::Warning)
    }
}
