//! What slices, graphs and timelines hold.

use super::lanes::HOST;
use super::operations::{Operations, Order, Selection};
use super::sample::{DEFAULT, Long, SIDE, Sample, THIRD};
use super::slice::Role;
use super::streams::StreamGraph;
use super::{Effort, Survey};
use std::collections::HashSet;
use streamsan_check::{Config, Rule, check};
use streamsan_trace::{AccessMode, EventKind, OpNumber};

const EFFORT: Effort = Effort { slices: 100, events: 1000 };

/// The numbers and roles of a slice.
fn nodes(survey: &Survey, index: usize) -> Vec<(u64, Role)> {
    survey.slices[index].nodes.iter().map(|node| (node.point.number.0, node.role)).collect()
}

#[test]
fn a_slice_shows_how_far_the_order_reaches() {
    let mut sample = Sample::new();
    let x = sample.alloc(1, "x");
    let covered = sample.op(2, DEFAULT, "fill", AccessMode::Write, x);
    let (record, wait) = sample.wait(3, SIDE, DEFAULT);
    sample.op(4, SIDE, "mul", AccessMode::Read, x);
    let y = sample.alloc(5, "y");
    for _ in 0..40 {
        sample.op(5, DEFAULT, "relu", AccessMode::Write, y);
    }
    let z = sample.alloc(6, "z");
    let first = sample.op(6, DEFAULT, "copy", AccessMode::Write, z);
    let second = sample.op(7, SIDE, "add", AccessMode::Read, z);
    let report = sample.check();
    assert_eq!(report.findings.len(), 1);
    let survey = Survey::new(&sample.trace, &report, EFFORT);
    assert_eq!(
        nodes(&survey, 0),
        [
            (covered.0, Role::Reach),
            (record.0, Role::Edge),
            (wait.0, Role::Edge),
            (first.0, Role::First),
            (second.0, Role::Second)
        ]
    );
    let slice = &survey.slices[0];
    assert_eq!(slice.edges, [(1, 2)]);
    assert_eq!(slice.missing, Some((3, 4)));
    assert_eq!(slice.nodes[3].point.ordinal - slice.nodes[0].point.ordinal, 41, "the 40 between are counted");
}

#[test]
fn a_route_over_a_third_stream_and_the_host_is_found() {
    let mut sample = Sample::new();
    let x = sample.alloc(1, "x");
    let covered = sample.op(2, DEFAULT, "fill", AccessMode::Write, x);
    let (record, wait) = sample.wait(3, THIRD, DEFAULT);
    let synchronize = sample.synchronize(4, THIRD);
    let entered = sample.op(5, SIDE, "mul", AccessMode::Read, x);
    let z = sample.alloc(6, "z");
    let first = sample.op(6, DEFAULT, "copy", AccessMode::Write, z);
    let second = sample.op(7, SIDE, "add", AccessMode::Read, z);
    let report = sample.check();
    assert_eq!(report.findings.len(), 1);
    let survey = Survey::new(&sample.trace, &report, EFFORT);
    let numbers: Vec<u64> = nodes(&survey, 0).into_iter().map(|(number, _)| number).collect();
    let expected = [covered, record, wait, synchronize, entered, first, second].map(|number| number.0);
    assert_eq!(numbers, expected);
    assert!(survey.slices[0].nodes.iter().any(|node| node.point.lane == HOST));
}

#[test]
fn a_lifetime_finding_shows_both_owners_and_the_free() {
    let mut sample = Sample::new();
    let old = sample.alloc_at(1, "chunk", DEFAULT, 0x9000);
    sample.op(2, DEFAULT, "fill", AccessMode::Write, old);
    sample.wait(3, SIDE, DEFAULT);
    let first = sample.op(4, SIDE, "mul", AccessMode::Read, old);
    let free = sample.free(5, old);
    let new = sample.alloc_at(6, "mask", DEFAULT, 0x9000);
    let second = sample.op(6, DEFAULT, "zeros", AccessMode::Write, new);
    let report = sample.check();
    assert_eq!(report.findings[0].rule, Rule::Ss202);
    let survey = Survey::new(&sample.trace, &report, EFFORT);
    let of = |role: Role| -> Vec<u64> {
        nodes(&survey, 0).into_iter().filter(|node| node.1 == role).map(|node| node.0).collect()
    };
    assert_eq!(
        (of(Role::First), of(Role::Free), of(Role::Second)),
        (vec![first.0], vec![free.0], vec![second.0])
    );
    assert_eq!(of(Role::Alloc).len(), 2);
    let slice = &survey.slices[0];
    let free = slice.nodes.iter().find(|node| node.role == Role::Free).unwrap();
    assert_eq!(survey.lanes.list[free.point.lane].stream, Some(DEFAULT), "a block is freed to its owner");
    let history: Vec<usize> =
        survey.blocks.list.iter().map(|history| history.head.len() + history.tail.len()).collect();
    assert_eq!(history, [4, 2], "handed out, written, read, freed; handed out, written");
}

