//! How to read a page, and its keys.

use super::page::Part;
use crate::svg::escape::escape;
use std::fmt::Write as _;

/// Shown by `?`.
pub(super) const KEYS: &str = "<dialog id=\"keys\" aria-labelledby=\"keys-title\"><h2 id=\"keys-title\">Keys</h2><dl><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next, previous finding</dd><dt><kbd>o</kbd></dt><dd>fold or unfold it</dd><dt><kbd>/</kbd></dt><dd>filter</dd><dt><kbd>c</kbd></dt><dd>copy its fix</dd><dt><kbd>t</kbd></dt><dd>show it in the timeline</dd><dt><kbd>?</kbd></dt><dd>this list</dd></dl><p class=\"soft\">In the timeline: <kbd>←</kbd> <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>0</kbd> all; drag to move, the wheel zooms with <kbd>Ctrl</kbd> or after a click.</p><form method=\"dialog\"><button>Close</button></form></dialog>\n";

const WORDS: [(&str, &str); 10] = [
    ("operation", "Work that the host enqueued in a stream: a kernel, a copy, a memset."),
    ("#1207", "Operations and other calls, numbered in the order in which the host issued them."),
    (
        "stream",
        "A queue: what is in it runs in the order in which it was issued. Two streams have no order of their own.",
    ),
    ("event", "A mark in a stream. It is recorded in one stream and waited for in another."),
    (
        "edge",
        "What makes one operation come after another: stream order, a record with its wait, a wait by the host.",
    ),
    (
        "ordered",
        "There is a way along edges from the earlier operation to the later one, in every run with these calls.",
    ),
    (
        "missing edge",
        "No such way exists. The two operations may run in either order, or at once, whatever this run happened to do.",
    ),
    ("only up to #1188", "The last operation of the other stream that the later one does come after."),
    ("owner", "The stream on which torch allocated a block; a freed block goes back to it at once."),
    (
        "checked fix",
        "The run was checked again with the proposed waits in place: the finding was gone and nothing new appeared.",
    ),
];

pub(super) fn section(parts: &[Part<'_>], tool: &str, html: &mut String) {
    html.push_str("<section id=\"guide\"><h2>How to read this</h2><p>Each finding names two operations that touch the same bytes without any order between them. <b class=\"mark\">(1)</b> was issued before <b class=\"mark\">(2)</b>; under each line of code stands what it does. In the drawing a solid arrow is order that exists, the dashed one is the order that is missing.</p><dl class=\"words\">");
    for (word, meaning) in WORDS {
        let _ = write!(html, "<div><dt>{word}</dt><dd>{meaning}</dd></div>");
    }
    html.push_str("</dl><table><tbody>");
    for part in parts {
        let header = part.checked.log.header();
        for (name, value) in [
            ("trace", part.checked.file),
            ("recorded from", header.command.as_str()),
            ("in", header.directory.as_str()),
            ("versions", header.versions.as_str()),
        ] {
            if !value.is_empty() {
                let _ = write!(
                    html,
                    "<tr><th scope=\"row\">{name}</th><td><code>{}</code></td></tr>",
                    escape(value)
                );
            }
        }
    }
    let _ = writeln!(
        html,
        "<tr><th scope=\"row\">report</th><td>{}</td></tr></tbody></table></section>",
        escape(tool)
    );
}
