//! How a report reads: text for people, lines for editors, JSON for programs.
//!
//! This crate alone knows sentences, colours and JSON keys. It reads no file, clock or environment: source
//! text comes through [`Sources`], and the same inputs give the same bytes.

mod advice;
mod advised;
mod colour;
mod concise;
mod document;
mod dot;
pub mod drawing;
mod full;
mod gaps;
mod github;
mod graph;
mod headline;
mod html;
mod ignored;
mod json;
mod json_lines;
mod junit;
mod labels;
mod lines;
mod measures;
pub mod memory_log;
mod names;
mod notes;
mod numbers;
mod perfetto;
mod places;
mod sarif;
mod sources;
mod summary;
mod svg;
#[cfg(test)]
mod tests;
mod why;
mod wrap;

pub use advice::fix_line;
pub use colour::ColorChoice;
pub use names::Names;
pub use places::Paths;
pub use sources::{NoSources, Sources};

use streamsan_check::Report;
use streamsan_trace::Log;

/// How to write a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text with source lines, notes and the fix.
    Full,
    /// One line for each finding.
    Concise,
    /// One JSON document.
    Json,
    /// JSON, one object on each line.
    JsonLines,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
    /// JUnit XML.
    Junit,
    /// Trace events for the Perfetto UI: streams as tracks, missing order as arrows.
    Perfetto,
    /// One self-contained page.
    Html,
}

/// A trace, what the check said of it, and the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// Where the trace was read from, as the user wrote it.
    pub file: &'a str,
    /// The log of the trace.
    pub log: &'a dyn Log,
    /// The outcome.
    pub report: &'a Report,
}

/// What a report depends on besides its traces.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Whether to use terminal colours. Ignored by JSON.
    pub color: bool,
    /// Name and version of the tool, for JSON.
    pub tool: &'a str,
    /// How many findings a full report shows; the others are counted. `None`: all.
    pub limit: Option<usize>,
    /// Columns of the terminal, for text that people read. `None`: not known, then 80.
    pub width: Option<usize>,
}

impl Options<'_> {
    fn columns(&self) -> usize {
        self.width.unwrap_or(wrap::WIDTH)
    }
}

/// Writes the report of one trace or of several, such as those of several ranks.
///
/// Findings are numbered through: `F1`, `F2`, … The text ends with a line feed.
pub fn render(
    format: Format,
    checked: &[Checked<'_>],
    sources: &dyn Sources,
    options: &Options<'_>,
) -> String {
    match format {
        Format::Full => full::render(checked, sources, options),
        Format::Concise => printable(&concise::render(checked)),
        Format::Json => json::render(checked, options),
        Format::Html => html::render(checked, sources, options),
        Format::JsonLines => json_lines::render(checked, options),
        Format::Sarif => sarif::render(checked, sources, options),
        Format::Github => github::render(checked, sources),
        Format::Junit => junit::render(checked),
        Format::Perfetto => perfetto::render(checked, options),
    }
}

/// Without control characters, which names in a trace might carry into a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() && character != '\n' { '\u{fffd}' } else { character })
        .collect()
}

/// The last lines of a full report: table, counts, what was not seen. `width`: as in [`Options`].
pub fn summary(checked: &[Checked<'_>], width: Option<usize>) -> String {
    printable(&summary::render(checked, width.unwrap_or(wrap::WIDTH)))
}

/// A page of markdown with prose no wider than `width`. Code, tables and short lines stay as they are.
pub fn folded_page(text: &str, width: usize) -> String {
    wrap::folded_page(text, width)
}

/// Words that stay on one line when [`folded`] breaks what they are in, such as a command to be pasted.
pub fn tied(text: &str) -> String {
    wrap::tied(text)
}

/// A message with lines no wider than `width`. Lines that are short enough stay as they are.
pub fn folded(text: &str, width: usize) -> String {
    wrap::folded(text, width)
}
