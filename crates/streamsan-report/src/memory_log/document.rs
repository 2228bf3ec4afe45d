//! The memory log for programs.

use super::history::{Entry, Histories, Piece, What};
use super::largest::Largest;
use super::marks::Marks;
use super::selection::Chosen;
use super::text::{spoken, stream};
use crate::Checked;
use crate::names::Names;
use crate::places::locate;
use serde::Serialize;
use streamsan_trace::{AccessMode, Log, MemorySpace, SiteId};

/// Raised when a key changes its meaning or goes; new keys do not raise it.
const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format_version: u32,
    tool: &'a str,
    trace: &'a str,
    blocks: Vec<BlockLog>,
    /// How many further blocks are not written.
    blocks_left_out: u64,
}

#[derive(Serialize)]
struct BlockLog {
    block: u32,
    name: Option<String>,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    owner: Option<String>,
    findings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uses: Option<u64>,
    events: Vec<LogLine>,
}

#[derive(Serialize)]
struct LogLine {
    /// `left-out` stands for `count` events.
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The block that had the bytes before, or has them next.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_block: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_ordered: Vec<Missing>,
}

#[derive(Serialize)]
struct Missing {
    finding: String,
    rule: &'static str,
    /// The number of the event that this one is not ordered after.
    after: Option<u64>,
    message: String,
}

pub(super) fn of_histories(
    checked: &Checked<'_>,
    chosen: &Chosen,
    histories: &Histories,
    marks: &Marks<'_>,
    names: &Names<'_>,
    tool: &str,
) -> String {
    let mut blocks = Vec::new();
    for history in &histories.list {
        let events = history.pieces().map(|piece| match piece {
            Piece::LeftOut(count) => LogLine { count: Some(count), ..LogLine::new("left-out") },
            Piece::Event(entry) => {
                let missing = marks.of(entry.number, history.block).map(|mark| Missing {
                    finding: format!("F{}", mark.finding + 1),
                    rule: mark.rule.code(),
                    after: mark.after.map(|place| place.number.0),
                    message: spoken(checked.log, &mark, names),
                });
                LogLine { not_ordered: missing.collect(), ..line(checked.log, &entry, names) }
            }
        });
        blocks.push(BlockLog {
            block: history.block.0,
            name: names.block(history.block).map(str::to_owned),
            size: history.size,
            address: Some(format!("{:#x}", history.address)),
            space: Some(match history.space {
                MemorySpace::Cached(_) => "cached",
                MemorySpace::Device(_) => "device",
                MemorySpace::Pinned => "pinned",
                MemorySpace::Pageable => "pageable",
            }),
            owner: history.owner.map(|owner| names.stream_plain(owner)),
            findings: marks.about(history.block).map(|index| format!("F{}", index + 1)).collect(),
            uses: None,
            events: events.collect(),
        });
    }
    written(checked, blocks, chosen.left_out, tool)
}

pub(super) fn of_largest(checked: &Checked<'_>, largest: &Largest, names: &Names<'_>, tool: &str) -> String {
    let block = |large: &super::largest::Large| BlockLog {
        block: large.block.0,
        name: names.block(large.block).map(str::to_owned),
        size: large.size,
        address: None,
        space: None,
        owner: large.owner.map(|owner| names.stream_plain(owner)),
        findings: Vec::new(),
        uses: Some(large.uses),
        events: Vec::new(),
    };
    let left_out = largest.blocks - largest.list.len() as u64;
    written(checked, largest.list.iter().map(block).collect(), left_out, tool)
}

fn written(checked: &Checked<'_>, blocks: Vec<BlockLog>, blocks_left_out: u64, tool: &str) -> String {
    let document =
        Document { format_version: FORMAT_VERSION, tool, trace: checked.file, blocks, blocks_left_out };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

impl LogLine {
    fn new(event: &'static str) -> Self {
        Self {
            event,
            count: None,
            number: None,
            stream: None,
            access: None,
            label: None,
            other_block: None,
            file: None,
            line: None,
            not_ordered: Vec::new(),
        }
    }

    fn at(mut self, log: &dyn Log, site: SiteId) -> Self {
        if let Some(place) = locate(log, site) {
            self.file = Some(place.shown.to_owned());
            self.line = (place.frame.line > 0).then_some(place.frame.line);
        }
        self
    }
}

fn line(log: &dyn Log, entry: &Entry, names: &Names<'_>) -> LogLine {
    let text = |id| Some(log.tables().string(id).to_owned());
    let what = match entry.what {
        What::HandedOut { before } => {
            LogLine { other_block: before.map(|(block, _)| block.0), ..LogLine::new("alloc") }
        }
        What::Used { label, mode } => {
            let access = match mode {
                AccessMode::Read => "read",
                AccessMode::Write => "write",
                AccessMode::Update => "update",
                AccessMode::Unknown => "unknown",
            };
            LogLine { access: Some(access), label: text(label), ..LogLine::new("use") }
        }
        What::RecordStream => LogLine::new("record-stream"),
        What::Escaped { to } => LogLine { label: text(to), ..LogLine::new("escape") },
        What::Freed => LogLine::new("free"),
        What::Guarded => LogLine::new("free-guard"),
        What::Done => LogLine::new("free-done"),
        What::HandedOn { to } => LogLine { other_block: Some(to.0), ..LogLine::new("handed-on") },
    };
    let said = stream(entry, names);
    LogLine { number: Some(entry.number.0), stream: (!said.is_empty()).then_some(said), ..what }
        .at(log, entry.site)
}
