//! The first line of a finding.

use crate::advised;
use crate::names::Names;
use streamsan_check::{Actor, Finding, Note, Place, Rule};
use streamsan_trace::{AccessMode, OpKind};

/// One terse line: what is wrong, on what, between whom.
pub(crate) fn headline(finding: &Finding, names: &Names<'_>) -> String {
    let short = short_headline(finding, names);
    match finding.rule {
        Rule::Ss101 | Rule::Ss102 | Rule::Ss103 => format!("{short}{}", between(finding, names)),
        Rule::Ss501 | Rule::Ss502 | Rule::Ss601 => format!("{short},{}", between(finding, names)),
        _ => short,
    }
}

/// The headline for formats that name both streams elsewhere.
pub(crate) fn short_headline(finding: &Finding, names: &Names<'_>) -> String {
    if let Some(advised) = &finding.advice {
        return advised::headline(finding, advised, names);
    }
    let second = names.actor(finding.second.actor);
    let memory = finding
        .old_memory
        .filter(|_| finding.rule != Rule::Ss201)
        .or(finding.memory)
        .map_or_else(|| "memory".to_owned(), |memory| names.memory_spoken(&memory));
    match finding.rule {
        Rule::Ss101 => format!("unordered read-after-write on {memory}"),
        Rule::Ss102 => format!("unordered write-after-read on {memory}"),
        Rule::Ss103 => format!("unordered write-after-write on {memory}"),
        Rule::Ss201 => {
            let owner = finding.memory.and_then(|memory| memory.owner);
            let owner = match owner {
                Some(owner) => format!("{}, where it was allocated", names.stream(owner)),
                None => "the stream where it was allocated".to_owned(),
            };
            format!("{second} uses {memory} without waiting for {owner}")
        }
        Rule::Ss202 => {
            format!("memory of {memory} reused on {second} while {}", still(finding, names))
        }
        Rule::Ss203 => format!("memory of {memory} freed while {}", still(finding, names)),
        Rule::Ss204 => format!("{second} {} {memory} after it was freed", verb(&finding.second)),
        Rule::Ss301 => {
            let (what, does) = match &finding.first {
                Some(first) => (kind(first), does(first, "fills it", "changes it", "may change it")),
                None => ("the operation", "fills it"),
            };
            format!("{second} {} {memory} before {what} that {does} is done", verb(&finding.second))
        }
        Rule::Ss302 => {
            format!("{second} {} {memory} while {}", verb(&finding.second), still_copied(finding))
        }
        Rule::Ss303 => format!("{second} frees {memory} while {}", still_copied(finding)),
        Rule::Ss501 => format!("unordered write to {memory}, which a graph reads"),
        Rule::Ss502 => format!("unordered use of {memory}, which a graph writes"),
        Rule::Ss601 => format!("unordered use of {memory}, a buffer of a collective"),
        Rule::Ss602 => {
            format!("{second} {} {memory} of a collective for which it did not wait", verb(&finding.second))
        }
        Rule::Ss401 => format!("{second} waits for an event that was never recorded"),
        Rule::Ss403 => format!("{second} waits for an event recorded in itself"),
        Rule::Ss405 => format!(
            "this stream object and an earlier one stand for the same stream, {}",
            names.actor(finding.second.actor)
        ),
        Rule::Ss406 if on_host_memory(finding) => {
            "`record_stream` on a tensor that is not in device memory".to_owned()
        }
        Rule::Ss406 => format!("`record_stream` without effect: {second} owns the memory itself"),
        Rule::Ss903 if is_configured(finding) => {
            "the configured ignore of this file leaves nothing out".to_owned()
        }
        Rule::Ss903 => "this ignore leaves nothing out".to_owned(),
        // Advice has said its own.
        Rule::Ss402
        | Rule::Ss404
        | Rule::Ss407
        | Rule::Ss701
        | Rule::Ss702
        | Rule::Ss703
        | Rule::Ss704
        | Rule::Ss705
        | Rule::Ss706
        | Rule::Ss707
        | Rule::Ss901
        | Rule::Ss902 => finding.rule.name().to_owned(),
    }
}

