//! SS702: waits of the host in each turn of a loop, after which no stream has work.
//!
//! A wait counts if it waited for other work than the copy that it belongs to, if every stream had run dry after it, and if
//! no inner loop went round since the line waited last: what is read once an epoch is not read in each turn.
//!
//! Accesses through pointers to page-locked memory (an array of `numpy()`, `ctypes`) are seen only while a copy is pending.
//! Without a wait for such a copy there would be more of them than the log has, so to take out that wait is never tried.

use super::copies::{Copies, Transfer};
use super::lines::{LOOP, Lines};
use super::orders::{Orders, Step};
use super::trial::{Baseline, Trial};
use super::{Draft, Had, Seen};
use crate::Config;
use crate::clock::ChainId;
use crate::edges::Line;
use crate::engine::Engine;
use crate::finding::{Actor, Advised, HostWork, Measured, Memory};
use crate::hazard::Hazard;
use crate::rules::Rule;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use streamsan_trace::{
    Access, EventKind, FrameOrigin, HostWaitHow, LabelId, Log, OpKind, OpNumber, SiteId, StreamId, Tables,
    ThreadId, WaitTarget,
};

/// More operations that the host does not know than these are only counted.
const MOST: usize = 1 << 16;
/// Waits for so much work at a time cost next to nothing beside it.
const LONG: u64 = 4096;
/// Events that may be looked at to find out what waits are needed for.
const EFFORT: u64 = 6_000_000;

/// Operations of one stream of which the host does not know that they are done.
#[derive(Debug, Default)]
struct Pending {
    /// Each with whether it touches page-locked memory.
    numbers: VecDeque<(OpNumber, bool)>,
    /// What is before these.
    more: Taken,
}

/// Operations that a wait covers.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    count: u64,
    /// Whether one of them touches page-locked memory.
    page_locked: bool,
}

impl Taken {
    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.page_locked |= more.page_locked;
    }
}

/// The operation that a thread enqueued last.
#[derive(Clone, Copy, Debug)]
struct Last {
    site: SiteId,
    kind: OpKind,
    label: LabelId,
    memory: Option<Memory>,
    transfer: Option<Transfer>,
    /// Whether the user's code asks for it, with nothing in between.
    own: bool,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pending: FxHashMap<StreamId, Pending>,
    last: FxHashMap<ThreadId, Last>,
    lines: BTreeMap<Line, Waiting>,
    /// Lines that begin a capture: torch waits there for all devices.
    captures: FxHashSet<Line>,
    /// Whether a captured operation touches page-locked memory: any graph may hold it.
    captured_page_locked: bool,
    pub(super) totals: Totals,
}

/// What all waits of the host come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) waits: u64,
    /// Operations that were waited for.
    pub(super) operations: u64,
    /// Waits after which no stream had work.
    pub(super) drained: u64,
}

/// What the waits of one line did.
#[derive(Debug, Default)]
struct Waiting {
    had: Had,
    operations: u64,
    /// Whether a wait covered an operation that touches page-locked memory.
    page_locked: bool,
    /// The last wait.
    last: Option<OpNumber>,
    work: Option<HostWork>,
    memory: Option<Memory>,
}

impl Host {
    pub(super) fn event(
        &mut self,
        seen: &Seen<'_>,
        step: Step,
        orders: &Orders,
        lines: &Lines,
        transfer: Option<Transfer>,
        page_locked: bool,
    ) {
        match (step, seen.event.kind) {
            (_, EventKind::CaptureBegin { .. }) => {
                self.captures.insert(seen.line);
            }
            (Step::Operation, EventKind::Op { stream, kind, label, forward_site, .. }) => {
                self.push(stream, seen.event.number, page_locked);
                let read = |access: &&Access| !access.mode.writes();
                let source = seen.accesses.iter().find(read);
                let memory = source.and_then(|access| seen.memory(access.block, access.length));
                // What a library or a backward pass reads back is not the user's to change.
                let collective = seen.tables.string(label).starts_with("c10d");
                let own = forward_site == SiteId(0) && !collective && is_users(seen.event.site, seen.tables);
                let last = Last { site: seen.event.site, kind, label, memory, transfer, own };
                self.last.insert(seen.event.thread, last);
            }
            (Step::Operation, EventKind::GraphLaunch { stream, .. }) => {
                self.push(stream, seen.event.number, page_locked || self.captured_page_locked);
            }
            (_, EventKind::Op { .. }) => self.captured_page_locked |= page_locked,
            (Step::HostWait(_), EventKind::HostWait { target, how, .. }) => {
                self.waited(seen, target, how, orders, lines);
            }
            _ => {}
        }
    }

    fn push(&mut self, stream: StreamId, number: OpNumber, page_locked: bool) {
        let pending = self.pending.entry(stream).or_default();
        pending.numbers.push_back((number, page_locked));
        if pending.numbers.len() > MOST
            && let Some((_, page_locked)) = pending.numbers.pop_front()
        {
            pending.more.add(Taken { count: 1, page_locked });
        }
    }

    /// Takes out what the host knows to be done; says what that is, and whether anything is left.
    fn take_known(&mut self, orders: &Orders) -> (Taken, bool) {
        let order = &orders.whole;
        let mut taken = Taken::default();
        let mut left = false;
        for (&stream, pending) in &mut self.pending {
            let Some(chain) = order.chain_of(stream) else { continue };
            let known = order.ordered_up_to(chain, ChainId::HOST);
            if pending.numbers.front().is_some_and(|&(number, _)| number <= known) {
                taken.add(std::mem::take(&mut pending.more));
            }
            while let Some(&(_, page_locked)) = pending.numbers.front().filter(|(number, _)| *number <= known)
            {
                pending.numbers.pop_front();
                taken.add(Taken { count: 1, page_locked });
            }
            left |= !pending.numbers.is_empty();
        }
        self.pending.retain(|_, pending| !pending.numbers.is_empty());
        (taken, left)
    }

