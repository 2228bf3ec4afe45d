//! When a finding occurred: a mark for each occurrence along the run.

use crate::numbers::grouped;
use std::fmt::Write as _;
use streamsan_check::Finding;
use streamsan_trace::OpNumber;

/// Parts that the run is cut into.
const PARTS: u64 = 200;

/// A strip for a finding that occurred more than once; `last` is the number of the run's last event.
pub(super) fn section(finding: &Finding, last: OpNumber) -> String {
    let occurrences = &finding.occurrences;
    let (Some(first), true) = (occurrences.numbers.first(), occurrences.total > 1) else {
        return String::new();
    };
    let length = last.0.max(occurrences.last.0).max(1);
    let part = |number: OpNumber| {
        let part = u128::from(number.0.saturating_sub(1)) * u128::from(PARTS) / u128::from(length);
        u64::try_from(part).unwrap_or(PARTS).min(PARTS - 1)
    };
    let mut parts: Vec<u64> =
        occurrences.numbers.iter().copied().chain([occurrences.last]).map(part).collect();
    parts.dedup();
    let mut marks = String::new();
    for part in parts {
        let _ = write!(marks, "<rect x=\"{part}\" width=\"1\" height=\"10\"/>");
    }
    let thinned = match occurrences.every {
        0 | 1 => String::new(),
        every => format!(", one of {every} drawn"),
    };
    let times = if occurrences.total == finding.count {
        format!("{} times", grouped(finding.count))
    } else {
        format!("{} times, in {} operations", grouped(finding.count), grouped(occurrences.total))
    };
    let says = format!(
        "{times}, from {first} to {}{thinned}; the strip is the whole run, #1 to #{length}",
        occurrences.last
    );
    format!(
        "<figure class=\"strip\"><svg viewBox=\"0 0 {PARTS} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"when it occurred\">{marks}</svg><figcaption>Occurred {says}.</figcaption></figure>"
    )
}
