//! The graph of the streams.

use super::{head, quoted};
use crate::graph::Survey;
use crate::graph::streams::StreamGraph;
use crate::names::Names;
use crate::numbers::{counted, grouped};
use crate::svg::lane_name;
use std::fmt::Write as _;

pub(crate) fn draw(survey: &Survey, names: &Names<'_>, title: &str) -> String {
    let graph = StreamGraph::new(survey);
    let mut text = head(title);
    for (row, &lane) in graph.rows.iter().enumerate() {
        let name = lane_name(&survey.lanes, lane, names);
        let second = match survey.lanes.list[lane].stream {
            Some(_) => counted(survey.lanes.list[lane].operations, "operation", "operations"),
            None => "the program's thread".to_owned(),
        };
        let in_loop = graph.loops.iter().any(|members| members.contains(&row));
        let looped = if in_loop { ", color=\"#d55e00\", style=\"rounded,filled,dashed\"" } else { "" };
        let _ = writeln!(text, "  s{row} [label={}{looped}];", quoted(&format!("{name}\n{second}")));
    }
    for edge in &graph.edges {
        let color = if edge.in_loop { ", color=\"#d55e00\"" } else { "" };
        let width = 1.0 + (edge.count.count as f64).log10();
        let _ = writeln!(
            text,
            "  s{} -> s{} [label={}, penwidth={width:.1}, tooltip={}{color}];",
            edge.from,
            edge.to,
            quoted(&grouped(edge.count.count)),
            quoted(&format!("first at {}", edge.count.first))
        );
    }
    text.push_str("}\n");
    text
}
