//! Analyses as one page of HTML that needs nothing else: a timeline per stream, and the text below it.

use crate::analysis::Analysis;
use crate::profile::Profile;
use crate::text::text;
use crate::timeline::{Lane, WIDTH, lanes};
use crate::words::{counted, time};
use std::fmt::Write as _;

const STYLE: &str = include_str!("html/profile.css");
const SCRIPT: &str = include_str!("html/profile.js");
/// The height of a lane, and of the bar in it.
const LANE: usize = 22;
const BAR: usize = 16;

/// The page. `tool`: name and version of the program.
pub fn html<'a>(
    tool: &str,
    profiles: impl IntoIterator<Item = (&'a str, &'a Profile, &'a Analysis)>,
) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{tool}: profiles</title><style>{STYLE}</style></head><body>\n",
        tool = escape(tool)
    );
    for (file, profile, analysis) in profiles {
        let _ = writeln!(html, "<section><h1>{}</h1>", escape(file));
        timeline(profile, analysis, &mut html);
        let _ = writeln!(html, "<pre>{}</pre></section>", escape(&text(file, analysis)));
    }
    let _ = writeln!(html, "<footer>{}</footer><script>{SCRIPT}</script></body></html>", escape(tool));
    html
}

fn timeline(profile: &Profile, analysis: &Analysis, html: &mut String) {
    let (lanes, more) = lanes(profile, analysis);
    html.push_str("<div class=\"tools\"><span class=\"buttons\" hidden><button data-do=\"all\">All</button><button data-do=\"out\" aria-label=\"zoom out\">−</button><button data-do=\"in\" aria-label=\"zoom in\">+</button><button data-do=\"left\" aria-label=\"move left\">←</button><button data-do=\"right\" aria-label=\"move right\">→</button></span><span class=\"key\"><i class=\"kernel\"></i>kernel <i class=\"up\"></i>copy up <i class=\"down\"></i>copy down <i class=\"copy\"></i>other copy <i class=\"collective\"></i>collective <i class=\"wait\"></i>wait of the host</span></div>\n");
    let height = lanes.len() * LANE;
    html.push_str("<div class=\"timeline\"><div class=\"names\">");
    for lane in &lanes {
        let _ = write!(html, "<div>{}</div>", escape(&lane.name));
    }
    let _ = writeln!(
        html,
        "</div><svg viewBox=\"0 0 {WIDTH} {height}\" height=\"{height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"timeline of {}\" data-took=\"{}\">",
        escape(&counted(lanes.len() as u64, "lane", "lanes")),
        analysis.took
    );
    for (index, lane) in lanes.iter().enumerate() {
        one_lane(index, lane, html);
    }
    html.push_str("</svg></div>\n");
    let _ = writeln!(
        html,
        "<p class=\"scale\"><span>0</span><span>{}</span></p><p class=\"detail\" aria-live=\"polite\">Hold the pointer over a bar.</p>",
        time(analysis.took)
    );
    if more > 0 {
        let _ = writeln!(
            html,
            "<p>{} not drawn.</p>",
            counted(more as u64, "more stream is", "more streams are")
        );
    }
}

fn one_lane(index: usize, lane: &Lane, html: &mut String) {
    let top = index * LANE + (LANE - BAR) / 2;
    for bar in &lane.bars {
        let _ = writeln!(
            html,
            "<rect class=\"{}\" x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{BAR}\"><title>{}</title></rect>",
            bar.sort,
            bar.from,
            bar.width,
            escape(&bar.said)
        );
    }
}

/// What a file says, as text of a page: characters that show nothing or turn the line are replaced.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push('\n'),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                safe.push('\u{fffd}');
            }
            other if other.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}
