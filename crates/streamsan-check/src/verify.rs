//! Verification of fixes: one more pass over the log with all proposed waits in place.

use crate::Finding;
use crate::edges::{Edges, Line};
use crate::engine::{Engine, Sink};
use crate::finding::FixAction;
use crate::hazard::Hazard;
use crate::order::WaitOutcome;
use crate::rules::Rule;
use crate::walk;
use std::collections::HashSet;
use streamsan_trace::{Event, OpNumber, SiteId, Trace};

type Key = (Rule, Line, Line);

struct Remaining<'a> {
    trace: &'a Trace,
    keys: HashSet<Key>,
}

impl Remaining<'_> {
    fn line(&self, number: OpNumber) -> Line {
        Line::of(self.trace.event(number).map_or(SiteId(0), |event| event.site), &self.trace.tables)
    }
}

impl Sink for Remaining<'_> {
    fn hazard(&mut self, hazard: &Hazard, _: &Engine<'_>) {
        self.keys.insert((hazard.rule, self.line(hazard.first), self.line(hazard.second)));
    }
    fn event_wait(&mut self, _: &Event, _: WaitOutcome) {}
    fn undecided(&mut self, _: OpNumber) {}
}

/// Marks the fixes of findings that are gone, with all fixes in place and nothing new reported.
pub(crate) fn verify(trace: &Trace, findings: &mut [Finding]) {
    let edges = Edges::new(findings.iter().filter_map(edge), &trace.tables);
    let mut remaining = Remaining { trace, keys: HashSet::new() };
    walk(trace, &edges, &mut remaining);
    let keys: Vec<Option<Key>> = findings
        .iter()
        .map(|finding| {
            let first = finding.first?;
            Some((
                finding.rule,
                Line::of(first.site, &trace.tables),
                Line::of(finding.second.site, &trace.tables),
            ))
        })
        .collect();
    let nothing_new = remaining.keys.iter().all(|key| keys.contains(&Some(*key)));
    for (finding, key) in findings.iter_mut().zip(keys) {
        if let (Some(fix), Some(key)) = (&mut finding.fix, key) {
            fix.verified = nothing_new && !remaining.keys.contains(&key);
        }
    }
}

fn edge(finding: &Finding) -> Option<(SiteId, streamsan_trace::StreamId, streamsan_trace::StreamId)> {
    match finding.fix?.action {
        FixAction::WaitStream { waiter, awaited, .. } => Some((finding.second.site, waiter, awaited)),
        FixAction::SynchronizeStream { .. } => None,
    }
}
