//! Taking a line's waits or `record_stream` calls away, to see whether anything needs them.

use super::lines::Lines;
use crate::edges::{Edges, Line};
use crate::engine::Engine;
use crate::group::Key;
use crate::verify::Remaining;
use crate::{Config, walk};
use rustc_hash::FxHashSet;
use std::collections::HashSet;
use streamsan_trace::{BlockId, Event, EventKind, Log, StreamId, Tables};

/// What is taken out: all calls of one sort that a line makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Waits of streams.
    Wait(Line),
    /// Waits of the host.
    HostWait(Line),
    /// `record_stream`.
    RecordStream(Line),
}

/// The hazards of the log as it is.
pub(super) struct Baseline(HashSet<Key>);

impl Baseline {
    pub(super) fn of(log: &dyn Log, config: &Config) -> Self {
        let mut remaining = Remaining::default();
        walk(log, assumed(config, log.tables()), config, &mut remaining);
        Self(remaining.0)
    }

    /// Whether there is no hazard that was not there before if these calls are taken out.
    pub(super) fn is_clean_without(&self, log: &dyn Log, config: &Config, removals: &[Removal]) -> bool {
        let tables = log.tables();
        let mut remaining = Remaining::default();
        let mut engine = Engine::new(assumed(config, tables), config);
        let mut filter = Filter { removals, lines: Lines::default(), guards: FxHashSet::default() };
        log.read(&mut |event, accesses| {
            if !filter.takes_out(event, tables) {
                engine.event(event, accesses, tables, &mut remaining);
            }
        });
        remaining.0.is_subset(&self.0)
    }
}

fn assumed(config: &Config, tables: &Tables) -> Edges {
    Edges::new([], &config.assume, tables)
}

/// Which events are not there any more.
struct Filter<'a> {
    removals: &'a [Removal],
    lines: Lines,
    /// Guards that a block will not get.
    guards: FxHashSet<(BlockId, StreamId)>,
}

impl Filter<'_> {
    fn takes_out(&mut self, event: &Event, tables: &Tables) -> bool {
        let mut named = |removal: fn(Line) -> Removal| {
            self.removals.contains(&removal(self.lines.of(event.site, tables)))
        };
        match event.kind {
            EventKind::EventWait { .. } => named(Removal::Wait),
            EventKind::HostWaitBegin { .. } | EventKind::HostWait { .. } => named(Removal::HostWait),
            EventKind::RecordStream { block, stream } => {
                let out = named(Removal::RecordStream);
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
