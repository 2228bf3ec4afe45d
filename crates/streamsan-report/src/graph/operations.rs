//! The operations of a run as a graph: stream order, records with their waits, host waits.

use super::Point;
use super::lanes::{HOST, Lanes};
use super::timeline::{ItemKind, kind};
use std::collections::{BTreeSet, HashMap, HashSet};
use streamsan_trace::{EventId, EventKind, Log, OpNumber, StreamId, WaitTarget};

/// How many events may be looked at; more is no picture.
pub(crate) const EVENTS: usize = 200_000;
/// How many boxes may be drawn.
pub(crate) const BOXES: usize = 5_000;
/// Runs of so many operations without an edge to another lane are one box.
const RUN: usize = 4;

/// Which part of a run to draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these streams; none: all.
    pub streams: Vec<StreamId>,
    /// Only events from this number to that.
    pub between: Option<(OpNumber, OpNumber)>,
    /// Only what is at most so many edges away from `seeds`.
    pub depth: Option<usize>,
    /// Where the depth is counted from: the operations of a finding, or the ends of `between`.
    pub seeds: Vec<OpNumber>,
}

/// One box: one event, or a run of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The first event.
    pub(crate) first: Point,
    /// The last event.
    pub(crate) last: Point,
    /// How many.
    pub(crate) count: u64,
}

/// Why two boxes are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// One stream, or the host.
    Lane,
    /// A record and its wait, or work and the host's wait for it.
    Wait,
    /// What the host enqueued after a wait of its own.
    Host,
}

/// Boxes by lane and edges between them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// In log order.
    pub(crate) nodes: Vec<Node>,
    /// Indexes of boxes.
    pub(crate) edges: Vec<(usize, usize, Order)>,
    /// The lanes of the run.
    pub(crate) lanes: Lanes,
}

/// More than can be drawn: how many events or boxes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany(pub usize);

struct Collector<'a> {
    selection: &'a Selection,
    points: Vec<Point>,
    edges: BTreeSet<(usize, usize, Order)>,
    /// Index of the last event of each lane.
    last: HashMap<usize, usize>,
    records: HashMap<EventId, usize>,
    /// The last host wait, and the lanes that have had something since.
    host_wait: Option<usize>,
    entered: HashSet<usize>,
    too_many: usize,
}

impl Operations {
    /// Reads the log. `keep`: events that are never put into a run.
    pub(crate) fn new(
        log: &dyn Log,
        selection: &Selection,
        keep: &HashSet<OpNumber>,
    ) -> Result<Self, TooMany> {
        let mut lanes = Lanes::default();
        let mut collector = Collector {
            selection,
            points: Vec::new(),
            edges: BTreeSet::new(),
            last: HashMap::new(),
            records: HashMap::new(),
            host_wait: None,
            entered: HashSet::new(),
            too_many: 0,
        };
        log.read(&mut |event, _| {
            if let Some(lane) = lanes.event(event, |_| None) {
                let ordinal = lanes.list[lane].operations;
                let point = Point { number: event.number, lane, ordinal, site: event.site, what: event.kind };
                collector.event(point, &lanes);
            }
        });
        if collector.too_many > 0 {
            return Err(TooMany(collector.points.len() + collector.too_many));
        }
        let Collector { points, edges, .. } = collector;
        let mut kept = near(&points, &edges, selection);
        kept.sort_unstable();
        let operations = fold(&points, &edges, &kept, keep, lanes);
        if operations.nodes.len() > BOXES { Err(TooMany(operations.nodes.len())) } else { Ok(operations) }
    }
}

