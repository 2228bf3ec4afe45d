//! What the program and its configuration say is no hazard, and how much that left out.

use crate::Checked;
use crate::numbers::counted;
use crate::places::{Paths, locate};
use std::fmt::Write as _;
use streamsan_check::{IgnoreSource, Ignored};
use streamsan_trace::Log;

/// How many findings were left out that way. One that two places leave out counts twice.
pub(crate) fn count(checked: &[Checked<'_>]) -> u64 {
    checked.iter().flat_map(|one| &one.report.ignored).map(|ignored| ignored.findings).sum()
}

/// A line for each place that left something out.
pub(crate) fn lines(checked: &[Checked<'_>]) -> String {
    let mut text = String::new();
    for one in checked {
        for ignored in one.report.ignored.iter().filter(|ignored| ignored.findings > 0) {
            if text.is_empty() {
                text.push_str("Ignored, as the program or its configuration says:\n");
            }
            let file = if checked.len() > 1 { format!("{}: ", one.file) } else { String::new() };
            let _ = writeln!(text, "  {file}{}", line(ignored, one.log));
        }
    }
    text
}

/// `1 finding (312 times) of SS101 at train.py:41: the loader waits`.
fn line(ignored: &Ignored, log: &dyn Log) -> String {
    let codes: Vec<&str> = ignored.rules.iter().map(|rule| rule.code()).collect();
    let findings = counted(ignored.findings, "finding", "findings");
    let times = match ignored.hazards {
        1 => String::new(),
        times => format!(" ({})", counted(times, "time", "times")),
    };
    let reason = if ignored.reason.is_empty() { String::new() } else { format!(": {}", ignored.reason) };
    format!("{findings}{times} of {} at {}{reason}", codes.join(", "), place(&ignored.source, log))
}

/// Where an ignore stands, as people know it.
pub(crate) fn place(source: &IgnoreSource, log: &dyn Log) -> String {
    match source {
        IgnoreSource::Comment { file, line } => format!("{}:{line}", Paths::new(log).shorten(file)),
        IgnoreSource::Range { site } => {
            locate(log, *site).map_or_else(|| "an unknown place".to_owned(), |place| place.line())
        }
        IgnoreSource::Files { pattern } => format!("{pattern} (per-file-ignores)"),
    }
}
