//! Waits that a report proposes, to be imagined in a second pass.
//!
//! Code pasted before a line runs whenever the line runs, so an edge stands before every operation of that
//! line, not only before the one that was reported.

use std::collections::{BTreeSet, HashMap};
use streamsan_trace::{SiteId, StreamId, StringId, Tables};

/// A line of user code: file and line, or the site itself where there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Line {
    Code(StringId, u32),
    Site(SiteId),
}

impl Line {
    pub(crate) fn of(site: SiteId, tables: &Tables) -> Self {
        match tables.user_frame(site) {
            Some((_, frame)) => Self::Code(frame.file, frame.line),
            None => Self::Site(site),
        }
    }
}

/// Proposed waits by line and waiting stream.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    lines: Vec<Line>,
    before: HashMap<(Line, StreamId), Vec<StreamId>>,
}

impl Edges {
    /// `proposed`: (site of the later operation, waiter, awaited).
    pub(crate) fn new(
        proposed: impl IntoIterator<Item = (SiteId, StreamId, StreamId)>,
        tables: &Tables,
    ) -> Self {
        let unique: BTreeSet<(Line, StreamId, StreamId)> = proposed
            .into_iter()
            .map(|(site, waiter, awaited)| (Line::of(site, tables), waiter, awaited))
            .collect();
        let mut edges = Self::default();
        if unique.is_empty() {
            return edges;
        }
        edges.lines = (0..tables.sites.len()).map(|site| Line::of(SiteId(site as u32), tables)).collect();
        for (line, waiter, awaited) in unique {
            edges.before.entry((line, waiter)).or_default().push(awaited);
        }
        edges
    }

    /// The streams that `stream` is to wait for before an operation of this site.
    pub(crate) fn before(&self, site: SiteId, stream: StreamId) -> &[StreamId] {
        let Some(&line) = self.lines.get(site.index()) else { return &[] };
        self.before.get(&(line, stream)).map_or(&[], Vec::as_slice)
    }
}
