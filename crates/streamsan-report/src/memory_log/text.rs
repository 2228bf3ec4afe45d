//! The memory log for people: a table for each block, at most 80 columns wide where names allow it.

use super::history::{Entry, Histories, History, Piece, What};
use super::marks::{Mark, Marks};
use super::selection::Chosen;
use crate::names::Names;
use crate::numbers::{bytes, counted};
use crate::places::locate;
use crate::{Checked, printable};
use std::fmt::Write as _;
use streamsan_check::{Actor, Rule};
use streamsan_trace::{AccessMode, BlockId, Log, MemorySpace};

/// How long a column's text may be.
const STREAM: usize = 16;
const EVENT: usize = 38;

const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Columns as wide as their widest cell; cells without a table, too.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Line>,
    widths: Vec<usize>,
}

#[derive(Debug)]
enum Line {
    Cells(Vec<String>),
    Free(String),
}

impl Table {
    pub(super) fn new(heading: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new(), widths: vec![0; heading.len()] };
        table.row(heading.iter().map(|&cell| cell.to_owned()).collect());
        table
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
        self.rows.push(Line::Cells(cells));
    }

    fn free(&mut self, text: String) {
        self.rows.push(Line::Free(text));
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            match row {
                Line::Free(line) => text.push_str(line),
                Line::Cells(cells) => {
                    let mut line = String::new();
                    for (cell, width) in cells.iter().zip(&self.widths) {
                        let _ = write!(line, "  {cell:<width$}");
                    }
                    text.push_str(line.trim_end());
                }
            }
            text.push('\n');
        }
        text
    }
}

/// At most so many characters: the middle goes, since both ends tell names apart.
pub(super) fn clip(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head = (most - 1) / 2;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - (most - 1 - head)).collect();
    format!("{start}…{end}")
}

pub(super) fn render(
    checked: &Checked<'_>,
    chosen: &Chosen,
    histories: &Histories,
    marks: &Marks<'_>,
    names: &Names<'_>,
    color: bool,
) -> String {
    let mut text = String::new();
    for (index, history) in histories.list.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let _ = writeln!(text, "{}\n", printable(&heading(history, marks, names)));
        let mut table = Table::new(&["event", "stream", "what", "where"]);
        for piece in history.pieces() {
            match piece {
                Piece::LeftOut(count) => {
                    table.free(format!("    … {} left out …", counted(count, "event", "events")));
                }
                Piece::Event(entry) => event(checked, history.block, &entry, marks, names, color, &mut table),
            }
        }
        text.push_str(&table.text());
    }
    if chosen.left_out > 0 {
        let _ = writeln!(
            text,
            "\n{} left out; choose: --finding F1, --block b{}",
            counted(chosen.left_out, "more block", "more blocks"),
            chosen.blocks.first().map_or(1, |block| block.0)
        );
    }
    text
}

fn event(
    checked: &Checked<'_>,
    block: BlockId,
    entry: &Entry,
    marks: &Marks<'_>,
    names: &Names<'_>,
    color: bool,
    table: &mut Table,
) {
    let place = locate(checked.log, entry.site).map_or_else(String::new, |place| place.line());
    let what = clip(&what(checked.log, entry, names), EVENT);
    table.row(vec![
        entry.number.to_string(),
        printable(&clip(&stream(entry, names), STREAM)),
        printable(&what),
        printable(&place),
    ]);
    for mark in marks.of(entry.number, block) {
        let said = printable(&spoken(checked.log, &mark, names));
        let (on, off) = if color { (RED, PLAIN) } else { ("", "") };
        table.free(format!("    {on}<-- {said}{off}"));
    }
}

/// `x`, 4.0 MiB of device 0, block b17 at 0x7f0012340000: F1, F2
fn heading(history: &History, marks: &Marks<'_>, names: &Names<'_>) -> String {
    let name = names
        .block(history.block)
        .map_or_else(|| format!("a {}", names.sort(history.block)), |name| format!("`{name}`"));
    let size = if history.size == 0 { String::new() } else { format!(", {}", bytes(history.size)) };
    let space = match history.space {
        MemorySpace::Cached(_) | MemorySpace::Device(_) => "",
        MemorySpace::Pinned => ", page-locked host memory",
        MemorySpace::Pageable => ", host memory",
    };
    let findings: Vec<_> =
        marks.about(history.block).take(8).map(|index| format!("F{}", index + 1)).collect();
    let findings = if findings.is_empty() { String::new() } else { format!("  ({})", findings.join(", ")) };
    format!("{name}{size}{space}, block b{} at {:#x}{findings}", history.block.0, history.address)
}

/// The stream of an event, as the column says it.
pub(super) fn stream(entry: &Entry, names: &Names<'_>) -> String {
    match (entry.stream, entry.what) {
        (Some(stream), _) => names.stream_plain(stream),
        (None, What::Used { .. } | What::Escaped { .. } | What::HandedOut { .. } | What::Freed) => {
            "host".to_owned()
        }
        (None, _) => String::new(),
    }
}

/// What happened, without the stream.
pub(super) fn what(log: &dyn Log, entry: &Entry, names: &Names<'_>) -> String {
    let spoken_block = |block: BlockId| {
        names.block(block).map_or_else(|| format!("b{}", block.0), |name| format!("`{name}` b{}", block.0))
    };
    match entry.what {
        What::HandedOut { before: None } => "alloc: new memory".to_owned(),
        What::HandedOut { before: Some((old, Some(freed))) } => {
            format!("alloc: was {} until {freed}", spoken_block(old))
        }
        What::HandedOut { before: Some((old, None)) } => format!("alloc: was {}", spoken_block(old)),
        What::Used { label, mode } => {
            let verb = match mode {
                AccessMode::Read => "reads",
                AccessMode::Write => "writes",
                AccessMode::Update => "updates",
                AccessMode::Unknown => "may change",
            };
            format!("{verb}: {}", log.tables().string(label))
        }
        What::RecordStream => "record_stream: guards the free".to_owned(),
        What::Escaped { to } => format!("pointer given to {}", log.tables().string(to)),
        What::Freed => "free: last reference gone".to_owned(),
        What::Guarded => "free waits for this stream".to_owned(),
        What::Done => "free done: all guards passed".to_owned(),
        What::HandedOn { to } => format!("memory handed on to {}", spoken_block(to)),
    }
}

/// `not ordered after #14 memcpy HtoD on side: F1 SS101`
pub(super) fn spoken(log: &dyn Log, mark: &Mark<'_>, names: &Names<'_>) -> String {
    let which = format!("F{} {}", mark.finding + 1, mark.rule.code());
    let Some(after) = mark.after else { return format!("{which} {}", mark.rule.name()) };
    let label = match log.tables().string(after.label) {
        "" => String::new(),
        label => format!(" {label}"),
    };
    let actor = match after.actor {
        Actor::Stream(stream) => format!(" on {}", names.stream_plain(stream)),
        Actor::Host => " by the host".to_owned(),
    };
    let of = match mark.of {
        Some(old) => format!(
            " (old owner {})",
            names.block(old).map_or_else(|| format!("b{}", old.0), |name| format!("`{name}` b{}", old.0))
        ),
        None => String::new(),
    };
    let verb = if mark.rule == Rule::Ss203 { "the free is not held back for" } else { "not ordered after" };
    format!("{verb} {}{label}{actor}{of}: {which}", after.number)
}
