//! Comments in source files that say what is not to be reported: `# streamsan: ignore[SS101] reason`.
//!
//! A comment behind code is for its line, one that stands alone for the next line of code. What looks like such a
//! comment inside a string is none. A comment without rules or without a reason ignores nothing, and that is said.

use crate::nearest::nearest;
use std::collections::HashSet;
use std::fmt;
use streamsan_check::{IgnoreComment, Ignores, Rule};
use streamsan_report::Sources;
use streamsan_trace::{FrameOrigin, StringId, Tables};

/// An ignore comment that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as the trace names it.
    pub file: String,
    /// The line of the comment, from 1.
    pub line: u32,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Reads the comments of the source files that a trace names.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// How many frames of the trace were looked at.
    frames: usize,
    files: HashSet<StringId>,
    found_files: bool,
    /// In order of the files' first appearance.
    pub(crate) mistakes: Vec<Mistake>,
}

impl Scanner {
    /// Whether there are frames that were not looked at.
    pub(crate) fn is_behind(&self, tables: &Tables) -> bool {
        self.frames < tables.frames.len()
    }

    /// Whether the last call of [`Scanner::new_ignores`] came upon files that are new.
    pub(crate) fn found_files(&self) -> bool {
        self.found_files
    }

    /// The comments of files that appeared since the last call. Tables only grow.
    pub(crate) fn new_ignores(&mut self, tables: &Tables, sources: &dyn Sources) -> Ignores {
        let mut comments = Vec::new();
        let known = self.files.len();
        for frame in tables.frames.get(self.frames..).unwrap_or_default() {
            if frame.origin != FrameOrigin::User || !self.files.insert(frame.file) {
                continue;
            }
            let file = tables.string(frame.file);
            // Most files have none, and taking a file apart costs more than looking for the word.
            if let Some(text) = sources.text(file).filter(|text| text.contains("streamsan:")) {
                scan(file, &text, &mut comments, &mut self.mistakes);
            }
        }
        self.frames = tables.frames.len();
        self.found_files = self.files.len() > known;
        Ignores { comments, files: Vec::new() }
    }
}

/// Reads the comments of one file.
pub(crate) fn scan(file: &str, text: &str, comments: &mut Vec<IgnoreComment>, mistakes: &mut Vec<Mistake>) {
    let mut alone: Vec<(Vec<Rule>, String)> = Vec::new();
    for (index, line) in Lines::new(text).enumerate() {
        let number = index as u32 + 1;
        let mut found = Vec::new();
        for part in line.comment.map(said).unwrap_or_default() {
            let parsed = parse(part, |message| {
                mistakes.push(Mistake { file: file.to_owned(), line: number, message });
            });
            found.extend(parsed);
        }
        if !line.has_code {
            alone.append(&mut found);
            continue;
        }
        found.append(&mut alone);
        comments.extend(found.into_iter().map(|(rules, reason)| IgnoreComment {
            file: file.to_owned(),
            line: number,
            rules,
            reason,
        }));
    }
}

/// What a comment says to streamsan: all that follows `# streamsan:`, up to the next `#`.
fn said(comment: &str) -> Vec<&str> {
    comment.split('#').filter_map(|part| part.trim().strip_prefix("streamsan:")).map(str::trim).collect()
}

/// `ignore[SS101, SS102] reason`, or what is wrong with it.
fn parse(text: &str, mut mistake: impl FnMut(String)) -> Option<(Vec<Rule>, String)> {
    const FORM: &str = "write `# streamsan: ignore[SS101] why it is no hazard`";
    let word_end = text.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(word_end);
    if word != "ignore" {
        if nearest(word, ["ignore"]).is_some() {
            mistake(format!("`{word}` is nothing that streamsan knows; {FORM}"));
        }
        return None;
    }
    let Some((list, reason)) = rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'))
    else {
        mistake(format!("this ignore names no rule, so it ignores nothing; {FORM}"));
        return None;
    };
    let mut rules = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match Rule::parse(name) {
            Some(rule) => rules.push(rule),
            None => mistake(unknown(name)),
        }
    }
    let between = |character: char| character.is_whitespace() || ":-".contains(character);
    let reason = reason.trim_start_matches(between).trim_end();
    if list.trim().is_empty() {
        mistake(format!("this ignore names no rule, so it ignores nothing; {FORM}"));
    } else if reason.is_empty() {
        mistake(format!(
            "this ignore has no reason, so it ignores nothing; write `# streamsan: ignore[{}] why it is no hazard`",
            list.trim()
        ));
        return None;
    }
    (!rules.is_empty()).then(|| (rules, reason.to_owned()))
}

fn unknown(name: &str) -> String {
    let names = Rule::all().flat_map(|rule| [rule.code(), rule.name()]);
    match nearest(name, names) {
        Some(near) => format!("`{name}` is no rule; did you mean `{near}`?"),
        None => format!("`{name}` is no rule; `streamsan explain rules` lists them"),
    }
}

/// One line of source.
struct Line<'a> {
    /// What follows the `#` that begins a comment.
    comment: Option<&'a str>,
    has_code: bool,
}

