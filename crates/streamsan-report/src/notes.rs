//! The statements under a finding: which order is missing, which exists, what memory it is about.

use crate::names::Names;
use crate::numbers::{bytes, counted, grouped};
use crate::places::{in_parentheses, locate};
use std::fmt::Write as _;
use streamsan_check::{Finding, Note, Place, Rule};
use streamsan_trace::{SiteId, Trace};

/// All statements, most important first. Each may have several lines.
pub(crate) fn notes(finding: &Finding, trace: &Trace, names: &Names<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(missing_edge(finding, trace, names));
    notes.extend(finding.notes.iter().filter_map(|note| near_miss(note, finding, trace, names)));
    notes.extend(finding.first.and_then(|first| backward("(1)", &first, trace)));
    let second = if finding.first.is_some() { "(2)" } else { "it" };
    notes.extend(backward(second, &finding.second, trace));
    notes.extend(meaning(finding.rule));
    notes.extend(memory(finding, trace, names));
    notes
}

fn missing_edge(finding: &Finding, trace: &Trace, names: &Names<'_>) -> Option<String> {
    let (first, second) = (finding.first?, finding.second);
    let mut note = format!(
        "missing edge: {} {} --X--> {} {}",
        names.actor_plain(first.actor),
        first.number,
        names.actor_plain(second.actor),
        second.number
    );
    if let Some(reach) = finding.ordered_up_to {
        let (waiter, awaited) = (names.actor(second.actor), names.actor(reach.actor));
        note.push('\n');
        if reach.number.0 == 0 {
            let _ = write!(note, "{waiter} has never waited for {awaited}");
        } else {
            let place = in_parentheses(trace, reach.site);
            let _ = write!(note, "{waiter} has waited for {awaited} only up to {}{place}", reach.number);
        }
    }
    Some(note)
}

fn near_miss(note: &Note, finding: &Finding, trace: &Trace, names: &Names<'_>) -> Option<String> {
    let second = names.actor(finding.second.actor);
    match *note {
        Note::OppositeWait { wait, site } => {
            let first = names.actor(finding.first?.actor);
            let place = in_parentheses(trace, site);
            Some(format!(
                "the opposite wait exists: {first} waits for {second} at {wait}{place}; that does not make {second} wait for {first}"
            ))
        }
        Note::SelfWait { wait, site, .. } => {
            let place = in_parentheses(trace, site);
            Some(format!(
                "{second} waits at {wait}{place} for an event recorded in {second} itself; that orders nothing between the two streams"
            ))
        }
        Note::UnrecordedWait { wait, site, .. } => {
            let place = in_parentheses(trace, site);
            Some(format!("the wait at {wait}{place} does nothing: its event had not been recorded yet"))
        }
        // Said together with the count.
        Note::FirstOccurrence { .. } => None,
    }
}

fn backward(mark: &str, place: &Place, trace: &Trace) -> Option<String> {
    if place.forward_site == SiteId(0) {
        return None;
    }
    let forward = locate(trace, place.forward_site)?.line();
    let started =
        locate(trace, place.site).map_or_else(String::new, |place| format!(" started at {}", place.line()));
    Some(format!("{mark} belongs to the backward pass{started}; its forward operation is at {forward}"))
}

/// Why it matters, where the headline does not say it.
fn meaning(rule: Rule) -> Option<String> {
    let text = match rule {
        Rule::Ss401 => "CUDA treats an event without a record as finished, so nothing is waited for",
        Rule::Ss403 => {
            "a stream is ordered after itself anyway; was another stream meant?\nwithin `with torch.cuda.stream(s)`, `torch.cuda.current_stream()` is `s`"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn memory(finding: &Finding, trace: &Trace, names: &Names<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(memory) = finding.memory {
        let again = names.memory_again(&memory);
        let place = locate(trace, memory.alloc_site).map(|place| format!("allocated at {}", place.line()));
        // Without a name the headline has said the size.
        let size = if names.block(memory.block).is_some() { memory.size } else { 0 };
        match (size, place) {
            (0, None) => {}
            (0, Some(place)) => parts.push(format!("{again} was {place}")),
            (size, None) => parts.push(format!("{again} is {}", bytes(size))),
            (size, Some(place)) => parts.push(format!("{again} is {}, {place}", bytes(size))),
        }
        if memory.overlap > 0 && memory.size > memory.overlap {
            // The overlap is a bound: strided accesses may leave holes in it.
            let start = match memory.offset {
                0 => String::new(),
                offset => format!(", (2) starts at byte {}", grouped(offset)),
            };
            parts.push(format!("(1) and (2) overlap within {}{start}", bytes(memory.overlap)));
        }
    }
    if finding.count > 1 {
        let first = finding.notes.iter().find_map(|note| match note {
            Note::FirstOccurrence { number } => Some(format!(", first at {number}")),
            _ => None,
        });
        parts.push(format!(
            "{}{}",
            counted(finding.count, "occurrence", "occurrences"),
            first.unwrap_or_default()
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
