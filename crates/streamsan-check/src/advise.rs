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

mod copies;
mod held;
mod host;
mod lines;
mod measures;
mod orders;
mod records;
mod serial;
mod trial;
mod waits;

use crate::edges::Line;
use crate::engine::Engine;
use crate::finding::{Actor, Advised, Finding, Memory, Occurrences, Place};
use crate::fingerprint::fingerprint;
use crate::group::place;
use crate::hazard::Origin;
use crate::measures::Measures;
use crate::rules::Rule;
use crate::{Config, Region};
use copies::Copies;
use host::Host;
use lines::Lines;
use measures::Depths;
use orders::{Orders, Step};
use records::Records;
use streamsan_trace::{Access, BlockId, Event, EventId, EventKind, FrameOrigin, Log, SiteId, Tables};
use trial::{Baseline, Trial};
use waits::Waits;

/// What was counted so far.
#[derive(Debug)]
pub(crate) struct Advisor {
    region: Option<Region>,
    orders: Orders,
    lines: Lines,
    waits: Waits,
    records: Records,
    copies: Copies,
    host: Host,
    depths: Depths,
    events: u64,
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
    /// What is tried, to see whether it brings anything new. Advice to take something out is given only if it does not.
    trial: Option<Trial>,
}

impl Advisor {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            region: config.region,
            orders: Orders::new(),
            lines: Lines::default(),
            waits: Waits::default(),
            records: Records::default(),
            copies: Copies::default(),
            host: Host::default(),
            depths: Depths::default(),
            events: 0,
        }
    }

    /// Takes the next event of the log, after the engine has taken it.
    pub(crate) fn event(&mut self, event: &Event, accesses: &[Access], tables: &Tables, engine: &Engine) {
        if self.region.is_some_and(|region| event.number > region.last) {
            return;
        }
        self.events += 1;
        let line = self.lines.enter(event, tables);
        let begins = self.lines.begins(event);
        let seen = Seen {
            event,
            accesses,
            line,
            begins,
            is_inside: self.lines.is_inside(event),
            origin: Origin::of(event, engine.ignores.ranges_of(event.thread)),
            counts: self.region.is_none_or(|region| event.number >= region.first),
            tables,
            engine,
        };
        // Memory first: a free is judged by the order before it.
        self.records.event(&seen, &mut self.orders);
        let step = self.orders.event(event);
        let transfer = match event.kind {
            EventKind::Op { kind, forward_site, .. } if step == Step::Operation => {
                let transfer = self.copies.transfer(kind, accesses, tables);
                if forward_site != SiteId(0) || transfer.is_some_and(|transfer| transfer.up) {
                    self.lines.is_of_batches(seen.line);
                }
                transfer
            }
            _ => None,
        };
        self.records.step(step, &self.orders);
        self.waits.event(&seen, step);
        self.copies.event(&seen, transfer);
        let page_locked = self.copies.touches_page_locked(accesses);
        self.host.event(&seen, step, &self.orders, &self.lines, transfer, page_locked);
        self.depths.event(&seen, step, &self.orders, transfer);
    }

    /// The advice, tried out, in the order of the log; and what was counted. `unseen`: the log may lack operations or order.
    pub(crate) fn finish(
        mut self,
        log: &dyn Log,
        config: &Config,
        engine: &mut Engine,
        unseen: bool,
    ) -> (Vec<Finding>, Measures) {
        let tables = log.tables();
        let mut drafts = self.copies.drafts(&self.lines);
        let mut baseline = None;
        // Where the past was forgotten all of it counts as ordered: nothing can be said of waits then.
        if !self.orders.forgotten {
            drafts.extend(self.waits.drafts(&self.lines));
            drafts.extend(self.records.drafts());
            let baseline = baseline.get_or_insert_with(|| Baseline::of(log, config));
            let (lines, copies) = (&self.lines, &self.copies);
            drafts.extend(self.host.drafts(log, config, engine, lines, copies, baseline));
            let serial = std::mem::take(&mut self.waits.serial);
            drafts.extend(serial.drafts(log, config, self.events, &self.lines, baseline));
        }
        for draft in &mut drafts {
            draft.advised.unseen = unseen && draft.trial.is_some();
        }
        drafts.retain(|draft| !config.ignore.contains(&draft.rule));
        drafts.retain(|draft| !engine.ignores.hides_at(draft.rule, draft.origin, draft.count, tables));
        drafts.sort_by_key(|draft| (draft.event.number, draft.rule));
        if let Some(baseline) = &baseline {
            try_out(log, config, self.events, baseline, &mut drafts);
        }
        let findings = drafts.iter().map(|draft| draft.finding(tables)).collect();
        (findings, self.measures())
    }

    fn measures(self) -> Measures {
        let (host, held, waits) = (self.host.totals, &self.records.held, &self.waits.per_stream);
        let (memory, held) = (held.peak, held.most);
        let mut measures = self.depths.finish();
        for stream in &mut measures.streams {
            let made = waits.get(&stream.stream).copied().unwrap_or_default();
            (stream.waits, stream.redundant) = (made.waits, made.redundant);
        }
        Measures {
            host_waits: host.waits,
            waited_for: host.operations,
            drained: host.drained,
            memory,
            held,
            ..measures
        }
    }
}

