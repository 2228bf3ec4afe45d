//! Near misses: edges that are there and do not do what was needed. They explain a finding and are never
//! findings of their own (SS401 and SS403 can be, see `rules::events`).

use crate::clock::Epoch;
use crate::engine::{Engine, WaitCall};
use crate::finding::{Actor, Note};
use crate::hazard::{Hazard, Origin};
use crate::rules::Family;
use streamsan_trace::{OpKind, OpNumber, SiteId, StreamId, Tables};

/// The notes of a finding, the most telling first.
pub(crate) fn near_misses(tables: &Tables, hazard: &Hazard, engine: &Engine) -> Vec<Note> {
    let (Actor::Stream(first), Actor::Stream(second)) = (hazard.first_actor, hazard.second_actor) else {
        return Vec::new();
    };
    let opposite = engine
        .last_wait
        .get(&(first, second))
        .map(|wait| Note::OppositeWait { wait: wait.number, site: wait.site });
    let elsewhere = waited_elsewhere(hazard, engine).map(|(call, stream)| Note::WaitedElsewhere {
        wait: call.number,
        site: call.site,
        stream,
    });
    if !matches!(hazard.rule.family(), Family::Order | Family::Graphs | Family::Collectives) {
        // What the new owner of a block waited for says little about the old owner's work.
        return elsewhere.into_iter().chain(opposite).collect();
    }
    let idle = idle_wait(hazard, engine, second);
    let other = wait_on_other(hazard, engine, (first, second));
    let early = early_wait(tables, hazard, engine, (first, second));
    let thread = other_thread(hazard, engine, (first, second));
    let notes = [elsewhere, idle, other, early, opposite, thread].into_iter().flatten();
    // Nodes of a graph are reported at its launch: waits that were captured after them say nothing.
    notes.filter(|note| wait_of(note).is_none_or(|wait| wait < hazard.second)).collect()
}

fn wait_of(note: &Note) -> Option<OpNumber> {
    match *note {
        Note::OppositeWait { wait, .. }
        | Note::SelfWait { wait, .. }
        | Note::UnrecordedWait { wait, .. }
        | Note::EarlyWait { wait, .. }
        | Note::WaitOnOther { wait, .. }
        | Note::WaitedElsewhere { wait, .. } => Some(wait),
        Note::OtherThread { .. }
        | Note::NotInDeviceMemory
        | Note::ConfiguredIgnore
        | Note::FirstOccurrence { .. } => None,
    }
}

/// The last wait for a collective, by a stream that is not the later operation's: `work.wait()` makes the stream wait that
/// is current then.
pub(crate) fn waited_elsewhere(hazard: &Hazard, engine: &Engine) -> Option<(WaitCall, StreamId)> {
    let (Actor::Stream(first), Actor::Stream(second)) = (hazard.first_actor, hazard.second_actor) else {
        return None;
    };
    if hazard.first_origin.kind != Some(OpKind::Collective) {
        return None;
    }
    let collective = Epoch { chain: hazard.first_chain, number: hazard.first };
    engine
        .last_wait
        .iter()
        .filter(|((waiter, awaited), call)| {
            let covers = call.number > hazard.first && engine.order.before_all_of(collective, *waiter);
            *awaited == first && *waiter != second && covers
        })
        .map(|(&(waiter, _), &call)| (call, waiter))
        .max_by_key(|(call, _)| call.number)
}

/// A wait of the later stream, after the first operation, that made no edge.
fn idle_wait(hazard: &Hazard, engine: &Engine, second: StreamId) -> Option<Note> {
    let (call, event, own) = *engine.last_idle_wait.get(&second)?;
    let (wait, site) = (call.number, call.site);
    if wait < hazard.first {
        return None;
    }
    Some(if own { Note::SelfWait { wait, site, event } } else { Note::UnrecordedWait { wait, site, event } })
}

/// A wait of the later stream, after the first operation, for a third stream.
fn wait_on_other(hazard: &Hazard, engine: &Engine, streams: (StreamId, StreamId)) -> Option<Note> {
    let (wait, from) = *engine.last_wait_of.get(&streams.1)?;
    (wait.number > hazard.first && from != streams.0).then_some(Note::WaitOnOther {
        wait: wait.number,
        site: wait.site,
        from,
    })
}

/// A wait for the right stream, in the function of one of the two operations, before the first was issued.
fn early_wait(
    tables: &Tables,
    hazard: &Hazard,
    engine: &Engine,
    streams: (StreamId, StreamId),
) -> Option<Note> {
    let call = *engine.last_wait.get(&(streams.1, streams.0))?;
    let (wait, site) = (call.number, call.site);
    let function = |site: SiteId| tables.user_frame(site).map(|(_, frame)| (frame.file, frame.function));
    let near = [hazard.first_origin, hazard.second_origin]
        .iter()
        .any(|origin| function(origin.site) == function(site));
    (wait < hazard.first && near).then_some(Note::EarlyWait { wait, site })
}

/// One operation on a default stream, in a thread that never left it, the other elsewhere.
fn other_thread(hazard: &Hazard, engine: &Engine, streams: (StreamId, StreamId)) -> Option<Note> {
    let (first, second) = (hazard.first_origin, hazard.second_origin);
    if first.thread == second.thread {
        return None;
    }
    let lost = |number: OpNumber, origin: Origin, stream: StreamId| {
        // Threads of autograd take the stream of the forward operation.
        let backward = origin.forward_site != SiteId(0);
        let stayed = !engine.used_side_streams.contains(&origin.thread);
        // The main thread, 0, has no one to inherit from.
        (origin.thread.0 != 0 && !backward && stayed && engine.order.is_legacy_default(stream))
            .then_some(Note::OtherThread { number })
    };
    lost(hazard.first, first, streams.0).or_else(|| lost(hazard.second, second, streams.1))
}
