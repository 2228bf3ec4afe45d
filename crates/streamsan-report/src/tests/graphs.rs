//! Findings about graphs and collectives.

use super::fixture::{Case, SIDE};
use super::{full, rendered};
use crate::Format;
use insta::assert_snapshot;
use streamsan_check::{Actor, Note, Rule};
use streamsan_trace::{AccessMode, OpKind, OpNumber, StreamId};

const THIRD: StreamId = StreamId(2);

/// `train.py:41` launches a graph whose node was captured at `model.py:7`.
fn launched(rule: Rule, access: AccessMode) -> Case {
    let mut case = Case::read_after_write();
    let node = case.site("model.py", 7, 9, 20, "Layer.forward");
    let finding = case.finding();
    finding.rule = rule;
    finding.count = 1;
    let place = &mut finding.second;
    (place.kind, place.forward_site, place.access) = (Some(OpKind::GraphLaunch), node, Some(access));
    case
}

/// `data.py:18` calls a collective.
fn collective(rule: Rule) -> Case {
    let mut case = Case::read_after_write();
    let label = case.string("c10d::_allgather_base_");
    let finding = case.finding();
    finding.rule = rule;
    finding.count = 1;
    let place = finding.first.as_mut().unwrap();
    (place.kind, place.label, place.actor) = (Some(OpKind::Collective), label, Actor::Stream(THIRD));
    finding.fix.as_mut().unwrap().actions = vec![streamsan_check::FixAction::WaitStream {
        waiter: SIDE,
        awaited: THIRD,
        waiter_is_current: true,
    }];
    case
}

#[test]
fn a_graph_reads_what_another_stream_writes() {
    assert_snapshot!(full(&launched(Rule::Ss501, AccessMode::Read)));
}

#[test]
fn a_graph_writes_what_another_stream_uses() {
    let mut case = launched(Rule::Ss502, AccessMode::Write);
    case.finding().first.as_mut().unwrap().access = Some(AccessMode::Read);
    assert_snapshot!(full(&case));
}

#[test]
fn the_place_of_a_node_has_the_line_that_captured_it() {
    let text = rendered(&launched(Rule::Ss501, AccessMode::Read), Format::Json);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let second = &report["findings"][0]["second"];
    assert_eq!(second["captured"]["stack"][0]["line"], 7);
    assert_eq!(second["stack"][0]["line"], 41);
    assert!(second.get("forward").is_none());
}

#[test]
fn a_collective_that_nobody_waited_for() {
    assert_snapshot!(full(&collective(Rule::Ss601)));
    assert!(
        rendered(&collective(Rule::Ss601), Format::Concise).contains("`x`, a buffer of a collective: stream")
    );
}

#[test]
fn a_collective_that_another_stream_waited_for() {
    let mut case = collective(Rule::Ss602);
    let site = case.site("train.py", 39, 0, 0, "step");
    case.finding().notes.push(Note::WaitedElsewhere {
        wait: OpNumber(1205),
        site,
        stream: streamsan_trace::StreamId(0),
    });
    assert_snapshot!(full(&case));
}
