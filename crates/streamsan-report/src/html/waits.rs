//! Who waits for whom: the graph of the streams, and a table by place.

use super::page::Part;
use crate::graph::waits::{WaitCount, WaitKey};
use crate::numbers::{counted, grouped};
use crate::places::locate;
use crate::svg::escape::escape;
use crate::svg::lane_name;
use crate::svg::streams::{captions, draw_inline};
use std::fmt::Write as _;
use streamsan_trace::SiteId;

/// How many rows of the table are written.
const ROWS: usize = 200;

pub(super) fn section(parts: &[Part<'_>], html: &mut String) {
    html.push_str("<section id=\"waits\"><h2>Waits</h2>");
    for part in parts {
        html.push_str(&part.heading());
        let survey = &part.survey;
        if survey.waits.rows.is_empty() {
            html.push_str("<p>No stream waits for another, and the host waits for none.</p>");
            continue;
        }
        if let Some(svg) = draw_inline(survey, &part.names) {
            let graph = crate::graph::streams::StreamGraph::new(survey);
            let _ = write!(
                html,
                "<figure class=\"streams\"><div class=\"scroll\" tabindex=\"0\">{svg}</div><figcaption>"
            );
            for caption in captions(&graph, survey, &part.names) {
                let _ = write!(html, "<p>{}</p>", escape(&caption));
            }
            html.push_str("</figcaption></figure>");
        }
        html.push_str("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>waits</th><th>for</th><th>waits at</th><th>recorded at</th><th class=\"number\">times</th><th class=\"number\">first</th></tr></thead><tbody>");
        for (key, count) in survey.waits.rows.iter().take(ROWS) {
            row(part, key, *count, html);
        }
        html.push_str("</tbody></table></div>");
        let more = survey.waits.rows.len().saturating_sub(ROWS) as u64;
        if more > 0 || survey.waits.elsewhere > 0 {
            let places = counted(more, "more row", "more rows");
            let elsewhere = if survey.waits.elsewhere > 0 {
                format!(", and {} at further places", counted(survey.waits.elsewhere, "wait", "waits"))
            } else {
                String::new()
            };
            let _ = write!(html, "<p class=\"soft\">{places}{elsewhere}.</p>");
        }
    }
    html.push_str("</section>\n");
}

fn row(part: &Part<'_>, key: &WaitKey, count: WaitCount, html: &mut String) {
    let name = |lane: usize| escape(&lane_name(&part.survey.lanes, lane, &part.names));
    let place =
        |site: SiteId| locate(part.checked.log, site).map_or_else(String::new, |place| escape(&place.line()));
    let awaited = match key.awaited {
        Some(lane) if lane == key.waiter => format!("{} <span class=\"soft\">(itself)</span>", name(lane)),
        Some(lane) => name(lane),
        None => "<span class=\"soft\">nothing: never recorded</span>".to_owned(),
    };
    let _ = write!(
        html,
        "<tr><td>{}</td><td>{awaited}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
        name(key.waiter),
        place(key.waited),
        place(key.recorded),
        grouped(count.count),
        count.first
    );
}
