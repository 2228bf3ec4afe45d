//! Lines no wider than a terminal.
//!
//! Sentences are broken between words. What is to be pasted or clicked is not: code between backticks, places, and what
//! [`tied`] was applied to. Source lines are left to the renderer, which shortens them.

use std::borrow::Cow;
use std::fmt::Write as _;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, wrap};

/// Columns, if nobody knows how wide the terminal is.
pub(crate) const WIDTH: usize = 80;

/// The narrowest text that is still broken.
const NARROWEST: usize = 24;

/// A space at which no line may end.
const TIE: char = '\u{a0}';

/// Code that has to stay on one line.
pub(crate) fn tied(code: &str) -> String {
    code.replace(' ', "\u{a0}")
}

/// A sentence in which code between backticks stays together.
pub(crate) fn tied_quotes(text: &str) -> String {
    let mut parts: Vec<Cow<'_, str>> = text.split('`').map(Cow::from).collect();
    let pairs = parts.len().saturating_sub(1) / 2;
    for quoted in parts.iter_mut().skip(1).step_by(2).take(pairs) {
        *quoted = tied(quoted).into();
    }
    parts.join("`")
}

/// Breaks what is too wide. `text`: what a renderer made of sentences in which [`tied`] marks what stays together.
pub(crate) fn folded(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        fold(line.trim_end_matches('\n'), width, &mut folded);
        folded.push_str(end);
    }
    folded.replace(TIE, " ")
}

fn fold(line: &str, width: usize, folded: &mut String) {
    if display_width(line) <= width {
        folded.push_str(line);
        return;
    }
    let Some(shape) = Shape::of(line) else {
        folded.push_str(line);
        return;
    };
    let (head, tail) = line.split_at(shape.start);
    let mut column = display_width(head);
    let mut first = head.to_owned();
    if width < column + NARROWEST && shape.gutter > 0 {
        // The label has no room beside what it is about: it goes below.
        let farthest = width.saturating_sub(2 * NARROWEST).max(display_width(&line[..shape.gutter]) + 1);
        column = display_width(&line[..shape.mark]).min(farthest);
        first = format!("{}{}\n{}", head.trim_end(), shape.reset, shape.margin(line, column));
    }
    // Below the headline, not below its middle.
    column = column.min(width / 4).max(if shape.gutter > 0 { column } else { 0 });
    let room = width.saturating_sub(column).max(NARROWEST);
    let first_room =
        if shape.gutter > 0 { room } else { width.saturating_sub(display_width(head)).max(NARROWEST) };
    let pad = " ".repeat(room.saturating_sub(first_room));
    for (index, piece) in broken(&format!("{pad}{tail}"), room).iter().enumerate() {
        if index == 0 {
            let _ = write!(folded, "{first}{}", piece.get(pad.len()..).unwrap_or(piece));
        } else {
            let _ = write!(folded, "{}\n{}{piece}", shape.reset, shape.margin(line, column));
        }
    }
}

/// Breaks the prose of a page of markdown; code and tables stay as they are.
pub(crate) fn folded_page(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if code || line.starts_with('|') || display_width(line) <= width {
            let _ = writeln!(folded, "{line}");
            continue;
        }
        let inner = line.trim_start();
        let item = inner.starts_with("- ") || inner.starts_with("* ");
        let indent = " ".repeat(line.len() - inner.len() + if item { 2 } else { 0 });
        let quoted = tied_quotes(inner);
        for (index, piece) in broken(&quoted, width.saturating_sub(indent.len())).iter().enumerate() {
            let indent = if index == 0 { &line[..line.len() - inner.len()] } else { &indent };
            let _ = writeln!(folded, "{indent}{piece}");
        }
    }
    folded.replace(TIE, " ")
}

/// Breaks a sentence into lines.
fn broken(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    let options = Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .break_words(false);
    wrap(text, options)
}

/// How a line of a report goes on.
struct Shape {
    /// The byte at which its sentence starts.
    start: usize,
    /// The byte after the `|` in front of a label; 0 if it is none.
    gutter: usize,
    /// The byte at which the line under the source starts, if there is a gutter.
    mark: usize,
    /// What ends colours, and what starts that of the sentence.
    reset: &'static str,
    colour: String,
}

impl Shape {
    /// `None`: a line of source, which is not broken.
    fn of(line: &str) -> Option<Self> {
        let visible = Visible::of(line);
        let text = visible.text.as_str();
        let inner = text.trim_start();
        let indent = text.len() - inner.len();
        let is_source = inner.starts_with(|first: char| first.is_ascii_digit()) && inner.contains(" | ");
        let is_place = inner.starts_with("--> ") || inner.starts_with("::: ");
        let (at, gutter, mark) = if let Some(label) = inner.strip_prefix('|') {
            let start = label.find(|character: char| !" ^-_|".contains(character))?;
            let mark = label.find(|character: char| character != ' ').unwrap_or(start);
            (indent + 1 + start, indent + 1, indent + 1 + mark)
        } else if is_source || is_place {
            return None;
        } else {
            let marked = ["= note: ", "= help: ", "error", "warning", "note", "help"];
            let marked = marked.iter().any(|mark| inner.starts_with(mark));
            let colon = inner.find(": ").filter(|_| marked && (indent == 0 || inner.starts_with('=')));
            (indent + colon.map_or(0, |colon| colon + 2), 0, 0)
        };
        let colour = visible.colour_at(line, at);
        let reset = if line.contains('\u{1b}') { "\u{1b}[0m" } else { "" };
        let byte = |at: usize| visible.bytes.get(at).copied().unwrap_or(line.len());
        let gutter = if gutter > 0 { byte(gutter) } else { 0 };
        Some(Self { start: byte(at), gutter, mark: byte(mark), reset, colour })
    }

