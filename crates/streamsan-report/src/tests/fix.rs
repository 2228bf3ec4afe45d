//! The line of code that a fix proposes.

use super::fixture::{Case, DEFAULT, SIDE};
use super::full;
use streamsan_check::FixAction;
use streamsan_trace::{CaptureKind, DeviceId, EventKind, StreamId};

const COPY: StreamId = StreamId(2);

/// The help line after `change`.
fn help(change: impl FnOnce(&mut Case)) -> String {
    let mut case = Case::read_after_write();
    case.create_stream(COPY, false);
    case.name_stream(COPY, "copy", 14);
    change(&mut case);
    let text = full(&case);
    text.lines().find_map(|line| line.strip_prefix("help: ")).expect("a fix is shown").to_owned()
}

fn wait(case: &mut Case, waiter: StreamId, awaited: StreamId, waiter_is_current: bool) {
    let fix = case.finding().fix.as_mut().unwrap();
    fix.actions = vec![FixAction::WaitStream { waiter, awaited, waiter_is_current }];
}

#[test]
fn plain_name_before_attribute() {
    let line = help(|_| {});
    assert_eq!(line, "before train.py:41, make `side` wait: side.wait_stream(torch.cuda.default_stream())");
}

#[test]
fn attribute_if_there_is_no_plain_name() {
    let line = help(|case| {
        let count = case.trace.tables.visible_streams.len();
        case.keep_visible(count - 1);
    });
    assert!(line.ends_with(": self.side.wait_stream(torch.cuda.default_stream())"), "{line}");
}

#[test]
fn expressions_of_other_frames_do_not_count() {
    let line = help(|case| {
        let other = case.site("data.py", 18, 0, 0, "");
        let other = case.trace.tables.sites[other.index()][0];
        case.keep_visible(0);
        case.visible(other, SIDE, "side");
        wait(case, SIDE, DEFAULT, false);
    });
    assert_eq!(
        line,
        "before train.py:41, make the stream named `side` (created at train.py:4) wait for the default stream"
    );
}

#[test]
fn one_name_for_both_streams_is_no_code() {
    let line = help(|case| {
        let frame = case.finding().fix.as_ref().unwrap().frame.unwrap();
        case.keep_visible(0);
        case.visible(frame, SIDE, "stream");
        case.visible(frame, COPY, "stream");
        wait(case, SIDE, COPY, true);
    });
    assert_eq!(line, "before train.py:41, make `side` wait for `copy`");
}

#[test]
fn current_stream_if_it_has_no_name() {
    let line = help(|case| case.keep_visible(0));
    assert!(
        line.ends_with(": torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())"),
        "{line}"
    );
}

#[test]
fn default_stream_waits() {
    let line = help(|case| wait(case, DEFAULT, SIDE, true));
    assert_eq!(
        line,
        "before train.py:41, make the default stream wait: torch.cuda.default_stream().wait_stream(side)"
    );
}

#[test]
fn words_if_the_awaited_stream_cannot_be_named() {
    let line = help(|case| wait(case, SIDE, COPY, true));
    assert_eq!(
        line,
        "before train.py:41, make `side` wait for the stream named `copy` (created at train.py:14)"
    );
}

#[test]
fn several_devices_are_named() {
    let line = help(|case| {
        case.trace.header.devices = 2;
        let device = DeviceId(1);
        let (stream, legacy_default) = (StreamId(3), true);
        case.event(EventKind::StreamCreate { stream, device, blocking: true, legacy_default, priority: 0 });
        wait(case, SIDE, StreamId(3), true);
    });
    assert!(line.ends_with(": side.wait_stream(torch.cuda.default_stream(1))"), "{line}");
}

#[test]
fn host_waits() {
    let line = help(|case| {
        let fix = case.finding().fix.as_mut().unwrap();
        fix.actions = vec![FixAction::SynchronizeStream { awaited: SIDE }];
    });
    assert_eq!(line, "before train.py:41, let the host wait: side.synchronize()");
}

#[test]
fn several_waits_have_a_line_each() {
    let text = several(|case| {
        let frame = case.finding().fix.as_ref().unwrap().frame.unwrap();
        case.visible(frame, COPY, "copy");
    });
    assert!(
        text.contains(
            "help: before train.py:41, all of these are needed:\n      \
             side.wait_stream(torch.cuda.default_stream())\n      side.wait_stream(copy)\n"
        ),
        "{text}"
    );
}

#[test]
fn a_wait_without_code_is_said_among_others() {
    let text = several(|_| {});
    assert!(text.contains("\n      side.wait_stream(torch.cuda.default_stream())\n      "), "{text}");
    assert!(
        text.contains("make `side` wait for the stream named `copy` (created at train.py:14)\n"),
        "{text}"
    );
}

#[test]
fn one_variable_for_several_streams_is_one_line() {
    let line = help(|case| {
        let fix = case.finding().fix.as_mut().unwrap();
        let frame = fix.frame.unwrap();
        let waits = [SIDE, COPY].map(|waiter| FixAction::WaitStream {
            waiter,
            awaited: DEFAULT,
            waiter_is_current: true,
        });
        fix.actions = waits.to_vec();
        case.keep_visible(0);
        case.visible(frame, SIDE, "s");
        case.visible(frame, COPY, "s");
    });
    assert_eq!(line, "before train.py:41, make each stream wait: s.wait_stream(torch.cuda.default_stream())");
}

#[test]
fn no_stream_is_told_to_wait_for_itself() {
    let line = help(|case| {
        wait(case, SIDE, COPY, false);
        let frame = case.finding().fix.as_ref().unwrap().frame.unwrap();
        case.keep_visible(0);
        case.visible(frame, SIDE, "s");
        case.visible(frame, COPY, "s");
    });
    assert!(!line.contains("wait_stream"), "{line}");
}

fn several(change: impl FnOnce(&mut Case)) -> String {
    let mut case = Case::read_after_write();
    case.create_stream(COPY, false);
    case.name_stream(COPY, "copy", 14);
    let waits = [DEFAULT, COPY].map(|awaited| FixAction::WaitStream {
        waiter: SIDE,
        awaited,
        waiter_is_current: true,
    });
    case.finding().fix.as_mut().unwrap().actions = waits.to_vec();
    change(&mut case);
    full(&case)
}

#[test]
fn sim_programs_get_no_python() {
    let line = help(|case| case.trace.header.capture = CaptureKind::Sim);
    assert_eq!(line, "before train.py:41, record an event in the default stream and let `side` wait for it");
}

#[test]
fn one_wait_for_all_turns_of_an_inner_loop() {
    let mut case = Case::read_after_write();
    let occurrences = &mut case.finding().occurrences;
    (occurrences.turns, occurrences.waits) = (1_200, 40);
    let text = full(&case);
    let wanted =
        "1,200 times, and 40 are enough: each after the last (1) so far, before the code that repeats (2)";
    assert!(text.contains(wanted), "{text}");
    let occurrences = &mut case.finding().occurrences;
    occurrences.interleaved = true;
    assert!(!full(&case).contains("are enough"));
    let occurrences = &mut case.finding().occurrences;
    (occurrences.interleaved, occurrences.waits) = (false, 1_200);
    assert!(!full(&case).contains("are enough"));
}