/// Takes Python apart as far as comments need it: strings are told from code.
struct Lines<'a> {
    lines: std::str::Lines<'a>,
    /// The quotes that end the string of several lines in which the next line begins.
    inside: Option<&'static str>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines(), inside: None }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let line = self.lines.next()?;
        let mut has_code = self.inside.is_some();
        let mut rest = line;
        loop {
            if let Some(quotes) = self.inside {
                let Some(end) = end_of_string(rest, quotes) else {
                    // A string in single quotes that is open at the end of its line goes on after a backslash; else
                    // it is a mistake of the program, and ends.
                    if quotes.len() == 1 && !rest.ends_with('\\') {
                        self.inside = None;
                    }
                    return Some(Line { comment: None, has_code });
                };
                self.inside = None;
                rest = &rest[end..];
            }
            let Some(at) = rest.find(['#', '"', '\'']) else {
                has_code |= !rest.trim().is_empty();
                return Some(Line { comment: None, has_code });
            };
            has_code |= !rest[..at].trim().is_empty();
            if rest[at..].starts_with('#') {
                return Some(Line { comment: Some(&rest[at + 1..]), has_code });
            }
            has_code = true;
            let quotes =
                ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest[at..].starts_with(quotes))?;
            self.inside = Some(quotes);
            rest = &rest[at + quotes.len()..];
        }
    }
}

/// Where the string ends, after its quotes.
fn end_of_string(text: &str, quotes: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(index, character)| {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if text[index..].starts_with(quotes) {
            return Some(index + quotes.len());
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::{Mistake, scan};
    use streamsan_check::Rule;

    /// Lines, rules and reasons; and lines and mistakes.
    type Found = (u32, Vec<&'static str>, String);

    fn scanned(text: &str) -> (Vec<Found>, Vec<(u32, String)>) {
        let (mut comments, mut mistakes) = (Vec::new(), Vec::new());
        scan("train.py", text, &mut comments, &mut mistakes);
        let codes = |rules: Vec<Rule>| rules.into_iter().map(Rule::code).collect();
        (
            comments
                .into_iter()
                .map(|comment| (comment.line, codes(comment.rules), comment.reason))
                .collect(),
            mistakes.into_iter().map(|Mistake { line, message, .. }| (line, message)).collect(),
        )
    }

    #[track_caller]
    fn one(text: &str, line: u32, rules: &[&str], reason: &str) {
        assert_eq!(scanned(text), (vec![(line, rules.to_vec(), reason.to_owned())], vec![]), "{text}");
    }

    #[track_caller]
    fn mistaken(text: &str, starts: &str) {
        let (_, mistakes) = scanned(text);
        assert!(mistakes.len() == 1 && mistakes[0].1.starts_with(starts), "{text}: {mistakes:?}");
    }

    #[test]
    fn comments_behind_code_and_alone() {
        one("y = x * 2  # streamsan: ignore[SS101] it waits", 1, &["SS101"], "it waits");
        one(
            "y = f(  # noqa: E501 # streamsan: ignore[ss101, self-wait]: why  # more",
            1,
            &["SS101", "SS403"],
            "why",
        );
        one("# streamsan: ignore[SS101] it waits\n\n# plain\ny = 2", 4, &["SS101"], "it waits");
        one("y = '#' + \"\\\"#\"  #streamsan:ignore[SS102] it  waits ", 1, &["SS102"], "it  waits");
        one("'''\n# streamsan: ignore[SS103] text\n''' # streamsan: ignore[SS101] it", 3, &["SS101"], "it");
    }

    #[test]
    fn what_only_looks_like_one() {
        for text in [
            "text = '# streamsan: ignore[SS101] why'",
            "\"\"\"\n# streamsan: ignore\n\"\"\"",
            "y = 1  # streamsan: see the manual",
            "# streamsan finds hazards; ignore[SS101] is for comments",
            "x = 'a\\\n# streamsan: ignore\\\n'",
            "# streamsan: ignore[SS101] at the end, for nothing",
        ] {
            assert_eq!(scanned(text), (vec![], vec![]), "{text}");
        }
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        mistaken(
            "y = 1  # streamsan: ignore[SS101]",
            "this ignore has no reason, so it ignores nothing; write `# streamsan: ignore[SS101] ",
        );
        mistaken("y = 1  # streamsan: ignore because", "this ignore names no rule");
        mistaken("y = 1  # streamsan: ignore[] because", "this ignore names no rule");
        mistaken(
            "y = 1  # streamsan: ignroe[SS101] because",
            "`ignroe` is nothing that streamsan knows; write",
        );
        mistaken("y = 1  # streamsan: ignore[SS1O1] because", "`SS1O1` is no rule; did you mean `SS101`?");
        mistaken(
            "y = 1  # streamsan: ignore[E501] because",
            "`E501` is no rule; `streamsan explain rules` lists them",
        );
        let (comments, mistakes) = scanned("y = 1  # streamsan: ignore[SS102, self-wiat] because");
        assert_eq!((comments.len(), mistakes.len()), (1, 1));
        assert!(mistakes[0].1.contains("did you mean `self-wait`?"), "{mistakes:?}");
    }
}
