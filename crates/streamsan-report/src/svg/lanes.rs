//! The drawing of one finding: a lane for each stream, the operations that decide it, the missing edge.

use super::escape::escape;
use super::{file, inline, lane_name, shorten, width};
use crate::graph::lanes::{HOST, Lanes};
use crate::graph::slice::{Node, Role, Slice};
use crate::graph::timeline::is_copy;
use crate::headline::headline;
use crate::labels::{free_mark, second_mark};
use crate::names::Names;
use crate::numbers::{counted, grouped};
use crate::places::locate;
use std::fmt::Write as _;
use streamsan_check::Finding;
use streamsan_trace::{AccessMode, BlockId, EventKind, Log};

/// What the shapes mean.
pub(crate) const LEGEND: &str =
    "box: operation; ring: event record or wait; arrow: ordered; dashed: no order between the two";

const LANE: f64 = 70.0;
const BOX: f64 = 26.0;
const RING: f64 = 6.0;

/// One drawing with what it needs.
pub(crate) struct Drawing<'a> {
    /// What to draw.
    pub(crate) slice: &'a Slice,
    /// The finding it is about.
    pub(crate) finding: &'a Finding,
    /// Lanes of the run.
    pub(crate) lanes: &'a Lanes,
    /// The log.
    pub(crate) log: &'a dyn Log,
    /// Names of streams and blocks.
    pub(crate) names: &'a Names<'a>,
    /// Operations of the run, for the caption.
    pub(crate) operations: u64,
}

/// A node with its place in the drawing.
struct Placed {
    left: f64,
    right: f64,
    /// Index of the row.
    row: usize,
    text: String,
    place: String,
    ring: bool,
}

impl Placed {
    fn middle(&self) -> f64 {
        f64::midpoint(self.left, self.right)
    }

    /// Where edges end and start.
    fn ports(&self) -> (f64, f64) {
        if self.ring {
            (self.middle() - RING, self.middle() + RING)
        } else {
            let wide = width(&self.text) + 16.0;
            (self.middle() - wide / 2.0, self.middle() + wide / 2.0)
        }
    }
}

