//! Checking a trace while it is written: what is new, in words.
//!
//! Reads from the file, so that a check that is slower than the program only lags. Memory is bounded: the state of the
//! check, the interned tables, and what streams and the memory in use are called.

mod ask;
mod memory;

use crate::TOOL;
use crate::ignore_comments::Scanner;
use crate::reports::Files;
use crate::wanted::Wanted;
pub use ask::{Answer, Answers, Asked};
use memory::{Known, View};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use streamsan_check::{Ignores, Level, LiveCheck, Report, Rule};
use streamsan_report::{Checked, Format, NoSources, Options, fix_line, render};
use streamsan_trace::OpNumber;
use streamsan_trace::file::{Follower, ReadError};

/// A finding that is new. Its fix is not verified, and rules that look at every execution of a line come later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFinding {
    /// Number of its later operation.
    pub number: u64,
    /// The code of the rule.
    pub rule: &'static str,
    /// Whether it is an error.
    pub is_error: bool,
    /// One line that says what and where.
    pub line: String,
    /// What to do, if it is known.
    pub fix: Option<String>,
}

/// A trace that is checked while it is written.
#[derive(Debug)]
pub struct LiveTrace {
    path: PathBuf,
    follower: Follower,
    check: LiveCheck,
    wanted: Wanted,
    scanner: Scanner,
    known: Known,
    operations: u64,
}

impl LiveTrace {
    /// Starts at the beginning of the trace at `path`, which need not be there yet.
    ///
    /// # Errors
    ///
    /// If something else than a trace is there.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::with(path, Wanted::default())
    }

    /// The same, with the levels that the project sets for rules.
    ///
    /// # Errors
    ///
    /// What is wrong with the project's settings; inside, if something else than a trace is there.
    pub fn open_configured(path: &Path) -> Result<Result<Self, ReadError>, String> {
        Ok(Self::with(path, Wanted::with_levels(crate::library::levels()?)))
    }

    /// The same, with what is to be reported.
    pub(crate) fn with(path: &Path, wanted: Wanted) -> Result<Self, ReadError> {
        Ok(Self {
            path: path.to_owned(),
            follower: Follower::open(path)?,
            check: LiveCheck::new(wanted.config().clone()),
            wanted,
            scanner: Scanner::default(),
            known: Known::default(),
            operations: 0,
        })
    }

    /// Checks what was added since the last call; returns what is new.
    ///
    /// # Errors
    ///
    /// If the file cannot be read any more.
    pub fn advance(&mut self) -> Result<Vec<NewFinding>, ReadError> {
        let Self { follower, check, scanner, known, operations, wanted, .. } = self;
        let header = follower.header().cloned().unwrap_or_default();
        let files = Files { directories: vec![header.directory.clone()] };
        follower.advance(&mut |tables, event, accesses| {
            if scanner.is_behind(tables) {
                let mut ignores = scanner.new_ignores(tables, &files);
                if scanner.found_files() {
                    ignores.files =
                        wanted.ignored_files(&View::new(&header, tables, known, &BTreeSet::new()));
                }
                if ignores != Ignores::default() {
                    check.add_ignores(&ignores);
                }
            }
            known.event(event);
            check.event(event, accesses, tables);
        })?;
        *operations = check.operations();
        let findings = check.new_findings();
        if findings.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.in_words(Report { findings, ..Report::default() }))
    }

    /// Whether there may be errors that come with the report only: rules that look at every execution of a line, or at what
    /// an ignore has done, with the level of errors.
    pub fn leaves_out_errors(&self) -> bool {
        let late = [Rule::Ss401, Rule::Ss403, Rule::Ss405, Rule::Ss406, Rule::Ss903];
        let levels = &self.wanted.config().levels;
        let level =
            |rule: Rule| levels.iter().rev().find(|(other, _)| *other == rule).map(|&(_, level)| level);
        late.into_iter().any(|rule| level(rule).unwrap_or_else(|| rule.level()) == Level::Error)
    }

    /// The number of the last event that was checked.
    pub fn last(&self) -> u64 {
        let OpNumber(number) = self.follower.last();
        number
    }

    /// How many operations were checked.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// What occurs again is new again.
    pub fn forget_findings(&mut self) {
        self.check.forget_findings();
    }

    fn in_words(&mut self, mut report: Report) -> Vec<NewFinding> {
        let (Some(header), Some(tables)) = (self.follower.header(), self.follower.tables()) else {
            return Vec::new();
        };
        let blocks: BTreeSet<_> = report
            .findings
            .iter()
            .flat_map(|finding| [finding.memory, finding.old_memory])
            .flatten()
            .map(|memory| memory.block)
            .collect();
        let view = View::new(header, tables, &self.known, &blocks);
        self.wanted.hide_known(&mut report, &view);
        let file = self.path.display().to_string();
        let checked = Checked { file: &file, log: &view, report: &report };
        let options = Options { color: false, tool: TOOL, limit: None, width: None };
        let text = render(Format::Concise, &[checked], &NoSources, &options);
        let describe = |(finding, line): (&streamsan_check::Finding, &str)| NewFinding {
            number: finding.second.number.0,
            rule: finding.rule.code(),
            is_error: finding.level() == Level::Error,
            line: line.to_owned(),
            fix: fix_line(finding, &view),
        };
        report.findings.iter().zip(text.lines()).map(describe).collect()
    }
}
