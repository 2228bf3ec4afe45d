//! Grouping: hazards of one rule and one pair of lines become one finding with a count.

use crate::edges::Line;
use crate::engine::{Engine, Sink};
use crate::finding::Actor;
use crate::finding::{Finding, Fix, FixAction, Memory, OrderedUpTo, Place};
use crate::fingerprint::fingerprint;
use crate::hazard::Hazard;
use crate::near_miss::near_misses;
use crate::report::Gap;
use crate::rules::Rule;
use crate::rules::events::{Call, CallLines, Property};
use std::collections::{BTreeMap, HashMap};
use streamsan_trace::{AccessMode, BlockId, Event, EventKind, GapReason, OpNumber, SiteId, StringId, Trace};

/// What makes two hazards one finding: the rule and the lines of both operations. Of a lifetime finding the
/// second line is that of the free; who got the memory next is chance.
pub(crate) type Key = (Rule, Line, Line);

pub(crate) fn key(hazard: &Hazard, trace: &Trace) -> Key {
    let line = |site| Line::of(site, &trace.tables);
    let second = match (hazard.rule, hazard.freed) {
        (Rule::Ss202 | Rule::Ss203, Some((_, site))) => site,
        _ => site_of(trace, hazard.second),
    };
    (hazard.rule, line(site_of(trace, hazard.first)), line(second))
}

/// The key of a finding made of hazards.
pub(crate) fn key_of(finding: &Finding, trace: &Trace) -> Option<Key> {
    let line = |site| Line::of(site, &trace.tables);
    let second = match (finding.rule, finding.free) {
        (Rule::Ss202 | Rule::Ss203, Some(free)) => free.site,
        _ => finding.second.site,
    };
    let first = match (finding.rule, finding.first, finding.free) {
        (_, Some(first), _) => first.site,
        (Rule::Ss204, None, Some(free)) => free.site,
        _ => return None,
    };
    Some((finding.rule, line(first), line(second)))
}

/// Leaves out what is said already: a block that was freed in use at one line may be handed on early in one turn
/// of a loop and by chance not in another; the first is the finding.
pub(crate) fn fold(findings: &mut Vec<Finding>, trace: &Trace) {
    let reused: Vec<Key> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::Ss202)
        .filter_map(|finding| key_of(finding, trace))
        .collect();
    findings.retain(|finding| {
        let key = key_of(finding, trace).filter(|_| finding.rule == Rule::Ss203);
        key.is_none_or(|(_, used, freed)| !reused.contains(&(Rule::Ss202, used, freed)))
    });
}

pub(crate) fn site_of(trace: &Trace, number: OpNumber) -> SiteId {
    trace.event(number).map_or(SiteId(0), |event| event.site)
}

/// Collects hazards into findings.
pub(crate) struct Grouper<'a> {
    trace: &'a Trace,
    index: HashMap<Key, usize>,
    findings: Vec<Finding>,
    pub(crate) calls: CallLines,
    pub(crate) gaps: BTreeMap<(GapReason, StringId), Gap>,
}

impl<'a> Grouper<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            index: HashMap::new(),
            findings: Vec::new(),
            calls: CallLines::default(),
            gaps: BTreeMap::new(),
        }
    }

    /// All findings by level, then by place.
    pub(crate) fn finish(self) -> Vec<Finding> {
        let mut findings = self.findings;
        findings.extend(self.calls.findings(self.trace));
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

    fn finding(&self, hazard: &Hazard, engine: &Engine<'_>) -> Finding {
        let first = place(self.trace, hazard.first, hazard.first_actor, Some(hazard.first_mode));
        let first = (hazard.rule != Rule::Ss204).then_some(first);
        let second = place(self.trace, hazard.second, hazard.second_actor, Some(hazard.second_mode));
        let ordered_up_to = OrderedUpTo {
            actor: engine.actor_of(hazard.first_chain),
            number: hazard.ordered_up_to,
            site: site_of(self.trace, hazard.ordered_up_to),
        };
        Finding {
            rule: hazard.rule,
            first,
            second,
            free: hazard.freed.map(|(number, _)| place(self.trace, number, Actor::Host, None)),
            memory: Some(memory(hazard, hazard.block, engine)),
            old_memory: hazard.old_block.map(|block| memory(hazard, block, engine)),
            ordered_up_to: Some(ordered_up_to),
            count: 1,
            fix: self.fix(hazard, engine).map(|(action, before, site)| Fix {
                actions: vec![action],
                frame: self.trace.tables.user_frame(site).map(|(id, _)| id),
                before,
                verified: false,
            }),
            removed_by: None,
            removes: 0,
            notes: near_misses(self.trace, hazard, engine),
            fingerprint: fingerprint(hazard.rule, first.as_ref(), &second, &self.trace.tables),
        }
    }

    /// What removes the hazard, and where it goes.
    fn fix(&self, hazard: &Hazard, engine: &Engine<'_>) -> Option<(FixAction, OpNumber, SiteId)> {
        let owner = |block| engine.blocks.get(block).map(|block| block.owner);
        let second = (hazard.second, site_of(self.trace, hazard.second));
        let (action, (before, site)) = match (hazard.rule, hazard.first_actor, hazard.second_actor) {
            (Rule::Ss202 | Rule::Ss203, Actor::Stream(awaited), _) => {
                let waiter = owner(hazard.old_block?)?;
                (FixAction::WaitStream { waiter, awaited, waiter_is_current: false }, hazard.freed?)
            }
            (Rule::Ss201, _, Actor::Stream(waiter)) => {
                let awaited = owner(hazard.block)?;
                (FixAction::WaitStream { waiter, awaited, waiter_is_current: true }, second)
            }
            (Rule::Ss101 | Rule::Ss102 | Rule::Ss103, Actor::Stream(awaited), Actor::Stream(waiter)) => {
                (FixAction::WaitStream { waiter, awaited, waiter_is_current: true }, second)
            }
            (Rule::Ss301 | Rule::Ss302 | Rule::Ss303, Actor::Stream(awaited), _) => {
                (FixAction::SynchronizeStream { awaited }, second)
            }
            _ => return None,
        };
        Some((action, before, site))
    }
}

impl Sink for Grouper<'_> {
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine<'_>) {
        let key = key(hazard, self.trace);
        if let Some(&index) = self.index.get(&key) {
            let action = self.fix(hazard, engine).map(|(action, ..)| action);
            let finding = &mut self.findings[index];
            finding.count += 1;
            if let (Some(fix), Some(action)) = (&mut finding.fix, action)
                && !fix.actions.contains(&action)
            {
                fix.actions.push(action);
            }
            return;
        }
        let finding = self.finding(hazard, engine);
        self.index.insert(key, self.findings.len());
        self.findings.push(finding);
    }

    fn call(&mut self, event: &Event, call: Call, property: Property) {
        self.calls.note(event, call, property, &self.trace.tables);
    }

    fn gap(&mut self, reason: GapReason, detail: StringId, number: OpNumber) {
        let gap = Gap { reason, detail, count: 0, first: number };
        self.gaps.entry((reason, detail)).or_insert(gap).count += 1;
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

fn memory(hazard: &Hazard, id: BlockId, engine: &Engine<'_>) -> Memory {
    let block = engine.blocks.get(id);
    Memory {
        block: id,
        offset: hazard.offset,
        overlap: hazard.overlap,
        size: block.map_or(0, |block| block.size),
        alloc_site: block.map_or(SiteId(0), |block| block.alloc_site),
        owner: block.map(|block| block.owner),
        device: engine.blocks.device(id),
    }
}
