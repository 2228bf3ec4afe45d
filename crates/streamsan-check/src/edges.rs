//! Waits that a report proposes, to be imagined in a second pass, and those that a user wants to be imagined.
//!
//! Code pasted before a line runs each time the line begins, before anything the line calls. All lines of a statement
//! are the first one. A line begins
//! when a thread's call stack holds it and the thread's previous event did not, or when the thread does a step
//! of it again. The second is a guess where a line holds a loop of its own, such as a comprehension.

use crate::Assumed;
use crate::finding::FixAction;
use std::collections::BTreeMap;
use streamsan_trace::{SiteId, StringId, Tables};

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

/// A wait that is imagined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imagined {
    /// What a fix proposes.
    Fix(FixAction),
    /// The host waits for all streams of all devices: [`Assumed`].
    Everything,
}

/// Imagined waits by line.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    actions: Vec<Vec<Imagined>>,
    /// Per site, the lines with proposals that its stack holds.
    lines: Vec<Vec<u32>>,
}

impl Edges {
    /// `proposed`: where the line is, and what is to be done before it. `assumed` lines are in place too.
    pub(crate) fn new(
        proposed: impl IntoIterator<Item = (Line, FixAction)>,
        assumed: &[Assumed],
        tables: &Tables,
    ) -> Self {
        let mut by_line: BTreeMap<Line, Vec<Imagined>> = BTreeMap::new();
        for assumed in assumed {
            for (index, _) in tables.strings.iter().enumerate().filter(|(_, text)| **text == assumed.file) {
                let line = Line::Code(StringId(index as u32), assumed.line);
                by_line.insert(line, vec![Imagined::Everything]);
            }
        }
        for (line, action) in proposed {
            let action = Imagined::Fix(action);
            let actions = by_line.entry(line).or_default();
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        if by_line.is_empty() {
            return Self::default();
        }
        let index: BTreeMap<Line, u32> =
            by_line.keys().enumerate().map(|(index, &line)| (line, index as u32)).collect();
        let lines = (0..tables.sites.len())
            .map(|site| {
                let site = SiteId(site as u32);
                let frames = tables.stack(site).flat_map(|(id, frame)| {
                    let statement = tables.statement(id).map(|(file, line)| Line::Code(file, line));
                    [Some(Line::Code(frame.file, frame.line)), statement].into_iter().flatten()
                });
                let mut held: Vec<u32> =
                    frames.chain([Line::Site(site)]).filter_map(|line| index.get(&line).copied()).collect();
                held.sort_unstable();
                held.dedup();
                held
            })
            .collect();
        Self { actions: by_line.into_values().collect(), lines }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Whether the site's stack holds a line with proposals.
    pub(crate) fn hold(&self, site: SiteId) -> bool {
        self.lines.get(site.index()).is_some_and(|lines| !lines.is_empty())
    }

    /// What is to be done when a thread goes from one site to another.
    pub(crate) fn entering(&self, previous: SiteId, current: SiteId) -> impl Iterator<Item = Imagined> {
        let of = |site: SiteId| self.lines.get(site.index()).map_or(&[][..], Vec::as_slice);
        let before = of(previous);
        of(current)
            .iter()
            .filter(|line| !before.contains(line))
            .flat_map(|&line| self.actions[line as usize].iter().copied())
    }
}
