//! Grouping: hazards of one rule and one pair of lines become one finding with a count.

use crate::edges::Line;
use crate::engine::{Engine, Sink};
use crate::finding::Actor;
use crate::finding::{Finding, Fix, FixAction, Memory, Note, OrderedUpTo, Place};
use crate::fingerprint::fingerprint;
use crate::hazard::Hazard;
use crate::order::WaitOutcome;
use crate::rules::Rule;
use crate::rules::events::WaitLines;
use std::collections::HashMap;
use streamsan_trace::{AccessMode, Event, EventKind, OpNumber, SiteId, Trace};

/// What makes two hazards one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    rule: Rule,
    first: Line,
    second: Line,
}

/// Collects hazards into findings.
pub(crate) struct Grouper<'a> {
    trace: &'a Trace,
    index: HashMap<Key, usize>,
    findings: Vec<Finding>,
    pub(crate) waits: WaitLines,
    pub(crate) undecided: Vec<OpNumber>,
}

impl<'a> Grouper<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            index: HashMap::new(),
            findings: Vec::new(),
            waits: WaitLines::default(),
            undecided: Vec::new(),
        }
    }

    /// All findings by level, then by place.
    pub(crate) fn finish(self) -> Vec<Finding> {
        let mut findings = self.findings;
        findings.extend(self.waits.findings(self.trace));
        findings.sort_by_key(|finding| {
            (
                finding.rule.level(),
                finding.second.number,
                finding.rule,
                finding.first.map(|place| place.number),
            )
        });
        findings
    }

    fn site(&self, number: OpNumber) -> SiteId {
        self.trace.event(number).map_or(SiteId(0), |event| event.site)
    }

    fn finding(&self, hazard: &Hazard, engine: &Engine<'_>) -> Finding {
        let first = place(self.trace, hazard.first, hazard.first_actor, Some(hazard.first_mode));
        let second = place(self.trace, hazard.second, hazard.second_actor, Some(hazard.second_mode));
        let block = engine.blocks.get(&hazard.block);
        let memory = Memory {
            block: hazard.block,
            offset: hazard.offset,
            overlap: hazard.overlap,
            size: block.map_or(0, |block| block.size),
            alloc_site: block.map_or(SiteId(0), |block| block.alloc_site),
            device: engine.device_of(hazard.block),
        };
        let ordered_up_to = OrderedUpTo {
            actor: engine.actor_of(hazard.first_chain),
            number: hazard.ordered_up_to,
            site: self.site(hazard.ordered_up_to),
        };
        Finding {
            rule: hazard.rule,
            first: Some(first),
            second,
            free: None,
            memory: Some(memory),
            ordered_up_to: Some(ordered_up_to),
            count: 1,
            fix: self.fix(hazard, second.site),
            notes: self.notes(hazard, engine),
            fingerprint: fingerprint(hazard.rule, &[first, second], &self.trace.tables),
        }
    }

    fn fix(&self, hazard: &Hazard, site: SiteId) -> Option<Fix> {
        let (Actor::Stream(awaited), Actor::Stream(waiter)) = (hazard.first_actor, hazard.second_actor)
        else {
            return None;
        };
        let action = FixAction::WaitStream { waiter, awaited, waiter_is_current: true };
        let frame = self.trace.tables.user_frame(site).map(|(id, _)| id);
        Some(Fix { action, frame, before: hazard.second, verified: false })
    }

    /// Near misses: edges that are there and do not do what was needed.
    fn notes(&self, hazard: &Hazard, engine: &Engine<'_>) -> Vec<Note> {
        let mut notes = Vec::new();
        let (Actor::Stream(first), Actor::Stream(second)) = (hazard.first_actor, hazard.second_actor) else {
            return notes;
        };
        if let Some(&wait) = engine.last_wait.get(&(first, second)) {
            notes.push(Note::OppositeWait { wait, site: self.site(wait) });
        }
        if let Some(&wait) = engine.last_idle_wait.get(&second)
            && wait > hazard.first
            && let Some(Event { site, kind: EventKind::EventWait { event, .. }, .. }) =
                self.trace.event(wait).copied()
        {
            notes.push(match engine.order.last_record(event) {
                Some(_) => Note::SelfWait { wait, site, event },
                None => Note::UnrecordedWait { wait, site, event },
            });
        }
        notes
    }
}

impl Sink for Grouper<'_> {
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine<'_>) {
        let tables = &self.trace.tables;
        let key = Key {
            rule: hazard.rule,
            first: Line::of(self.site(hazard.first), tables),
            second: Line::of(self.site(hazard.second), tables),
        };
        if let Some(&index) = self.index.get(&key) {
            self.findings[index].count += 1;
            return;
        }
        let finding = self.finding(hazard, engine);
        self.index.insert(key, self.findings.len());
        self.findings.push(finding);
    }

    fn event_wait(&mut self, event: &Event, outcome: WaitOutcome) {
        self.waits.note(event, outcome, &self.trace.tables);
    }

    fn undecided(&mut self, second: OpNumber) {
        self.undecided.push(second);
    }
}

/// A place for the event with this number.
pub(crate) fn place(trace: &Trace, number: OpNumber, actor: Actor, access: Option<AccessMode>) -> Place {
    let event = trace.event(number);
    let site = event.map_or(SiteId(0), |event| event.site);
    let (label, forward_site) = match event.map(|event| event.kind) {
        Some(EventKind::Op { label, forward_site, .. }) => (label, forward_site),
        Some(EventKind::HostAccess { label, .. }) => (label, SiteId(0)),
        _ => Default::default(),
    };
    Place { number, actor, site, forward_site, label, access }
}
