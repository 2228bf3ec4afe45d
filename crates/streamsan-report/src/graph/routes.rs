//! The route by which one lane came to know of another's work: the records and waits to be drawn.
//!
//! This mirrors the edges of the checker (`order` in `streamsan-check`) and keeps, beside each component of
//! a clock, the last hop that raised it. What is ordered is decided there: a route is drawn only if it ends at
//! the very operation that the finding names.

use super::Point;
use super::lanes::{HOST, Lanes};
use std::collections::HashMap;
use std::rc::Rc;
use streamsan_trace::{Event, EventId, EventKind, Observer, OpNumber, ThreadId, WaitTarget};

/// One edge between two lanes, and how the first of them came to know.
#[derive(Debug)]
pub(crate) struct Hop {
    /// Where the edge starts: a record, or the last event of a lane that is waited for as a whole.
    pub(crate) from: Point,
    /// Where it ends: a wait, or what was enqueued after one.
    pub(crate) to: Point,
    previous: Option<Rc<Hop>>,
}

impl Hop {
    /// All hops, the first of the route first.
    pub(crate) fn route(&self) -> Vec<(Point, Point)> {
        let mut hops = vec![(self.from, self.to)];
        let mut hop = self;
        while let Some(previous) = &hop.previous {
            hops.push((previous.from, previous.to));
            hop = previous;
        }
        hops.reverse();
        hops
    }
}

/// How far a lane is known, and by which hop.
#[derive(Clone, Debug, Default)]
struct Known {
    number: u64,
    hop: Option<Rc<Hop>>,
}

#[derive(Clone, Debug, Default)]
struct Chain {
    /// Number of its last operation or effective wait.
    own: u64,
    known: Rc<Vec<Known>>,
    /// The last event on it.
    last: Option<Point>,
    host_version: u64,
}

#[derive(Clone, Debug)]
struct Snapshot {
    lane: usize,
    own: u64,
    known: Rc<Vec<Known>>,
    at: Point,
}

/// All lanes and what each knows of the others.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    chains: Vec<Chain>,
    host_version: u64,
    records: HashMap<EventId, Snapshot>,
    begun: HashMap<ThreadId, Vec<Snapshot>>,
}

impl Routes {
    /// How far `lane` knows `other`, and the last hop.
    pub(crate) fn last_hop(&self, other: usize, lane: usize) -> Option<(OpNumber, &Hop)> {
        let known = self.chains.get(lane)?.known.get(other)?;
        Some((OpNumber(known.number), known.hop.as_deref()?))
    }

    /// An event that is not drawn.
    pub(crate) fn begin(&mut self, event: &Event, lanes: &Lanes) {
        if let EventKind::HostWaitBegin { target } = event.kind {
            let covered = self.covered(target, lanes);
            self.begun.insert(event.thread, covered);
        }
    }

    /// An event with its place.
    pub(crate) fn event(&mut self, event: &Event, point: &Point, record: Option<&Point>, lanes: &Lanes) {
        self.chains.resize_with(lanes.list.len().max(self.chains.len()), Chain::default);
        let lane = point.lane;
        match event.kind {
            EventKind::Op { .. } | EventKind::GraphLaunch { .. } => {
                self.enter(point, lanes);
                self.chains[lane].own = point.number.0;
            }
            EventKind::HostAccess { .. } => {
                self.chains[HOST].own = point.number.0;
                self.host_version += 1;
            }
            EventKind::EventRecord { event: recorded, .. } => {
                self.enter(point, lanes);
                let snapshot = self.snapshot(lane, *point);
                self.records.insert(recorded, snapshot);
            }
            EventKind::EventWait { event: awaited, .. } => {
                let Some(snapshot) = self.records.get(&awaited).cloned() else { return };
                self.enter(point, lanes);
                if record.is_some_and(|record| record.lane != lane) {
                    self.learn(lane, &snapshot, point);
                }
            }
            EventKind::FreeGuard { .. } => self.enter(point, lanes),
            EventKind::HostWait { target, observer: Observer::Program, .. } => {
                let covered = self.begun.remove(&event.thread).unwrap_or_else(|| self.covered(target, lanes));
                for snapshot in covered {
                    if self.learn(HOST, &snapshot, point) {
                        self.host_version += 1;
                    }
                }
            }
            // Freed, handed out: not a step of the lane.
            _ => return,
        }
        self.chains[lane].last = Some(*point);
    }

