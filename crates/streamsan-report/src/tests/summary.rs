//! The end of a report, and the formats for programs.

use super::fixture::Case;
use super::{Fixed, full, rendered};
use crate::{Checked, Format, Options, render};
use insta::assert_snapshot;
use streamsan_check::{Coverage, Gap};
use streamsan_trace::{GapReason, OpNumber};

fn gap(case: &mut Case, reason: GapReason, detail: &str, count: u64) {
    let detail = case.string(detail);
    case.report.gaps.push(Gap { reason, detail, count, first: OpNumber(1) });
}

fn with_every_gap(mut case: Case) -> Case {
    case.report.coverage.opaque = 391;
    gap(&mut case, GapReason::OpaqueKernel, "triton_poi_fused_add_mul_0", 312);
    gap(&mut case, GapReason::OpaqueKernel, "flash_fwd", 79);
    gap(&mut case, GapReason::UnknownOperator, "my_extension::step", 1);
    gap(&mut case, GapReason::UnsupportedCall, "cudaGraphLaunch", 3);
    gap(&mut case, GapReason::Undecided, "", 2);
    gap(&mut case, GapReason::Escaped, "numpy()", 2);
    gap(&mut case, GapReason::Escaped, "data_ptr()", 1);
    gap(&mut case, GapReason::UnseenGraph, "replay", 5);
    gap(&mut case, GapReason::NotComputed, "rope_kernel", 6);
    gap(&mut case, GapReason::Forked, "", 4);
    gap(&mut case, GapReason::Forgotten, "", 2);
    gap(&mut case, GapReason::Lost, "the disk is full", 1);
    gap(&mut case, GapReason::NotClosed, "", 1);
    gap(&mut case, GapReason::Damaged, "", 1);
    case
}

#[test]
fn clean() {
    assert_snapshot!(full(&Case::without_findings()));
}

#[test]
fn clean_with_every_gap() {
    assert_snapshot!(full(&with_every_gap(Case::without_findings())));
}

#[test]
fn nothing_captured_is_not_clean() {
    let mut case = Case::without_findings();
    case.report.coverage = Coverage { last: case.report.coverage.last, ..Coverage::default() };
    case.trace.header.command = "python train.py".to_owned();
    gap(&mut case, GapReason::NotClosed, "", 1);
    assert_snapshot!(full(&case));
}

#[test]
fn several_findings_of_a_rule_share_a_row() {
    let mut case = Case::read_after_write();
    let again = case.report.findings[0].clone();
    case.report.findings.extend([again.clone(), again]);
    let text = full(&case);
    assert!(text.contains("         3          936  data.py:18 -> train.py:41 and 2 more\n"), "{text}");
    assert!(text.contains("Found 3 errors in 48,120 operations on 3 streams of 1 device.\n"), "{text}");
}

#[test]
fn several_traces() {
    let (one, two) = (Case::read_after_write(), with_every_gap(Case::read_after_write()));
    let checked = [("run-r0.sstrace", &one), ("run-r1.sstrace", &two)].map(|(file, case)| Checked {
        file,
        log: &case.trace,
        report: &case.report,
    });
    let options = Options { color: false, tool: "streamsan 0.1.0", limit: None, width: Some(160) };
    assert_snapshot!(render(Format::Full, &checked, &Fixed, &options));
    let json: serde_json::Value =
        serde_json::from_str(&render(Format::Json, &checked, &Fixed, &options)).unwrap();
    assert_eq!(json["findings"][1]["id"], "F2");
    assert_eq!(json["findings"][1]["trace"], "run-r1.sstrace");
    assert_eq!(json["coverage"]["operations"], 96_240);
}

#[test]
fn concise() {
    assert_snapshot!(rendered(&Case::read_after_write(), Format::Concise));
}

#[test]
fn names_in_a_trace_cannot_drive_the_terminal() {
    let mut case = Case::read_after_write();
    case.name_block(super::fixture::BLOCK, "x");
    let label = case.string("evil\u{1b}[2J");
    case.finding().second.label = label;
    case.trace
        .tables
        .strings
        .iter_mut()
        .filter(|text| *text == "x")
        .for_each(|text| text.push_str("\u{1b}[31m\u{7}"));
    gap(&mut case, GapReason::OpaqueKernel, "kernel\u{1b}]0;title\u{7}", 1);
    for format in [Format::Full, Format::Concise, Format::Json] {
        let text = rendered(&case, format);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    }
}

#[test]
fn json() {
    assert_snapshot!(rendered(&with_every_gap(Case::read_after_write()), Format::Json));
}

#[test]
fn colour_adds_escapes_and_changes_no_word() {
    let case = Case::read_after_write();
    let checked = Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
    let options = Options { color: true, tool: "streamsan 0.1.0", limit: None, width: Some(160) };
    let styled = render(Format::Full, &[checked], &Fixed, &options);
    assert!(styled.contains("\u{1b}["));
    let mut plain = String::new();
    let mut escaped = false;
    for character in styled.chars() {
        match character {
            '\u{1b}' => escaped = true,
            'm' if escaped => escaped = false,
            _ if escaped => {}
            other => plain.push(other),
        }
    }
    assert_eq!(plain, full(&case));
}
