//! What a trace means: order, shadow memory, rules, fixes.
//!
//! [`check`] is a pure function: it reads no file, no clock and no environment, prints nothing and cannot
//! fail. Findings say what is wrong with the program, gaps what could not be seen.
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

mod blocks;
mod clock;
mod edges;
mod engine;
mod finding;
mod fingerprint;
mod group;
mod hazard;
mod near_miss;
mod order;
mod overlap;
mod report;
mod rules;
mod shadow;
mod verify;

pub use finding::{Actor, Finding, Fix, FixAction, Memory, Note, OrderedUpTo, Place};
pub use hazard::Hazard;
pub use report::{Coverage, Gap, Report};
pub use rules::{Family, Level, Rule};

use edges::Edges;
use engine::{Engine, Sink};
use group::Grouper;
use rules::events::{Call, Property};
use std::collections::BTreeMap;
use streamsan_trace::{Event, EventKind, GapReason, OpNumber, StringId, Trace};

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Leave these rules out.
    pub ignore: Vec<Rule>,
}

/// Checks a trace.
///
/// ```
/// use streamsan_check::{Config, check};
/// let report = check(&streamsan_trace::Trace::default(), &Config::default());
/// assert!(report.findings.is_empty() && report.coverage.operations == 0);
/// ```
pub fn check(trace: &Trace, config: &Config) -> Report {
    let none = Edges::default();
    let mut grouper = Grouper::new(trace);
    let engine = walk(trace, &none, &mut grouper);
    let mut gaps = gaps(trace);
    gaps.extend(grouper.gaps.values().cloned());
    let coverage = Coverage { opaque: opaque(&gaps), ..engine.coverage() };
    let mut findings = grouper.finish();
    verify::verify(trace, &mut findings);
    group::fold(&mut findings, trace);
    let found = findings.len();
    findings.retain(|finding| !config.ignore.contains(&finding.rule));
    let hidden = (found - findings.len()) as u64;
    verify::relate(trace, &mut findings);
    Report { findings, gaps, coverage, hidden }
}

/// All unordered conflicting pairs that the engine sees, in log order of the later one, before grouping.
pub fn hazards(trace: &Trace) -> Vec<Hazard> {
    struct All(Vec<Hazard>);
    impl Sink for All {
        fn hazard(&mut self, hazard: &Hazard, _: &Engine<'_>) {
            self.0.push(*hazard);
        }
        fn call(&mut self, _: &Event, _: Call, _: Property) {}
        fn gap(&mut self, _: GapReason, _: StringId, _: OpNumber) {}
    }
    let none = Edges::default();
    let mut all = All(Vec::new());
    walk(trace, &none, &mut all);
    all.0
}

/// Reads the whole log once.
fn walk<'a>(trace: &'a Trace, edges: &'a Edges, sink: &mut impl Sink) -> Engine<'a> {
    let mut engine = Engine::new(&trace.tables, edges);
    for event in &trace.events {
        let accesses = match event.kind {
            EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } => {
                trace.accesses(accesses)
            }
            _ => &[],
        };
        engine.event(event, accesses, sink);
    }
    engine
}

/// Gaps by reason and detail, in order of first appearance.
fn gaps(trace: &Trace) -> Vec<Gap> {
    let mut found: BTreeMap<(GapReason, StringId), Gap> = BTreeMap::new();
    for event in &trace.events {
        if let EventKind::Gap { reason, detail } = event.kind {
            let gap = Gap { reason, detail, count: 0, first: event.number };
            found.entry((reason, detail)).or_insert(gap).count += 1;
        }
    }
    let mut gaps: Vec<Gap> = found.into_values().collect();
    gaps.sort_by_key(|gap| gap.first);
    gaps
}

fn opaque(gaps: &[Gap]) -> u64 {
    let unknown = |gap: &&Gap| matches!(gap.reason, GapReason::OpaqueKernel | GapReason::UnknownOperator);
    gaps.iter().filter(unknown).map(|gap| gap.count).sum()
}
