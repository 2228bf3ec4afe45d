//! The graph of the streams: boxes in a column, waits as arcs, loops marked.

use super::escape::escape;
use super::{file, inline, lane_name, shorten, width};
use crate::graph::Survey;
use crate::graph::streams::{Edge, StreamGraph};
use crate::names::Names;
use crate::numbers::{counted, grouped};
use std::fmt::Write as _;

const ROW: f64 = 74.0;
const HIGH: f64 = 42.0;

/// As an element of a page; `None` without a wait.
pub(crate) fn draw_inline(survey: &Survey, names: &Names<'_>) -> Option<String> {
    let graph = StreamGraph::new(survey);
    if graph.edges.is_empty() {
        return None;
    }
    let (width, height, body) = body(&graph, survey, names);
    Some(inline(width, height, &sentence(&graph, survey, names), &body))
}

/// As a file.
pub(crate) fn draw_file(survey: &Survey, names: &Names<'_>, title: &str) -> String {
    let graph = StreamGraph::new(survey);
    let (width, height, body) = body(&graph, survey, names);
    file(width, height, title, &captions(&graph, survey, names), &body)
}

/// What is below the drawing.
pub(crate) fn captions(graph: &StreamGraph, survey: &Survey, names: &Names<'_>) -> Vec<String> {
    let mut lines = vec![
        "an arrow leads from the stream that is waited for to the one that waits; its number: how often"
            .to_owned(),
    ];
    lines.extend(graph.loops.iter().map(|members| loop_text(members, graph, survey, names)));
    if graph.left_out > 0 {
        lines.push(format!("{}, not drawn", counted(graph.left_out as u64, "more stream", "more streams")));
    }
    lines
}

/// `copy and side wait for each other (dashed frame)`.
fn loop_text(members: &[usize], graph: &StreamGraph, survey: &Survey, names: &Names<'_>) -> String {
    let list: Vec<String> =
        members.iter().map(|&row| lane_name(&survey.lanes, graph.rows[row], names)).collect();
    let text = match list.as_slice() {
        [others @ .., end] if !others.is_empty() => format!("{} and {end}", others.join(", ")),
        _ => list.join(", "),
    };
    format!("{text} wait for each other (dashed frame): no error in itself")
}

fn sentence(graph: &StreamGraph, survey: &Survey, names: &Names<'_>) -> String {
    let edge = |edge: &Edge| {
        format!(
            "{} waits for {} {}",
            lane_name(&survey.lanes, graph.rows[edge.to], names),
            lane_name(&survey.lanes, graph.rows[edge.from], names),
            times(edge.count.count)
        )
    };
    let shown: Vec<String> = graph.edges.iter().take(12).map(edge).collect();
    let more = graph.edges.len().saturating_sub(12);
    let more = if more > 0 {
        format!("; and {}", counted(more as u64, "more pair", "more pairs"))
    } else {
        String::new()
    };
    format!("who waits for whom: {}{more}", shown.join("; "))
}

/// `once`, `12 times`.
pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

fn body(graph: &StreamGraph, survey: &Survey, names: &Names<'_>) -> (f64, f64, String) {
    let texts: Vec<(String, String)> = graph
        .rows
        .iter()
        .map(|&lane| {
            let operations = survey.lanes.list[lane].operations;
            let second = match survey.lanes.list[lane].stream {
                None => "the program's thread".to_owned(),
                Some(_) => counted(operations, "operation", "operations"),
            };
            (lane_name(&survey.lanes, lane, names), second)
        })
        .collect();
    let wide =
        texts.iter().map(|(name, second)| width(&shorten(name, 28)).max(width(second))).fold(110.0, f64::max)
            + 24.0;
    let spans = |up: bool| {
        let of = graph.edges.iter().filter(move |edge| (edge.to <= edge.from) == up);
        of.map(|edge| reach(edge.from.abs_diff(edge.to))).fold(0.0, f64::max)
    };
    let (left_arcs, right_arcs) = (spans(true), spans(false));
    let x = 16.0 + if left_arcs > 0.0 { left_arcs + 40.0 } else { 0.0 };
    let y = |row: usize| 14.0 + ROW * row as f64;
    let total = x + wide + right_arcs + 56.0;
    let height = y(graph.rows.len().saturating_sub(1)) + HIGH + 16.0;
    let mut body = String::new();
    for members in &graph.loops {
        let (Some(first), Some(last)) = (members.first(), members.last()) else { continue };
        let _ = write!(
            body,
            "<rect class=\"loop-frame\" x=\"{:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\"/>",
            x - 8.0,
            y(*first) - 8.0,
            wide + 16.0,
            y(*last) - y(*first) + HIGH + 16.0
        );
    }
    for edge in &graph.edges {
        arc(edge, x, wide, &y, &mut body, survey, graph, names);
    }
    for (row, (name, second)) in texts.iter().enumerate() {
        let (y, middle) = (y(row), x + wide / 2.0);
        let _ = write!(
            body,
            "<g><title>{}: {}</title><rect class=\"stream\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{wide:.0}\" height=\"{HIGH}\" rx=\"5\"/><text class=\"name\" text-anchor=\"middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text><text class=\"soft\" text-anchor=\"middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text></g>",
            escape(name),
            escape(second),
            y + 18.0,
            escape(&shorten(name, 28)),
            y + 34.0,
            escape(second)
        );
    }
    (total, height, body)
}

/// How far an arc over so many rows reaches out.
fn reach(rows: usize) -> f64 {
    26.0 + 22.0 * rows.min(8) as f64
}

#[allow(clippy::too_many_arguments)] // One arc needs the whole drawing around it.
fn arc(
    edge: &Edge,
    x: f64,
    wide: f64,
    y: &impl Fn(usize) -> f64,
    body: &mut String,
    survey: &Survey,
    graph: &StreamGraph,
    names: &Names<'_>,
) {
    let up = edge.to <= edge.from;
    let class = if edge.in_loop { "loop" } else { "order" };
    let thick = 1.5 + (edge.count.count as f64).log10() * 1.1;
    let middle = HIGH / 2.0;
    // Arcs leave below the middle and arrive above it, so that both directions can be told apart.
    let (start, end) = if up {
        (y(edge.from) + middle - 8.0, y(edge.to) + middle + 8.0)
    } else {
        (y(edge.from) + middle + 8.0, y(edge.to) + middle - 8.0)
    };
    let out = reach(edge.from.abs_diff(edge.to)) * 4.0 / 3.0;
    let (side, far, tip) =
        if up { (x, x - out, x - 9.0) } else { (x + wide, x + wide + out, x + wide + 9.0) };
    let head = if up { "l-10 -5v10z" } else { "l10 -5v10z" };
    let title = format!(
        "{} waits for {} {}, first at {}",
        lane_name(&survey.lanes, graph.rows[edge.to], names),
        lane_name(&survey.lanes, graph.rows[edge.from], names),
        times(edge.count.count),
        edge.count.first
    );
    let label = side + (far - side) * 0.75;
    let _ = write!(
        body,
        "<g><title>{}</title><path class=\"{class}\" style=\"stroke-width:{thick:.1}px\" d=\"M{side:.0} {start:.0}C{far:.0} {start:.0} {far:.0} {end:.0} {tip:.0} {end:.0}\"/><path class=\"{class}-head\" d=\"M{side:.0} {end:.0}{head}\"/><text class=\"halo\" text-anchor=\"middle\" x=\"{label:.0}\" y=\"{:.0}\">{}</text></g>",
        escape(&title),
        f64::midpoint(start, end) + 4.0,
        grouped(edge.count.count)
    );
}