    /// What stands in front of a further line.
    fn margin(&self, line: &str, column: usize) -> String {
        let gutter = &line[..self.gutter];
        let spaces = " ".repeat(column.saturating_sub(display_width(gutter)));
        format!("{gutter}{spaces}{}", self.colour)
    }
}

/// A line without its colours.
struct Visible {
    text: String,
    /// Where each byte of the text is in the line.
    bytes: Vec<usize>,
}

impl Visible {
    fn of(line: &str) -> Self {
        let mut visible = Self { text: String::new(), bytes: Vec::new() };
        let mut escape = false;
        for (at, character) in line.char_indices() {
            match character {
                '\u{1b}' => escape = true,
                'm' if escape => escape = false,
                _ if escape => {}
                _ => {
                    visible.text.push(character);
                    visible.bytes.extend(at..at + character.len_utf8());
                }
            }
        }
        visible
    }

    /// The colours that are on at a byte of the text.
    fn colour_at(&self, line: &str, at: usize) -> String {
        let before = &line[..self.bytes.get(at).copied().unwrap_or(line.len())];
        let mut colour = String::new();
        for code in before.split('\u{1b}').skip(1).filter_map(|part| part.split_once('m')) {
            if code.0 == "[0" {
                colour.clear();
            } else {
                let _ = write!(colour, "\u{1b}{}m", code.0);
            }
        }
        colour
    }
}

#[cfg(test)]
mod tests {
    use super::{folded, tied, tied_quotes};
    use textwrap::core::display_width;

    #[track_caller]
    fn check(text: &str, width: usize, wanted: &str) {
        assert_eq!(folded(text, width), wanted);
    }

    #[test]
    fn sentences_go_on_below_their_start() {
        check(
            "   = note: `x` is 4.0 MiB, allocated at data.py:12; 312 occurrences\n",
            50,
            "   = note: `x` is 4.0 MiB, allocated at\n           data.py:12; 312 occurrences\n",
        );
        check("Found 2 errors in 48,120 operations.", 24, "Found 2 errors in 48,120\noperations.");
    }

    #[test]
    fn labels_keep_the_gutter() {
        check(
            "   |         ^^^ (2) reads `x` on `side` (#1207 aten::mul)",
            50,
            "   |         ^^^ (2) reads `x` on `side` (#1207\n   |             aten::mul)",
        );
        check(
            "   |                                   ^^^ (2) reads `x` on `side`",
            50,
            "   |                                   ^^^\n   | (2) reads `x` on `side`",
        );
    }

    #[test]
    fn code_and_source_lines_stay_whole() {
        let help = format!(
            "help: before train.py:41, make `side` wait: {}",
            tied("side.wait_stream(torch.cuda.default_stream( 0 ))")
        );
        check(
            &help,
            60,
            "help: before train.py:41, make `side` wait:\n      side.wait_stream(torch.cuda.default_stream( 0 ))",
        );
        let source = "18 |     x.copy_(batch, non_blocking=True)  # a long line";
        check(source, 30, source);
        assert_eq!(tied_quotes("a `b c` d ` e f"), "a `b\u{a0}c` d ` e f");
    }

    #[test]
    fn pages_keep_their_code_and_tables() {
        let page = "- one two three four five six\n```\none two three four five six seven\n```\n| one two three four five six |\n";
        assert_eq!(
            super::folded_page(page, 20),
            "- one two three\n  four five six\n```\none two three four five six seven\n```\n| one two three four five six |\n"
        );
    }

    #[test]
    fn colours_do_not_count_and_go_on() {
        let line =
            "\u{1b}[1m\u{1b}[94m   |\u{1b}[0m  \u{1b}[91m^^^ (2) reads `x` on the default stream\u{1b}[0m";
        let text = folded(line, 34);
        assert_eq!(
            text,
            "\u{1b}[1m\u{1b}[94m   |\u{1b}[0m  \u{1b}[91m^^^ (2) reads `x` on the\u{1b}[0m\n\u{1b}[1m\u{1b}[94m   |\u{1b}[0m      \u{1b}[91mdefault stream\u{1b}[0m"
        );
        assert!(text.lines().all(|line| display_width(line) <= 34));
        assert_eq!(folded(line, 80), line);
    }
}
