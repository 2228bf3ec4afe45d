//! SS704: a wait for a whole stream where an event in the middle of it is enough.
//!
//! What a wait is needed for is found by taking it away: the hazards that appear name the operations that matter. If they
//! are all of one line, an event recorded after that line is enough; that is tried, and counted is what the stream that
//! waits would not wait for any more.

use super::lines::{LOOP, Lines};
use super::trial::{Baseline, Kept, Trial};
use super::{Draft, Had, Seen};
use crate::Config;
use crate::edges::Line;
use crate::finding::{Actor, Advised, Matters, Measured};
use crate::order::WaitOutcome;
use crate::rules::Rule;
use std::collections::BTreeMap;
use streamsan_trace::{EventKind, Log, StreamId, VisibleStream};

/// Events that may be looked at for all lines together.
const EFFORT: u64 = 6_000_000;

#[derive(Debug, Default)]
pub(super) struct Serial {
    lines: BTreeMap<Line, Waiter>,
}

/// The waits of a line that order something.
#[derive(Debug, Default)]
struct Waiter {
    had: Had,
    /// Who waits for whom, if it is always the same two.
    streams: Option<(StreamId, StreamId)>,
    mixed: bool,
    names: Vec<VisibleStream>,
}

impl Serial {
    /// A wait of a stream that the user's code asks for. A line that waits for a collective is left alone.
    pub(super) fn event(&mut self, seen: &Seen<'_>, outcome: WaitOutcome, collective: bool) {
        let (EventKind::EventWait { stream, .. }, WaitOutcome::Edge { from, new: true }) =
            (seen.event.kind, outcome)
        else {
            return;
        };
        let waiter = self.lines.entry(seen.line).or_default();
        if waiter.had.first.is_none() {
            waiter.streams = Some((stream, from));
            waiter.names =
                seen.engine.bindings.at(seen.event.number, seen.event.site, &[stream, from], seen.tables);
        }
        waiter.mixed |= collective || waiter.streams != Some((stream, from));
        waiter.had.executions += 1;
        waiter.had.add(seen, Actor::Stream(stream));
    }

    pub(super) fn drafts(
        self,
        log: &dyn Log,
        config: &Config,
        events: u64,
        lines: &Lines,
        baseline: &Baseline,
    ) -> Vec<Draft> {
        let mut passes = EFFORT / events.max(1);
        let mut drafts = Vec::new();
        for (line, waiter) in self.lines {
            let Some((_, awaited)) = waiter.streams.filter(|_| !waiter.mixed) else { continue };
            if waiter.had.count < LOOP || lines.turns(line) < LOOP {
                continue;
            }
            let Some(left) = passes.checked_sub(3) else { break };
            passes = left;
            drafts.extend(draft(log, config, baseline, line, awaited, &waiter));
        }
        drafts
    }
}

fn draft(
    log: &dyn Log,
    config: &Config,
    baseline: &Baseline,
    wait: Line,
    awaited: StreamId,
    waiter: &Waiter,
) -> Option<Draft> {
    let tables = log.tables();
    let hazards = baseline.new_hazards(log, config, &[Trial::Wait(wait)]);
    let first = hazards.first()?;
    let after = Line::of(first.first_origin.site, tables);
    let of_one_line = hazards.iter().all(|hazard| {
        hazard.first_actor == Actor::Stream(awaited) && Line::of(hazard.first_origin.site, tables) == after
    });
    if !of_one_line || after == wait {
        return None;
    }
    let kept = Kept::of(log, wait, after, awaited);
    // One operation more or less is not worth an event.
    if kept.waits < LOOP || kept.operations < 2 * kept.waits {
        return None;
    }
    let (event, origin, actor) = waiter.had.first?;
    Some(Draft {
        rule: Rule::Ss704,
        event,
        origin,
        actor,
        memory: None,
        count: kept.waits,
        occurrences: waiter.had.occurrences.clone(),
        advised: Advised {
            executions: waiter.had.executions,
            operations: kept.operations,
            bytes: 0,
            measured: Measured::Serialising(Box::new(Matters {
                awaited,
                number: first.first,
                site: first.first_origin.site,
                names: waiter.names.clone(),
            })),
            verified: None,
            unseen: false,
        },
        trial: Some(Trial::EventInstead { wait, after, awaited }),
    })
}
