//! Verification of fixes: one more pass over the log with all proposed waits in place, and a few with one
//! fix each, to see which findings have one cause.

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

/// Events that [`relate`] may look at in all its passes together.
const EFFORT: usize = 2_000_000;

/// Says of each finding whether the fix of an earlier one alone removes it: one missing wait is often felt in
/// several places. Left out where the trace is so long that it would take too long.
pub(crate) fn relate(trace: &Trace, findings: &mut [Finding]) {
    let mut passes = EFFORT / trace.events.len().max(1);
    for index in 0..findings.len() {
        let finding = &findings[index];
        let later =
            findings[index + 1..].iter().any(|later| later.fix.is_some() && later.removed_by.is_none());
        if finding.removed_by.is_some() || finding.fix.is_none() || !later {
            continue;
        }
        let Some(left) = passes.checked_sub(1) else { return };
        passes = left;
        let edges = Edges::new(proposals(finding), &trace.tables);
        let mut remaining = Remaining { trace, keys: HashSet::new() };
        walk(trace, &edges, &mut remaining);
        if key_of(finding, trace).is_none_or(|key| remaining.keys.contains(&key)) {
            continue;
        }
        let mut removes = 0;
        for later in &mut findings[index + 1..] {
            let gone = key_of(later, trace).is_some_and(|key| !remaining.keys.contains(&key));
            if later.removed_by.is_none() && later.fix.is_some() && gone {
                later.removed_by = Some(index);
                removes += 1;
            }
        }
        findings[index].removes = removes;
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
