//! Full reports of findings, one layout each.

use super::fixture::{BLOCK, Case, DEFAULT, SIDE};
use super::full;
use insta::assert_snapshot;
use streamsan_check::{FixAction, Note, Rule};
use streamsan_trace::{AccessMode, BlockId, EventId, OpNumber, StreamId};

#[test]
fn two_files() {
    assert_snapshot!(full(&Case::read_after_write()));
}

#[test]
fn one_file_and_overwritten() {
    let mut case = Case::read_after_write();
    let first = case.site("train.py", 31, 0, 0, "step");
    let finding = case.finding();
    finding.rule = Rule::Ss102;
    finding.count = 1;
    let place = finding.first.as_mut().unwrap();
    (place.site, place.access) = (first, Some(AccessMode::Read));
    finding.second.access = Some(AccessMode::Write);
    assert_snapshot!(full(&case));
}

#[test]
fn both_places_are_one_line() {
    let mut case = Case::read_after_write();
    let finding = case.finding();
    finding.rule = Rule::Ss103;
    let site = finding.second.site;
    let place = finding.first.as_mut().unwrap();
    (place.site, place.access) = (site, Some(AccessMode::Update));
    finding.second.access = Some(AccessMode::Update);
    finding.notes.push(Note::FirstOccurrence { number: OpNumber(57) });
    assert_snapshot!(full(&case));
}

#[test]
fn never_waited_and_the_opposite_wait_exists() {
    let mut case = Case::read_after_write();
    let site = case.site("train.py", 37, 0, 0, "step");
    let finding = case.finding();
    finding.ordered_up_to.as_mut().unwrap().number = OpNumber(0);
    finding.notes.push(Note::OppositeWait { wait: OpNumber(1199), site });
    assert_snapshot!(full(&case));
}

#[test]
fn near_misses_with_events() {
    let mut case = Case::read_after_write();
    let site = case.site("train.py", 37, 0, 0, "step");
    let finding = case.finding();
    finding.notes.push(Note::SelfWait { wait: OpNumber(1200), site, event: EventId(1) });
    finding.notes.push(Note::UnrecordedWait { wait: OpNumber(1201), site, event: EventId(2) });
    assert_snapshot!(full(&case));
}

#[test]
fn backward_names_the_forward_line() {
    let mut case = Case::read_after_write();
    let (site, forward) =
        (case.site("train.py", 45, 5, 20, "step"), case.site("train.py", 41, 13, 28, "step"));
    let label = case.string("aten::mul_backward");
    let second = &mut case.finding().second;
    (second.site, second.forward_site, second.label) = (site, forward, label);
    assert_snapshot!(full(&case));
}

#[test]
fn no_name_for_anything() {
    let mut case = Case::read_after_write();
    case.trace.events.retain(|event| !matches!(event.kind, streamsan_trace::EventKind::Name { .. }));
    case.trace.tables.visible_streams.clear();
    case.use_stream(SIDE);
    case.finding().fix.as_mut().unwrap().verified = false;
    assert_snapshot!(full(&case));
}

#[test]
fn a_part_of_the_memory() {
    let mut case = Case::read_after_write();
    let memory = case.finding().memory.as_mut().unwrap();
    (memory.offset, memory.overlap) = (65_536, 4096);
    assert_snapshot!(full(&case));
}

#[test]
fn no_source_and_an_unknown_place() {
    let mut case = Case::read_after_write();
    let site = case.site("gone.py", 7, 0, 0, "run");
    let finding = case.finding();
    finding.second.site = site;
    finding.first.as_mut().unwrap().site = streamsan_trace::SiteId(0);
    assert_snapshot!(full(&case));
}

#[test]
fn streams_that_share_a_name() {
    let mut case = Case::read_after_write();
    let other = StreamId(2);
    case.create_stream(other, false);
    case.name_stream(other, "side", 4);
    let first = case.finding().first.as_mut().unwrap();
    first.actor = streamsan_check::Actor::Stream(other);
    let finding = case.finding();
    finding.ordered_up_to = None;
    let waiter_is_current = false;
    finding.fix.as_mut().unwrap().action =
        FixAction::WaitStream { waiter: SIDE, awaited: other, waiter_is_current };
    assert_snapshot!(full(&case));
}

#[test]
fn wait_on_unrecorded_event_has_one_place() {
    let mut case = Case::read_after_write();
    let site = case.site("train.py", 37, 5, 49, "step");
    let label = case.string("");
    let finding = case.finding();
    (finding.rule, finding.first, finding.memory, finding.ordered_up_to) = (Rule::Ss401, None, None, None);
    (finding.second.site, finding.second.access, finding.second.label) = (site, None, label);
    (finding.fix, finding.count) = (None, 20);
    let mut own = finding.clone();
    own.rule = Rule::Ss403;
    case.report.findings.push(own);
    assert_snapshot!(full(&case));
}

#[test]
fn explains_a_rule_once() {
    let mut case = Case::read_after_write();
    let again = case.report.findings[0].clone();
    case.report.findings.push(again);
    let text = full(&case);
    assert_eq!(text.matches("streamsan explain SS101").count(), 1, "{text}");
    assert_eq!(text.matches("error[SS101]").count(), 2, "{text}");
}

#[test]
fn no_handle_and_no_address_is_shown() {
    let mut case = Case::read_after_write();
    case.finding().memory.as_mut().unwrap().block = BlockId(77);
    case.finding().first.as_mut().unwrap().actor = streamsan_check::Actor::Stream(StreamId(99));
    let text = full(&case);
    assert!(!text.contains("0x") && !text.contains("7f00"), "{text}");
    let _ = (BLOCK, DEFAULT);
}
