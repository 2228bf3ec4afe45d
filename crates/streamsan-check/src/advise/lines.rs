//! Lines of user code, and how often each was come to.

use crate::edges::Line;
use rustc_hash::{FxHashMap, FxHashSet};
use streamsan_trace::{
    Event, EventKind, MemorySpace, Observer, OpNumber, SiteId, StringId, Tables, ThreadId,
};

/// So many times a line is come to before it is taken for a part of a loop.
pub(super) const LOOP: u64 = 3;

/// A function: file and name.
type Function = (StringId, StringId);

/// How often a line was come to, and when: last, and the time before.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    /// The call that came to it first. Others on the same line, such as one after a function that the line calls, are no
    /// turns of their own.
    site: SiteId,
    /// The thread that made it: threads that do the same work are no loop.
    thread: ThreadId,
    count: u64,
    last: OpNumber,
    before: OpNumber,
}

/// Where each thread is, and how often each line was come to.
#[derive(Debug, Default)]
pub(super) struct Lines {
    of_site: Vec<Option<Line>>,
    current: FxHashMap<ThreadId, Line>,
    turns: FxHashMap<Line, Turns>,
    of_function: FxHashMap<Function, Vec<Line>>,
    /// Lines that upload, or that run a backward pass: what is done once in each turn of a loop over batches.
    batches: Vec<Line>,
    /// The site of each thread's last event.
    previous: FxHashMap<ThreadId, SiteId>,
    /// Whether a call stack holds a line.
    calls: FxHashMap<(SiteId, Line), bool>,
    /// Threads that have done something since they came to their line, besides what allocators do.
    at_work: FxHashSet<ThreadId>,
}

impl Lines {
    /// The line of an event, which its thread has come to if it was elsewhere before.
    ///
    /// What one call does on one line, such as uploading all parameters of a model, is one turn, and so is what a line does
    /// after functions that it calls: a model's own lines, or what is given to a library to call back.
    pub(super) fn enter(&mut self, event: &Event, tables: &Tables) -> Line {
        let line = self.of(event.site, tables);
        if event.site != SiteId(0)
            && self.current.insert(event.thread, line) != Some(line)
            && !self.comes_back(event.thread, line, tables)
        {
            self.at_work.remove(&event.thread);
            let turns = self.turns.entry(line).or_default();
            if turns.count > 0 && (turns.site, turns.thread) != (event.site, event.thread) {
                return line;
            }
            (turns.site, turns.thread) = (event.site, event.thread);
            if turns.count == 0
                && let Some((_, frame)) = tables.user_frame(event.site)
            {
                self.of_function.entry((frame.file, frame.function)).or_default().push(line);
            }
            turns.count += 1;
            turns.before = std::mem::replace(&mut turns.last, event.number);
        }
        line
    }

    /// Whether nothing but allocations came before on the line since the thread came to it; says so once.
    pub(super) fn begins(&mut self, event: &Event) -> bool {
        match event.kind {
            EventKind::Alloc { space: MemorySpace::Pinned, .. } => self.at_work.insert(event.thread),
            EventKind::Op { .. }
            | EventKind::GraphLaunch { .. }
            | EventKind::EventWait { .. }
            | EventKind::HostAccess { .. }
            | EventKind::HostWait { observer: Observer::Program, .. } => {
                self.at_work.insert(event.thread);
                false
            }
            _ => false,
        }
    }

    /// Whether the thread's event before was in a function that this line calls.
    fn comes_back(&mut self, thread: ThreadId, line: Line, tables: &Tables) -> bool {
        let Some(&site) = self.previous.get(&thread) else { return false };
        *self.calls.entry((site, line)).or_insert_with(|| {
            tables.stack(site).any(|(_, frame)| Line::Code(frame.file, frame.line) == line)
        })
    }

    /// The line is one of those that are come to once for each batch.
    pub(super) fn is_of_batches(&mut self, line: Line) {
        if !self.batches.contains(&line) {
            self.batches.push(line);
        }
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
        self.turns.get(&line).map_or(0, |turns| turns.count)
    }

    /// Whether a loop went round since then, inside the one that this site is in: another line of its function, or a line
    /// that uploads or runs a backward pass, was come to twice.
    pub(super) fn has_inner_loop(&self, site: SiteId, since: OpNumber, tables: &Tables) -> bool {
        let own = tables
            .user_frame(site)
            .and_then(|(_, frame)| self.of_function.get(&(frame.file, frame.function)).map(Vec::as_slice));
        let mut lines = own.unwrap_or_default().iter().chain(&self.batches);
        lines.any(|line| self.turns.get(line).is_some_and(|turns| turns.before > since))
    }
}
