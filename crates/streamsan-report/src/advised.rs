//! Advice in words: what a line does more of than it needs, how often, what that comes to, and what to change.

use crate::names::Names;
use crate::numbers::{bytes, counted, grouped};
use crate::places::{Location, in_parentheses, locate};
use streamsan_check::{Advised, Cover, Finding, Measured};
use streamsan_trace::{CaptureKind, Log};

/// The first line.
pub(crate) fn headline(finding: &Finding, advised: &Advised, names: &Names<'_>) -> String {
    let actor = names.actor(finding.second.actor);
    match &advised.measured {
        Measured::Redundant(Cover { awaited: Some(awaited), .. }) => {
            format!("{actor} waits for {}, after which it is ordered already", names.stream(*awaited))
        }
        Measured::Redundant(_) => format!("{actor} waits for work that it knows to be done"),
        Measured::OversizedRecord => format!(
            "`record_stream` of {} for {actor}, where the order makes it needless",
            finding.memory.map_or_else(|| "a tensor".to_owned(), |memory| names.memory_spoken(&memory))
        ),
    }
}

/// What stands under the line.
pub(crate) fn label(finding: &Finding, advised: &Advised) -> String {
    let number = finding.second.number;
    match &advised.measured {
        Measured::Redundant(_) => format!("this wait orders nothing new ({number})"),
        Measured::OversizedRecord => format!("this call guards nothing ({number})"),
    }
}

/// The statements: how often, why, and what it comes to.
pub(crate) fn notes(finding: &Finding, advised: &Advised, log: &dyn Log, names: &Names<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    match &advised.measured {
        Measured::Redundant(cover) => {
            notes.push(format!("{} ordered nothing new", every(finding.count, "execution of this line")));
            notes.push(covered(finding, cover, log, names));
        }
        Measured::OversizedRecord => {
            let owner = finding.memory.and_then(|memory| memory.owner);
            let owner = owner.map_or_else(|| "the owner stream".to_owned(), |owner| names.stream(owner));
            let user = names.actor(finding.second.actor);
            notes.push(format!(
                "at {} that this line is for, {owner}, which owns the memory, was ordered after the last use on {user} already",
                every(finding.count, "free of the tensors")
            ));
            notes.push(format!(
                "torch held back {}, {} in all, until the host had seen that {user} got as far as the free",
                counted(finding.count, "block", "blocks"),
                bytes(advised.bytes)
            ));
        }
    }
    notes
}

/// `the only execution of this line`, `each of the 12 executions of this line`.
fn every(count: u64, what: &str) -> String {
    if count == 1 {
        return format!("the only {what}");
    }
    let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
    format!("each of the {} {first}s {rest}", grouped(count))
}

fn covered(finding: &Finding, cover: &Cover, log: &dyn Log, names: &Names<'_>) -> String {
    let waiter = names.actor(finding.second.actor);
    let Some(awaited) = cover.awaited else {
        return "the host had waited for all of it before, and nothing was issued in between".to_owned();
    };
    let awaited = names.stream(awaited);
    match cover.earlier {
        Some((number, site)) => format!(
            "the wait at {number}{} had ordered {waiter} after {awaited}, and nothing that this wait would cover was issued since",
            in_parentheses(log, site)
        ),
        None => format!("{waiter} was ordered after all of it by what it had waited for before"),
    }
}

/// What to change.
pub(crate) struct Change<'a> {
    /// For people, with the code if there is any.
    pub(crate) line: String,
    pub(crate) place: Option<Location<'a>>,
    /// What is to be done with the line: `remove`, `replace`, or where code goes: `before`, `after`.
    pub(crate) side: &'static str,
    pub(crate) code: Option<String>,
    verified: Option<bool>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(finding: &Finding, advised: &Advised, log: &'a dyn Log) -> Self {
        let place = locate(log, finding.second.site);
        let shown = place.as_ref().map_or_else(|| "it".to_owned(), Location::line);
        let call = if log.header().capture == CaptureKind::Sim { "" } else { "the call at " };
        let (side, line) = match &advised.measured {
            Measured::Redundant(_) | Measured::OversizedRecord => {
                ("remove", format!("take out {call}{shown}"))
            }
        };
        Self { line, place, side, code: None, verified: advised.verified }
    }

    /// Whether it was tried, and nothing new appeared.
    pub(crate) fn is_verified(&self) -> bool {
        self.verified == Some(true)
    }

    /// What is known of the change.
    pub(crate) fn standing(&self) -> Option<&'static str> {
        match self.verified {
            Some(true) => Some("checked: the same run without it has no finding that it does not have now"),
            Some(false) => Some("not confirmed: run again after the change"),
            None => None,
        }
    }
}
