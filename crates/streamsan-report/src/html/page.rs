//! The whole page.

use super::code::Files;
use super::finding::{Context, Facets, brief, full};
use super::words::rich;
use super::{BRIEF, DRAWN, EVENTS, FULL, guide, memory, timeline, waits};
use crate::graph::{Effort, Survey};
use crate::names::Names;
use crate::numbers::counted;
use crate::svg::STYLE as DRAWING_STYLE;
use crate::svg::escape::escape;
use crate::{Checked, Options, Sources, gaps, measures, summary};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use streamsan_check::Level;
use streamsan_trace::CaptureKind;

const STYLE: &str = include_str!("style.css");
const THEME: &str = include_str!("theme.js");
const SCRIPT: &str = include_str!("page.js");
const TIMELINE: &str = include_str!("timeline.js");

/// One trace with its names and what one pass over it gave.
pub(super) struct Part<'a> {
    pub(super) checked: &'a Checked<'a>,
    pub(super) names: Names<'a>,
    pub(super) survey: Survey,
    /// How many findings the traces before it have.
    pub(super) before: usize,
    /// To tell ids of sections apart; empty if there is one trace.
    pub(super) suffix: String,
}

impl Part<'_> {
    /// The id of a finding of this trace.
    pub(super) fn id(&self, index: usize) -> String {
        format!("F{}", self.before + index + 1)
    }

    /// A heading that names the trace, if there are several.
    pub(super) fn heading(&self) -> String {
        if self.suffix.is_empty() {
            String::new()
        } else {
            format!("<h3 class=\"trace\">{}</h3>", escape(self.checked.file))
        }
    }
}

