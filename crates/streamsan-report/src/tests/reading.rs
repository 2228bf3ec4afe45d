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
fn a_wait_of_the_host_is_not_called_the_streams() {
    let mut case = Case::read_after_write();
    case.finding().ordered_up_to.as_mut().unwrap().by_host = true;
    let text = full(&case);
    let line = "only a wait of the host orders `side` after the default stream, up to #1188 (data.py:9)";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("has waited for"), "{text}");
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
    case.keep_visible(0);
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
    finding.fix.as_mut().unwrap().actions =
        vec![FixAction::WaitStream { waiter: SIDE, awaited: other, waiter_is_current }];
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
fn a_stream_without_a_name_borrows_one_that_is_only_its_own() {
    let mut case = Case::read_after_write();
    case.trace.events.retain(|event| !matches!(event.kind, streamsan_trace::EventKind::Name { .. }));
    case.use_stream(SIDE);
    assert!(full(&case).contains("between the default stream and `side`\n"), "{}", full(&case));
    let frame = case.trace.tables.visible_streams[0].frame;
    case.visible(frame, DEFAULT, "side");
    assert!(full(&case).contains("between the default stream and `self.side`\n"), "{}", full(&case));
    case.visible(frame, DEFAULT, "self.side");
    assert!(full(&case).contains("between the default stream and stream 1\n"), "{}", full(&case));
}

#[test]
fn any_position_in_any_source_can_be_shown() {
    struct Text(&'static str);
    impl crate::Sources for Text {
        fn text(&self, _path: &str) -> Option<String> {
            Some(self.0.to_owned())
        }
    }
    let texts = [
        "",
        "\n",
        "x",
        "\r\n\r\n",
        "\t\tnaïve = 日本(x)\r\n  \u{1f980}\nz\0\u{1b}[31m",
        "e\u{301}\n\u{202e}abc\n",
    ];
    for text in texts {
        for line in 0..5 {
            for (column, end_column) in
                [(0, 0), (1, 1), (1, 2), (3, 5), (6, 9), (9, 4), (40, 50), (u32::MAX, u32::MAX)]
            {
                let mut case = Case::read_after_write();
                let site = case.site("train.py", line, column, end_column, "step");
                case.finding().second.site = site;
                let checked = crate::Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
                let options =
                    crate::Options { color: false, tool: "streamsan", limit: None, width: Some(160) };
                let text = crate::render(crate::Format::Full, &[checked], &Text(text), &options);
                assert!(text.contains("(2) reads `x` on `side`"), "{text}");
                assert!(!text.contains('\u{1b}'), "{text}");
            }
        }
    }
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
fn a_limit_says_how_many_are_left() {
    let mut case = Case::read_after_write();
    let again = case.report.findings[0].clone();
    case.report.findings.extend(vec![again; 4]);
    let checked = crate::Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
    let options = crate::Options { color: false, tool: "streamsan", limit: Some(2), width: Some(160) };
    let text = crate::render(crate::Format::Full, &[checked, checked], &super::Fixed, &options);
    assert_eq!(text.matches("error[SS101]").count(), 2, "{text}");
    assert_eq!(
        text.matches("3 more findings, not shown here: streamsan check run.sstrace\n").count(),
        1,
        "{text}"
    );
    assert_eq!(
        text.matches("5 more findings, not shown here: streamsan check run.sstrace\n").count(),
        1,
        "{text}"
    );
    assert!(text.contains("Found 10 errors"), "{text}");
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

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [None, Some(60), Some(100)] {
        for color in [false, true] {
            let case = Case::read_after_write();
            let checked = crate::Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
            let options = crate::Options { color, tool: "streamsan", limit: None, width };
            let text = crate::render(crate::Format::Full, &[checked], &super::Fixed, &options);
            let widest = text.lines().map(textwrap::core::display_width).max();
            assert!(widest <= Some(width.unwrap_or(80)), "{widest:?}\n{text}");
            // What is to be pasted is in one piece.
            assert!(text.contains("side.wait_stream(torch.cuda.default_stream())\n"), "{text}");
        }
    }
}

#[test]
fn the_earlier_place_is_read_first_though_it_stands_below() {
    let mut case = Case::read_after_write();
    let (first, second) = (case.finding().first.unwrap().site, case.finding().second.site);
    // As in a loop: the later turn's line stands above.
    let write = case.site("train.py", 45, 5, 20, "step");
    case.finding().first.as_mut().unwrap().site = write;
    let text = full(&case);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in\n{text}"));
    assert!(at("--> train.py:45") < at("(1) wrote") && at("(1) wrote") < at("::: train.py:41"), "{text}");
    assert!(at("::: train.py:41") < at("(2) reads"), "{text}");
    case.finding().first.as_mut().unwrap().site = second;
    case.finding().second.site = first;
    let text = full(&case);
    assert!(text.find("--> train.py:41") < text.find("::: data.py:18"), "{text}");
}
