//! The operations of a run, or of a part of it.

use super::{head, quoted};
use crate::graph::lanes::HOST;
use crate::graph::operations::{Node, Operations, Order};
use crate::graph::timeline::{ItemKind, kind};
use crate::names::Names;
use crate::numbers::counted;
use crate::places::locate;
use crate::svg::{lane_name, shorten};
use std::fmt::Write as _;
use streamsan_check::Report;
use streamsan_trace::{EventKind, Log, OpNumber};

pub(crate) fn draw(
    operations: &Operations,
    log: &dyn Log,
    report: Option<&Report>,
    names: &Names<'_>,
    title: &str,
) -> String {
    let mut text = head(title);
    for lane in 0..operations.lanes.list.len() {
        let nodes: Vec<(usize, &Node)> =
            operations.nodes.iter().enumerate().filter(|(_, node)| node.first.lane == lane).collect();
        if nodes.is_empty() {
            continue;
        }
        let name = lane_name(&operations.lanes, lane, names);
        let _ = writeln!(
            text,
            "  subgraph cluster_{lane} {{\n    label={};\n    color=\"#d0d7de\";",
            quoted(&name)
        );
        for (index, node) in nodes {
            box_of(index, node, log, &mut text);
        }
        text.push_str("  }\n");
    }
    for (from, to, order) in &operations.edges {
        let style = match order {
            Order::Lane => "",
            Order::Wait => " [penwidth=1.5, color=\"#0072b2\"]",
            Order::Host => " [style=dotted]",
        };
        let _ = writeln!(text, "  n{from} -> n{to}{style};");
    }
    for (index, finding) in report.into_iter().flat_map(|report| report.findings.iter().enumerate()) {
        let node = |number: OpNumber| {
            operations
                .nodes
                .iter()
                .position(|node| (node.first.number..=node.last.number).contains(&number) && node.count == 1)
        };
        let ends = finding.first.map(|first| (node(first.number), node(finding.second.number)));
        if let Some((Some(from), Some(to))) = ends {
            let _ = writeln!(
                text,
                "  n{from} -> n{to} [style=dashed, color=\"#d55e00\", fontcolor=\"#ad4a00\", label=\"F{} missing\", penwidth=2, constraint=false];",
                index + 1
            );
        }
    }
    text.push_str("}\n");
    text
}

fn box_of(index: usize, node: &Node, log: &dyn Log, text: &mut String) {
    let place = locate(log, node.first.site).map_or_else(String::new, |place| place.line());
    if node.count > 1 {
        let label = format!(
            "{}\n{} to {}",
            counted(node.count, "operation", "operations"),
            node.first.number,
            node.last.number
        );
        let _ = writeln!(text, "    n{index} [label={}, style=\"rounded,filled,dashed\"];", quoted(&label));
        return;
    }
    let number = node.first.number;
    let (label, style) = match (node.first.what, kind(&node.first.what)) {
        (
            EventKind::Op { label, .. }
            | EventKind::HostAccess { label, .. }
            | EventKind::GraphLaunch { label, .. },
            what,
        ) => {
            let fill = match what {
                Some(ItemKind::Copy) => "#00795a",
                _ if node.first.lane == HOST => "#5b6470",
                _ => "#0072b2",
            };
            let label = shorten(log.tables().string(label), 40);
            (label, format!(", fillcolor=\"{fill}\", fontcolor=white"))
        }
        (EventKind::EventRecord { .. }, _) => ("record".to_owned(), ", shape=ellipse".to_owned()),
        (EventKind::EventWait { .. }, _) => ("wait".to_owned(), ", shape=ellipse".to_owned()),
        _ => ("host waits".to_owned(), ", shape=ellipse".to_owned()),
    };
    let _ = writeln!(
        text,
        "    n{index} [label={}, tooltip={}{style}];",
        quoted(&format!("{number} {label}")),
        quoted(&place)
    );
}
