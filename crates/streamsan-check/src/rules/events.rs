//! SS401 and SS403: waits that order nothing.
//!
//! A wait on an event that was never recorded does nothing (CUDA and torch both say so), and a wait on an
//! event recorded in the waiting stream itself adds nothing to stream order. Both may be right now and then
//! (the first turn of a loop, a helper called with one stream), so a line is reported only if every
//! execution of it had the property.

use crate::edges::Line;
use crate::finding::{Actor, Finding, Place};
use crate::fingerprint::fingerprint;
use crate::order::WaitOutcome;
use crate::rules::Rule;
use std::collections::BTreeMap;
use streamsan_trace::{Event, EventKind, FrameOrigin, SiteId, StringId, Tables, Trace};

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    unrecorded: u64,
    own: u64,
    first: Option<Event>,
}

/// What the waits of each line did.
#[derive(Debug, Default)]
pub(crate) struct WaitLines {
    lines: BTreeMap<Line, Counts>,
}

impl WaitLines {
    pub(crate) fn note(&mut self, event: &Event, outcome: WaitOutcome, tables: &Tables) {
        // A wait made inside a library, such as autograd's, is not the user's line to change.
        let user = tables.user_frame(event.site).is_some_and(|(_, frame)| frame.origin == FrameOrigin::User);
        if !user {
            return;
        }
        let counts = self.lines.entry(Line::of(event.site, tables)).or_default();
        counts.total += 1;
        counts.first.get_or_insert(*event);
        match outcome {
            WaitOutcome::Unrecorded => counts.unrecorded += 1,
            WaitOutcome::SelfWait => counts.own += 1,
            WaitOutcome::Edge { .. } => {}
        }
    }

    pub(crate) fn findings(&self, trace: &Trace) -> Vec<Finding> {
        let mut findings = Vec::new();
        for counts in self.lines.values() {
            let rule = if counts.unrecorded == counts.total {
                Rule::Ss401
            } else if counts.own == counts.total {
                Rule::Ss403
            } else {
                continue;
            };
            let Some(event) = counts.first else { continue };
            findings.push(finding(rule, &event, counts.total, trace));
        }
        findings
    }
}

fn finding(rule: Rule, event: &Event, count: u64, trace: &Trace) -> Finding {
    let actor = match event.kind {
        EventKind::EventWait { stream, .. } => Actor::Stream(stream),
        _ => Actor::Host,
    };
    let second = Place {
        number: event.number,
        actor,
        site: event.site,
        forward_site: SiteId(0),
        label: StringId(0),
        access: None,
    };
    Finding {
        rule,
        first: None,
        second,
        free: None,
        memory: None,
        old_memory: None,
        ordered_up_to: None,
        count,
        fix: None,
        notes: Vec::new(),
        fingerprint: fingerprint(rule, None, &second, &trace.tables),
    }
}
