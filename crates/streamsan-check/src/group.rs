//! Grouping: hazards of one rule and one pair of lines become one finding with a count.

use crate::clock::ChainId;
use crate::edges::Line;
use crate::engine::{Engine, Sink};
use crate::finding::Actor;
use crate::finding::{Finding, Fix, FixAction, Memory, Occurrences, OrderedUpTo, Place};
use crate::fingerprint::fingerprint;
use crate::hazard::{Hazard, Origin};
use crate::near_miss::near_misses;
use crate::report::Gap;
use crate::rules::Rule;
use crate::rules::events::{Call, CallLines, Property};
use std::collections::{BTreeMap, HashMap};
use streamsan_trace::{
    AccessMode, BlockId, Event, FrameId, FrameOrigin, GapReason, OpKind, OpNumber, SiteId, StreamId,
    StringId, Tables, VisibleStream,
};

/// What makes two hazards one finding: the rule and the lines of both operations. Of a lifetime finding the
/// second line is that of the free; who got the memory next is chance.
pub(crate) type Key = (Rule, Line, Line);

pub(crate) fn key(hazard: &Hazard, tables: &Tables) -> Key {
    let line = |site| Line::of(site, tables);
    let second = match (hazard.rule, hazard.freed) {
        (Rule::Ss202 | Rule::Ss203, Some((_, free))) => free.site,
        _ => hazard.second_origin.site,
    };
    (hazard.rule, line(hazard.first_origin.site), line(second))
}

/// The key of a finding made of hazards.
pub(crate) fn key_of(finding: &Finding, tables: &Tables) -> Option<Key> {
    let line = |site| Line::of(site, tables);
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
pub(crate) fn fold(findings: &mut Vec<Finding>, tables: &Tables) {
    let reused: Vec<Key> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::Ss202)
        .filter_map(|finding| key_of(finding, tables))
        .collect();
    findings.retain(|finding| {
        let key = key_of(finding, tables).filter(|_| finding.rule == Rule::Ss203);
        key.is_none_or(|(_, used, freed)| !reused.contains(&(Rule::Ss202, used, freed)))
    });
}

/// By level, then by place.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        (finding.level(), finding.second.number, finding.rule, finding.first.map(|place| place.number))
    });
}

/// An execution of the operation that a finding names as the later one.
#[derive(Clone, Copy, Debug)]
struct Last {
    actors: (Actor, Actor),
    number: OpNumber,
    /// The execution before it.
    before: OpNumber,
    /// The last execution that needs a wait of its own.
    waited: OpNumber,
}

impl Last {
    /// Another hazard of this operation. The last wait does for this one too, if what it is unordered with was there already.
    fn turn(&mut self, hazard: &Hazard, occurrences: &mut Occurrences) {
        let again = hazard.second == self.number;
        if !again {
            self.before = std::mem::replace(&mut self.number, hazard.second);
        }
        let actors = (hazard.first_actor, hazard.second_actor);
        let is_covered = actors == self.actors && hazard.second >= self.waited && hazard.first < self.waited;
        self.actors = actors;
        let waits = !is_covered && hazard.second != self.waited;
        if waits {
            self.waited = hazard.second;
            // With a (1) before the last (2) there is no line between them where one wait would do.
            occurrences.interleaved |= hazard.first < self.before;
        }
        occurrences.turn(again, waits);
    }
}

/// Collects hazards into findings.
#[derive(Debug, Default)]
pub(crate) struct Grouper {
    index: HashMap<Key, usize>,
    /// Of hazards, in order of their first occurrence.
    pub(crate) findings: Vec<Finding>,
    /// Of each finding, the last execution of its later operation.
    last: Vec<Last>,
    pub(crate) calls: CallLines,
    pub(crate) gaps: BTreeMap<(GapReason, StringId), Gap>,
}

impl Grouper {
    /// All findings by level, then by place.
    pub(crate) fn finish(&self, tables: &Tables) -> Vec<Finding> {
        let mut findings = self.findings.clone();
        findings.extend(self.calls.findings(tables));
        sort(&mut findings);
        findings
    }