    /// Edges that any call on a stream brings: from the host, and with the legacy default stream.
    fn enter(&mut self, point: &Point, lanes: &Lanes) {
        let lane = point.lane;
        if self.chains[lane].host_version != self.host_version {
            self.chains[lane].host_version = self.host_version;
            self.learn_from(lane, HOST, point);
        }
        let this = &lanes.list[lane];
        let implicit = |other: &super::lanes::Lane| {
            other.stream.is_some()
                && other.device == this.device
                && ((this.legacy_default && other.blocking && !other.legacy_default)
                    || (this.blocking && other.legacy_default))
        };
        if !this.legacy_default && !this.blocking {
            return;
        }
        for other in 1..lanes.list.len() {
            if other != lane && implicit(&lanes.list[other]) {
                self.learn_from(lane, other, point);
            }
        }
    }

    fn learn_from(&mut self, lane: usize, other: usize, point: &Point) {
        if let Some(last) = self.chains.get(other).and_then(|chain| chain.last) {
            let snapshot = self.snapshot(other, last);
            self.learn(lane, &snapshot, point);
        }
    }

    fn snapshot(&self, lane: usize, at: Point) -> Snapshot {
        let chain = &self.chains[lane];
        Snapshot { lane, own: chain.own, known: Rc::clone(&chain.known), at }
    }

    fn learn(&mut self, lane: usize, snapshot: &Snapshot, point: &Point) -> bool {
        let number = |known: &[Known], lane: usize| known.get(lane).map_or(0, |known| known.number);
        let chain = &mut self.chains[lane];
        if number(&chain.known, snapshot.lane) >= snapshot.own {
            return false;
        }
        let known = Rc::make_mut(&mut chain.known);
        let width = snapshot.known.len().max(snapshot.lane + 1);
        if known.len() < width {
            known.resize_with(width, Known::default);
        }
        let hop = |previous: Option<Rc<Hop>>| Some(Rc::new(Hop { from: snapshot.at, to: *point, previous }));
        for (mine, theirs) in known.iter_mut().zip(snapshot.known.iter()) {
            if theirs.number > mine.number {
                *mine = Known { number: theirs.number, hop: hop(theirs.hop.clone()) };
            }
        }
        known[snapshot.lane] = Known { number: snapshot.own, hop: hop(None) };
        chain.own = chain.own.max(point.number.0);
        true
    }

    fn covered(&self, target: WaitTarget, lanes: &Lanes) -> Vec<Snapshot> {
        let of = |lane: usize| Some(self.snapshot(lane, self.chains.get(lane)?.last?));
        let streams = || lanes.list.iter().enumerate().skip(HOST + 1);
        match target {
            WaitTarget::Event(event) => self.records.get(&event).cloned().into_iter().collect(),
            WaitTarget::Stream(stream) => {
                let Some(lane) = lanes.of(stream) else { return Vec::new() };
                let this = &lanes.list[lane];
                let held = streams().filter(|(_, other)| {
                    this.legacy_default
                        && other.blocking
                        && !other.legacy_default
                        && other.device == this.device
                });
                of(lane).into_iter().chain(held.filter_map(|(other, _)| of(other))).collect()
            }
            WaitTarget::Device(device) => {
                streams().filter(|(_, lane)| lane.device == device).filter_map(|(lane, _)| of(lane)).collect()
            }
        }
    }
}