impl Drawing<'_> {
    /// As an element of a page; `None` if there is nothing between lanes to be seen.
    pub(crate) fn inline(&self) -> Option<String> {
        if self.slice.nodes.len() < 2 {
            return None;
        }
        let (width, height, body) = self.body();
        Some(inline(width, height, &self.sentence(), &body))
    }

    /// As a file. `id` is that of the finding.
    pub(crate) fn file(&self, id: &str) -> String {
        let (width, height, body) = self.body();
        let title = format!("{id} {} {}", self.finding.rule.code(), headline(self.finding, self.names));
        file(width, height, &title, &[LEGEND.to_owned(), self.caption()], &body)
    }

    /// What part of the run is shown.
    pub(crate) fn caption(&self) -> String {
        let shown = self.slice.nodes.iter().filter(|node| is_operation(node)).count() as u64;
        let more = match self.slice.left_out {
            0 => String::new(),
            left_out => {
                format!(" and {} of the existing order", counted(left_out as u64, "more step", "more steps"))
            }
        };
        format!(
            "left to right is issue order, not time; {} of {} operations shown{}",
            grouped(shown),
            grouped(self.operations),
            if more.is_empty() { more } else { format!(", without{more}").replace(" and ", " ") }
        )
    }

    /// The lanes from top to bottom with their names.
    pub(crate) fn lane_names(&self) -> Vec<(usize, String)> {
        self.rows().into_iter().map(|lane| (lane, lane_name(self.lanes, lane, self.names))).collect()
    }

    fn sentence(&self) -> String {
        let mut text = headline(self.finding, self.names);
        if let (Some((first, second)), Some(mark)) = (self.slice.missing, second_mark(self.finding)) {
            let lane = |node: usize| lane_name(self.lanes, self.slice.nodes[node].point.lane, self.names);
            let _ =
                write!(text, ": no order leads from (1) on {} to {mark} on {}", lane(first), lane(second));
        }
        text
    }

    fn body(&self) -> (f64, f64, String) {
        let rows = self.rows();
        let names: Vec<String> = rows.iter().map(|&lane| lane_name(self.lanes, lane, self.names)).collect();
        let start = names.iter().map(|name| width(&shorten(name, 24))).fold(40.0, f64::max) + 28.0;
        let (placed, omitted) = self.place(&rows, start);
        let right = placed.iter().map(|node| node.right).fold(start + 200.0, f64::max) + 24.0;
        let y = |row: usize| 38.0 + LANE * row as f64;
        let height = y(rows.len() - 1) + 40.0;
        let mut body = String::new();
        for (row, name) in names.iter().enumerate() {
            let y = y(row);
            let _ = write!(
                body,
                "<line class=\"lane\" x1=\"{start:.0}\" x2=\"{right:.0}\" y1=\"{y}\" y2=\"{y}\"/><text class=\"name\" x=\"12\" y=\"{:.0}\"><title>{}</title>{}</text>",
                y + 4.0,
                escape(name),
                escape(&shorten(name, 24))
            );
        }
        self.draw_edges(&placed, &y, &mut body);
        for &(x, row, count) in &omitted {
            let _ = write!(
                body,
                "<text class=\"soft halo\" text-anchor=\"middle\" x=\"{x:.0}\" y=\"{:.0}\">… {} more</text>",
                y(row) + 4.0,
                grouped(count)
            );
        }
        for (node, placed) in self.slice.nodes.iter().zip(&placed) {
            self.draw_node(node, placed, y(placed.row), y(rows.len() - 1), &mut body);
        }
        self.draw_missing(&placed, &y, &mut body);
        (right, height, body)
    }

    /// Lanes with something to show, from top to bottom.
    fn rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = self.slice.nodes.iter().map(|node| node.point.lane).collect();
        rows.sort_unstable();
        rows.dedup();
        if rows.is_empty() {
            rows.push(HOST);
        }
        rows
    }

    /// Gives each node its place; also the places of "40 more" between two of a lane.
    fn place(&self, rows: &[usize], start: f64) -> (Vec<Placed>, Vec<(f64, usize, u64)>) {
        let mut placed: Vec<Placed> = Vec::new();
        let mut omitted = Vec::new();
        let mut lane_right = vec![start; rows.len()];
        let mut lane_ordinal = vec![0_u64; rows.len()];
        let mut last_left = start;
        for (index, node) in self.slice.nodes.iter().enumerate() {
            let row = rows.binary_search(&node.point.lane).unwrap_or(0);
            let ring = is_ring(node);
            let text = self.text(node);
            let place = locate(self.log, node.point.site)
                .map_or_else(String::new, |place| shorten(&file_name(&place.line()), 26));
            let body = if ring { width(&text) } else { width(&text) + 16.0 };
            let extent = body.max(width(&place) * 11.0 / 12.0);
            let before = node.point.ordinal - u64::from(is_operation(node));
            let hidden = before.saturating_sub(lane_ordinal[row]);
            let gap = if hidden > 0 { width(&format!("… {} more", grouped(hidden))) + 16.0 } else { 0.0 };
            let mut left = (last_left + 26.0).max(lane_right[row] + 20.0 + gap);
            let sources =
                self.slice.edges.iter().filter(|(_, to)| *to == index).map(|(from, _)| (*from, 46.0));
            let missing = self.slice.missing.filter(|(_, to)| *to == index).map(|(from, _)| (from, 76.0));
            for (from, distance) in sources.chain(missing) {
                if let Some(source) = placed.get(from) {
                    // The port of this node lies half the spare width to the right of `left`.
                    let port = (extent - if ring { 2.0 * RING } else { body }) / 2.0;
                    left = left.max(source.ports().1 + distance - port);
                }
            }
            if hidden > 0 {
                omitted.push((f64::midpoint(lane_right[row], left), row, hidden));
            }
            lane_right[row] = left + extent;
            lane_ordinal[row] = node.point.ordinal;
            last_left = left;
            placed.push(Placed { left, right: left + extent, row, text, place, ring });
        }
        (placed, omitted)
    }

    fn draw_edges(&self, placed: &[Placed], y: &impl Fn(usize) -> f64, body: &mut String) {
        for &(from, to) in &self.slice.edges {
            let (source, target) = (&placed[from], &placed[to]);
            let (start, end) = (source.ports().1, target.ports().0);
            if source.row == target.row {
                continue;
            }
            curve((start, y(source.row)), (end, y(target.row)), "order", body);
        }
    }

    /// Through the space between the lanes, so that it crosses no other node of the two.
    fn draw_missing(&self, placed: &[Placed], y: &impl Fn(usize) -> f64, body: &mut String) {
        let Some((from, to)) = self.slice.missing else { return };
        let (source, target) = (&placed[from], &placed[to]);
        if source.row == target.row {
            let ((start, y), end) = ((source.ports().1 + 2.0, y(source.row)), target.ports().0 - 2.0);
            curve((start, y), (end, y), "missing", body);
            return;
        }
        let down = if target.row > source.row { 1.0 } else { -1.0 };
        let (start, end) = (source.ports().1 - 14.0, target.ports().0 + 14.0);
        let edge = |row: usize, side: f64| y(row) + side * (BOX / 2.0 + 2.0);
        let (top, tip) = (edge(source.row, down), edge(target.row, -down));
        let (last, middle) = (tip - down * 8.0, f64::midpoint(top, tip));
        let _ = write!(
            body,
            "<path class=\"missing\" d=\"M{start:.0} {top:.0}C{start:.0} {bend:.0} {end:.0} {back:.0} {end:.0} {last:.0}\"/><path class=\"missing-head\" d=\"M{end:.0} {tip:.0}l-6 {head}h12z\"/><text class=\"missing-text halo\" text-anchor=\"middle\" x=\"{:.0}\" y=\"{:.0}\">missing</text>",
            f64::midpoint(start, end),
            middle + 4.0,
            bend = middle + down * 10.0,
            back = middle - down * 10.0,
            head = -down * 10.0,
        );
    }

    fn draw_node(&self, node: &Node, placed: &Placed, y: f64, bottom: f64, body: &mut String) {
        let middle = placed.middle();
        let _ = write!(body, "<g><title>{}</title>", escape(&self.title(node)));
        if placed.ring {
            if matches!(node.point.what, EventKind::HostWait { .. }) {
                let _ = write!(
                    body,
                    "<line class=\"bar\" x1=\"{middle:.0}\" x2=\"{middle:.0}\" y1=\"{y}\" y2=\"{bottom}\"/>"
                );
            }
            let _ = write!(
                body,
                "<circle class=\"ring\" cx=\"{middle:.0}\" cy=\"{y}\" r=\"{RING}\"/><text class=\"halo\" text-anchor=\"middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text>",
                y - 13.0,
                escape(&placed.text)
            );
        } else {
            let wide = width(&placed.text) + 16.0;
            let class = match node.point.what {
                EventKind::Op { kind, .. } if is_copy(kind) => "copy",
                EventKind::Op { .. } | EventKind::GraphLaunch { .. } => "kernel",
                EventKind::HostAccess { .. } => "host",
                _ => "hollow",
            };
            let filled = class != "hollow";
            let access = if is_access(node) { " access" } else { "" };
            let _ = write!(
                body,
                "<rect class=\"{class}{access}\" x=\"{:.0}\" y=\"{:.0}\" width=\"{wide:.0}\" height=\"{BOX}\" rx=\"4\"/><text class=\"{}\" text-anchor=\"middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text>",
                middle - wide / 2.0,
                y - BOX / 2.0,
                if filled { "in" } else { "" },
                y + 4.0,
                escape(&placed.text)
            );
        }
        let _ = write!(
            body,
            "<text class=\"soft halo\" text-anchor=\"middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text></g>",
            y + if placed.ring { 22.0 } else { 28.0 },
            escape(&placed.place)
        );
    }

    fn mark(&self, node: &Node) -> &'static str {
        match node.role {
            Role::First => "(1) ",
            Role::Free if free_mark(self.finding) == "(1)" => "(1) ",
            Role::Free => "(2) ",
            Role::Second => match second_mark(self.finding) {
                Some("(3)") => "(3) ",
                Some(_) => "(2) ",
                None => "",
            },
            Role::Reach | Role::Edge | Role::Alloc => "",
        }
    }

    /// What stands in or above a node.
    pub(crate) fn text(&self, node: &Node) -> String {
        let mark = self.mark(node);
        let what = match node.point.what {
            EventKind::Op { label, .. }
            | EventKind::HostAccess { label, .. }
            | EventKind::GraphLaunch { label, .. } => {
                let label = self.log.tables().string(label);
                let label = label.strip_prefix("aten::").unwrap_or(label);
                let label = if label.is_empty() { "operation" } else { label };
                let access = self.access(node);
                format!("{}{access}", shorten(label, 26))
            }
            EventKind::EventRecord { .. } => "record".to_owned(),
            EventKind::EventWait { .. } => "wait".to_owned(),
            EventKind::HostWait { .. } => "host waits".to_owned(),
            EventKind::Alloc { block, .. } => format!("alloc {}", self.memory(block)),
            EventKind::FreeRequest { block } => format!("free {}", self.memory(block)),
            EventKind::RecordStream { .. } => "record_stream".to_owned(),
            _ => "call".to_owned(),
        };
        format!("{mark}{what}")
    }

    /// `  R x` for the two operations.
    fn access(&self, node: &Node) -> String {
        let finding = self.finding;
        let (place, memory) = match node.role {
            Role::First => (finding.first, finding.old_memory.or(finding.memory)),
            Role::Second => (Some(finding.second), finding.memory),
            _ => return String::new(),
        };
        let mode = match place.and_then(|place| place.access) {
            Some(AccessMode::Read) => "R",
            Some(AccessMode::Write) => "W",
            Some(AccessMode::Update) => "RW",
            Some(AccessMode::Unknown) => "?",
            None => return String::new(),
        };
        format!("  {mode} {}", memory.map_or_else(String::new, |memory| self.memory(memory.block)))
    }

    fn memory(&self, block: BlockId) -> String {
        shorten(self.names.block(block).unwrap_or_else(|| self.names.sort(block)), 18)
    }

    /// What a pointer held over a node shows.
    pub(crate) fn title(&self, node: &Node) -> String {
        let mut text = format!("{} {}", node.point.number, self.text(node));
        let _ = write!(text, " on {}", lane_name(self.lanes, node.point.lane, self.names));
        if let Some(place) = locate(self.log, node.point.site) {
            let _ = write!(text, ", {}", place.line());
        }
        text
    }
}

