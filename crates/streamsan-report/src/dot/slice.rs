//! What decides one finding.

use super::{head, quoted};
use crate::svg::lanes::{Drawing, is_access};
use std::fmt::Write as _;

pub(crate) fn draw(drawing: &Drawing<'_>, title: &str) -> String {
    let mut text = head(title);
    let nodes = &drawing.slice.nodes;
    for (lane, name) in drawing.lane_names() {
        let _ = writeln!(
            text,
            "  subgraph cluster_{lane} {{\n    label={};\n    color=\"#d0d7de\";",
            quoted(&name)
        );
        let mut previous: Option<usize> = None;
        for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.point.lane == lane) {
            let (label, tooltip) = (drawing.text(node), drawing.title(node));
            let access = if is_access(node) { ", color=\"#d55e00\", penwidth=2" } else { "" };
            let _ = writeln!(
                text,
                "    n{index} [label={}, tooltip={}{access}];",
                quoted(&label),
                quoted(&tooltip)
            );
            if let Some(previous) = previous {
                let _ = writeln!(text, "    n{previous} -> n{index};");
            }
            previous = Some(index);
        }
        text.push_str("  }\n");
    }
    for (from, to) in &drawing.slice.edges {
        if nodes[*from].point.lane != nodes[*to].point.lane {
            let _ = writeln!(text, "  n{from} -> n{to} [penwidth=1.5];");
        }
    }
    if let Some((from, to)) = drawing.slice.missing {
        let _ = writeln!(
            text,
            "  n{from} -> n{to} [style=dashed, color=\"#d55e00\", fontcolor=\"#ad4a00\", label=missing, penwidth=2, constraint=false];"
        );
    }
    text.push_str("}\n");
    text
}
