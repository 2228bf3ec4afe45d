//! The statements under a finding: which order is missing, which exists, what memory it is about.

use crate::advised;
use crate::headline::is_reuse;
use crate::labels::{new_memory, old_memory, second_mark};
use crate::names::Names;
use crate::numbers::{bytes, counted, grouped};
use crate::places::{in_parentheses, locate, user_stack};
use crate::why::why;
use std::fmt::Write as _;
use streamsan_check::{Finding, Memory, Note, Place, Rule};
use streamsan_trace::{Log, OpKind, SiteId};

/// All statements, most important first. Each may have several lines.
pub(crate) fn notes(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(advised) = &finding.advice {
        notes.extend(advised::notes(finding, advised, log, names));
        notes.extend(callers(finding, log));
        return notes;
    }
    notes.extend(missing_edge(finding, log, names));
    if finding.first.is_some() && finding.free.is_some() {
        notes.push("in time: (1), then (2), then (3), in the order in which the host issued them".to_owned());
    }
    notes.extend(finding.notes.iter().filter_map(|note| near_miss(note, finding, log, names)));
    notes.extend(finding.first.and_then(|first| backward("(1)", &first, log)));
    notes.extend(backward(second_mark(finding).unwrap_or("it"), &finding.second, log));
    notes.extend(callers(finding, log));
    notes.extend(why(finding, log, names));
    notes.extend(memory(finding, log, names));
    notes
}

fn missing_edge(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Option<String> {
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
        } else if reach.by_host {
            let place = in_parentheses(log, reach.site);
            let number = reach.number;
            let _ = write!(
                note,
                "only a wait of the host orders {waiter} after {awaited}, up to {number}{place}"
            );
        } else {
            let place = in_parentheses(log, reach.site);
            let _ = write!(note, "{waiter} has waited for {awaited} only up to {}{place}", reach.number);
        }
    }
    Some(note)
}

