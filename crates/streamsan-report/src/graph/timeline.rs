//! All operations in the order in which they were issued: each one, or counted in bins for long runs, with the
//! operations around each finding.

use super::Point;
use super::wanted::Wanted;
use std::collections::{BTreeMap, VecDeque};
use streamsan_check::Finding;
use streamsan_trace::{EventKind, Observer, OpKind, OpNumber};

/// How many bins a long run is counted in, at least half of them used.
const BINS: u64 = 1024;
/// How many events around each operation of a finding are kept of a long run.
const AROUND: usize = 120;

/// What a timeline draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemKind {
    /// A kernel, a collective, a graph, a host function.
    Kernel = 0,
    /// A copy or memset.
    Copy = 1,
    /// An event record.
    Record = 2,
    /// A stream's wait.
    Wait = 3,
    /// The host waits.
    HostWait = 4,
    /// The host touches memory.
    HostAccess = 5,
}

/// One event of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Where.
    pub(crate) point: Point,
    /// What.
    pub(crate) kind: ItemKind,
    /// What it waits for.
    pub(crate) record: Option<OpNumber>,
}

/// Consecutive events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// How many events of the timeline come before.
    pub(crate) start: u64,
    /// The events.
    pub(crate) items: Vec<Item>,
}

/// What is to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    events: usize,
    wanted: Wanted,
}

impl Plan {
    pub(crate) fn new(findings: &[Finding], events: usize) -> Self {
        Self { events, wanted: Wanted::new(findings.iter().flat_map(super::numbers)) }
    }
}

/// The timeline of a run.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// How many events it has.
    pub(crate) total: u64,
    /// Where each event that a finding names is: after how many events.
    pub(crate) pins: BTreeMap<OpNumber, u64>,
    /// All events, or those around the findings.
    pub(crate) stretches: Vec<Stretch>,
    /// Operations per lane and bin.
    pub(crate) bins: Vec<Vec<u32>>,
    /// The number of the first event of each bin.
    pub(crate) starts: Vec<u64>,
    /// How many events a bin holds.
    pub(crate) width: u64,
    events: usize,
    wanted: Wanted,
    all: Option<Vec<Item>>,
    /// The last events, in case the next one is wanted.
    recent: VecDeque<Item>,
    /// How many events to keep from here on.
    after: usize,
    kept: usize,
}

impl Timeline {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            width: 1,
            events: plan.events,
            wanted: plan.wanted.clone(),
            all: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Whether every event was kept.
    pub(crate) fn is_complete(&self) -> bool {
        self.stretches.iter().map(|stretch| stretch.items.len() as u64).sum::<u64>() == self.total
    }

    pub(crate) fn event(&mut self, point: &Point, record: Option<&Point>) {
        let wanted = self.wanted.is_next(point.number);
        if wanted {
            self.pins.insert(point.number, self.total);
        }
        let Some(kind) = kind(&point.what) else { return };
        let item = Item { point: *point, kind, record: record.map(|record| record.number) };
        self.count(&item);
        if let Some(all) = &mut self.all {
            all.push(item);
            if all.len() > self.events {
                self.all = None;
            }
        }
        if wanted {
            self.after = AROUND;
        }
        if self.after > 0 {
            self.after -= 1;
            self.keep(item, wanted);
        } else {
            if self.recent.len() == AROUND {
                self.recent.pop_front();
            }
            self.recent.push_back(item);
        }
        self.total += 1;
    }

    fn count(&mut self, item: &Item) {
        if self.total / self.width >= BINS {
            self.width *= 2;
            for counts in &mut self.bins {
                *counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
            self.starts = self.starts.iter().step_by(2).copied().collect();
        }
        let bin = (self.total / self.width) as usize;
        if self.starts.len() <= bin {
            self.starts.push(item.point.number.0);
        }
        if self.bins.len() <= item.point.lane {
            self.bins.resize_with(item.point.lane + 1, Vec::new);
        }
        let counts = &mut self.bins[item.point.lane];
        if counts.len() <= bin {
            counts.resize(bin + 1, 0);
        }
        if !matches!(item.kind, ItemKind::Record | ItemKind::Wait) {
            counts[bin] += 1;
        }
    }

    /// Keeps an event and, if a stretch begins with it, those before it. Wanted events are kept in any case.
    fn keep(&mut self, item: Item, wanted: bool) {
        if self.kept >= self.events && !wanted {
            self.recent.clear();
            return;
        }
        let before = std::mem::take(&mut self.recent);
        let start = self.total - before.len() as u64;
        self.kept += before.len() + 1;
        match self.stretches.last_mut() {
            Some(last) if last.start + last.items.len() as u64 == start => {
                last.items.extend(before);
                last.items.push(item);
            }
            _ => {
                let items = before.into_iter().chain([item]).collect();
                self.stretches.push(Stretch { start, items });
            }
        }
    }

    pub(crate) fn finish(mut self) -> Self {
        if let Some(items) = self.all.take() {
            self.stretches = if items.is_empty() { Vec::new() } else { vec![Stretch { start: 0, items }] };
        }
        self.recent = VecDeque::new();
        self
    }
}

/// What an event is on a timeline; `None` if it is not drawn.
pub(crate) fn kind(what: &EventKind) -> Option<ItemKind> {
    Some(match what {
        EventKind::Op { kind, .. } if is_copy(*kind) => ItemKind::Copy,
        EventKind::Op { .. } | EventKind::GraphLaunch { .. } => ItemKind::Kernel,
        EventKind::EventRecord { .. } => ItemKind::Record,
        EventKind::EventWait { .. } => ItemKind::Wait,
        EventKind::HostWait { observer: Observer::Program, .. } => ItemKind::HostWait,
        EventKind::HostAccess { .. } => ItemKind::HostAccess,
        _ => return None,
    })
}

/// Whether an operation only moves bytes.
pub(crate) fn is_copy(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::CopyHostToDevice
            | OpKind::CopyDeviceToHost
            | OpKind::CopyDeviceToDevice
            | OpKind::CopyHostToHost
            | OpKind::Memset
    )
}
