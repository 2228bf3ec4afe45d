//! Source places: paths as people know them, lines, columns.

use crate::Sources;
use streamsan_check::{Finding, Rule};
use streamsan_trace::{Frame, FrameId, FrameOrigin, Log, SiteId};

/// Shortens paths below the directory of the run.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    directory: &'a str,
}

impl<'a> Paths<'a> {
    /// Paths of a trace.
    pub fn new(log: &'a dyn Log) -> Self {
        Self { directory: log.header().directory.trim_end_matches('/') }
    }

    /// The path relative to the directory of the run if it lies below, else as it is.
    pub fn shorten(self, path: &str) -> &str {
        let relative = path
            .strip_prefix(self.directory)
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|_| !self.directory.is_empty());
        let path = relative.unwrap_or(path);
        path.strip_prefix("./").unwrap_or(path)
    }
}

/// A frame with its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location<'a> {
    /// Path as the trace has it.
    pub(crate) path: &'a str,
    /// Path as it is shown.
    pub(crate) shown: &'a str,
    pub(crate) frame: &'a Frame,
    /// The line of the frame, or the first one of its statement.
    pub(crate) number: u32,
}

impl Location<'_> {
    /// `train.py:41`.
    pub(crate) fn line(&self) -> String {
        match self.number {
            0 => self.shown.to_owned(),
            line => format!("{}:{line}", self.shown),
        }
    }

    /// `train.py:41:13`, as far as it is known.
    pub(crate) fn line_and_column(&self) -> String {
        match (self.frame.line, self.frame.column) {
            (0, _) | (_, 0) => self.line(),
            (_, column) => format!("{}:{column}", self.line()),
        }
    }
}

/// The innermost user frame of a site, or the innermost frame if no frame is the user's.
pub(crate) fn locate(log: &dyn Log, site: SiteId) -> Option<Location<'_>> {
    let (_, frame) = log.tables().user_frame(site)?;
    Some(location(log, frame))
}

/// The place that a finding is shown at: the later operation, or the free if what came later is innocent.
pub(crate) fn primary_site(finding: &Finding) -> SiteId {
    match (finding.rule, finding.free) {
        (Rule::Ss203, Some(free)) => free.site,
        _ => finding.second.site,
    }
}

/// The user's frames of a site, innermost first.
pub(crate) fn user_stack(log: &dyn Log, site: SiteId) -> impl Iterator<Item = Location<'_>> {
    log.tables()
        .stack(site)
        .filter(|(_, frame)| frame.origin == FrameOrigin::User)
        .map(|(_, frame)| location(log, frame))
}

/// The location of one frame.
pub(crate) fn locate_frame(log: &dyn Log, frame: FrameId) -> Option<Location<'_>> {
    log.tables().frames.get(frame.index()).map(|frame| location(log, frame))
}

/// The line before which code goes that is to run before what the frame does.
pub(crate) fn locate_statement(log: &dyn Log, frame: FrameId) -> Option<Location<'_>> {
    let placement = log.tables().placement(frame)?;
    // Of what no line comes before each time, the line itself is named.
    let number = placement.reach.is_after_line().then_some(placement.line);
    let found = locate_frame(log, frame)?;
    Some(Location { number: number.unwrap_or(found.number), ..found })
}

fn location<'a>(log: &'a dyn Log, frame: &'a Frame) -> Location<'a> {
    let path = log.tables().string(frame.file);
    Location { path, shown: Paths::new(log).shorten(path), frame, number: frame.line }
}

/// ` (data.py:9)` to be put after a statement, or nothing.
pub(crate) fn in_parentheses(log: &dyn Log, site: SiteId) -> String {
    locate(log, site).map_or_else(String::new, |place| format!(" ({})", place.line()))
}

/// The path as a repository has it, with `/`: what the sources say, else relative to the directory of the run.
/// Absolute if it lies outside.
pub(crate) fn repository_path(path: &str, log: &dyn Log, sources: &dyn Sources) -> String {
    let directory = log.header().directory.as_str();
    let whole = if path.starts_with(['/', '<']) || directory.is_empty() {
        path.to_owned()
    } else {
        format!("{}/{path}", directory.trim_end_matches('/'))
    };
    let whole = normal(&whole);
    sources.repository_path(&whole).unwrap_or_else(|| Paths::new(log).shorten(&whole).to_owned())
}

/// Without `.` and `..`, as far as that can be said without looking.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
