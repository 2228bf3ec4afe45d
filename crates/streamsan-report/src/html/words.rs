//! Sentences of a report as HTML.

use crate::svg::escape::escape;
use std::fmt::Write as _;

/// A statement: code between backticks, the missing edge and the marks set apart, lines kept.
pub(super) fn rich(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        // A backtick without its partner stands as it is.
        let quoted = index % 2 == 1;
        if quoted && index == text.matches('`').count() && text.matches('`').count() % 2 == 1 {
            let _ = write!(html, "`{}", plain(part));
        } else if quoted {
            let _ = write!(html, "<code>{}</code>", escape(part));
        } else {
            html.push_str(&plain(part));
        }
    }
    html
}

fn plain(text: &str) -> String {
    let mut html = escape(text).replace('\n', "<br>");
    html = html.replace("--X--&gt;", "<b class=\"cut\">--X--&gt;</b>");
    for mark in ["(1)", "(2)", "(3)"] {
        html = html.replace(mark, &format!("<b class=\"mark\">{mark}</b>"));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::rich;

    #[test]
    fn backticks_become_code_and_nothing_else_becomes_markup() {
        assert_eq!(
            rich("(1) reads `<x>` & more"),
            "<b class=\"mark\">(1)</b> reads <code>&lt;x&gt;</code> &amp; more"
        );
        assert_eq!(rich("a `b"), "a `b");
        assert_eq!(rich("a --X--> b\nc"), "a <b class=\"cut\">--X--&gt;</b> b<br>c");
    }
}
