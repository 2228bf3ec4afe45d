//! What a report says of findings together: gone with another one, left out; and of calls within it.

use super::fixture::{Case, SIDE};
use super::{full, rendered};
use crate::Format;
use streamsan_check::{FixAction, Rule};
use streamsan_trace::AccessMode;

/// Two findings; the fix of the first removes both.
fn related() -> Case {
    let mut case = Case::read_after_write();
    let mut later = case.report.findings[0].clone();
    later.removed_by = Some(0);
    later.second.site = case.site("train.py", 45, 5, 20, "step");
    case.finding().removes = 1;
    case.report.findings.push(later);
    case
}

#[test]
fn what_another_fix_removes_has_no_code() {
    let text = full(&related());
    assert_eq!(text.matches("wait_stream").count(), 1, "{text}");
    assert!(
        text.contains("nothing new appears\n           this wait alone also removes 1 more finding\n"),
        "{text}"
    );
    assert!(
        text.contains("help: gone with the fix before train.py:41 (of the finding at train.py:41, above)\n"),
        "{text}"
    );
}

#[test]
fn json_names_the_finding_that_removes_another() {
    let case = related();
    let checked = crate::Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
    let options = crate::Options { color: false, tool: "streamsan 0.1.0", limit: None, width: Some(160) };
    let text = crate::render(Format::Json, &[checked, checked], &super::Fixed, &options);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let findings = &document["findings"];
    assert_eq!((&findings[0]["removed_by"], &findings[0]["removes"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!((&findings[1]["removed_by"], &findings[1]["removes"]), (&"F1".into(), &0.into()));
    assert_eq!(findings[3]["removed_by"], "F3");
    assert_eq!(document["coverage"]["devices"], 1);
}

/// (1) and (2) on `train.py:41`, which end at these columns.
fn on_one_line(rule: Rule, first_end: u32, second_end: u32, verified: bool) -> String {
    let mut case = Case::read_after_write();
    let sites = [first_end, second_end].map(|end| case.site("train.py", 41, 9, end, "step"));
    let frame = case.trace.tables.sites[sites[1].index()][0];
    case.visible(frame, SIDE, "side");
    let finding = case.finding();
    finding.rule = rule;
    finding.first.as_mut().unwrap().site = sites[0];
    finding.second.site = sites[1];
    finding.second.access = Some(AccessMode::Read);
    let fix = finding.fix.as_mut().unwrap();
    fix.actions = vec![FixAction::SynchronizeStream { awaited: SIDE }];
    (fix.frame, fix.verified) = (Some(frame), verified);
    full(&case)
}

#[test]
fn one_line_with_both_operations_cannot_get_a_wait_before_it() {
    let split = "help: both happen on this line: split it and wait between the two parts";
    let leave_out = format!("{split}, or leave out `non_blocking=True`\n");
    for verified in [true, false] {
        let text = on_one_line(Rule::Ss301, 30, 39, verified);
        assert!(text.contains(&leave_out), "{text}");
        assert!(
            text.contains("not confirmed: run again after the change") && !text.contains("synchronize("),
            "{text}"
        );
    }
    // (2) comes first in the line: (1) is of the turn before, and a wait at the head of the line is right.
    let loops = on_one_line(Rule::Ss302, 39, 30, true);
    assert!(loops.contains("before train.py:41, let the host wait: side.synchronize()\n"), "{loops}");
    let streams = on_one_line(Rule::Ss101, 30, 39, false);
    assert!(streams.contains(&format!("{split}\n")), "{streams}");
    assert!(!on_one_line(Rule::Ss101, 30, 39, true).contains(split));
}

#[test]
fn what_was_left_out_is_no_clean_result() {
    let mut case = Case::without_findings();
    case.report.hidden = 3;
    for format in [Format::Full, Format::Concise] {
        let text = rendered(&case, format);
        assert!(text.contains("3 findings not shown (--ignore, --select, --baseline)"), "{text}");
        assert!(!text.contains("No hazards"), "{text}");
    }
    let mut case = Case::read_after_write();
    case.report.hidden = 1;
    assert!(
        full(&case).contains("\n1 finding not shown (--ignore, --select, --baseline).\n"),
        "{}",
        full(&case)
    );
    assert!(rendered(&case, Format::Json).contains("\"hidden\": 1,"));
}

/// The label of who called, if (1) is in `function` of data.py, called from `caller`.
fn called(file: &str, function: &str, caller: (&str, &str)) -> String {
    let mut case = Case::read_after_write();
    let inner = case.site(file, 18, 9, 42, function);
    let outer = case.site(caller.0, 30, 0, 0, caller.1);
    let frames = [inner, outer].map(|site| case.trace.tables.sites[site.index()][0]);
    let site = case.trace.tables.intern_site(frames.to_vec());
    case.finding().first.as_mut().unwrap().site = site;
    full(&case)
}

#[test]
fn the_caller_of_a_helper_is_named() {
    for (file, function) in [("data.py", "fill"), ("train.py", "fill")] {
        let text = called(file, function, ("train.py", "<module>"));
        assert!(text.contains("= note: (1) called from train.py:30\n"), "{text}");
    }
    let text = called("train.py", "main", ("train.py", "<module>"));
    assert!(!text.contains("called from"), "{text}");
}

#[test]
fn a_caller_that_both_share_is_not_named() {
    let mut case = Case::read_after_write();
    let outer = case.site("train.py", 60, 0, 0, "<module>");
    let outer = case.trace.tables.sites[outer.index()][0];
    let [first, second] = [35, 41].map(|line| {
        let site = case.site("train.py", line, 9, 20, "step");
        let inner = case.trace.tables.sites[site.index()][0];
        case.trace.tables.intern_site(vec![inner, outer])
    });
    case.finding().first.as_mut().unwrap().site = first;
    case.finding().second.site = second;
    assert!(!full(&case).contains("called from"), "{}", full(&case));
}
