//! Advice (SS701 to SS707): what a program that may be right does more of than it needs.
//!
//! The advisor reads the same events as the engine, beside it, and counts. It says nothing that the log does not hold:
//! there are no times in it, so costs are operations, bytes, executions, and which streams had work. What is to be taken
//! out or replaced is tried: the log is checked once more as if the change were made, and only what brings no hazard that
//! was not there before is called verified.
//!
//! Two orders are kept (`orders`). In the one the host learns by its waits; what a query happened to answer is left out,
//! as another run gets another answer. In the other one the host never waits: a wait of a stream is called redundant, and
//! a `record_stream` needless, only by what streams wait for, so that a host wait can be taken out later.
//!
//! What it can miss: whatever is done once. Advice about loops needs a line to be come to three times.

mod lines;
mod orders;
mod records;
mod removal;
mod waits;

use crate::edges::Line;
use crate::engine::Engine;
use crate::finding::{Actor, Advised, Finding, Memory, Occurrences, Place};
use crate::fingerprint::fingerprint;
use crate::group::place;
use crate::hazard::Origin;
use crate::rules::Rule;
use crate::{Config, Region};
use lines::Lines;
use orders::Orders;
use records::Records;
use removal::{Baseline, Removal};
use streamsan_trace::{Access, Event, Log, Tables};
use waits::Waits;

/// What was counted so far.
#[derive(Debug)]
pub(crate) struct Advisor {
    region: Option<Region>,
    orders: Orders,
    lines: Lines,
    waits: Waits,
    records: Records,
}

/// Advice that is not verified yet.
#[derive(Debug)]
struct Draft {
    rule: Rule,
    /// The first execution that it is about.
    event: Event,
    origin: Origin,
    actor: Actor,
    memory: Option<Memory>,
    count: u64,
    occurrences: Occurrences,
    advised: Advised,
    /// What is taken out of the log to see whether it is needed.
    removal: Option<Removal>,
}

impl Advisor {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            region: config.region,
            orders: Orders::new(),
            lines: Lines::default(),
            waits: Waits::default(),
            records: Records::default(),
        }
    }

    /// Takes the next event of the log, after the engine has taken it.
    pub(crate) fn event(&mut self, event: &Event, accesses: &[Access], tables: &Tables, engine: &Engine) {
        if self.region.is_some_and(|region| event.number > region.last) {
            return;
        }
        let seen = Seen {
            event,
            accesses,
            line: self.lines.enter(event, tables),
            is_inside: self.lines.is_inside(event),
            origin: Origin::of(event, engine.ignores.ranges_of(event.thread)),
            counts: self.region.is_none_or(|region| event.number >= region.first),
            tables,
        };
        // Memory first: a free is judged by the order before it.
        self.records.event(&seen, &mut self.orders);
        let step = self.orders.event(event);
        self.waits.event(&seen, step);
    }

    /// The advice, tried out, in the order of the log.
    pub(crate) fn finish(self, log: &dyn Log, config: &Config, engine: &mut Engine) -> Vec<Finding> {
        let tables = log.tables();
        let mut drafts: Vec<Draft> = Vec::new();
        // Where the past was forgotten all of it counts as ordered: nothing can be said of waits then.
        if !self.orders.forgotten {
            drafts.extend(self.waits.drafts(&self.lines));
            drafts.extend(self.records.drafts());
        }
        drafts.retain(|draft| !config.ignore.contains(&draft.rule));
        drafts.retain(|draft| !engine.ignores.hides_advice(draft.rule, draft.origin, draft.count, tables));
        drafts.sort_by_key(|draft| (draft.event.number, draft.rule));
        try_out(log, config, &mut drafts);
        drafts.iter().map(|draft| draft.finding(tables)).collect()
    }
}

/// Marks what can be taken out, all of it together, else each for itself.
fn try_out(log: &dyn Log, config: &Config, drafts: &mut Vec<Draft>) {
    let removals = || drafts.iter().filter_map(|draft| draft.removal);
    if removals().next().is_none() {
        return;
    }
    let baseline = Baseline::of(log, config);
    let all: Vec<Removal> = removals().collect();
    let together = baseline.is_clean_without(log, config, &all);
    for draft in drafts.iter_mut() {
        if let Some(removal) = &draft.removal {
            let alone =
                || all.len() > 1 && baseline.is_clean_without(log, config, std::slice::from_ref(removal));
            draft.advised.verified = Some(together || alone());
        }
    }
    // What turns out to be needed is no advice.
    drafts.retain(|draft| draft.advised.verified != Some(false));
}

impl Draft {
    fn finding(&self, tables: &Tables) -> Finding {
        let second: Place = place(self.event.number, self.actor, self.origin, None);
        Finding {
            rule: self.rule,
            first: None,
            second,
            free: None,
            memory: self.memory,
            old_memory: None,
            ordered_up_to: None,
            count: self.count,
            occurrences: self.occurrences.clone(),
            fix: None,
            removed_by: None,
            removes: 0,
            notes: Vec::new(),
            advice: Some(Box::new(self.advised.clone())),
            fingerprint: fingerprint(self.rule, None, &second, tables),
            set_level: None,
        }
    }
}

/// An event and what is known of it.
struct Seen<'a> {
    event: &'a Event,
    accesses: &'a [Access],
    line: Line,
    origin: Origin,
    /// Whether the same call did something before.
    is_inside: bool,
    /// Whether it lies in the part that is asked for.
    counts: bool,
    tables: &'a Tables,
}

/// What the executions of one line did, of which some had a property.
#[derive(Debug, Default)]
struct Had {
    /// All executions of the line.
    executions: u64,
    count: u64,
    first: Option<(Event, Origin, Actor)>,
    occurrences: Occurrences,
}

impl Had {
    /// An execution that had the property.
    fn add(&mut self, seen: &Seen<'_>, actor: Actor) {
        self.count += 1;
        self.first.get_or_insert((*seen.event, seen.origin, actor));
        self.occurrences.add(seen.event.number);
    }
}
