//! The places of a finding, in issue order.

use crate::labels::{first_label, free_label, second_label};
use crate::names::Names;
use crate::places::{Location, locate};
use streamsan_check::{Finding, Place};
use streamsan_trace::Log;

/// One place of a finding.
pub(super) struct Spot<'a> {
    /// What it does there.
    pub(super) label: String,
    /// Where, if that is known.
    pub(super) location: Option<Location<'a>>,
    /// The operation.
    pub(super) place: Place,
}

/// The places of a finding, the one issued first first.
pub(super) fn spots<'a>(finding: &Finding, log: &'a dyn Log, names: &Names<'_>) -> Vec<Spot<'a>> {
    let mut spots = Vec::new();
    let mut add = |place: &Place, label: String| {
        spots.push(Spot { label, location: locate(log, place.site), place: *place });
    };
    if let Some(first) = &finding.first {
        add(first, first_label(finding, first, log, names));
    }
    if let Some(free) = &finding.free {
        add(free, free_label(finding, free, names));
    }
    add(&finding.second, second_label(finding, log, names));
    spots
}

/// `data.py:18 -> train.py:41`.
pub(super) fn between(spots: &[Spot<'_>]) -> String {
    let line =
        |spot: &Spot<'_>| spot.location.as_ref().map_or_else(|| "unknown place".to_owned(), Location::line);
    match spots {
        [] => String::new(),
        [only] => line(only),
        [first, .., last] => format!("{} → {}", line(first), line(last)),
    }
}