    /// What could not be seen, in order of first appearance.
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = self.gaps.values().cloned().collect();
        gaps.sort_by_key(|gap| gap.first);
        gaps
    }

    fn finding(hazard: &Hazard, engine: &Engine, tables: &Tables) -> Finding {
        let first = place(hazard.first, hazard.first_actor, hazard.first_origin, Some(hazard.first_mode));
        let first = (hazard.rule != Rule::Ss204).then_some(first);
        let second =
            place(hazard.second, hazard.second_actor, hazard.second_origin, Some(hazard.second_mode));
        let ordered_up_to = OrderedUpTo {
            actor: engine.actor_of(hazard.first_chain),
            number: hazard.ordered_up_to,
            by_host: matches!(hazard.second_actor, Actor::Stream(_))
                && engine.order.ordered_up_to(hazard.first_chain, ChainId::HOST) >= hazard.ordered_up_to,
            site: SiteId(0),
        };
        Finding {
            rule: hazard.rule,
            first,
            second,
            free: hazard.freed.map(|(number, origin)| place(number, Actor::Host, origin, None)),
            memory: Some(memory(hazard, hazard.block, engine)),
            old_memory: hazard.old_block.map(|block| memory(hazard, block, engine)),
            ordered_up_to: Some(ordered_up_to),
            count: 1,
            occurrences: Occurrences::default(),
            fix: fix(hazard, engine)
                .map(|(action, before, site)| place_fix(hazard, action, (before, site), engine, tables)),
            removed_by: None,
            removes: 0,
            notes: near_misses(tables, hazard, engine),
            advice: None,
            fingerprint: fingerprint(hazard.rule, first.as_ref(), &second, tables),
            set_level: None,
        }
    }
}

/// The fix with its place. That of a block that is freed too early goes before the free, or, if no code can be put there
/// that can name both streams, or only before the first operation, before the reuse.
fn place_fix(
    hazard: &Hazard,
    action: FixAction,
    (before, site): (OpNumber, SiteId),
    engine: &Engine,
    tables: &Tables,
) -> Fix {
    let first = hazard.first_origin.site;
    let at = |before, site| engine.bindings.at(before, site, &action.streams(), tables);
    let names_at_first = at(hazard.first, first);
    let fix = |frame, before, names, is_at_reuse| Fix {
        actions: vec![action],
        frame,
        before,
        names,
        names_at_first,
        is_at_reuse,
        verified: false,
    };
    let names = at(before, site);
    let frame = fix_frame(&action, site, first, &names, engine, tables);
    let place = |frame| tables.statement(frame);
    let by_first = |frame| tables.stack(first).any(|(other, _)| place(other) == place(frame));
    if hazard.rule == Rule::Ss202 && frame.is_none_or(by_first) {
        let (before, site) = (hazard.second, hazard.second_origin.site);
        let names = at(before, site);
        if let frame @ Some(_) = fix_frame(&action, site, first, &names, engine, tables) {
            return fix(frame, before, names, true);
        }
    }
    let innermost = || tables.user_frame(site).map(|(id, _)| id);
    fix(frame.or_else(innermost), before, names, false)
}

/// Where a fix goes: the innermost line on the way to the call that can name both streams. A line that the first
/// operation is called from too would put the wait before that one, so the search ends there. A frame is left out
/// if no code comes before it each time, as in a loop's header.
fn fix_frame(
    action: &FixAction,
    site: SiteId,
    first: SiteId,
    expressions: &[VisibleStream],
    engine: &Engine,
    tables: &Tables,
) -> Option<FrameId> {
    let innermost = tables.user_frame(site).map(|(id, _)| id);
    let visible = |frame: FrameId, stream: StreamId| {
        let here = move |known: &&VisibleStream| (known.frame, known.stream) == (frame, stream);
        expressions.iter().filter(here).map(|known| known.expression)
    };
    let named = |frame: FrameId, stream: StreamId| {
        engine.order.is_legacy_default(stream) || visible(frame, stream).next().is_some()
    };
    let names_both = |frame: FrameId| match *action {
        FixAction::WaitStream { waiter, awaited, waiter_is_current } => {
            let current = waiter_is_current && Some(frame) == innermost;
            // A parameter may be the one stream in one call and the other in the next.
            let apart = engine.order.is_legacy_default(awaited)
                || visible(frame, awaited).any(|name| !visible(frame, waiter).any(|other| other == name));
            apart && named(frame, awaited) && (current || named(frame, waiter))
        }
        FixAction::SynchronizeStream { awaited } => named(frame, awaited),
    };
    let shared = |frame: FrameId| {
        let place = tables.statement(frame);
        tables.stack(first).any(|(other, _)| tables.statement(other) == place)
    };
    let reachable = |frame: FrameId| tables.placement(frame).is_some_and(|at| at.reach.is_after_line());
    let users = tables.stack(site).filter(|(_, frame)| frame.origin == FrameOrigin::User);
    let mut candidates = users.take_while(|(id, _)| Some(*id) == innermost || !shared(*id));
    candidates.find(|&(id, _)| reachable(id) && names_both(id)).map(|(id, _)| id)
}

