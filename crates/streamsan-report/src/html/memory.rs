//! What happened to the memory of the findings.

use super::page::Part;
use crate::graph::blocks::{History, Use};
use crate::names::Names;
use crate::numbers::{bytes, counted};
use crate::places::locate;
use crate::svg::escape::escape;
use crate::svg::lane_name;
use std::fmt::Write as _;
use streamsan_trace::{AccessMode, BlockId, EventKind};

pub(super) fn section(parts: &[Part<'_>], html: &mut String) {
    html.push_str("<section id=\"memory\"><h2>Memory of the findings</h2>");
    let mut any = false;
    for part in parts {
        let histories = &part.survey.blocks.list;
        if histories.is_empty() {
            continue;
        }
        any = true;
        html.push_str(&part.heading());
        for history in histories {
            block(part, history, html);
        }
    }
    if !any {
        html.push_str("<p class=\"soft\">No finding is about memory.</p>");
    }
    html.push_str("</section>\n");
}

fn block(part: &Part<'_>, history: &History, html: &mut String) {
    let memory = part
        .checked
        .report
        .findings
        .iter()
        .flat_map(|finding| [finding.memory, finding.old_memory])
        .flatten()
        .find(|memory| memory.block == history.block);
    let size = match memory.map_or(0, |memory| memory.size) {
        0 => String::new(),
        size => format!("<span class=\"soft\">{}</span>", bytes(size)),
    };
    let owner = memory.and_then(|memory| memory.owner).filter(|_| part.names.is_cached(history.block));
    let owner = owner.map_or_else(String::new, |owner| {
        format!("<span class=\"soft\">owner {}</span>", escape(&part.names.stream_plain(owner)))
    });
    let mut links = String::new();
    for &index in history.findings.iter().take(8) {
        let id = part.id(index);
        let _ = write!(links, " <a href=\"#{id}\">{id}</a>");
    }
    let _ = write!(
        html,
        "<details class=\"block\"><summary><code>{}</code>{size}{owner}<span class=\"links\">{links}</span></summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th class=\"number\">#</th><th>stream</th><th>what</th><th>where</th></tr></thead><tbody>",
        escape(&title(history.block, &part.names))
    );
    let named =
        part.checked.report.findings.iter().enumerate().filter(|(index, _)| history.findings.contains(index));
    let numbers: Vec<_> = named.flat_map(|(_, finding)| crate::graph::numbers(finding)).collect();
    for (index, entry) in history.head.iter().chain(&history.tail).enumerate() {
        if index == history.head.len() && history.left_out > 0 {
            let _ = write!(
                html,
                "<tr><td></td><td></td><td class=\"soft\" colspan=\"2\">… {} …</td></tr>",
                counted(history.left_out, "more", "more")
            );
        }
        let class = if numbers.contains(&entry.point.number) { " class=\"hit\"" } else { "" };
        let place = locate(part.checked.log, entry.point.site).map_or_else(String::new, |place| place.line());
        let _ = write!(
            html,
            "<tr{class}><td class=\"number\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            entry.point.number,
            escape(&lane_name(&part.survey.lanes, entry.point.lane, &part.names)),
            escape(&what(part, entry)),
            escape(&place)
        );
    }
    html.push_str("</tbody></table></div></details>\n");
}

fn title(block: BlockId, names: &Names<'_>) -> String {
    names.block(block).map_or_else(|| format!("a {}", names.sort(block)), str::to_owned)
}

fn what(part: &Part<'_>, entry: &Use) -> String {
    let mode = match entry.access {
        Some(AccessMode::Read) => "reads",
        Some(AccessMode::Write) => "writes",
        Some(AccessMode::Update) => "updates",
        Some(AccessMode::Unknown) => "may change",
        None => "",
    };
    match entry.point.what {
        EventKind::Alloc { .. } => "handed out".to_owned(),
        EventKind::FreeRequest { .. } => "freed: last reference gone".to_owned(),
        EventKind::FreeGuard { .. } => "held back until this stream gets here".to_owned(),
        EventKind::RecordStream { .. } => "record_stream".to_owned(),
        EventKind::Op { label, .. } | EventKind::HostAccess { label, .. } => {
            format!("{mode}: {}", part.checked.log.tables().string(label))
        }
        _ => String::new(),
    }
}
