//! The memory log: what happened to a block, one line for each event, with the stream of each alloc, use and free.
//!
//! PyTorch has no switch that prints this. The log is read a few times from its beginning and little of it is
//! kept: the history of a long-lived block is cut in its middle, except for the events that findings name.

mod document;
mod history;
mod largest;
mod marks;
mod owners;
mod selection;
mod text;

pub use selection::{BlockQuery, NotFound, Selection};

use crate::names::Names;
use crate::{Checked, Options, printable};
use history::Histories;
use marks::Marks;
use std::collections::BTreeSet;

/// How to write a memory log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A table for each block, for people.
    Text,
    /// One JSON document.
    Json,
}

/// Writes the memory log of one trace. The text ends with a line feed.
///
/// # Errors
///
/// What was asked for is not in the trace.
pub fn memory_log(
    checked: &Checked<'_>,
    selection: &Selection,
    language: Language,
    options: &Options<'_>,
) -> Result<String, NotFound> {
    let log = checked.log;
    let chosen = selection.choose(log, checked.report)?;
    if chosen.blocks.is_empty() {
        let largest = largest::Largest::of(log);
        let names = Names::of_blocks(log, &largest.ids());
        return Ok(match language {
            Language::Text => printable(&largest.text(log, &names)),
            Language::Json => document::of_largest(checked, &largest, &names, options.tool),
        });
    }
    let marks = Marks::new(checked.report);
    let histories = Histories::read(log, &chosen.blocks, &marks);
    let mut wanted: BTreeSet<_> = chosen.blocks.iter().copied().collect();
    wanted.extend(histories.neighbours());
    wanted.extend(marks.blocks());
    let names = Names::of_blocks(log, &wanted);
    Ok(match language {
        Language::Text => text::render(checked, &chosen, &histories, &marks, &names, options.color),
        Language::Json => document::of_histories(checked, &chosen, &histories, &marks, &names, options.tool),
    })
}