    fn waited(
        &mut self,
        seen: &Seen<'_>,
        target: WaitTarget,
        how: HostWaitHow,
        orders: &Orders,
        lines: &Lines,
    ) {
        let (Taken { count: taken, page_locked }, left) = self.take_known(orders);
        if taken == 0 || !seen.counts {
            return;
        }
        self.totals.waits += 1;
        self.totals.operations += taken;
        self.totals.drained += u64::from(!left);
        if !seen.is_users() {
            return;
        }
        let own =
            self.last.get(&seen.event.thread).filter(|last| seen.is_inside && last.site == seen.event.site);
        let waiting = self.lines.entry(seen.line).or_default();
        waiting.had.executions += 1;
        waiting.page_locked |= page_locked;
        let since = waiting.last.replace(seen.event.number);
        let in_turn = since.is_some_and(|since| !lines.has_inner_loop(seen.event.site, since, seen.tables));
        // What only waits for itself keeps nothing waiting.
        let others = taken - u64::from(own.is_some());
        let not_own = own.is_some_and(|last| !last.own);
        if !in_turn || left || others == 0 || taken > LONG || not_own {
            return;
        }
        waiting.operations += taken;
        waiting.had.add(seen, Actor::Host);
        if waiting.work.is_none() {
            waiting.work = Some(work(own, target, how));
            waiting.memory = own.and_then(|last| last.memory);
        }
    }

    /// The drafts. What a call of `synchronize` is needed for is found by taking it away: if hazards between one stream and
    /// another are all that appears, the one has to wait for the other, and the host for neither.
    pub(super) fn drafts(
        &self,
        log: &dyn Log,
        config: &Config,
        engine: &Engine,
        lines: &Lines,
        copies: &Copies,
        baseline: &Baseline,
    ) -> Vec<Draft> {
        let said = self.lines.iter().filter(|(line, waiting)| {
            let had = &waiting.had;
            // The first turn has none before it.
            had.count >= LOOP - 1
                && had.count * 5 >= (had.executions - 1) * 4
                && lines.turns(**line) >= LOOP
                && !self.captures.contains(line)
                && !copies.says(**line, lines)
        });
        let mut passes = EFFORT / engine.coverage().events.max(1);
        said.filter_map(|(&line, waiting)| {
            let (event, origin, actor) = waiting.had.first?;
            let work = waiting.work?;
            let mut measured = Measured::HostSync(work);
            let mut trial =
                matches!(work, HostWork::Synchronize | HostWork::Upload).then_some(Trial::HostWait(line));
            if work == HostWork::Synchronize && passes > 0 {
                passes -= 1;
                let hazards = baseline.new_hazards(log, config, &[Trial::HostWait(line)]);
                if let Some((waiter, awaited)) = only_streams(&hazards) {
                    let names =
                        engine.bindings.at(event.number, event.site, &[waiter, awaited], log.tables());
                    measured = Measured::HostSyncForStream { waiter, awaited, names };
                    trial = Some(Trial::StreamInstead { wait: line, waiter, awaited });
                }
            }
            if waiting.page_locked {
                trial = None;
            }
            Some(Draft {
                rule: Rule::Ss702,
                event,
                origin,
                actor,
                memory: waiting.memory,
                count: waiting.had.count,
                occurrences: waiting.had.occurrences.clone(),
                advised: Advised {
                    executions: waiting.had.executions,
                    operations: waiting.operations,
                    bytes: 0,
                    measured,
                    verified: None,
                    unseen: false,
                },
                trial,
            })
        })
        .collect()
    }
}

/// The later and the earlier stream of all hazards, if these are always the same two.
fn only_streams(hazards: &[Hazard]) -> Option<(StreamId, StreamId)> {
    let both = |hazard: &Hazard| match (hazard.second_actor, hazard.first_actor) {
        (Actor::Stream(waiter), Actor::Stream(awaited)) => Some((waiter, awaited)),
        _ => None,
    };
    let first = both(hazards.first()?)?;
    hazards.iter().all(|hazard| both(hazard) == Some(first)).then_some(first)
}

/// Whether the innermost frame is the user's.
fn is_users(site: SiteId, tables: &Tables) -> bool {
    tables.stack(site).next().is_some_and(|(_, frame)| frame.origin == FrameOrigin::User)
}

/// What the host waits for.
fn work(own: Option<&Last>, target: WaitTarget, how: HostWaitHow) -> HostWork {
    match own {
        Some(Last { kind: OpKind::CopyDeviceToHost, transfer, .. }) => {
            let bytes = transfer.map_or(0, |transfer| transfer.bytes);
            match bytes {
                0 | 1 => HostWork::Condition,
                2..=16 => HostWork::Read,
                _ => HostWork::Download { bytes },
            }
        }
        Some(Last { kind: OpKind::CopyHostToDevice, .. }) => HostWork::Upload,
        Some(Last { label, .. }) => HostWork::ReadBack { label: *label },
        None if how == HostWaitHow::Synchronize && !matches!(target, WaitTarget::Event(_)) => {
            HostWork::Synchronize
        }
        None => HostWork::Other,
    }
}
