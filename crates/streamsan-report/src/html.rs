//! One self-contained HTML file: no network, no clock, readable with scripts off and on paper.
//!
//! Findings are `<details>`, drawings are inline SVG; the scripts add filters, keys, and a timeline that can
//! be zoomed. What a page holds is bounded: the first findings in full, then one line each, then a count.

mod code;
mod finding;
mod fix;
mod guide;
mod memory;
mod page;
mod places;
mod strip;
#[cfg(test)]
mod tests;
mod timeline;
mod waits;
mod words;

pub(crate) use page::render;

/// How many bytes of findings are written in full. The rest of a page is bounded by its own limits, so that
/// it stays below 2 MB.
const FULL: usize = 500_000;
/// How many bytes of findings there may be in all; what is beyond is only counted.
const BRIEF: usize = 1_200_000;
/// For how many findings a drawing is made.
const DRAWN: usize = 400;
/// How many events all timelines of a page show one by one.
const EVENTS: usize = 30_000;
