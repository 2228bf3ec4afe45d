//! Near misses: edges that are there and do not do what was needed. They explain a finding and are never
//! findings of their own (SS401 and SS403 can be, see `rules::events`).

use crate::engine::Engine;
use crate::finding::{Actor, Note};
use crate::group::site_of;
use crate::hazard::Hazard;
use crate::rules::Family;
use streamsan_trace::{Event, EventKind, OpNumber, SiteId, StreamId, Trace};

/// The notes of a finding, the most telling first.
pub(crate) fn near_misses(trace: &Trace, hazard: &Hazard, engine: &Engine<'_>) -> Vec<Note> {
    let (Actor::Stream(first), Actor::Stream(second)) = (hazard.first_actor, hazard.second_actor) else {
        return Vec::new();
    };
    let opposite = engine
        .last_wait
        .get(&(first, second))
        .map(|&wait| Note::OppositeWait { wait, site: site_of(trace, wait) });
    if hazard.rule.family() != Family::Order {
        // What the new owner of a block waited for says little about the old owner's work.
        return opposite.into_iter().collect();
    }
    let idle = idle_wait(trace, hazard, engine, second);
    let other = wait_on_other(trace, hazard, engine, (first, second));
    let early = early_wait(trace, hazard, engine, (first, second));
    let thread = other_thread(trace, hazard, engine, (first, second));
    [idle, other, early, opposite, thread].into_iter().flatten().collect()
}

/// A wait of the later stream, after the first operation, that made no edge.
fn idle_wait(trace: &Trace, hazard: &Hazard, engine: &Engine<'_>, second: StreamId) -> Option<Note> {
    let wait = *engine.last_idle_wait.get(&second)?;
    let Event { site, kind: EventKind::EventWait { event, .. }, .. } = *trace.event(wait)? else {
        return None;
    };
    if wait < hazard.first {
        return None;
    }
    Some(match engine.order.last_record(event) {
        Some(_) => Note::SelfWait { wait, site, event },
        None => Note::UnrecordedWait { wait, site, event },
    })
}

/// A wait of the later stream, after the first operation, for a third stream.
fn wait_on_other(
    trace: &Trace,
    hazard: &Hazard,
    engine: &Engine<'_>,
    streams: (StreamId, StreamId),
) -> Option<Note> {
    let (wait, from) = *engine.last_wait_of.get(&streams.1)?;
    (wait > hazard.first && from != streams.0).then(|| Note::WaitOnOther {
        wait,
        site: site_of(trace, wait),
        from,
    })
}

/// A wait for the right stream, in the function of one of the two operations, before the first was issued.
fn early_wait(
    trace: &Trace,
    hazard: &Hazard,
    engine: &Engine<'_>,
    streams: (StreamId, StreamId),
) -> Option<Note> {
    let wait = *engine.last_wait.get(&(streams.1, streams.0))?;
    let site = site_of(trace, wait);
    let function =
        |site: SiteId| trace.tables.user_frame(site).map(|(_, frame)| (frame.file, frame.function));
    let near = [hazard.first, hazard.second]
        .iter()
        .any(|&number| function(site_of(trace, number)) == function(site));
    (wait < hazard.first && near).then_some(Note::EarlyWait { wait, site })
}

/// One operation on a default stream, in a thread that never left it, the other elsewhere.
fn other_thread(
    trace: &Trace,
    hazard: &Hazard,
    engine: &Engine<'_>,
    streams: (StreamId, StreamId),
) -> Option<Note> {
    let thread = |number: OpNumber| trace.event(number).map(|event| event.thread);
    if thread(hazard.first) == thread(hazard.second) {
        return None;
    }
    let lost = |number: OpNumber, stream: StreamId| {
        let event = trace.event(number)?;
        // Threads of autograd take the stream of the forward operation.
        let backward = matches!(event.kind, EventKind::Op { forward_site, .. } if forward_site != SiteId(0));
        let stayed = !engine.used_side_streams.contains(&event.thread);
        // The main thread, 0, has no one to inherit from.
        (event.thread.0 != 0 && !backward && stayed && engine.order.is_legacy_default(stream))
            .then_some(Note::OtherThread { number })
    };
    lost(hazard.first, streams.0).or_else(|| lost(hazard.second, streams.1))
}