/// Events that may be looked at to find out which changes can be made together.
const EFFORT: u64 = 20_000_000;

/// Marks what can be changed: all of it together, so that all of it can be followed; else one after the other, each with
/// those before that were found good.
fn try_out(log: &dyn Log, config: &Config, events: u64, baseline: &Baseline, drafts: &mut Vec<Draft>) {
    let all: Vec<Trial> = drafts.iter().filter_map(|draft| draft.trial).collect();
    if all.is_empty() {
        return;
    }
    let together = baseline.is_clean_with(log, config, &all);
    let mut good: Vec<Trial> = if together { all } else { Vec::new() };
    let mut passes = EFFORT / events.max(1);
    for draft in drafts.iter_mut() {
        let Some(trial) = draft.trial else { continue };
        let mut is_good = together;
        if !together && passes > 0 {
            passes -= 1;
            good.push(trial);
            is_good = baseline.is_clean_with(log, config, &good);
            if !is_good {
                good.pop();
            }
        }
        draft.advised.verified = Some(is_good);
    }
    // What turns out to be needed is no advice. A host wait in each turn and memory that is held are what they are.
    drafts.retain(|draft| {
        draft.advised.verified != Some(false) || matches!(draft.rule, Rule::Ss702 | Rule::Ss706)
    });
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
    /// Of page-locked memory: whether it is the first thing that the thread does on the line.
    begins: bool,
    origin: Origin,
    /// Whether the same call did something before.
    is_inside: bool,
    /// Whether it lies in the part that is asked for.
    counts: bool,
    tables: &'a Tables,
    engine: &'a Engine,
}

impl Seen<'_> {
    /// Whether code of the user's makes the call, at whatever distance: not so in a library's own threads.
    fn is_users(&self) -> bool {
        self.tables.stack(self.event.site).any(|(_, frame)| frame.origin == FrameOrigin::User)
    }

    /// Whether the event was recorded last at the end of a collective.
    fn ends_collective(&self, event: EventId) -> bool {
        self.engine.collectives.ends_with(event, self.event.site, self.tables)
    }

    /// The memory of a block of which so many bytes are touched.
    fn memory(&self, block: BlockId, bytes: u64) -> Option<Memory> {
        let known = self.engine.blocks.get(block)?;
        Some(Memory {
            block,
            offset: 0,
            overlap: bytes,
            size: known.size,
            alloc_site: known.alloc_site,
            owner: Some(known.owner),
            device: self.engine.blocks.device(block),
        })
    }
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
