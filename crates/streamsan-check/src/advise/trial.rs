//! Trying a change: the log is checked once more as if it had been made.

use super::lines::Lines;
use crate::clock::Snapshot;
use crate::edges::{Edges, Line};
use crate::engine::{Engine, Sink};
use crate::finding::FixAction;
use crate::group::{Key, key};
use crate::hazard::Hazard;
use crate::rules::events::{Call, Property};
use crate::verify::Remaining;
use crate::{Config, walk};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashSet;
use streamsan_trace::{
    Access, BlockId, Event, EventId, EventKind, GapReason, Log, OpNumber, StreamId, StringId, Tables,
};

/// A change: what a line does not do any more, and what is done in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// No waits of streams.
    Wait(Line),
    /// No waits of the host.
    HostWait(Line),
    /// Not the host waits, but one stream for another.
    StreamInstead { wait: Line, waiter: StreamId, awaited: StreamId },
    /// No `record_stream`.
    RecordStream(Line),
    /// No `record_stream`; in its place the owner stream waits before the line that frees.
    WaitAtFree { record: Line, free: Line, waiter: StreamId, awaited: StreamId },
    /// A wait not for all of the stream, but for an event recorded in it after another line.
    EventInstead { wait: Line, after: Line, awaited: StreamId },
}

/// The hazards of the log as it is.
pub(super) struct Baseline(HashSet<Key>);

impl Baseline {
    pub(super) fn of(log: &dyn Log, config: &Config) -> Self {
        let mut remaining = Remaining::default();
        walk(log, Edges::new([], &config.assume, log.tables()), config, &mut remaining);
        Self(remaining.0)
    }

    /// Whether there is no hazard that was not there before if these changes are made.
    pub(super) fn is_clean_with(&self, log: &dyn Log, config: &Config, trials: &[Trial]) -> bool {
        let mut remaining = Remaining::default();
        run(log, config, trials, &mut remaining);
        remaining.0.is_subset(&self.0)
    }

    /// The hazards that come with these changes.
    pub(super) fn new_hazards(&self, log: &dyn Log, config: &Config, trials: &[Trial]) -> Vec<Hazard> {
        let mut new = New { known: &self.0, hazards: Vec::new() };
        run(log, config, trials, &mut new);
        new.hazards
    }
}

struct New<'a> {
    known: &'a HashSet<Key>,
    hazards: Vec<Hazard>,
}

impl Sink for New<'_> {
    fn hazard(&mut self, hazard: &Hazard, _: &Engine, tables: &Tables) {
        if !self.known.contains(&key(hazard, tables)) {
            self.hazards.push(*hazard);
        }
    }
    fn call(&mut self, _: &Event, _: Call, _: Property, _: &Tables) {}
    fn gap(&mut self, _: GapReason, _: StringId, _: OpNumber) {}
    fn undecided(&mut self, _: u64, _: OpNumber) {}
}

fn run(log: &dyn Log, config: &Config, trials: &[Trial], sink: &mut impl Sink) {
    let tables = log.tables();
    let waits = trials.iter().filter_map(|trial| match *trial {
        Trial::WaitAtFree { free, waiter, awaited, .. } => {
            Some((free, FixAction::WaitStream { waiter, awaited, waiter_is_current: false }))
        }
        _ => None,
    });
    let mut engine = Engine::new(Edges::new(waits, &config.assume, tables), config);
    let mut changed = Changed {
        trials,
        lines: Lines::default(),
        guards: FxHashSet::default(),
        events: FxHashMap::default(),
    };
    log.read(&mut |event, accesses| changed.event(event, accesses, tables, &mut engine, sink));
}

/// The log with the changes made.
struct Changed<'a> {
    trials: &'a [Trial],
    lines: Lines,
    /// Guards that a block will not get.
    guards: FxHashSet<(BlockId, StreamId)>,
    /// The imagined events, by the line after which each is recorded.
    events: FxHashMap<(Line, StreamId), Snapshot>,
}

