//! SS401, SS403, SS405, SS406: lines about streams and events that do not do what they say.
//!
//! A wait on an event that was never recorded does nothing (CUDA and torch both say so), a wait on an event
//! recorded in the waiting stream itself adds nothing to stream order, and `record_stream` with the stream
//! that owns the block is skipped by the allocator. Each may be right now and then (the first turn of a loop, a
//! helper called with one stream), so a line is reported only if every execution of it had the property.
//! Two exceptions: a CPU tensor has no block, so `record_stream` on it is always wrong; and a stream object
//! that shares its stream with another one in use is reported once it happens.

use crate::edges::Line;
use crate::finding::{Actor, Finding, Note, Occurrences};
use crate::fingerprint::fingerprint;
use crate::group::place;
use crate::hazard::Origin;
use crate::ignores::RangeSet;
use crate::rules::Rule;
use std::collections::BTreeMap;
use streamsan_trace::{BlockId, Event, EventKind, FrameOrigin, Tables};

/// What sort of call a line makes; executions are counted among calls of one sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Wait,
    RecordStream,
    StreamObject,
}

/// What was found out about one call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Property {
    /// It did something.
    Fine,
    /// It had the property of this rule.
    Has(Rule),
    /// It had it, and one such call is enough.
    Always(Rule),
}

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    had: BTreeMap<Rule, Had>,
}

/// The calls of a line that had the property of a rule.
#[derive(Debug, Default)]
struct Had {
    count: u64,
    /// Whether once is enough.
    always: bool,
    first: Option<Event>,
    occurrences: Occurrences,
}

/// What the calls of each line did.
#[derive(Debug, Default)]
pub(crate) struct CallLines {
    lines: BTreeMap<(Call, Line), Counts>,
}

impl CallLines {
    pub(crate) fn note(&mut self, event: &Event, call: Call, property: Property, tables: &Tables) {
        if !is_users(event, call, tables) {
            return;
        }
        let counts = self.lines.entry((call, Line::of(event.site, tables))).or_default();
        counts.total += 1;
        let (rule, always) = match property {
            Property::Fine => return,
            Property::Has(rule) => (rule, false),
            Property::Always(rule) => (rule, true),
        };
        let had = counts.had.entry(rule).or_default();
        had.count += 1;
        had.always |= always;
        had.first.get_or_insert(*event);
        had.occurrences.add(event.number);
    }

    pub(crate) fn findings(&self, tables: &Tables) -> Vec<Finding> {
        let mut findings = Vec::new();
        for counts in self.lines.values() {
            for (&rule, had) in &counts.had {
                if let Some(event) = had.first.filter(|_| had.always || had.count == counts.total) {
                    findings.push(finding(rule, &event, had, tables));
                }
            }
        }
        findings
    }
}

/// Whether the user's code makes the call. One made inside a library, such as autograd's, is not the user's line to
/// change, and neither is a wait that a library makes when the user asks it for something else: `from_dlpack` waits for
/// the stream that it is called on.
pub(crate) fn is_users(event: &Event, call: Call, tables: &Tables) -> bool {
    let mut inside = false;
    for (_, frame) in tables.stack(event.site) {
        match frame.origin {
            FrameOrigin::User => return !(inside && call == Call::Wait),
            FrameOrigin::Library => {
                let file = tables.string(frame.file);
                // A stack of contexts calls what the user gave it.
                inside |= !file.ends_with("torch/cuda/streams.py") && !file.ends_with("/contextlib.py");
            }
        }
    }
    false
}

fn finding(rule: Rule, event: &Event, had: &Had, tables: &Tables) -> Finding {
    let actor = match event.kind {
        EventKind::EventWait { stream, .. }
        | EventKind::RecordStream { stream, .. }
        | EventKind::StreamObject { stream, .. } => Actor::Stream(stream),
        _ => Actor::Host,
    };
    let second = place(event.number, actor, Origin::of(event, RangeSet::default()), None);
    let outside = matches!(event.kind, EventKind::RecordStream { block: BlockId(0), .. });
    let notes = outside.then_some(Note::NotInDeviceMemory).into_iter().collect();
    Finding {
        rule,
        first: None,
        second,
        free: None,
        memory: None,
        old_memory: None,
        ordered_up_to: None,
        count: had.count,
        occurrences: had.occurrences.clone(),
        fix: None,
        removed_by: None,
        removes: 0,
        notes,
        advice: None,
        fingerprint: fingerprint(rule, None, &second, tables),
        set_level: None,
    }
}
