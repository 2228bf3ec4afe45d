//! Verification of fixes: one more pass over the log with all proposed waits in place.

use crate::edges::Edges;
use crate::engine::{Engine, Sink};
use crate::finding::FixAction;
use crate::group::{Key, key, key_of};
use crate::hazard::Hazard;
use crate::rules::Rule;
use crate::rules::events::{Call, Property};
use crate::{Finding, walk};
use std::collections::HashSet;
use streamsan_trace::{Event, GapReason, OpNumber, SiteId, StringId, Trace};

struct Remaining<'a> {
    trace: &'a Trace,
    keys: HashSet<Key>,
}

impl Sink for Remaining<'_> {
    fn hazard(&mut self, hazard: &Hazard, _: &Engine<'_>) {
        self.keys.insert(key(hazard, self.trace));
    }
    fn call(&mut self, _: &Event, _: Call, _: Property) {}
    fn gap(&mut self, _: GapReason, _: StringId, _: OpNumber) {}
}

/// Marks the fixes of findings that are gone, with all fixes in place and nothing new reported.
pub(crate) fn verify(trace: &Trace, findings: &mut [Finding]) {
    if findings.iter().all(|finding| finding.fix.is_none()) {
        return;
    }
    let edges = Edges::new(findings.iter().flat_map(proposals), &trace.tables);
    let mut remaining = Remaining { trace, keys: HashSet::new() };
    walk(trace, &edges, &mut remaining);
    let known: HashSet<Key> = findings.iter().filter_map(|finding| key_of(finding, trace)).collect();
    let nothing_new = remaining.keys.is_subset(&known);
    for finding in findings.iter_mut() {
        let gone = key_of(finding, trace).is_some_and(|key| !remaining.keys.contains(&key));
        if let Some(fix) = &mut finding.fix {
            fix.verified = nothing_new && gone;
        }
    }
}

/// Where each action of a finding's fix goes.
fn proposals(finding: &Finding) -> Vec<(SiteId, FixAction)> {
    let site = match (finding.rule, finding.free) {
        (Rule::Ss202 | Rule::Ss203, Some(free)) => free.site,
        _ => finding.second.site,
    };
    let actions = finding.fix.iter().flat_map(|fix| &fix.actions);
    actions.map(|&action| (site, action)).collect()
}
