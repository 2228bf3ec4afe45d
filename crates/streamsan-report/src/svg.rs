//! Drawings as SVG: the lanes of a finding, the graph of the streams, a timeline without scripts.
//!
//! Colours are classes, given by `svg/style.css`: a page has it once, a file of its own carries it.

pub(crate) mod escape;
pub(crate) mod lanes;
pub(crate) mod streams;
pub(crate) mod timeline;

use crate::graph::lanes::Lanes;
use crate::names::Names;
use escape::escape;
use std::fmt::Write as _;

/// The rules for all drawings.
pub(crate) const STYLE: &str = include_str!("svg/style.css");

/// What a lane is called.
pub(crate) fn lane_name(lanes: &Lanes, lane: usize, names: &Names<'_>) -> String {
    match lanes.list.get(lane).and_then(|lane| lane.stream) {
        Some(stream) => names.stream_plain(stream),
        None => "host".to_owned(),
    }
}

/// How wide a text is in the font of the drawings, in pixels at size 12.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().map(|character| if character.is_ascii() { 7.25 } else { 12.0 }).sum()
}

/// At most `limit` characters.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// An element to be put in a page.
pub(crate) fn inline(width: f64, height: f64, sentence: &str, body: &str) -> String {
    // A wide one shrinks as far as it can still be read, then it is scrolled.
    let least = if width <= 900.0 { width } else { (width * 0.75).max(900.0) };
    let mut text = String::new();
    let _ = write!(
        text,
        "<svg class=\"drawing\" style=\"min-width:{least:.0}px\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">{body}</svg>",
        escape(sentence)
    );
    text
}

/// A file of its own: with a title, rules for colours, and captions below.
pub(crate) fn file(width: f64, height: f64, sentence: &str, captions: &[String], body: &str) -> String {
    let title_width = self::width(sentence) + 40.0;
    let captions_width = captions.iter().map(|text| self::width(text) + 40.0).fold(0.0, f64::max);
    let whole_width = width.max(title_width.max(captions_width).min(1200.0));
    let whole_height = height + 44.0 + 20.0 * captions.len() as f64 + 12.0;
    let mut text = String::new();
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing file\" viewBox=\"0 0 {whole_width:.0} {whole_height:.0}\" width=\"{whole_width:.0}\" height=\"{whole_height:.0}\" role=\"img\" aria-label=\"{label}\">\n<title>{label}</title>\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n<text class=\"title\" x=\"16\" y=\"26\">{label}</text>\n<g transform=\"translate(0 36)\">{body}</g>\n",
        label = escape(sentence)
    );
    for (index, caption) in captions.iter().enumerate() {
        let y = height + 36.0 + 20.0 * (index as f64 + 1.0);
        let _ = writeln!(text, "<text class=\"caption\" x=\"16\" y=\"{y:.0}\">{}</text>", escape(caption));
    }
    text.push_str("</svg>\n");
    text
}
