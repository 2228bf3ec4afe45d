//! The label at each place of a finding, numbered in issue order.

use crate::advised;
use crate::headline::{is_host, is_reuse, verb};
use crate::names::Names;
use streamsan_check::{Actor, Finding, Place, Rule};
use streamsan_trace::{AccessMode, Log, OpKind, SiteId};

/// The number of the free.
pub(crate) fn free_mark(finding: &Finding) -> &'static str {
    if finding.first.is_some() { "(2)" } else { "(1)" }
}

/// The number of the later operation; none if it is the only place.
pub(crate) fn second_mark(finding: &Finding) -> Option<&'static str> {
    match (finding.first.is_some(), finding.free.is_some()) {
        (true, true) => Some("(3)"),
        (true, false) | (false, true) => Some("(2)"),
        (false, false) => None,
    }
}

/// ``(1) wrote `x` on the default stream (#1203 memcpy HtoD)``.
///
/// Between streams the past tense says that it was issued earlier. Where the point is that it may not be
/// done, the present says so.
pub(crate) fn first_label(finding: &Finding, first: &Place, log: &dyn Log, names: &Names<'_>) -> String {
    let may_run_still = is_reuse(finding.rule) || is_host(finding);
    let verb = match (first.access, may_run_still) {
        (Some(AccessMode::Read), false) => "read",
        (Some(AccessMode::Read), true) => "reads",
        (Some(AccessMode::Write), false) => "wrote",
        (Some(AccessMode::Write), true) => "writes",
        (Some(AccessMode::Update), false) => "updated",
        (Some(AccessMode::Update), true) => "updates",
        (Some(AccessMode::Unknown), false) => "may have changed",
        (Some(AccessMode::Unknown), true) => "may use",
        (None, false) => "ran",
        (None, true) => "runs",
    };
    let memory = match (finding.old_memory, finding.memory) {
        (Some(_), _) => Some(old_memory(finding, names)),
        (None, Some(memory)) => Some(names.memory_again(&memory)),
        (None, None) => None,
    };
    format!("(1) {}", act(verb, memory, first, log, names))
}

/// `(2) last reference gone, block returned to the allocator of the default stream (#904)`.
pub(crate) fn free_label(finding: &Finding, free: &Place, names: &Names<'_>) -> String {
    let mark = free_mark(finding);
    let number = free.number;
    match finding.old_memory.or(finding.memory) {
        Some(memory) if names.is_cached(memory.block) => {
            let owner = memory.owner.map_or_else(String::new, |owner| format!(" of {}", names.stream(owner)));
            format!("{mark} last reference gone, block returned to the allocator{owner} ({number})")
        }
        Some(memory) => format!("{mark} frees {} ({number})", names.memory_again(&memory)),
        None => format!("{mark} frees the memory ({number})"),
    }
}

/// ``(2) reads `x` on `side` (#1207 aten::mul)``. Without a number where there is one place only.
pub(crate) fn second_label(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> String {
    if let Some(advised) = &finding.advice {
        return advised::label(finding, advised);
    }
    let second = &finding.second;
    let mark = second_mark(finding).map_or_else(String::new, |mark| format!("{mark} "));
    match finding.rule {
        Rule::Ss401 => format!("this wait does nothing ({})", second.number),
        Rule::Ss405 => format!("this object shares its stream ({})", second.number),
        Rule::Ss406 => format!("this call does nothing ({})", second.number),
        Rule::Ss403 => format!("this wait orders nothing new ({})", second.number),
        Rule::Ss903 => format!("nothing to ignore here ({})", second.number),
        Rule::Ss203 => {
            let (new, detail) = (new_memory(finding, names), detail(second, log));
            format!(
                "{mark}{new}, first used here on {}, could have got the block; in this run it did not ({detail})",
                names.actor(second.actor)
            )
        }
        Rule::Ss201 | Rule::Ss202 => {
            let new = match finding.memory.and_then(|new| names.block(new.block)) {
                Some(_) => new_memory(finding, names),
                None => "another tensor".to_owned(),
            };
            let block = format!("the same block, now {new},");
            format!("{mark}{}", act(verb(second), Some(block), second, log, names))
        }
        rule => {
            let verb = if rule == Rule::Ss303 { "frees" } else { verb(second) };
            let memory = finding.memory.map(|memory| names.memory_again(&memory));
            format!("{mark}{}", act(verb, memory, second, log, names))
        }
    }
}

/// The old owner's memory within a sentence: `` `chunk` ``, `the old tensor`.
pub(crate) fn old_memory(finding: &Finding, names: &Names<'_>) -> String {
    let Some(old) = finding.old_memory else { return "the memory".to_owned() };
    match names.block(old.block) {
        None if is_reuse(finding.rule) => format!("the old {}", names.sort(old.block)),
        _ => names.memory_again(&old),
    }
}

/// The new owner's memory within a sentence: `` `mask` ``, `` the next `chunk` ``, `the new tensor`.
pub(crate) fn new_memory(finding: &Finding, names: &Names<'_>) -> String {
    let Some(new) = finding.memory else { return "the new memory".to_owned() };
    let old_name = finding.old_memory.and_then(|old| names.block(old.block));
    match names.block(new.block) {
        Some(name) if old_name == Some(name) => format!("the next `{name}`"),
        Some(name) => format!("`{name}`"),
        None => format!("the new {}", names.sort(new.block)),
    }
}

fn act(verb: &str, memory: Option<String>, place: &Place, log: &dyn Log, names: &Names<'_>) -> String {
    let memory =
        memory.filter(|_| place.access.is_some()).map_or_else(String::new, |text| format!(" {text}"));
    let detail = detail(place, log);
    match place.actor {
        Actor::Stream(stream) => format!("{verb}{memory} on {} ({detail})", names.stream(stream)),
        Actor::Host => format!("the host {verb}{} ({detail})", memory.trim_end_matches(',')),
    }
}

/// `#1207 aten::mul`.
fn detail(place: &Place, log: &dyn Log) -> String {
    match log.tables().string(place.label) {
        "" => place.number.to_string(),
        label if place.forward_site != SiteId(0) && place.kind == Some(OpKind::GraphLaunch) => {
            format!("{} {label} in a graph", place.number)
        }
        label => format!("{} {label}", place.number),
    }
}