#[test]
fn streams_that_wait_for_each_other_are_a_loop() {
    let mut sample = Sample::new();
    let x = sample.alloc(1, "x");
    for _ in 0..3 {
        sample.op(2, DEFAULT, "fill", AccessMode::Write, x);
        sample.wait(3, SIDE, DEFAULT);
        sample.op(4, SIDE, "mul", AccessMode::Read, x);
        sample.wait(5, DEFAULT, SIDE);
    }
    sample.wait(6, THIRD, SIDE);
    sample.synchronize(7, THIRD);
    let survey = Survey::of_streams(&sample.trace);
    let graph = StreamGraph::new(&survey);
    let streams: Vec<_> = graph.rows.iter().map(|&row| survey.lanes.list[row].stream).collect();
    assert_eq!(streams, [Some(DEFAULT), Some(SIDE), Some(THIRD), None]);
    assert_eq!(graph.loops, [[0, 1]]);
    let edges: Vec<_> =
        graph.edges.iter().map(|edge| (edge.from, edge.to, edge.count.count, edge.in_loop)).collect();
    assert_eq!(edges, [(0, 1, 3, true), (1, 0, 3, true), (1, 2, 1, false), (2, 3, 1, false)]);
}

#[test]
fn a_long_run_is_counted_and_exact_around_its_findings() {
    let log = Long::new(100_000, 50_000, 1);
    let report = check(&log, &Config::default());
    let finding = report.findings.iter().find(|finding| finding.rule == Rule::Ss101).unwrap();
    let survey = Survey::new(&log, &report, EFFORT);
    let timeline = &survey.timeline;
    assert!(!timeline.is_complete());
    assert!(timeline.starts.len() <= 1024 && timeline.starts.len() > 512);
    let counted: u64 = timeline.bins.iter().flatten().map(|&count| u64::from(count)).sum();
    assert_eq!(counted, 200_000, "two operations a turn");
    let at = |number: OpNumber| {
        timeline.stretches.iter().any(|stretch| stretch.items.iter().any(|item| item.point.number == number))
    };
    assert!(at(finding.first.unwrap().number) && at(finding.second.number));
    let kept: usize = timeline.stretches.iter().map(|stretch| stretch.items.len()).sum();
    assert!((240..1000).contains(&kept), "{kept}");
    for stretch in &timeline.stretches {
        let numbers: Vec<u64> = stretch.items.iter().map(|item| item.point.number.0).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "a stretch has no holes");
        // Three events before the first of the timeline: two streams and a block.
        assert_eq!(stretch.start + 4, numbers[0]);
    }
}

#[test]
fn runs_of_operations_are_one_box() {
    let mut sample = Sample::new();
    let x = sample.alloc(1, "x");
    for _ in 0..10 {
        sample.op(2, DEFAULT, "relu", AccessMode::Update, x);
    }
    let (record, wait) = sample.wait(3, SIDE, DEFAULT);
    let read = sample.op(4, SIDE, "mul", AccessMode::Read, x);
    let whole = Operations::new(&sample.trace, &Selection::default(), &HashSet::new()).unwrap();
    let counts: Vec<u64> = whole.nodes.iter().map(|node| node.count).collect();
    assert_eq!(counts, [10, 1, 1, 1]);
    assert_eq!(whole.edges, [(0, 1, Order::Lane), (1, 2, Order::Wait), (2, 3, Order::Lane)]);
    let select = |selection: Selection| -> Vec<OpNumber> {
        let operations = Operations::new(&sample.trace, &selection, &HashSet::new()).unwrap();
        operations.nodes.iter().map(|node| node.first.number).collect()
    };
    let near = Selection { depth: Some(2), seeds: vec![read], ..Selection::default() };
    assert_eq!(select(near), [record, wait, read]);
    assert_eq!(select(Selection { streams: vec![SIDE], ..Selection::default() }), [wait, read]);
    assert_eq!(select(Selection { between: Some((wait, read)), ..Selection::default() }), [wait, read]);
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let log = Long::new(60_000, 2, 1);
    assert!(Operations::new(&log, &Selection::default(), &HashSet::new()).is_err());
}

#[test]
fn waits_on_unrecorded_events_are_listed_without_a_stream() {
    let mut sample = Sample::new();
    sample.event(3, EventKind::EventWait { event: streamsan_trace::EventId(9), stream: SIDE });
    let survey = Survey::of_streams(&sample.trace);
    assert_eq!(survey.waits.rows[0].0.awaited, None);
    assert!(survey.waits.edges.is_empty());
}