impl Changed<'_> {
    fn event(
        &mut self,
        event: &Event,
        accesses: &[Access],
        tables: &Tables,
        engine: &mut Engine,
        sink: &mut impl Sink,
    ) {
        let line = self.lines.of(event.site, tables);
        if self.takes_out(event, line) {
            match event.kind {
                EventKind::EventWait { stream, .. } => {
                    for snapshot in self.instead(line) {
                        engine.order.wait_for(stream, snapshot, event.number);
                    }
                }
                EventKind::HostWait { .. } => {
                    for trial in self.trials {
                        if let Trial::StreamInstead { wait, waiter, awaited } = *trial
                            && wait == line
                        {
                            engine.order.wait_for_stream(waiter, awaited, event.number);
                        }
                    }
                }
                _ => {}
            }
            return;
        }
        engine.event(event, accesses, tables, sink);
        if let EventKind::Op { stream, .. } = event.kind {
            let is_last = |trial: &&Trial| matches!(trial, Trial::EventInstead { after, awaited, .. } if (*after, *awaited) == (line, stream));
            if self.trials.iter().any(|trial| is_last(&trial)) {
                let snapshot = engine.order.guard(stream, event.number);
                self.events.insert((line, stream), snapshot);
            }
        }
    }

    /// What is waited for in place of what the waits of the line wait for.
    fn instead(&self, line: Line) -> impl Iterator<Item = &Snapshot> {
        self.trials.iter().filter_map(move |trial| match trial {
            Trial::EventInstead { wait, after, awaited } if *wait == line => {
                self.events.get(&(*after, *awaited))
            }
            _ => None,
        })
    }

    fn takes_out(&mut self, event: &Event, line: Line) -> bool {
        let named = |is: fn(&Trial) -> Option<Line>| self.trials.iter().any(|trial| is(trial) == Some(line));
        match event.kind {
            // `wait_stream` records an event of its own.
            EventKind::EventRecord { .. } => named(|trial| match trial {
                Trial::Wait(line) => Some(*line),
                _ => None,
            }),
            EventKind::EventWait { .. } => named(|trial| match trial {
                Trial::Wait(line) | Trial::EventInstead { wait: line, .. } => Some(*line),
                _ => None,
            }),
            EventKind::HostWaitBegin { .. } | EventKind::HostWait { .. } => named(|trial| match trial {
                Trial::HostWait(line) | Trial::StreamInstead { wait: line, .. } => Some(*line),
                _ => None,
            }),
            EventKind::RecordStream { block, stream } => {
                let out = named(|trial| match trial {
                    Trial::RecordStream(line) | Trial::WaitAtFree { record: line, .. } => Some(*line),
                    _ => None,
                });
                // Another call for the same stream brings the guard anyway.
                if out {
                    self.guards.insert((block, stream));
                } else {
                    self.guards.remove(&(block, stream));
                }
                out
            }
            EventKind::FreeGuard { block, stream } => self.guards.contains(&(block, stream)),
            _ => false,
        }
    }
}

/// How much of a stream its waiters would not wait for any more.
pub(super) struct Kept {
    /// Waits that would cover less.
    pub(super) waits: u64,
    /// Operations that these cover without need.
    pub(super) operations: u64,
}

impl Kept {
    /// Counts for each wait of the line `wait` the operations in `awaited` between the last one of the line `after` and what
    /// is waited for.
    pub(super) fn of(log: &dyn Log, wait: Line, after: Line, awaited: StreamId) -> Self {
        let tables = log.tables();
        let mut lines = Lines::default();
        let mut since: Option<u64> = None;
        let mut recorded: FxHashMap<EventId, u64> = FxHashMap::default();
        let mut kept = Self { waits: 0, operations: 0 };
        log.read(&mut |event, _| match event.kind {
            EventKind::Op { stream, .. } | EventKind::GraphLaunch { stream, .. } if stream == awaited => {
                let is_last = lines.of(event.site, tables) == after;
                since = if is_last { Some(0) } else { since.map(|count| count + 1) };
            }
            EventKind::EventRecord { event: id, stream } if stream == awaited => {
                recorded.insert(id, since.unwrap_or(0));
            }
            EventKind::EventRecord { event: id, .. } => {
                recorded.remove(&id);
            }
            EventKind::EventWait { event: id, .. } if lines.of(event.site, tables) == wait => {
                let count = recorded.get(&id).copied().unwrap_or(0);
                kept.waits += u64::from(count > 0);
                kept.operations += count;
            }
            _ => {}
        });
        kept
    }
}