fn near_miss(note: &Note, finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Option<String> {
    let second = names.actor(finding.second.actor);
    match *note {
        // Whoever uses memory of another stream waits for that stream first: that is no mistaken wait.
        Note::OppositeWait { wait, .. }
            if is_reuse(finding.rule) && finding.first.is_some_and(|first| wait < first.number) =>
        {
            None
        }
        Note::OppositeWait { wait, site } => {
            let first = names.actor(finding.first?.actor);
            let place = in_parentheses(log, site);
            Some(format!(
                "the opposite wait exists: {first} waits for {second} at {wait}{place}; that does not make {second} wait for {first}"
            ))
        }
        Note::SelfWait { wait, site, .. } => {
            let place = in_parentheses(log, site);
            Some(format!(
                "{second} waits at {wait}{place} for an event recorded in {second} itself; that orders nothing between the two streams"
            ))
        }
        Note::UnrecordedWait { wait, site, .. } => {
            let place = in_parentheses(log, site);
            Some(format!("the wait at {wait}{place} does nothing: its event had not been recorded yet"))
        }
        Note::EarlyWait { wait, site } => {
            let first = names.actor(finding.first?.actor);
            let place = in_parentheses(log, site);
            Some(format!(
                "{second} waits for {first} at {wait}{place}, before (1) is issued: a wait covers only what is in the stream by then (SS404)"
            ))
        }
        Note::WaitOnOther { wait, site, from } => {
            let first = names.actor(finding.first?.actor);
            let (place, from) = (in_parentheses(log, site), names.stream(from));
            Some(format!(
                "{second} waits at {wait}{place} for an event recorded in {from}, not in {first} (SS402)"
            ))
        }
        Note::WaitedElsewhere { wait, site, stream } => {
            let (place, stream) = (in_parentheses(log, site), names.stream(stream));
            Some(format!("{stream} waits for the collective at {wait}{place}, {second} does not (SS602)"))
        }
        Note::OtherThread { number } => {
            let mark = if finding.first.is_some_and(|first| first.number == number) { "(1)" } else { "(2)" };
            Some(format!(
                "{mark} runs in a thread of its own, on the default stream: a new thread does not inherit `torch.cuda.stream` (SS407)"
            ))
        }
        // Said in the headline, and together with the count.
        Note::NotInDeviceMemory | Note::ConfiguredIgnore | Note::FirstOccurrence { .. } => None,
    }
}

/// `(1) called from loader.py:30`: who called the function that an access is in, if that says something new.
fn callers(finding: &Finding, log: &dyn Log) -> Option<String> {
    let second = (second_mark(finding).unwrap_or("it"), finding.second.site);
    let places: Vec<_> = finding.first.map(|first| ("(1)", first.site)).into_iter().chain([second]).collect();
    let function = |site| {
        let frame = user_stack(log, site).next()?.frame;
        Some((frame.file, frame.function))
    };
    let said: Vec<String> = places
        .iter()
        .filter_map(|&(mark, site)| {
            let mut stack = user_stack(log, site);
            let (inner, outer) = (stack.next()?, stack.next()?);
            let main =
                log.tables().string(inner.frame.function) == "main" && inner.frame.file == outer.frame.file;
            // Both in one call of one function: it can be read in one place.
            let together = places.iter().all(|&(_, other)| {
                function(other) == function(site)
                    && user_stack(log, other).nth(1).map(|at| at.line()) == Some(outer.line())
            });
            let one_file = inner.frame.file == outer.frame.file;
            (!(main || together && one_file)).then(|| format!("{mark} called from {}", outer.line()))
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn backward(mark: &str, place: &Place, log: &dyn Log) -> Option<String> {
    if place.forward_site == SiteId(0) {
        return None;
    }
    if place.kind == Some(OpKind::GraphLaunch) {
        let (captured, launched) = (locate(log, place.forward_site)?, locate(log, place.site)?);
        return Some(format!(
            "{mark} is a node of a graph: captured at {}, launched at {}",
            captured.line(),
            launched.line()
        ));
    }
    let forward = locate(log, place.forward_site)?.line();
    let started =
        locate(log, place.site).map_or_else(String::new, |place| format!(" started at {}", place.line()));
    Some(format!("{mark} belongs to the backward pass{started}; its forward operation is at {forward}"))
}

fn memory(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Option<String> {
    let mut parts = Vec::new();
    // Without a name the headline has said the size.
    let unsaid = |memory: &Memory| names.block(memory.block).is_some();
    match (finding.old_memory, finding.memory) {
        (Some(old), Some(new)) if is_reuse(finding.rule) => {
            let about_new = finding.rule == Rule::Ss201;
            let say_old = about_new || unsaid(&old);
            let say_new = !about_new || unsaid(&new);
            parts.extend(describe(&old, &old_memory(finding, names), say_old, log));
            parts.extend(describe(&new, &new_memory(finding, names), say_new, log));
        }
        (_, Some(memory)) => {
            parts.extend(describe(&memory, &names.memory_again(&memory), unsaid(&memory), log));
            if finding.first.is_some() && finding.rule != Rule::Ss303 {
                parts.extend(part(&memory));
            }
        }
        _ => {}
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

/// `` `x` is 4.0 MiB, allocated at data.py:12 ``, as far as it is known.
fn describe(memory: &Memory, subject: &str, with_size: bool, log: &dyn Log) -> Option<String> {
    let place = locate(log, memory.alloc_site).map(|place| format!("allocated at {}", place.line()));
    match (if with_size { memory.size } else { 0 }, place) {
        (0, None) => None,
        (0, Some(place)) => Some(format!("{subject} was {place}")),
        (size, None) => Some(format!("{subject} is {}", bytes(size))),
        (size, Some(place)) => Some(format!("{subject} is {}, {place}", bytes(size))),
    }
}

/// How much of the memory both accesses share, if it is not all of it.
fn part(memory: &Memory) -> Option<String> {
    if memory.overlap == 0 || memory.size <= memory.overlap {
        return None;
    }
    // The overlap is a bound: strided accesses may leave holes in it.
    let start = match memory.offset {
        0 => String::new(),
        offset => format!(", (2) starts at byte {}", grouped(offset)),
    };
    Some(format!("(1) and (2) overlap within {}{start}", bytes(memory.overlap)))
}