/// Writes the page.
pub(crate) fn render(checked: &[Checked<'_>], sources: &dyn Sources, options: &Options<'_>) -> String {
    let mut parts = Vec::new();
    let mut before = 0;
    for (index, one) in checked.iter().enumerate() {
        let effort = Effort { slices: DRAWN, events: EVENTS / checked.len().max(1) };
        parts.push(Part {
            checked: one,
            names: Names::new(one.log, one.report),
            survey: Survey::new(one.log, one.report, effort),
            before,
            suffix: if checked.len() > 1 { format!("-{}", index + 1) } else { String::new() },
        });
        before += one.report.findings.len();
    }
    let (findings, facets) = findings(&parts, sources);
    let mut html = String::with_capacity(findings.len() + 200_000);
    head(checked, options, &mut html);
    verdict(checked, &mut html);
    section_of_findings(before, &findings, &facets, &mut html);
    timeline::section(&parts, &mut html);
    memory::section(&parts, &mut html);
    waits::section(&parts, &mut html);
    not_seen(checked, &mut html);
    guide::section(&parts, options.tool, &mut html);
    html.push_str("</main>");
    html.push_str(guide::KEYS);
    let _ = write!(html, "<script>{TIMELINE}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

fn head(checked: &[Checked<'_>], options: &Options<'_>, html: &mut String) {
    let command = checked.first().map_or("", |one| one.log.header().command.as_str());
    let subject = if command.is_empty() { checked.first().map_or("", |one| one.file) } else { command };
    let (errors, warnings) = counts(checked);
    let title = match (errors, warnings) {
        (0, 0) => "no hazards".to_owned(),
        (0, _) => counted(warnings, "warning", "warnings"),
        _ => counted(errors, "error", "errors"),
    };
    // Nothing may be fetched, whatever a trace holds.
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"{}\">\n<title>{} · {} · streamsan</title>\n<style>\n{DRAWING_STYLE}{STYLE}</style>\n<script>{THEME}</script>\n</head>\n<body>\n<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n<header><a class=\"brand\" href=\"#verdict\">streamsan</a><p class=\"run\"><code>{}</code>{}</p><nav><a href=\"#findings\">Findings</a><a href=\"#timeline\">Timeline</a><a href=\"#memory\">Memory</a><a href=\"#waits\">Waits</a><a href=\"#not-seen\">Not seen</a><button id=\"theme\" class=\"script\" type=\"button\">Dark</button><button id=\"help\" class=\"script\" type=\"button\" aria-label=\"keys\">?</button></nav></header>\n<main>\n",
        escape(options.tool),
        escape(&title),
        escape(subject),
        escape(subject),
        facts(checked)
    );
}

/// ` · torch 2.11 · virtual device`.
fn facts(checked: &[Checked<'_>]) -> String {
    let Some(one) = checked.first() else { return String::new() };
    let header = one.log.header();
    let where_it_ran = match header.capture {
        CaptureKind::Virtual => "virtual device",
        CaptureKind::Cuda => "GPU",
        CaptureKind::Sim => "stream program",
    };
    let traces = if checked.len() > 1 { format!("{} traces", checked.len()) } else { String::new() };
    [header.versions.as_str(), where_it_ran, traces.as_str()]
        .iter()
        .filter(|fact| !fact.is_empty())
        .fold(String::new(), |text, fact| format!("{text}<span>{}</span>", escape(fact)))
}

fn counts(checked: &[Checked<'_>]) -> (u64, u64) {
    let of = |level| {
        let findings = checked.iter().flat_map(|one| &one.report.findings);
        findings.filter(|finding| finding.level() == level).count() as u64
    };
    (of(Level::Error), of(Level::Warning))
}

fn verdict(checked: &[Checked<'_>], html: &mut String) {
    let (errors, warnings) = counts(checked);
    let operations: u64 = checked.iter().map(|one| one.report.coverage.operations).sum();
    let (class, big) = match (errors, warnings) {
        _ if operations == 0 => ("bad", "Nothing was recorded".to_owned()),
        (0, 0) => ("good", "No hazards in what was seen".to_owned()),
        (0, _) => ("fair", counted(warnings, "warning", "warnings")),
        (_, 0) => ("bad", counted(errors, "error", "errors")),
        _ => (
            "bad",
            format!("{}, {}", counted(errors, "error", "errors"), counted(warnings, "warning", "warnings")),
        ),
    };
    let _ = write!(html, "<section id=\"verdict\" class=\"{class}\"><h1>{big}</h1>");
    for line in summary::verdict(checked).lines().take_while(|line| !line.starts_with("Not seen")) {
        let _ = write!(html, "<p>{}</p>", rich(line.trim()));
    }
    let measures = measures::render(checked);
    if !measures.is_empty() {
        let text = escape(measures.trim_end());
        let _ = write!(html, "<pre class=\"measures\" tabindex=\"0\">{text}</pre>");
    }
    html.push_str("</section>\n");
}

/// All findings as far as they fit, and what they can be filtered by.
fn findings(parts: &[Part<'_>], sources: &dyn Sources) -> (String, Facets) {
    let mut files = Files::new(sources);
    let mut facets = Facets::default();
    let mut html = String::new();
    let mut left_out = 0_u64;
    for part in parts {
        let context = Context { checked: part.checked, names: &part.names, lanes: &part.survey.lanes };
        for (index, finding) in part.checked.report.findings.iter().enumerate() {
            let id = part.id(index);
            if html.len() < FULL {
                let open = part.before + index == 0;
                let slice = part.survey.slices.get(index);
                html.push_str(&full(&id, finding, slice, &context, &mut files, &mut facets, open));
            } else if html.len() < BRIEF {
                html.push_str(&brief(&id, finding, &context, &mut facets));
            } else {
                left_out += 1;
            }
        }
    }
    if left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"more\">{}, not on this page: <code>streamsan check --output-format concise</code> lists all.</p>",
            counted(left_out, "more finding", "more findings")
        );
    }
    (html, facets)
}

fn section_of_findings(count: usize, findings: &str, facets: &Facets, html: &mut String) {
    html.push_str("<section id=\"findings\"><h2>Findings</h2>");
    if count == 0 {
        html.push_str("<p class=\"soft\">None.</p></section>\n");
        return;
    }
    if count > 1 {
        html.push_str("<form class=\"filters script\" role=\"search\" aria-label=\"filter the findings\"><input id=\"filter\" type=\"search\" placeholder=\"Filter  /\" aria-label=\"text to look for\" autocomplete=\"off\" spellcheck=\"false\">");
        select("code", "all rules", &facets.codes, html);
        select("file", "all files", &facets.files, html);
        select("stream", "all streams", &facets.streams, html);
        html.push_str("<select id=\"sort\" aria-label=\"order\"><option value=\"given\">errors first</option><option value=\"first\">first seen</option><option value=\"count\">most often</option></select><output id=\"shown\" aria-live=\"polite\"></output></form>");
    }
    let _ = writeln!(html, "<div id=\"list\">{findings}</div></section>");
}

fn select(id: &str, all: &str, values: &BTreeSet<String>, html: &mut String) {
    if values.len() < 2 {
        return;
    }
    let _ = write!(html, "<select id=\"{id}\" aria-label=\"{id}\"><option value=\"\">{all}</option>");
    for value in values.iter().take(500) {
        let value = escape(value).replace(['\n', '\t'], " ");
        let _ = write!(html, "<option>{value}</option>");
    }
    html.push_str("</select>");
}

fn not_seen(checked: &[Checked<'_>], html: &mut String) {
    html.push_str("<section id=\"not-seen\"><h2>Not seen</h2>");
    let mut lines = String::new();
    for one in checked {
        for line in gaps::lines(one.report, one.log) {
            let file = if checked.len() > 1 { format!("{}: ", one.file) } else { String::new() };
            let _ = write!(lines, "<li>{}{}</li>", escape(&file), rich(&line));
        }
    }
    if lines.is_empty() {
        html.push_str(
            "<p>No gaps: every operation that was recorded has known accesses, and no event was lost.</p>",
        );
    } else {
        let _ = write!(html, "<p>Limits of this check, not faults of the program.</p><ul>{lines}</ul>");
    }
    html.push_str("<p class=\"soft\">This covers one run's order, not every run: <code>streamsan explain limits</code></p></section>\n");
}
