//! What advice proposes, and what it does not.

use super::fixture::{Case, DEFAULT, SIDE};
use super::full;
use streamsan_check::{Actor, Advised, HostWork, Matters, Measured, Rule};
use streamsan_trace::OpNumber;

/// The report of advice about `train.py:41`, which is in the function `step`.
fn advised(case: &mut Case, rule: Rule, measured: Measured, verified: Option<bool>) -> String {
    let finding = case.finding();
    (finding.rule, finding.first, finding.fix, finding.ordered_up_to) = (rule, None, None, None);
    finding.second.actor = Actor::Stream(DEFAULT);
    let advised = Advised { executions: 6, operations: 24, bytes: 0, measured, verified, unseen: false };
    finding.advice = Some(Box::new(advised));
    full(case)
}

/// SS704 where the operation that matters is in this function.
fn matters_in(function: &str) -> String {
    let mut case = Case::read_after_write();
    let site = case.site("train.py", 38, 0, 0, function);
    let names = case.trace.tables.visible_streams.clone();
    let matters = Matters { awaited: SIDE, number: OpNumber(1203), site, names };
    advised(&mut case, Rule::Ss704, Measured::Serialising(Box::new(matters)), Some(true))
}

#[test]
fn an_event_is_handed_on_in_code_within_one_function_only() {
    let words = "after train.py:38 record an event, and wait for that at train.py:41";
    let text = matters_in("step");
    assert!(text.contains(words) && text.contains("matters = side.record_event()"), "{text}");
    let text = matters_in("produce");
    assert!(text.contains(words) && !text.contains("record_event("), "{text}");
}

#[test]
fn a_wait_that_was_not_tried_is_not_to_be_taken_out() {
    let said = |verified| {
        let mut case = Case::read_after_write();
        advised(&mut case, Rule::Ss702, Measured::HostSync(HostWork::Synchronize), verified)
    };
    let text = said(Some(true));
    assert!(text.contains("take out the call at train.py:41: nothing that streamsan saw after it"), "{text}");
    assert!(text.contains("checked: "), "{text}");
    let text = said(None);
    assert!(text.contains("wait only for what the host is about to touch"), "{text}");
    assert!(!text.contains("take out") && !text.contains("checked"), "{text}");
}

#[test]
fn a_stream_in_place_of_the_host_leaves_page_locked_memory_to_the_host() {
    let said = |verified| {
        let mut case = Case::read_after_write();
        let names = case.trace.tables.visible_streams.clone();
        let measured = Measured::HostSyncForStream { waiter: SIDE, awaited: DEFAULT, names };
        advised(&mut case, Rule::Ss702, measured, verified)
    };
    let code = "side.wait_stream(torch.cuda.default_stream())";
    let text = said(Some(true));
    assert!(text.contains(code) && text.contains("checked: ") && !text.contains("page-locked"), "{text}");
    let text = said(None);
    assert!(text.contains(code) && text.contains("where it is about to touch page-locked memory"), "{text}");
    assert!(!text.contains("checked"), "{text}");
}
