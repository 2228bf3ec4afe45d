//! What the drawings show, as plain values: lanes, waits, slices, a timeline. No markup.
//!
//! A [`Survey`] reads the log once and keeps little: the streams, who waited for whom and where, the few
//! operations that decide each finding, and a timeline that is exact for short runs and counted in bins for
//! long ones. The checker decides what is ordered; what is drawn here only shows it.

pub(crate) mod blocks;
pub(crate) mod lanes;
pub(crate) mod loops;
pub(crate) mod operations;
mod routes;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod slice;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
pub(crate) mod waits;
mod wanted;

use blocks::Histories;
use lanes::Lanes;
use routes::Routes;
use slice::{Slice, Slices};
use std::collections::HashMap;
use streamsan_check::{Finding, Report};
use streamsan_trace::{BlockId, EventId, EventKind, Log, MemorySpace, OpNumber, SiteId, StreamId};
use timeline::{Plan, Timeline};
use waits::Waits;

/// An event of the log at its place in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Its number.
    pub(crate) number: OpNumber,
    /// Index of its lane.
    pub(crate) lane: usize,
    /// How many operations the lane has had, this one included.
    pub(crate) ordinal: u64,
    /// Its call stack.
    pub(crate) site: SiteId,
    /// What happened.
    pub(crate) what: EventKind,
}

/// How much to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// For how many findings, from the first, a slice is kept.
    pub(crate) slices: usize,
    /// How many events the timeline keeps; more are counted in bins.
    pub(crate) events: usize,
}

/// What one pass over a log gives.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The host and the streams.
    pub(crate) lanes: Lanes,
    /// Who waits for whom.
    pub(crate) waits: Waits,
    /// One for each of the first findings.
    pub(crate) slices: Vec<Slice>,
    /// All operations in the order in which they were issued.
    pub(crate) timeline: Timeline,
    /// What happened to the memory of the findings.
    pub(crate) blocks: Histories,
}

impl Survey {
    /// Reads the log.
    pub(crate) fn new(log: &dyn Log, report: &Report, effort: Effort) -> Self {
        let drawn = &report.findings[..report.findings.len().min(effort.slices)];
        let mut lanes = Lanes::default();
        let mut waits = Waits::default();
        let mut slices = Slices::new(drawn);
        let mut routes = Routes::default();
        let mut timeline = Timeline::new(&Plan::new(drawn, effort.events));
        let mut blocks = Histories::new(&report.findings);
        let mut owners = HashMap::<BlockId, StreamId>::new();
        let mut records = HashMap::<EventId, Point>::new();
        // Routes cost most; none is asked for after this.
        let last_route = slices.last_route();
        log.read(&mut |event, accesses| {
            if let EventKind::Alloc { block, stream, space: MemorySpace::Cached(_), .. } = event.kind
                && blocks.wants(block)
            {
                owners.insert(block, stream);
            }
            let Some(lane) = lanes.event(event, |block| owners.get(&block).copied()) else {
                if event.number <= last_route {
                    routes.begin(event, &lanes);
                }
                return;
            };
            let ordinal = lanes.list[lane].operations;
            let point = Point { number: event.number, lane, ordinal, site: event.site, what: event.kind };
            let record = match event.kind {
                EventKind::EventWait { event: awaited, .. }
                | EventKind::HostWait { target: streamsan_trace::WaitTarget::Event(awaited), .. } => {
                    records.get(&awaited).copied()
                }
                _ => None,
            };
            if let EventKind::EventRecord { event: recorded, .. } = event.kind {
                records.insert(recorded, point);
            }
            waits.event(&point, record.as_ref(), &lanes);
            timeline.event(&point, record.as_ref());
            blocks.event(&point, accesses);
            if event.number <= last_route {
                routes.event(event, &point, record.as_ref(), &lanes);
            }
            slices.event(&point, record.as_ref(), &routes, &lanes);
        });
        waits.finish();
        Self { waits, slices: slices.finish(), timeline: timeline.finish(), blocks, lanes }
    }

    /// Only what the graph of the streams needs.
    pub(crate) fn of_streams(log: &dyn Log) -> Self {
        Self::new(log, &Report::default(), Effort { slices: 0, events: 0 })
    }
}

/// The numbers of the events that a finding names.
pub(crate) fn numbers(finding: &Finding) -> impl Iterator<Item = OpNumber> {
    let places = [finding.first, finding.free, Some(finding.second)];
    places.into_iter().flatten().map(|place| place.number)
}
