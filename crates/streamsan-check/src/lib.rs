//! What a trace means: order, shadow memory, rules, fixes.
//!
//! [`check`], and [`LiveCheck`] for a log that is still being written, are pure functions: they read no file, no clock and no
//! environment, print nothing and cannot fail. Findings say what is wrong with the program, gaps what could not be seen.
//!
//! The model. A *chain* is a stream or the host; vector clocks say how far each chain knows each other one
//! (`clock`, `order`). Shadow memory keeps, per byte, the accesses that may still be the earlier half of a
//! hazard (`shadow`). The engine walks the log once and gives every conflict without order (`engine`),
//! which is grouped by lines (`group`) and gets a fix. All fixes of a report are then checked together in
//! a second pass over the same log.
//!
//! Origin: FastTrack (Flanagan and Freund, PLDI 2009), with streams and the host as threads, events as
//! release and acquire, and byte intervals in place of variables.
//!
//! What it can miss: accesses that are not in the log, order between processes, and any order of calls that
//! this run did not take. One run's order is checked, whatever its timing was.

mod advise;
mod ask;
mod bindings;
mod blocks;
mod clock;
mod collectives;
mod edges;
mod engine;
mod finding;
mod fingerprint;
mod group;
mod hazard;
mod ignores;
mod live;
mod measures;
mod near_miss;
mod order;
mod overlap;
mod report;
mod rules;
mod shadow;
mod verify;

pub use ask::Question;
pub use finding::{
    Actor, Advised, Cover, Finding, Fix, FixAction, HeldBack, HostWork, Matters, Measured, Memory, Note,
    Occurrences, OrderedUpTo, Place,
};
pub use hazard::{Hazard, Origin};
pub use ignores::{IgnoreComment, IgnoreFiles, IgnoreSource, Ignored, Ignores};
pub use live::LiveCheck;
pub use measures::{Measures, StreamMeasures};
pub use report::{Coverage, Gap, Report};
pub use rules::{Family, Level, Rule};

use advise::Advisor;
use edges::Edges;
use engine::{Engine, Sink};
use group::Grouper;
use rules::events::{Call, Property};
use streamsan_trace::{Event, GapReason, Log, OpNumber, StringId, Tables};

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Leave these rules out.
    pub ignore: Vec<Rule>,
    /// Leave hazards at these places out. Ranges in the log are found without.
    pub ignores: Ignores,
    /// Report only what happens here, with the order of all that was before.
    pub region: Option<Region>,
    /// Levels in place of the rules' own; the last one for a rule counts.
    pub levels: Vec<(Rule, Level)>,
    /// Check as if a wait for everything stood before these lines.
    pub assume: Vec<Assumed>,
    /// Give advice too (SS701 to SS707): what the program does more of than it needs.
    pub advise: bool,
}

impl Config {
    /// The level that is set for a rule.
    fn level(&self, rule: Rule) -> Option<Level> {
        self.levels.iter().rev().find(|(other, _)| *other == rule).map(|&(_, level)| level)
    }
}

/// A line before which the host is assumed to wait for all work of all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The file, as the log names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// A part of a log: a hazard is in it if its later operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first event of it.
    pub first: OpNumber,
    /// The last event of it; later ones are not looked at.
    pub last: OpNumber,
}

/// Checks a log. It is read twice, and a few times more if there are several findings and it is short.
///
/// ```
/// use streamsan_check::{Config, check};
/// let report = check(&streamsan_trace::Trace::default(), &Config::default());
/// assert!(report.findings.is_empty() && report.coverage.operations == 0);
/// ```
pub fn check(log: &dyn Log, config: &Config) -> Report {
    let mut grouper = Grouper::default();
    let tables = log.tables();
    let mut engine = Engine::new(Edges::new([], &config.assume, tables), config);
    let mut advisor = config.advise.then(|| Advisor::new(config));
    log.read(&mut |event, accesses| {
        engine.event(event, accesses, tables, &mut grouper);
        if let Some(advisor) = &mut advisor {
            advisor.event(event, accesses, tables, &engine);
        }
    });
    // Before ignores are judged: what is for advice is used by it.
    let unseen = grouper.gaps.keys().any(|&(reason, _)| hides_operations(reason));
    let advice = advisor.map(|advisor| advisor.finish(log, config, &mut engine, unseen));
    let mut report = outcome(&engine, &grouper, config.advise, tables);
    verify::verify(log, config, &mut report.findings);
    if let Some((advice, measures)) = advice {
        report.findings.extend(advice);
        report.measures = Some(measures);
    }
    finish(&mut report, config, log.tables());
    verify::relate(log, config, report.coverage.events, &mut report.findings);
    report
}

/// What is known after some events.
fn outcome(engine: &Engine, grouper: &Grouper, advised: bool, tables: &Tables) -> Report {
    let gaps = grouper.gaps();
    let coverage = Coverage { opaque: opaque(&gaps), ..engine.coverage() };
    let mut findings = grouper.finish(tables);
    findings.extend(engine.ignores.unused(advised, tables));
    group::sort(&mut findings);
    Report { findings, gaps, coverage, hidden: 0, measures: None, ignored: engine.ignores.ignored() }
}

/// Leaves out what is said twice and what is not wanted.
fn finish(report: &mut Report, config: &Config, tables: &Tables) {
    group::fold(&mut report.findings, tables);
    let found = report.findings.len();
    report.findings.retain(|finding| !config.ignore.contains(&finding.rule));
    report.hidden = (found - report.findings.len()) as u64;
    for finding in &mut report.findings {
        finding.set_level = config.level(finding.rule);
    }
    group::sort(&mut report.findings);
}

/// All unordered conflicting pairs that the engine sees, in log order of the later one, before grouping.
pub fn hazards(log: &dyn Log) -> Vec<Hazard> {
    struct All(Vec<Hazard>);
    impl Sink for All {
        fn hazard(&mut self, hazard: &Hazard, _: &Engine, _: &Tables) {
            self.0.push(*hazard);
        }
        fn call(&mut self, _: &Event, _: Call, _: Property, _: &Tables) {}
        fn gap(&mut self, _: GapReason, _: StringId, _: OpNumber) {}
        fn undecided(&mut self, _: u64, _: OpNumber) {}
    }
    let mut all = All(Vec::new());
    walk(log, Edges::default(), &Config::default(), &mut all);
    all.0
}

/// Reads the whole log once.
fn walk(log: &dyn Log, edges: Edges, config: &Config, sink: &mut impl Sink) -> Engine {
    let mut engine = Engine::new(edges, config);
    let tables = log.tables();
    log.read(&mut |event, accesses| engine.event(event, accesses, tables, sink));
    engine
}

/// Whether operations, accesses or order may be missing from the log for this reason.
fn hides_operations(reason: GapReason) -> bool {
    // What a forked process does is no part of this run, and advice that the forgotten past concerns is not given at all.
    !matches!(reason, GapReason::Forked | GapReason::NotComputed | GapReason::Forgotten)
}

fn opaque(gaps: &[Gap]) -> u64 {
    let unknown = |gap: &&Gap| matches!(gap.reason, GapReason::OpaqueKernel | GapReason::UnknownOperator);
    gaps.iter().filter(unknown).map(|gap| gap.count).sum()
}
