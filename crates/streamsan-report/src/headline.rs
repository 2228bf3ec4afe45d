//! The first line of a finding, and the label at each of its places.

use crate::names::Names;
use streamsan_check::{Actor, Finding, Place, Rule};
use streamsan_trace::{AccessMode, Trace};

/// One terse line: what is wrong, on what, between whom.
pub(crate) fn headline(finding: &Finding, names: &Names<'_>) -> String {
    let second = names.actor_spoken(finding.second.actor);
    match finding.rule {
        Rule::Ss401 => format!("{second} waits for an event that was never recorded"),
        Rule::Ss403 => format!("{second} waits for an event recorded in itself"),
        _ => format!("{}{}", short_headline(finding, names), between(finding, names)),
    }
}

/// The headline without the streams, for formats that name them elsewhere.
pub(crate) fn short_headline(finding: &Finding, names: &Names<'_>) -> String {
    match finding.rule {
        Rule::Ss401 | Rule::Ss403 => headline(finding, names),
        rule => {
            let what = hazard_words(rule).unwrap_or_else(|| rule.name());
            let on = finding
                .memory
                .map_or_else(String::new, |memory| format!(" on {}", names.memory_spoken(&memory)));
            format!("{what}{on}")
        }
    }
}

fn between(finding: &Finding, names: &Names<'_>) -> String {
    let second = names.actor_spoken(finding.second.actor);
    match finding.first {
        Some(first) => format!(" between {} and {second}", names.actor_spoken(first.actor)),
        None => format!(" in {second}"),
    }
}

fn hazard_words(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Ss101 => Some("unordered read-after-write"),
        Rule::Ss102 => Some("unordered write-after-read"),
        Rule::Ss103 => Some("unordered write-after-write"),
        _ => None,
    }
}

/// RAW, WAR, WAW, for rules that are about one of them.
pub(crate) fn hazard(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Ss101 => Some("RAW"),
        Rule::Ss102 => Some("WAR"),
        Rule::Ss103 => Some("WAW"),
        _ => None,
    }
}

/// `(1) wrote `x` on default (#1203 memcpy HtoD)`.
pub(crate) fn first_label(finding: &Finding, first: &Place, trace: &Trace, names: &Names<'_>) -> String {
    let verb = match first.access {
        Some(AccessMode::Read) => "read",
        Some(AccessMode::Write) => "wrote",
        Some(AccessMode::Update) => "updated",
        Some(AccessMode::Unknown) => "may have changed",
        None => "ran",
    };
    format!("(1) {}", act(verb, finding, first, trace, names))
}

/// `(2) reads `x` on `side` (#1207 aten::mul)`. Without a number where there is one place only.
pub(crate) fn second_label(finding: &Finding, trace: &Trace, names: &Names<'_>) -> String {
    let second = &finding.second;
    match finding.rule {
        Rule::Ss401 => format!("this wait does nothing ({})", second.number),
        Rule::Ss403 => format!("this wait orders nothing new ({})", second.number),
        _ => {
            let verb = match second.access {
                Some(AccessMode::Read) => "reads",
                Some(AccessMode::Write) => "overwrites",
                Some(AccessMode::Update) => "updates",
                Some(AccessMode::Unknown) => "may change",
                None => "runs",
            };
            let mark = if finding.first.is_some() { "(2) " } else { "" };
            format!("{mark}{}", act(verb, finding, second, trace, names))
        }
    }
}

fn act(verb: &str, finding: &Finding, place: &Place, trace: &Trace, names: &Names<'_>) -> String {
    let memory = match (finding.memory, place.access) {
        (Some(memory), Some(_)) => format!(" {}", names.memory_again(&memory)),
        _ => String::new(),
    };
    let actor = match place.actor {
        Actor::Stream(stream) => format!(" on {}", names.stream(stream)),
        Actor::Host => " on the host".to_owned(),
    };
    let label = trace.tables.string(place.label);
    let label = if label.is_empty() { String::new() } else { format!(" {label}") };
    format!("{verb}{memory}{actor} ({}{label})", place.number)
}
