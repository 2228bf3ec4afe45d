//! A check of a log that is still being written.
//!
//! The same engine and the same grouping as [`check`](crate::check), event by event. What needs the whole log is
//! left out: fixes are not verified, and rules that count every execution of a line come with the report.

use crate::ask::Recorded;
use crate::edges::Edges;
use crate::engine::Engine;
use crate::group::Grouper;
use crate::{Config, Finding, Ignores, Report, finish, outcome};
use streamsan_trace::{Access, Event, Tables};

/// State of a check after the events so far.
///
/// ```
/// use streamsan_check::{Config, LiveCheck};
/// let mut check = LiveCheck::new(Config::default());
/// let tables = streamsan_trace::Tables::default();
/// assert!(check.new_findings().is_empty());
/// assert!(check.report(&tables).findings.is_empty());
/// ```
#[derive(Debug)]
pub struct LiveCheck {
    pub(crate) config: Config,
    pub(crate) engine: Engine,
    pub(crate) recorded: Recorded,
    grouper: Grouper,
    /// How many findings [`LiveCheck::new_findings`] has given.
    given: usize,
}

impl LiveCheck {
    /// A check before the first event.
    pub fn new(config: Config) -> Self {
        let engine = Engine::new(Edges::default(), &config);
        Self { config, engine, recorded: Recorded::default(), grouper: Grouper::default(), given: 0 }
    }

    /// Takes the next event of the log. `tables` hold at least what it refers to.
    pub fn event(&mut self, event: &Event, accesses: &[Access], tables: &Tables) {
        self.recorded.event(event);
        self.engine.event(event, accesses, tables, &mut self.grouper);
    }

    /// Findings that are new since the last call, as they were when they first occurred.
    pub fn new_findings(&mut self) -> Vec<Finding> {
        let new = self.grouper.findings[self.given..].iter();
        let wanted = new.filter(|finding| !self.config.ignore.contains(&finding.rule)).cloned();
        let wanted = wanted.map(|mut finding| {
            finding.set_level = self.config.level(finding.rule);
            finding
        });
        let wanted = wanted.collect();
        self.given = self.grouper.findings.len();
        wanted
    }

    /// Takes ignores of places that become known while the log grows. Those for lines that have not run yet work as if they
    /// had been in the [`Config`].
    pub fn add_ignores(&mut self, ignores: &Ignores) {
        self.engine.ignores.add(ignores);
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.engine.coverage().operations
    }

    /// Starts anew what findings are: one that occurs again is new again. Order and memory are kept.
    pub fn forget_findings(&mut self) {
        self.grouper = Grouper::default();
        self.given = 0;
    }

    /// What [`check`](crate::check) would say of the log so far, but for what needs a second reading: no fix is
    /// verified, and no finding says which other one it goes away with.
    pub fn report(&self, tables: &Tables) -> Report {
        let mut report = outcome(&self.engine, &self.grouper, false, tables);
        finish(&mut report, &self.config, tables);
        report
    }
}
