//! Lines of user code, and how often each was come to.

use crate::edges::Line;
use rustc_hash::FxHashMap;
use streamsan_trace::{Event, EventKind, SiteId, Tables, ThreadId};

/// So many times a line is come to before it is taken for a part of a loop.
pub(super) const LOOP: u64 = 3;

/// Where each thread is, and how often each line was come to.
#[derive(Debug, Default)]
pub(super) struct Lines {
    of_site: Vec<Option<Line>>,
    current: FxHashMap<ThreadId, Line>,
    turns: FxHashMap<Line, u64>,
    /// The site of each thread's last event.
    previous: FxHashMap<ThreadId, SiteId>,
}

impl Lines {
    /// The line of an event, which its thread has come to if it was elsewhere before.
    ///
    /// What one call does on one line, such as uploading all parameters of a model, is one turn.
    pub(super) fn enter(&mut self, event: &Event, tables: &Tables) -> Line {
        let line = self.of(event.site, tables);
        if event.site != SiteId(0) && self.current.insert(event.thread, line) != Some(line) {
            *self.turns.entry(line).or_default() += 1;
        }
        line
    }

    /// Whether the thread's event before this one came from the same call, as with the waits that `.item()`, `.cpu()` and a
    /// library's own code make. A call of `synchronize` makes one wait and nothing else.
    pub(super) fn is_inside(&mut self, event: &Event) -> bool {
        let begins = matches!(event.kind, EventKind::HostWaitBegin { .. });
        !begins && self.previous.insert(event.thread, event.site) == Some(event.site)
    }

    /// The line of a site.
    pub(super) fn of(&mut self, site: SiteId, tables: &Tables) -> Line {
        let index = site.index();
        if self.of_site.len() <= index {
            self.of_site.resize(index + 1, None);
        }
        *self.of_site[index].get_or_insert_with(|| Line::of(site, tables))
    }

    /// How often a line was come to.
    pub(super) fn turns(&self, line: Line) -> u64 {
        self.turns.get(&line).copied().unwrap_or(0)
    }
}
