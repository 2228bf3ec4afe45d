//! What was counted of a trace, at the end of the text: a few lines, without times.

use crate::Checked;
use crate::names::Names;
use crate::numbers::{bytes, counted, grouped, percent};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use streamsan_check::{Measures, StreamMeasures};
use textwrap::core::display_width;

/// Streams that have a line of their own.
const MOST: usize = 12;

/// The lines of all traces, or nothing if no advice was asked for.
pub(crate) fn render(checked: &[Checked<'_>]) -> String {
    let mut text = String::new();
    for one in checked {
        let Some(measures) = one.report.measures.as_ref().filter(|measures| measures.operations > 0) else {
            continue;
        };
        if checked.len() > 1 {
            let _ = writeln!(text, "{}:", one.file);
        }
        let names = Names::of_blocks(one.log, &BTreeSet::new());
        text.push_str("What the order allows (counts: a trace has no times):\n");
        text.push_str(&table(measures, &names));
        for line in lines(measures) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// One line for each stream, those with most operations first.
fn table(measures: &Measures, names: &Names<'_>) -> String {
    let mut streams: Vec<&StreamMeasures> = measures.streams.iter().collect();
    streams.sort_by_key(|stream| (std::cmp::Reverse(stream.operations), stream.stream));
    let more = streams.len().saturating_sub(MOST);
    streams.truncate(MOST);
    let part = |whole: u64, part: u64, text: fn(u64) -> String| match part {
        0 => text(whole),
        part => format!("{} ({})", text(whole), text(part)),
    };
    let moved = |whole, pageable| if whole == 0 { "-".to_owned() } else { part(whole, pageable, bytes) };
    let head =
        ["stream", "operations", "up (pageable)", "down (pageable)", "waits (redundant)"].map(str::to_owned);
    let rows = streams.iter().map(|stream| {
        [
            names.stream_plain(stream.stream),
            grouped(stream.operations),
            moved(stream.uploaded, stream.uploaded_pageable),
            moved(stream.downloaded, stream.downloaded_pageable),
            part(stream.waits, stream.redundant, grouped),
        ]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            let blank = " ".repeat(width - display_width(cell));
            if column == 0 { format!("{cell}{blank}") } else { format!("{blank}{cell}") }
        });
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    if more > 0 {
        let _ = writeln!(text, "  and {}", counted(more as u64, "more stream", "more streams"));
    }
    text
}

fn lines(measures: &Measures) -> Vec<String> {
    let operations = measures.operations;
    let mut lines = vec![format!(
        "longest chain: {} of {} ({}), each after the one before",
        grouped(measures.longest),
        counted(operations, "operation", "operations"),
        percent(measures.longest, operations)
    )];
    lines.push(match measures.streams.len() {
        1 => "one stream: nothing on the device overlaps, only the host can run ahead".to_owned(),
        many if measures.longest == operations => {
            format!("the order lets nothing overlap: {} streams do what one would do", grouped(many as u64))
        }
        _ => format!(
            "by order alone the other {} could run beside these",
            grouped(operations - measures.longest)
        ),
    });
    if measures.copies > 0 {
        lines.push(format!(
            "copies: {} of {} ({} of {}) may run beside work of another stream",
            grouped(measures.beside),
            grouped(measures.copies),
            bytes(measures.beside_bytes),
            bytes(measures.copied)
        ));
    }
    lines.push(match measures.host_waits {
        0 => "host: never waited".to_owned(),
        waits => format!(
            "host: {} for {} in all; after {} no stream had work",
            counted(waits, "wait", "waits"),
            counted(measures.waited_for, "operation", "operations"),
            grouped(measures.drained)
        ),
    });
    if measures.memory > 0 {
        let held = match measures.held {
            0 => String::new(),
            held => format!("; up to {} more freed and held by record_stream", bytes(held)),
        };
        lines.push(format!("memory: at most {} in use{held}", bytes(measures.memory)));
    }
    lines
}
