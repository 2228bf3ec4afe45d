//! The few events that decide a finding: both operations, the free, and the last edge between their lanes.

use super::Point;
use super::lanes::Lanes;
use super::routes::Routes;
use super::wanted::Wanted;
use std::collections::{BTreeMap, HashMap};
use streamsan_check::{Family, Finding, Note};
use streamsan_trace::{BlockId, EventKind, OpNumber};

/// How many events a drawing shows.
const NODES: usize = 12;

/// What an event is to a finding. The order is that of importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The earlier operation.
    First,
    /// Where the last reference went.
    Free,
    /// The later operation.
    Second,
    /// The last operation that the later one is ordered after.
    Reach,
    /// Part of an edge that is there.
    Edge,
    /// Where memory was handed out.
    Alloc,
}

/// One event of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Where.
    pub(crate) point: Point,
    /// Why.
    pub(crate) role: Role,
}

/// What decides one finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// By number.
    pub(crate) nodes: Vec<Node>,
    /// Order between two nodes of different lanes, or of a record and its wait.
    pub(crate) edges: Vec<(usize, usize)>,
    /// The edge that is not there.
    pub(crate) missing: Option<(usize, usize)>,
    /// How many events of the route were left out.
    pub(crate) left_out: usize,
}

#[derive(Debug, Default)]
struct Pending {
    nodes: BTreeMap<OpNumber, Node>,
    hops: Vec<(Point, Point)>,
}

/// Collects the slices of findings while a log is read.
#[derive(Debug)]
pub(crate) struct Slices<'a> {
    findings: &'a [Finding],
    pending: Vec<Pending>,
    /// Which findings name an event.
    named: HashMap<OpNumber, Vec<usize>>,
    wanted: Wanted,
    /// Which lifetime findings are about a block.
    blocks: HashMap<BlockId, Vec<usize>>,
}

impl<'a> Slices<'a> {
    pub(crate) fn new(findings: &'a [Finding]) -> Self {
        let mut named = HashMap::<OpNumber, Vec<usize>>::new();
        let mut blocks = HashMap::<BlockId, Vec<usize>>::new();
        for (index, finding) in findings.iter().enumerate() {
            let reach = finding.ordered_up_to.map(|reach| reach.number);
            let waits = finding.notes.iter().filter_map(wait_of);
            for number in super::numbers(finding).chain(reach).chain(waits) {
                let list = named.entry(number).or_default();
                if !list.contains(&index) {
                    list.push(index);
                }
            }
            if finding.rule.family() == Family::Lifetime {
                for memory in [finding.old_memory, finding.memory].into_iter().flatten() {
                    blocks.entry(memory.block).or_default().push(index);
                }
            }
        }
        let pending = findings.iter().map(|_| Pending::default()).collect();
        let wanted = Wanted::new(named.keys().copied());
        Self { findings, pending, named, wanted, blocks }
    }

    /// The last event for which a route is asked; 0: none.
    pub(crate) fn last_route(&self) -> OpNumber {
        let routed = self.findings.iter().filter(|finding| finding.ordered_up_to.is_some());
        routed.map(|finding| finding.second.number).max().unwrap_or_default()
    }

    /// Takes an event after `routes` has taken it.
    pub(crate) fn event(&mut self, point: &Point, record: Option<&Point>, routes: &Routes, lanes: &Lanes) {
        if let EventKind::Alloc { block, .. } = point.what
            && let Some(indexes) = self.blocks.get(&block)
        {
            for &index in indexes {
                let node = Node { point: *point, role: Role::Alloc };
                self.pending[index].nodes.entry(point.number).or_insert(node);
            }
        }
        if !self.wanted.is_next(point.number) {
            return;
        }
        let Some(indexes) = self.named.get(&point.number) else { return };
        for &index in indexes {
            let finding = &self.findings[index];
            let pending = &mut self.pending[index];
            let role = role(finding, point.number);
            pending.nodes.insert(point.number, Node { point: *point, role });
            if matches!(point.what, EventKind::EventWait { .. })
                && let Some(record) = record
            {
                pending.hops.push((*record, *point));
            }
            if role == Role::Second {
                pending.hops.extend(route(finding, point, routes, lanes));
            }
        }
    }

    /// The slices, one for each finding.
    pub(crate) fn finish(self) -> Vec<Slice> {
        self.findings.iter().zip(self.pending).map(|(finding, pending)| assemble(finding, pending)).collect()
    }
}

fn wait_of(note: &Note) -> Option<OpNumber> {
    match *note {
        Note::OppositeWait { wait, .. }
        | Note::SelfWait { wait, .. }
        | Note::UnrecordedWait { wait, .. }
        | Note::EarlyWait { wait, .. }
        | Note::WaitOnOther { wait, .. }
        | Note::WaitedElsewhere { wait, .. } => Some(wait),
        _ => None,
    }
}

fn role(finding: &Finding, number: OpNumber) -> Role {
    if finding.second.number == number {
        Role::Second
    } else if finding.first.is_some_and(|first| first.number == number) {
        Role::First
    } else if finding.free.is_some_and(|free| free.number == number) {
        Role::Free
    } else if finding.ordered_up_to.is_some_and(|reach| reach.number == number) {
        Role::Reach
    } else {
        Role::Edge
    }
}

/// The edges by which the later operation knows what it knows of the earlier one's lane.
fn route(finding: &Finding, second: &Point, routes: &Routes, lanes: &Lanes) -> Vec<(Point, Point)> {
    let Some(reach) = finding.ordered_up_to.filter(|reach| reach.number.0 > 0) else { return Vec::new() };
    let lane = match reach.actor {
        streamsan_check::Actor::Host => Some(super::lanes::HOST),
        streamsan_check::Actor::Stream(stream) => lanes.of(stream),
    };
    match lane.and_then(|lane| routes.last_hop(lane, second.lane)) {
        Some((number, hop)) if number == reach.number => hop.route(),
        _ => Vec::new(),
    }
}

fn assemble(finding: &Finding, pending: Pending) -> Slice {
    let mut nodes = pending.nodes;
    for point in pending.hops.iter().flat_map(|&(from, to)| [from, to]) {
        nodes.entry(point.number).or_insert(Node { point, role: Role::Edge });
    }
    // The most telling stay; among equals the latest.
    let mut by_weight: Vec<Node> = nodes.into_values().collect();
    by_weight.sort_by_key(|node| (node.role, std::cmp::Reverse(node.point.number)));
    let left_out = by_weight.len().saturating_sub(NODES);
    by_weight.truncate(NODES);
    by_weight.sort_by_key(|node| node.point.number);
    let nodes = by_weight;
    let place = |number: OpNumber| nodes.iter().position(|node| node.point.number == number);
    let mut edges: Vec<(usize, usize)> = pending
        .hops
        .iter()
        .filter_map(|(from, to)| Some((place(from.number)?, place(to.number)?)))
        .filter(|(from, to)| from != to)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let missing = finding.first.and_then(|first| Some((place(first.number)?, place(finding.second.number)?)));
    Slice { nodes, edges, missing, left_out }
}