/// SS406: whether the memory is not that of the caching allocator.
pub(crate) fn on_host_memory(finding: &Finding) -> bool {
    finding.notes.contains(&Note::NotInDeviceMemory)
}

/// SS903: whether the ignore stands in the configuration.
pub(crate) fn is_configured(finding: &Finding) -> bool {
    finding.notes.contains(&Note::ConfiguredIgnore)
}

fn between(finding: &Finding, names: &Names<'_>) -> String {
    let second = names.actor(finding.second.actor);
    match finding.first {
        Some(first) => format!(" between {} and {second}", names.actor(first.actor)),
        None => format!(" in {second}"),
    }
}

/// What the access of a place does, as a verb.
pub(crate) fn verb(place: &Place) -> &'static str {
    match place.access {
        Some(AccessMode::Read) => "reads",
        Some(AccessMode::Write) => "overwrites",
        Some(AccessMode::Update) => "updates",
        Some(AccessMode::Unknown) => "may change",
        None => "runs",
    }
}

fn does(place: &Place, writes: &'static str, updates: &'static str, unknown: &'static str) -> &'static str {
    match place.access {
        Some(AccessMode::Update) => updates,
        Some(AccessMode::Unknown) => unknown,
        _ => writes,
    }
}

/// `` `side` may still read it ``.
fn still(finding: &Finding, names: &Names<'_>) -> String {
    match &finding.first {
        Some(first) => format!("{} may still {}", names.actor(first.actor), touch(first)),
        None => "it may still be in use".to_owned(),
    }
}

/// `a copy may still read it`.
fn still_copied(finding: &Finding) -> String {
    match &finding.first {
        Some(first) => {
            format!("{} may still {}", kind(first).replacen("the", "a", 1), touch(first))
        }
        None => "it may still be in use".to_owned(),
    }
}

fn touch(place: &Place) -> &'static str {
    match place.access {
        Some(AccessMode::Read) => "read it",
        Some(AccessMode::Write) => "write to it",
        Some(AccessMode::Update) => "update it",
        Some(AccessMode::Unknown) | None => "use it",
    }
}

fn kind(place: &Place) -> &'static str {
    match place.kind {
        Some(
            OpKind::CopyHostToDevice
            | OpKind::CopyDeviceToHost
            | OpKind::CopyDeviceToDevice
            | OpKind::CopyHostToHost,
        ) => "the copy",
        Some(OpKind::Kernel) => "the kernel",
        Some(OpKind::Memset) => "the memset",
        Some(OpKind::HostFunction) => "the host function",
        Some(OpKind::Collective) => "the collective",
        Some(OpKind::GraphLaunch) => "the graph",
        None => "the stream operation",
    }
}

/// RAW, WAR, WAW; `None` for rules and accesses of which it cannot be said.
pub(crate) fn hazard(finding: &Finding) -> Option<&'static str> {
    match finding.rule {
        Rule::Ss101 => Some("RAW"),
        Rule::Ss102 => Some("WAR"),
        Rule::Ss103 => Some("WAW"),
        Rule::Ss201
        | Rule::Ss202
        | Rule::Ss301
        | Rule::Ss302
        | Rule::Ss501
        | Rule::Ss502
        | Rule::Ss601
        | Rule::Ss602 => match (finding.first?.access?, finding.second.access?) {
            (AccessMode::Unknown, _) | (_, AccessMode::Unknown) | (AccessMode::Read, AccessMode::Read) => {
                None
            }
            (AccessMode::Read, _) => Some("WAR"),
            (_, AccessMode::Read | AccessMode::Update) => Some("RAW"),
            (_, AccessMode::Write) => Some("WAW"),
        },
        _ => None,
    }
}

/// Whether the finding is about a block that changed, or might have changed, its owner.
pub(crate) fn is_reuse(rule: Rule) -> bool {
    matches!(rule, Rule::Ss201 | Rule::Ss202 | Rule::Ss203)
}

/// Whether the host acts second.
pub(crate) fn is_host(finding: &Finding) -> bool {
    finding.second.actor == Actor::Host
}
