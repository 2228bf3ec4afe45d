//! Verification of fixes: one more pass over the log with all proposed waits in place, and a few with one
//! fix each, to see which findings have one cause.

use crate::edges::{Edges, Line};
use crate::engine::{Engine, Sink};
use crate::finding::FixAction;
use crate::group::{Key, key, key_of};
use crate::hazard::Hazard;
use crate::rules::Rule;
use crate::rules::events::{Call, Property};
use crate::{Config, Finding, walk};
use std::collections::{BTreeMap, HashSet};
use streamsan_trace::{Event, GapReason, Log, OpNumber, SiteId, StringId, Tables};

/// The keys of all hazards that remain.
#[derive(Default)]
pub(crate) struct Remaining(pub(crate) HashSet<Key>);

impl Sink for Remaining {
    fn hazard(&mut self, hazard: &Hazard, _: &Engine, tables: &Tables) {
        self.0.insert(key(hazard, tables));
    }
    fn call(&mut self, _: &Event, _: Call, _: Property, _: &Tables) {}
    fn gap(&mut self, _: GapReason, _: StringId, _: OpNumber) {}
    fn undecided(&mut self, _: u64, _: OpNumber) {}
}

/// Marks the fixes of findings that are gone, with all fixes in place and nothing new reported. Looks up, on
/// the way, where the order of each finding ends. Where fixes that were placed further out do not do it, they are
/// tried once more at the calls themselves.
pub(crate) fn verify(log: &dyn Log, config: &Config, findings: &mut [Finding]) {
    if findings.is_empty() {
        return;
    }
    pass(log, config, findings);
    let tables = log.tables();
    let mut moved = false;
    for finding in findings.iter_mut() {
        let innermost = tables.user_frame(fix_site(finding)).map(|(frame, _)| frame);
        if let Some(fix) = finding.fix.as_mut().filter(|fix| !fix.verified && fix.frame != innermost) {
            fix.frame = innermost;
            moved = true;
        }
    }
    if moved {
        pass(log, config, findings);
    }
}

fn pass(log: &dyn Log, config: &Config, findings: &mut [Finding]) {
    let tables = log.tables();
    let mut ends: BTreeMap<OpNumber, SiteId> =
        findings.iter().filter_map(|finding| Some((finding.ordered_up_to?.number, SiteId(0)))).collect();
    let edges =
        Edges::new(findings.iter().flat_map(|finding| proposals(finding, tables)), &config.assume, tables);
    let mut remaining = Remaining::default();
    let mut engine = Engine::new(edges, config);
    let mut next = ends.iter_mut().peekable();
    log.read(&mut |event, accesses| {
        while next.next_if(|(number, _)| **number < event.number).is_some() {}
        if let Some((_, site)) = next.next_if(|(number, _)| **number == event.number) {
            *site = event.site;
        }
        engine.event(event, accesses, tables, &mut remaining);
    });
    let known: HashSet<Key> = findings.iter().filter_map(|finding| key_of(finding, tables)).collect();
    let nothing_new = remaining.0.is_subset(&known);
    for finding in findings.iter_mut() {
        let gone = key_of(finding, tables).is_some_and(|key| !remaining.0.contains(&key));
        let too_early = first_is_inside(finding, tables);
        if let Some(fix) = &mut finding.fix {
            fix.verified = nothing_new && gone && !too_early;
        }
        if let Some(end) = &mut finding.ordered_up_to {
            end.site = ends.get(&end.number).copied().unwrap_or_default();
        }
    }
}

/// Events that [`relate`] may look at in all its passes together.
const EFFORT: u64 = 2_000_000;

/// Says of each finding whether the fix of an earlier one alone removes it: one missing wait is often felt in
/// several places. Left out where the trace is so long that it would take too long.
pub(crate) fn relate(log: &dyn Log, config: &Config, events: u64, findings: &mut [Finding]) {
    let tables = log.tables();
    let mut passes = EFFORT / events.max(1);
    for index in 0..findings.len() {
        let finding = &findings[index];
        let later =
            findings[index + 1..].iter().any(|later| later.fix.is_some() && later.removed_by.is_none());
        if finding.removed_by.is_some() || finding.fix.is_none() || !later {
            continue;
        }
        let Some(left) = passes.checked_sub(1) else { return };
        passes = left;
        let edges = Edges::new(proposals(finding, tables), &config.assume, tables);
        let mut remaining = Remaining::default();
        walk(log, edges, config, &mut remaining);
        if key_of(finding, tables).is_none_or(|key| remaining.0.contains(&key)) {
            continue;
        }
        let mut removes = 0;
        for later in &mut findings[index + 1..] {
            let gone = key_of(later, tables).is_some_and(|key| !remaining.0.contains(&key));
            if later.removed_by.is_none() && later.fix.is_some() && gone {
                later.removed_by = Some(index);
                removes += 1;
            }
        }
        findings[index].removes = removes;
    }
}

/// Where each action of a finding's fix goes.
fn proposals(finding: &Finding, tables: &Tables) -> Vec<(Line, FixAction)> {
    let site = fix_site(finding);
    let Some(fix) = &finding.fix else { return Vec::new() };
    let line = fix.frame.and_then(|id| {
        let frame = tables.frames.get(id.index())?;
        // What no line comes before each time is waited for at its own line.
        let placement = tables.placement(id).filter(|placement| placement.reach.is_after_line());
        Some(Line::Code(frame.file, placement.map_or(frame.line, |placement| placement.line)))
    });
    let line = line.unwrap_or_else(|| Line::of(site, tables));
    fix.actions.iter().map(|&action| (line, action)).collect()
}

/// Whether the line before which the fix goes issues the first operation itself, in a function that it calls, or
/// frees what that operation still uses: code pasted before the line then runs before both.
fn first_is_inside(finding: &Finding, tables: &Tables) -> bool {
    let (Some(first), Some(fix)) = (finding.first, &finding.fix) else { return false };
    let Some(place) = fix.frame.and_then(|frame| tables.statement(frame)) else { return false };
    let innermost =
        tables.user_frame(first.site).is_some_and(|(first, _)| tables.statement(first) == Some(place));
    let inside = tables.stack(first.site).any(|(first, _)| tables.statement(first) == Some(place));
    let frees = matches!(finding.rule, Rule::Ss202 | Rule::Ss203) && !fix.is_at_reuse;
    place.1 > 0 && inside && (frees || !innermost)
}

/// The call before which a finding's fix has to act.
fn fix_site(finding: &Finding) -> SiteId {
    let is_at_reuse = finding.fix.as_ref().is_some_and(|fix| fix.is_at_reuse);
    match (finding.rule, finding.free) {
        (Rule::Ss202 | Rule::Ss203, Some(free)) if !is_at_reuse => free.site,
        _ => finding.second.site,
    }
}
