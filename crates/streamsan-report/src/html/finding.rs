//! One finding: what is wrong, where, why, and what to do.

use super::code::{Files, listings};
use super::fix;
use super::places::{Spot, between, spots};
use super::strip;
use super::words::rich;
use crate::Checked;
use crate::graph::lanes::Lanes;
use crate::graph::slice::Slice;
use crate::headline::headline;
use crate::names::Names;
use crate::notes::notes;
use crate::numbers::{counted, grouped};
use crate::places::user_stack;
use crate::svg::escape::escape;
use crate::svg::lanes::{Drawing, LEGEND};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use streamsan_check::{Actor, Finding, Level};
use streamsan_trace::SiteId;

/// What a finding needs from its run.
pub(super) struct Context<'a> {
    pub(super) checked: &'a Checked<'a>,
    pub(super) names: &'a Names<'a>,
    pub(super) lanes: &'a Lanes,
}

/// What the filters of a page can be set to.
#[derive(Debug, Default)]
pub(super) struct Facets {
    pub(super) codes: BTreeSet<String>,
    pub(super) files: BTreeSet<String>,
    pub(super) streams: BTreeSet<String>,
}

/// A finding in full. `id`: such as `F1`; `open`: whether it is unfolded.
pub(super) fn full(
    id: &str,
    finding: &Finding,
    slice: Option<&Slice>,
    context: &Context<'_>,
    files: &mut Files<'_>,
    facets: &mut Facets,
    open: bool,
) -> String {
    let (log, names) = (context.checked.log, context.names);
    let places = spots(finding, log, names);
    let mut html = String::new();
    let _ = write!(
        html,
        "<details class=\"finding\" id=\"{id}\"{}{}><summary>{}</summary><div class=\"body{}\">",
        attributes(finding, &places, names, facets),
        if open { " open" } else { "" },
        summary(id, finding, &places, names),
        if files_of(&places) < 2 { " one-file" } else { "" }
    );
    let mut statements = notes(finding, log, names);
    if finding.first.is_some() && !statements.is_empty() {
        let _ = write!(html, "<p class=\"edge\">{}</p>", rich(&statements.remove(0)));
    }
    let _ = write!(html, "<div class=\"codes\">{}</div>", listings(&places, files));
    if let Some(slice) = slice {
        let operations = context.checked.report.coverage.operations;
        let drawing = Drawing { slice, finding, lanes: context.lanes, log, names, operations };
        if let Some(svg) = drawing.inline() {
            let legend = if open { format!("{LEGEND}; ") } else { String::new() };
            let _ = write!(
                html,
                "<figure class=\"lanes\"><div class=\"scroll\" tabindex=\"0\">{svg}</div><figcaption>{legend}{}. <a class=\"script\" href=\"#timeline\" data-show=\"{id}\">Show in the timeline</a></figcaption></figure>",
                escape(&drawing.caption())
            );
        }
    }
    html.push_str("<div class=\"pair\">");
    html.push_str(&fix::section(id, finding, context, files));
    if !statements.is_empty() {
        html.push_str("<section><h4>What else is known</h4><ul class=\"notes\">");
        for statement in statements {
            let _ = write!(html, "<li>{}</li>", rich(&statement));
        }
        html.push_str("</ul></section>");
    }
    html.push_str("</div>");
    html.push_str(&strip::section(finding, context.checked.report.coverage.last));
    html.push_str(&stacks(&places, context));
    let rule = finding.rule;
    let _ = writeln!(
        html,
        "<p class=\"about\"><b>{} {}</b>: {} <code>streamsan explain {}</code></p></div></details>",
        rule.code(),
        rule.name(),
        rich(rule.summary()),
        rule.code()
    );
    html
}

/// In how many files the places are.
fn files_of(places: &[Spot<'_>]) -> usize {
    places.iter().map(|spot| spot.location.as_ref().map(|place| place.path)).collect::<BTreeSet<_>>().len()
}

/// A finding in one line, where the page is full.
pub(super) fn brief(id: &str, finding: &Finding, context: &Context<'_>, facets: &mut Facets) -> String {
    let places = spots(finding, context.checked.log, context.names);
    format!(
        "<div class=\"finding brief\" id=\"{id}\" tabindex=\"-1\"{}>{}</div>\n",
        attributes(finding, &places, context.names, facets),
        summary(id, finding, &places, context.names)
    )
}

fn summary(id: &str, finding: &Finding, places: &[Spot<'_>], names: &Names<'_>) -> String {
    let (class, level) = match finding.level() {
        Level::Error => ("error", "error"),
        Level::Warning => ("warning", "warning"),
        Level::Note => ("note", "note"),
    };
    format!(
        "<span class=\"id\">{id}</span><span class=\"level {class}\">{level} {}</span><span class=\"head\">{}</span><span class=\"where\">{}</span><span class=\"count\" title=\"occurrences\">{}×</span>",
        finding.rule.code(),
        rich(&headline(finding, names)),
        escape(&between(places)),
        grouped(finding.count)
    )
}

/// What filters and orders look at.
fn attributes(finding: &Finding, places: &[Spot<'_>], names: &Names<'_>, facets: &mut Facets) -> String {
    let code = finding.rule.code().to_owned();
    let files: BTreeSet<String> =
        places.iter().filter_map(|spot| Some(spot.location.as_ref()?.shown.to_owned())).collect();
    let actors = places.iter().map(|spot| spot.place.actor);
    let streams: BTreeSet<String> = actors.map(|actor| names.actor_plain(actor)).collect();
    let first = places.first().map_or(0, |spot| spot.place.number.0);
    let joined = |set: &BTreeSet<String>| {
        let list: Vec<String> = set.iter().map(|text| escape(text).replace(['\n', '\t'], " ")).collect();
        list.join("\n")
    };
    let text = format!(
        " data-code=\"{code}\" data-files=\"{}\" data-streams=\"{}\" data-first=\"{first}\" data-count=\"{}\"",
        joined(&files),
        joined(&streams),
        finding.count
    );
    facets.codes.insert(code);
    facets.files.extend(files);
    facets.streams.extend(streams);
    text
}

fn stacks(places: &[Spot<'_>], context: &Context<'_>) -> String {
    const FRAMES: usize = 12;
    let log = context.checked.log;
    let deep = |site: SiteId| user_stack(log, site).nth(1).is_some();
    if !places.iter().any(|spot| deep(spot.place.site)) {
        return String::new();
    }
    let mut html =
        String::from("<details class=\"stacks\"><summary>Call stacks</summary><div class=\"pair\">");
    for spot in places {
        let stack: Vec<_> = user_stack(log, spot.place.site).collect();
        let actor = match spot.place.actor {
            Actor::Stream(stream) => context.names.stream(stream),
            Actor::Host => "the host".to_owned(),
        };
        let _ = write!(
            html,
            "<section><h5>{} <span class=\"soft\">on {}</span></h5><ol>",
            spot.place.number,
            rich(&actor)
        );
        for location in stack.iter().take(FRAMES) {
            let function = log.tables().string(location.frame.function);
            let within = if function.is_empty() {
                String::new()
            } else {
                format!(" <span class=\"soft\">in {}</span>", escape(function))
            };
            let _ = write!(html, "<li>{}{within}</li>", escape(&location.line_and_column()));
        }
        html.push_str("</ol>");
        if stack.len() > FRAMES {
            let more = counted((stack.len() - FRAMES) as u64, "more frame", "more frames");
            let _ = write!(html, "<p class=\"soft\">{more}</p>");
        }
        html.push_str("</section>");
    }
    html.push_str("</div></details>");
    html
}