/// `data.py:18` of a path.
fn file_name(line: &str) -> String {
    line.rsplit('/').next().unwrap_or(line).to_owned()
}

/// Whether a node is one of the two operations.
pub(crate) fn is_access(node: &Node) -> bool {
    matches!(node.role, Role::First | Role::Second)
}

fn is_operation(node: &Node) -> bool {
    matches!(
        node.point.what,
        EventKind::Op { .. } | EventKind::HostAccess { .. } | EventKind::GraphLaunch { .. }
    )
}

fn is_ring(node: &Node) -> bool {
    matches!(
        node.point.what,
        EventKind::EventRecord { .. } | EventKind::EventWait { .. } | EventKind::HostWait { .. }
    )
}

/// A curve with a head that points to the right.
fn curve(from: (f64, f64), to: (f64, f64), class: &str, body: &mut String) {
    let tip = to.0 - 8.0;
    let bend = ((tip - from.0) / 2.0).max(24.0);
    let _ = write!(
        body,
        "<path class=\"{class}\" d=\"M{:.0} {:.0}C{:.0} {:.0} {:.0} {:.0} {tip:.0} {:.0}\"/><path class=\"{class}-head\" d=\"M{:.0} {:.0}l-10 -5v10z\"/>",
        from.0,
        from.1,
        from.0 + bend,
        from.1,
        tip - bend,
        to.1,
        to.1,
        to.0,
        to.1
    );
}