impl Collector<'_> {
    fn event(&mut self, point: Point, lanes: &Lanes) {
        if kind(&point.what).is_none() || !self.selects(&point, lanes) {
            return;
        }
        if self.points.len() >= EVENTS {
            self.too_many += 1;
            return;
        }
        let index = self.points.len();
        self.points.push(point);
        if let Some(&before) = self.last.get(&point.lane) {
            self.edges.insert((before, index, Order::Lane));
        }
        if point.lane != HOST
            && let Some(wait) = self.host_wait
            && self.entered.insert(point.lane)
        {
            self.edges.insert((wait, index, Order::Host));
        }
        match point.what {
            EventKind::EventRecord { event, .. } => {
                self.records.insert(event, index);
            }
            EventKind::EventWait { event, .. } => self.wait_for(self.records.get(&event).copied(), index),
            EventKind::HostWait { target, .. } => {
                match target {
                    WaitTarget::Event(event) => self.wait_for(self.records.get(&event).copied(), index),
                    WaitTarget::Stream(stream) => {
                        let lane = lanes.of(stream);
                        self.wait_for(lane.and_then(|lane| self.last.get(&lane).copied()), index);
                    }
                    WaitTarget::Device(device) => {
                        for lane in
                            (HOST + 1..lanes.list.len()).filter(|&lane| lanes.list[lane].device == device)
                        {
                            self.wait_for(self.last.get(&lane).copied(), index);
                        }
                    }
                }
                self.host_wait = Some(index);
                self.entered.clear();
            }
            _ => {}
        }
        self.last.insert(point.lane, index);
    }

    fn wait_for(&mut self, from: Option<usize>, to: usize) {
        if let Some(from) = from {
            self.edges.insert((from, to, Order::Wait));
        }
    }

    fn selects(&self, point: &Point, lanes: &Lanes) -> bool {
        let selection = self.selection;
        let inside = selection.between.is_none_or(|(from, to)| (from..=to).contains(&point.number));
        let stream = lanes.list[point.lane].stream;
        inside
            && (selection.streams.is_empty()
                || stream.is_some_and(|stream| selection.streams.contains(&stream)))
    }
}

/// Events at most `depth` edges away from the seeds; all without a depth.
fn near(points: &[Point], edges: &BTreeSet<(usize, usize, Order)>, selection: &Selection) -> Vec<usize> {
    let Some(depth) = selection.depth else { return (0..points.len()).collect() };
    let mut around = vec![Vec::new(); points.len()];
    for &(from, to, _) in edges {
        around[from].push(to);
        around[to].push(from);
    }
    // An event that is not drawn, such as a free, is stood for by the next one.
    let start = |seed: &OpNumber| {
        let index = points.partition_point(|point| point.number < *seed);
        (index < points.len()).then_some(index)
    };
    let mut reached: Vec<usize> = selection.seeds.iter().filter_map(start).collect();
    let mut seen: HashSet<usize> = reached.iter().copied().collect();
    let mut ring = reached.clone();
    for _ in 0..depth {
        let next: Vec<usize> = ring.iter().flat_map(|&node| &around[node]).copied().collect();
        ring = next.into_iter().filter(|&node| seen.insert(node)).collect();
        reached.extend(&ring);
    }
    reached.sort_unstable();
    reached.dedup();
    reached
}

/// Puts runs of operations into one box each.
fn fold(
    points: &[Point],
    edges: &BTreeSet<(usize, usize, Order)>,
    kept: &[usize],
    keep: &HashSet<OpNumber>,
    lanes: Lanes,
) -> Operations {
    let crossing: HashSet<usize> =
        edges.iter().filter(|edge| edge.2 != Order::Lane).flat_map(|edge| [edge.0, edge.1]).collect();
    let plain = |index: usize| {
        let simple = matches!(kind(&points[index].what), Some(ItemKind::Kernel | ItemKind::Copy));
        simple && !crossing.contains(&index) && !keep.contains(&points[index].number)
    };
    // The run that each event would be in: its first event.
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut run_of: HashMap<usize, usize> = HashMap::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for &index in kept {
        let lane = points[index].lane;
        if plain(index) {
            let run = *open.entry(lane).or_insert(index);
            run_of.insert(index, run);
            *sizes.entry(run).or_default() += 1;
        } else {
            open.remove(&lane);
        }
    }
    let mut operations = Operations { lanes, ..Operations::default() };
    let mut node_of: HashMap<usize, usize> = HashMap::new();
    for &index in kept {
        let run = run_of.get(&index).filter(|run| sizes[run] >= RUN);
        if let Some(&node) = run.and_then(|run| node_of.get(run)) {
            operations.nodes[node].last = points[index];
            operations.nodes[node].count += 1;
            node_of.insert(index, node);
        } else {
            node_of.insert(index, operations.nodes.len());
            operations.nodes.push(Node { first: points[index], last: points[index], count: 1 });
        }
    }
    let drawn: BTreeSet<(usize, usize, Order)> = edges
        .iter()
        .filter_map(|(from, to, order)| Some((*node_of.get(from)?, *node_of.get(to)?, *order)))
        .filter(|(from, to, _)| from != to)
        .collect();
    operations.edges = drawn.into_iter().collect();
    operations
}
