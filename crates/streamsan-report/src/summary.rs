//! The end of every report: a table by rule, the counts, and what was not seen.

use crate::Checked;
use crate::numbers::{counted, grouped, percent};
use crate::places::{locate, primary_site};
use crate::wrap::{folded, tied_quotes};
use crate::{gaps, ignored, measures};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use streamsan_check::{Coverage, Finding, Level, Rule};
use streamsan_trace::{Log, SiteId};
use textwrap::core::display_width;

/// Table, verdict, what was not seen.
pub(crate) fn render(checked: &[Checked<'_>], width: usize) -> String {
    let mut text = table(checked, width);
    if !text.is_empty() {
        text.push('\n');
    }
    let measures = measures::render(checked);
    if !measures.is_empty() {
        text.push_str(&folded(&measures, width.max(WIDE)));
        text.push('\n');
    }
    text.push_str(&folded(&tied_quotes(&verdict(checked)), width));
    text
}

/// Verdict and what was not seen.
pub(crate) fn verdict(checked: &[Checked<'_>]) -> String {
    let coverage = total(checked);
    let mut text = String::new();
    let (errors, warnings) = (level_count(checked, Level::Error), level_count(checked, Level::Warning));
    if coverage.operations == 0 {
        return nothing_captured(checked, errors + warnings);
    }
    let mut operations = counted(coverage.operations, "operation", "operations");
    let mut streams = counted(coverage.streams, "stream", "streams");
    if checked.len() > 1 {
        operations = format!("{operations} of {} traces", checked.len());
        streams = format!("at most {streams}");
    }
    let hidden: u64 = checked.iter().map(|one| one.report.hidden).sum();
    let ignored = ignored::count(checked);
    let mut not_shown = Vec::new();
    if hidden > 0 {
        not_shown.push(format!(
            "{} not shown (--ignore, --select, --baseline)",
            counted(hidden, "finding", "findings")
        ));
    }
    if ignored > 0 {
        not_shown.push(format!("{} ignored", counted(ignored, "finding", "findings")));
    }
    let not_shown = not_shown.join(", ");
    if errors + warnings == 0 && !not_shown.is_empty() {
        let _ = writeln!(text, "{not_shown}; nothing else in what was seen: {operations}, {streams}.");
    } else if errors + warnings == 0 {
        let edges = counted(coverage.waits, "wait between streams", "waits between streams");
        let _ = writeln!(text, "No hazards in what was seen: {operations}, {streams}, {edges}.");
    } else {
        let devices = counted(coverage.devices, "device", "devices");
        let found = found(errors, warnings);
        let each = if checked.len() > 1 { " each" } else { "" };
        let _ = writeln!(text, "Found {found} in {operations} on {streams} of {devices}{each}.");
        if !not_shown.is_empty() {
            let _ = writeln!(text, "{not_shown}.");
        }
    }
    let advice = checked.iter().flat_map(|checked| &checked.report.findings);
    let advice = advice.filter(|finding| finding.level() == Level::Note && finding.rule.is_advice()).count();
    if advice > 0 {
        let _ = writeln!(text, "{}.", counted(advice as u64, "piece of advice", "pieces of advice"));
    }
    text.push_str(&ignored::lines(checked));
    let _ = writeln!(text, "{}", seen(checked, &coverage));
    text.push_str(&not_seen(checked));
    if errors + warnings == 0 {
        text.push_str("This covers one run's order, not every run. Limits: streamsan explain limits\n");
    }
    text
}

fn found(errors: u64, warnings: u64) -> String {
    let errors_text = counted(errors, "error", "errors");
    let warnings_text = counted(warnings, "warning", "warnings");
    match (errors, warnings) {
        (_, 0) => errors_text,
        (0, _) => format!("{warnings_text} and no errors"),
        _ => format!("{errors_text} and {warnings_text}"),
    }
}

fn seen(checked: &[Checked<'_>], coverage: &Coverage) -> String {
    let known = percent(coverage.operations.saturating_sub(coverage.opaque), coverage.operations);
    let opaque = match coverage.opaque {
        0 => "no unknown kernels".to_owned(),
        opaque => format!("{} with unknown accesses (SS902)", grouped(opaque)),
    };
    let reasons = || checked.iter().flat_map(|checked| checked.report.gaps.iter().map(|gap| gap.reason));
    let lost = if reasons().any(gaps::loses_events) { "events are missing (SS901)" } else { "nothing lost" };
    format!("Seen: {known} of operations with known accesses, {opaque}, {lost}.")
}

fn not_seen(checked: &[Checked<'_>]) -> String {
    let mut text = String::new();
    for one in checked {
        for line in gaps::lines(one.report, one.log) {
            if text.is_empty() {
                text.push_str("Not seen (limits of this check, not faults of the program):\n");
            }
            let file = if checked.len() > 1 { format!("{}: ", one.file) } else { String::new() };
            let _ = writeln!(text, "  {file}{line}");
        }
    }
    text
}

fn nothing_captured(checked: &[Checked<'_>], findings: u64) -> String {
    let mut text = "error: no CUDA operation was recorded\n".to_owned();
    if findings == 0 {
        text.push_str("  = note: this is no clean result: there was nothing to check\n");
    }
    for one in checked {
        for line in gaps::lines(one.report, one.log) {
            let _ = writeln!(text, "  = note: not seen: {line}");
        }
        if !one.log.header().command.is_empty() {
            let _ = writeln!(text, "  = note: recorded from `{}`", one.log.header().command);
        }
    }
    text.push_str("help: streamsan doctor\n");
    text
}

fn total(checked: &[Checked<'_>]) -> Coverage {
    checked.iter().fold(Coverage::default(), |sum, checked| {
        let one = checked.report.coverage;
        Coverage {
            events: sum.events + one.events,
            last: sum.last.max(one.last),
            operations: sum.operations + one.operations,
            opaque: sum.opaque + one.opaque,
            // Processes of one job share devices, so that a sum would mean nothing.
            streams: sum.streams.max(one.streams),
            devices: sum.devices.max(one.devices),
            waits: sum.waits + one.waits,
            host_waits: sum.host_waits + one.host_waits,
            blocks: sum.blocks + one.blocks,
        }
    })
}

fn level_count(checked: &[Checked<'_>], level: Level) -> u64 {
    let findings = checked.iter().flat_map(|checked| &checked.report.findings);
    findings.filter(|finding| finding.level() == level).count() as u64
}

/// A table is not broken, up to this width.
const WIDE: usize = 120;

struct Row {
    findings: u64,
    occurrences: u64,
    /// The places of the first one, such as `data.py:18` and `train.py:41`.
    places: Vec<String>,
}

/// The places of a row stand at its end, or below it where one of them would be too wide.
fn table(checked: &[Checked<'_>], width: usize) -> String {
    let mut rows = BTreeMap::<Rule, Row>::new();
    for one in checked {
        for finding in &one.report.findings {
            let row = rows.entry(finding.rule).or_insert_with(|| Row {
                findings: 0,
                occurrences: 0,
                places: places(finding, one.log),
            });
            row.findings += 1;
            row.occurrences += finding.count;
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let widest = rows.keys().map(|rule| rule.name().len()).max().unwrap_or(0).max("rule".len());
    let lines: Vec<(String, String)> = rows
        .iter()
        .map(|(rule, row)| {
            let (findings, occurrences) = (grouped(row.findings), grouped(row.occurrences));
            let (code, name) = (rule.code(), rule.name());
            let more = match row.findings {
                1 => String::new(),
                many => format!(" and {} more", grouped(many - 1)),
            };
            let line = format!("  {code:<5}  {name:<widest$}  {findings:>8}  {occurrences:>11}");
            (line, format!("{}{more}", row.places.join(" -> ")))
        })
        .collect();
    let head = format!("  {:<5}  {:<widest$}  findings  occurrences", "code", "rule");
    let beside = lines.iter().all(|(line, places)| display_width(line) + 2 + display_width(places) <= width);
    let mut text = if beside { format!("{head}  where\n") } else { format!("{head}\n") };
    for (line, places) in &lines {
        if beside {
            let _ = writeln!(text, "{line}  {places}");
        } else {
            let _ = writeln!(text, "{line}");
            text.push_str(&folded(&format!("         {}\n", places.replace(" -> ", "\u{a0}-> ")), width));
        }
    }
    text
}

/// `data.py:18` and `train.py:41`, or the only place.
fn places(finding: &Finding, log: &dyn Log) -> Vec<String> {
    let line =
        |site: SiteId| locate(log, site).map_or_else(|| "unknown place".to_owned(), |place| place.line());
    let first = finding.first.or(finding.free).map(|first| line(first.site));
    first.into_iter().chain([line(primary_site(finding))]).collect()
}
