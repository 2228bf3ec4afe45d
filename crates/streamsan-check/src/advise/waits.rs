//! SS703: waits that order nothing new, whenever their line runs.
//!
//! A wait of a stream is redundant if the stream was ordered after all that the event stands for by other waits of
//! streams: by clocks, in constant time. A wait of the host is redundant if the host knew all of it; that is said only of
//! a line in a loop, since one more at the end of a program costs nothing. A wait for a collective is never called so
//! (`collectives`).

use super::lines::{LOOP, Lines};
use super::orders::Step;
use super::serial::Serial;
use super::trial::Trial;
use super::{Draft, Had, Seen};
use crate::edges::Line;
use crate::finding::{Actor, Advised, Cover, Measured};
use crate::order::WaitOutcome;
use crate::rules::Rule;
use crate::rules::events::{Call, is_users};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use streamsan_trace::{EventKind, HostWaitHow, OpNumber, SiteId, StreamId, WaitTarget};

/// What the waits of each line did.
#[derive(Debug, Default)]
pub(super) struct Waits {
    of_streams: BTreeMap<Line, (Had, Option<Cover>)>,
    of_host: BTreeMap<Line, Had>,
    /// The last wait of one stream for another that ordered something.
    effective: FxHashMap<(StreamId, StreamId), (OpNumber, SiteId)>,
    /// Streams that were given work.
    busy: FxHashSet<StreamId>,
    pub(super) serial: Serial,
    pub(super) per_stream: BTreeMap<StreamId, PerStream>,
}

/// The waits that one stream made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerStream {
    pub(super) waits: u64,
    /// Those that ordered nothing new.
    pub(super) redundant: u64,
}

impl Waits {
    pub(super) fn event(&mut self, seen: &Seen<'_>, step: Step) {
        let place = (seen.event.number, seen.event.site);
        match (step, seen.event.kind) {
            (Step::Operation, EventKind::Op { stream, .. } | EventKind::GraphLaunch { stream, .. }) => {
                self.busy.insert(stream);
            }
            (Step::Wait(outcome), EventKind::EventWait { stream, event }) => {
                // What a backend of collectives waits for is its own affair.
                let collective = seen.ends_collective(event);
                let redundant = match outcome {
                    // A stream without any work yet: what is set up first in this process may come later in another.
                    WaitOutcome::Edge { from, .. } if !self.busy.contains(&from) => None,
                    WaitOutcome::Edge { from, new: false } => Some(Cover {
                        awaited: Some(from),
                        earlier: self.effective.get(&(stream, from)).copied(),
                    }),
                    WaitOutcome::Edge { from, new: true } => {
                        self.effective.insert((stream, from), place);
                        None
                    }
                    WaitOutcome::SelfWait | WaitOutcome::Unrecorded => None,
                };
                if seen.counts {
                    let per_stream = self.per_stream.entry(stream).or_default();
                    per_stream.waits += 1;
                    per_stream.redundant +=
                        u64::from(!matches!(outcome, WaitOutcome::Edge { new: true, .. }));
                }
                if seen.counts && is_users(seen.event, Call::Wait, seen.tables) {
                    self.serial.event(seen, outcome, collective);
                    let (had, cover) = self.of_streams.entry(seen.line).or_default();
                    had.executions += 1;
                    if redundant.is_some() && !collective {
                        had.add(seen, Actor::Stream(stream));
                        *cover = cover.or(redundant);
                    }
                }
            }
            (Step::HostWait(new), EventKind::HostWait { target, how: HostWaitHow::Synchronize, .. })
                if seen.counts =>
            {
                let had = self.of_host.entry(seen.line).or_default();
                had.executions += 1;
                let collective = matches!(target, WaitTarget::Event(event) if seen.ends_collective(event));
                if !new && !seen.is_inside && !collective {
                    had.add(seen, Actor::Host);
                }
            }
            _ => {}
        }
    }

    pub(super) fn drafts(&self, lines: &Lines) -> Vec<Draft> {
        let of_streams = self
            .of_streams
            .iter()
            .filter_map(|(&line, (had, cover))| Some(draft(had, (*cover)?, Trial::Wait(line)))?);
        let in_loop = |(line, _): &(&Line, &Had)| lines.turns(**line) >= LOOP;
        let of_host = self.of_host.iter().filter(in_loop).filter_map(|(&line, had)| {
            let cover = Cover { awaited: None, earlier: None };
            draft(had, cover, Trial::HostWait(line))
        });
        of_streams.chain(of_host).collect()
    }
}

fn draft(had: &Had, cover: Cover, trial: Trial) -> Option<Draft> {
    let (event, origin, actor) = had.first.filter(|_| had.count == had.executions)?;
    Some(Draft {
        rule: Rule::Ss703,
        event,
        origin,
        actor,
        memory: None,
        count: had.count,
        occurrences: had.occurrences.clone(),
        advised: Advised {
            executions: had.executions,
            operations: had.count,
            bytes: 0,
            measured: Measured::Redundant(cover),
            verified: None,
            unseen: false,
        },
        trial: Some(trial),
    })
}