/// What removes the hazard, and where it goes.
fn fix(hazard: &Hazard, engine: &Engine) -> Option<(FixAction, OpNumber, SiteId)> {
    let owner = |block| engine.blocks.get(block).map(|block| block.owner);
    let second = (hazard.second, hazard.second_origin.site);
    let group = |waiter| caller(hazard, waiter, engine).unwrap_or(waiter);
    let (action, (before, site)) = match (hazard.rule, hazard.first_actor, hazard.second_actor) {
        (Rule::Ss202 | Rule::Ss203, Actor::Stream(awaited), _) => {
            let waiter = owner(hazard.old_block?)?;
            let (number, free) = hazard.freed?;
            (FixAction::WaitStream { waiter, awaited, waiter_is_current: false }, (number, free.site))
        }
        (Rule::Ss201, _, Actor::Stream(waiter)) => {
            let awaited = owner(hazard.block)?;
            (FixAction::WaitStream { waiter, awaited, waiter_is_current: true }, second)
        }
        (
            Rule::Ss101 | Rule::Ss102 | Rule::Ss103 | Rule::Ss501 | Rule::Ss502 | Rule::Ss601 | Rule::Ss602,
            Actor::Stream(awaited),
            Actor::Stream(waiter),
        ) => (FixAction::WaitStream { waiter: group(waiter), awaited, waiter_is_current: true }, second),
        (Rule::Ss301 | Rule::Ss302 | Rule::Ss303, Actor::Stream(awaited), _) => {
            (FixAction::SynchronizeStream { awaited }, second)
        }
        _ => return None,
    };
    Some((action, before, site))
}

/// The stream that is current where a collective is called, which the stream of its group waits for first.
fn caller(hazard: &Hazard, group: StreamId, engine: &Engine) -> Option<StreamId> {
    let (call, from) = *engine.last_wait_of.get(&group)?;
    let collective = hazard.second_origin.kind == Some(OpKind::Collective);
    let first = Actor::Stream(from) == hazard.first_actor;
    (collective && !first && call.site == hazard.second_origin.site).then_some(from)
}

impl Sink for Grouper {
    fn hazard(&mut self, hazard: &Hazard, engine: &Engine, tables: &Tables) {
        let key = key(hazard, tables);
        if let Some(&index) = self.index.get(&key) {
            let proposed = fix(hazard, engine);
            let finding = &mut self.findings[index];
            finding.count += 1;
            finding.occurrences.add(hazard.second);
            let operation = |origin: Origin| (origin.site, origin.label);
            if operation(hazard.second_origin) == (finding.second.site, finding.second.label) {
                self.last[index].turn(hazard, &mut finding.occurrences);
            }
            if let (Some(fix), Some((action, before, site))) = (&mut finding.fix, proposed)
                && !fix.actions.contains(&action)
            {
                fix.actions.push(action);
                let streams = action.streams();
                let (first, first_site) = (hazard.first, hazard.first_origin.site);
                let (before, site) =
                    if fix.is_at_reuse { (hazard.second, hazard.second_origin.site) } else { (before, site) };
                fix.names.extend(engine.bindings.at(before, site, &streams, tables));
                fix.names_at_first.extend(engine.bindings.at(first, first_site, &streams, tables));
            }
            return;
        }
        let mut finding = Self::finding(hazard, engine, tables);
        finding.occurrences.add(hazard.second);
        finding.occurrences.turn(false, true);
        self.index.insert(key, self.findings.len());
        self.last.push(Last {
            actors: (hazard.first_actor, hazard.second_actor),
            number: hazard.second,
            before: OpNumber(0),
            waited: hazard.second,
        });
        self.findings.push(finding);
    }

    fn call(&mut self, event: &Event, call: Call, property: Property, tables: &Tables) {
        self.calls.note(event, call, property, tables);
    }

    fn gap(&mut self, reason: GapReason, detail: StringId, number: OpNumber) {
        let gap = Gap { reason, detail, count: 0, first: number };
        self.gaps.entry((reason, detail)).or_insert(gap).count += 1;
    }

    fn undecided(&mut self, pairs: u64, number: OpNumber) {
        let (reason, detail) = (GapReason::Undecided, StringId(0));
        let gap = Gap { reason, detail, count: 0, first: number };
        self.gaps.entry((reason, detail)).or_insert(gap).count += pairs;
    }
}

/// A place for an event.
pub(crate) fn place(number: OpNumber, actor: Actor, origin: Origin, access: Option<AccessMode>) -> Place {
    let Origin { thread, site, forward_site, label, kind, ranges: _ } = origin;
    Place { number, actor, thread, kind, site, forward_site, label, access }
}

fn memory(hazard: &Hazard, id: BlockId, engine: &Engine) -> Memory {
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
