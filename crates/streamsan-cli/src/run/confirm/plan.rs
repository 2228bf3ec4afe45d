//! What a further run is to look at, as the Python side reads it.

use crate::fault::Fault;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use streamsan_check::{Finding, Level, Place};
use streamsan_trace::{OpKind, Tables};

/// A finding that can be tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(in crate::run) struct Suspect {
    pub(super) first: Operation,
    second: Operation,
    lifetime: bool,
    #[serde(skip)]
    rule: &'static str,
}

/// Where an operation comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Operation {
    file: String,
    pub(super) line: u32,
    /// The operator; empty for a launch.
    label: String,
    backward: bool,
    /// Whether it is the launch of a graph, whose nodes no operator of that line stands for.
    launch: bool,
}

impl Operation {
    fn new(place: &Place, tables: &Tables) -> Option<Self> {
        let (_, frame) = tables.user_frame(place.site)?;
        // There the label and the other site are those of the node.
        let launch = place.kind == Some(OpKind::GraphLaunch);
        Some(Self {
            file: tables.string(frame.file).to_owned(),
            line: frame.line,
            label: if launch { String::new() } else { tables.string(place.label).to_owned() },
            backward: place.forward_site.0 != 0 && !launch,
            launch,
        })
    }
}

impl Suspect {
    /// The errors of a report that are about two operations.
    pub(in crate::run) fn all(findings: &[Finding], tables: &Tables) -> Vec<Self> {
        let errors = findings.iter().filter(|finding| finding.level() == Level::Error);
        let suspect = |finding: &Finding| {
            Some(Self {
                first: Operation::new(finding.first.as_ref()?, tables)?,
                second: Operation::new(&finding.second, tables)?,
                lifetime: finding.free.is_some(),
                rule: finding.rule.code(),
            })
        };
        errors.filter_map(suspect).collect()
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |operation: &Operation| {
            let file =
                Path::new(&operation.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{file}:{}", operation.line)
        };
        write!(formatter, "{} {} and {}", self.rule, name(&self.first), name(&self.second))
    }
}

#[derive(Serialize)]
struct Plan<'a> {
    findings: &'a [Suspect],
    /// The finding whose first operation is made late.
    late: Option<usize>,
    /// Whether all devices are waited for before each second operation.
    ordered: bool,
    milliseconds: u32,
    folder: &'a Path,
}

/// Writes the plan of a run.
pub(super) fn write(
    path: &Path,
    findings: &[Suspect],
    late: Option<usize>,
    milliseconds: u32,
    folder: &Path,
) -> Result<(), Fault> {
    let plan = Plan { findings, late, ordered: late.is_none(), milliseconds, folder };
    let cannot = |error: &dyn fmt::Display| Fault::new(format!("cannot write {}: {error}", path.display()));
    let text = serde_json::to_string(&plan).map_err(|error| cannot(&error))?;
    std::fs::write(path, text).map_err(|error| cannot(&error))
}
