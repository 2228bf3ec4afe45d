//! Who waits for whom, where, and how often.

use super::Point;
use super::lanes::{HOST, Lanes};
use std::collections::BTreeMap;
use streamsan_trace::{EventKind, Observer, OpNumber, SiteId, WaitTarget};

/// How many different waits are kept apart by place; those of further places are counted together.
const PLACES: usize = 4096;

/// One pair of lanes at one pair of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    /// Whose work is waited for. `None`: an event that was never recorded.
    pub(crate) awaited: Option<usize>,
    /// Who waits.
    pub(crate) waiter: usize,
    /// Where the event was recorded; the empty stack if there was none.
    pub(crate) recorded: SiteId,
    /// Where the wait is.
    pub(crate) waited: SiteId,
}

/// How often, and when first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitCount {
    /// How often.
    pub(crate) count: u64,
    /// The first one.
    pub(crate) first: OpNumber,
}

/// All waits of a run.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    by_place: BTreeMap<WaitKey, WaitCount>,
    /// Sorted: most often first.
    pub(crate) rows: Vec<(WaitKey, WaitCount)>,
    /// Edges between lanes: (awaited, waiter).
    pub(crate) edges: BTreeMap<(usize, usize), WaitCount>,
    /// Waits of places beyond the limit.
    pub(crate) elsewhere: u64,
}

impl Waits {
    /// Takes an event; `record` is what it waits for.
    pub(crate) fn event(&mut self, point: &Point, record: Option<&Point>, lanes: &Lanes) {
        match point.what {
            EventKind::EventWait { .. } => self.add(record.map(|record| record.lane), point, record),
            EventKind::HostWait { target, observer: Observer::Program, .. } => match target {
                WaitTarget::Event(_) => self.add(record.map(|record| record.lane), point, record),
                WaitTarget::Stream(stream) => self.add(lanes.of(stream), point, None),
                WaitTarget::Device(device) => {
                    let streams = lanes.list.iter().enumerate().skip(HOST + 1);
                    let covered: Vec<usize> =
                        streams.filter(|(_, lane)| lane.device == device).map(|(index, _)| index).collect();
                    for lane in covered {
                        self.add(Some(lane), point, None);
                    }
                }
            },
            _ => {}
        }
    }

    fn add(&mut self, awaited: Option<usize>, wait: &Point, record: Option<&Point>) {
        let new = WaitCount { count: 0, first: wait.number };
        if let Some(awaited) = awaited {
            self.edges.entry((awaited, wait.lane)).or_insert(new).count += 1;
        }
        let recorded = record.map_or(SiteId(0), |record| record.site);
        let key = WaitKey { awaited, waiter: wait.lane, recorded, waited: wait.site };
        if self.by_place.len() >= PLACES && !self.by_place.contains_key(&key) {
            self.elsewhere += 1;
        } else {
            self.by_place.entry(key).or_insert(new).count += 1;
        }
    }

    /// Sorts, after the last event.
    pub(crate) fn finish(&mut self) {
        self.rows = std::mem::take(&mut self.by_place).into_iter().collect();
        self.rows.sort_by_key(|(_, count)| (std::cmp::Reverse(count.count), count.first));
    }
}
