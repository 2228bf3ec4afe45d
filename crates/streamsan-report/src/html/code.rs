//! Source lines with labels under the lines that are meant.

use super::places::Spot;
use super::words::rich;
use crate::Sources;
use crate::places::Location;
use crate::svg::escape::escape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// How many lines are shown before and after one that is meant.
const AROUND: usize = 3;
/// How much of a line is shown.
const COLUMNS: usize = 240;

/// Source files, each read once.
pub(super) struct Files<'a> {
    sources: &'a dyn Sources,
    lines: BTreeMap<String, Option<Rc<Vec<String>>>>,
}

impl<'a> Files<'a> {
    pub(super) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, lines: BTreeMap::new() }
    }

    fn lines(&mut self, path: &str) -> Option<Rc<Vec<String>>> {
        if !self.lines.contains_key(path) {
            let text = self.sources.text(path);
            let lines = text.map(|text| Rc::new(text.lines().map(str::to_owned).collect::<Vec<_>>()));
            self.lines.insert(path.to_owned(), lines);
        }
        self.lines.get(path)?.clone()
    }
}

/// One listing for each file, in the order of the places.
pub(super) fn listings(spots: &[Spot<'_>], files: &mut Files<'_>) -> String {
    let mut html = String::new();
    let mut done = BTreeSet::new();
    for spot in spots {
        let Some(location) = &spot.location else {
            let _ = write!(
                html,
                "<figure class=\"code\"><figcaption>unknown place</figcaption><p class=\"label\">{}</p></figure>",
                rich(&spot.label)
            );
            continue;
        };
        if !done.insert(location.path) {
            continue;
        }
        let together: Vec<(&Location<'_>, &str)> = spots
            .iter()
            .filter_map(|other| Some((other.location.as_ref()?, other.label.as_str())))
            .filter(|(other, _)| other.path == location.path)
            .collect();
        listing(location, &together, files, &mut html);
    }
    html
}

fn listing(
    location: &Location<'_>,
    marks: &[(&Location<'_>, &str)],
    files: &mut Files<'_>,
    html: &mut String,
) {
    let numbers: Vec<String> = marks.iter().map(|(mark, _)| mark.frame.line.to_string()).collect();
    let mut numbers_once: Vec<&str> = Vec::new();
    for number in &numbers {
        if !numbers_once.contains(&number.as_str()) {
            numbers_once.push(number);
        }
    }
    let lines = files.lines(location.path);
    let known = |line: u32| lines.as_ref().is_some_and(|lines| line > 0 && line as usize <= lines.len());
    let _ = write!(
        html,
        "<figure class=\"code\"><figcaption>{}<span class=\"at\">:{}</span></figcaption>",
        escape(location.shown),
        numbers_once.join(", ")
    );
    let (here, elsewhere): (Vec<_>, Vec<_>) = marks.iter().partition(|(mark, _)| known(mark.frame.line));
    if let (Some(lines), false) = (&lines, here.is_empty()) {
        html.push_str("<pre tabindex=\"0\">");
        let mut wanted = BTreeSet::new();
        for (mark, _) in &here {
            let line = mark.frame.line as usize;
            let blank = |number: &usize| lines[number - 1].trim().is_empty();
            // Blank lines at both ends say nothing.
            let first = (line.saturating_sub(AROUND).max(1)..line).find(|number| !blank(number));
            let last = (line + 1..=(line + AROUND).min(lines.len())).rev().find(|number| !blank(number));
            wanted.extend(first.unwrap_or(line)..=last.unwrap_or(line));
        }
        let mut previous = None;
        for &number in &wanted {
            if previous.is_some_and(|previous| previous + 1 < number) {
                html.push_str("<span class=\"gap\">⋯</span>");
            }
            previous = Some(number);
            let at: Vec<_> = here.iter().filter(|(mark, _)| mark.frame.line as usize == number).collect();
            let text = &lines[number - 1];
            let spans = at.iter().map(|(mark, _)| columns(text, mark)).collect::<Vec<_>>();
            let hit = if at.is_empty() { "" } else { " hit" };
            let _ = write!(
                html,
                "<span class=\"line{hit}\" data-n=\"{number}\">{}\n</span>",
                source_line(text, &spans)
            );
            for (_, label) in at {
                let _ = write!(html, "<span class=\"label\">{}</span>", rich(label));
            }
        }
        html.push_str("</pre>");
    }
    for (mark, label) in elsewhere {
        let _ = write!(
            html,
            "<p class=\"label\">{} <span class=\"soft\">({}; source not at hand)</span></p>",
            rich(label),
            escape(&mark.line())
        );
    }
    html.push_str("</figure>");
}

/// The characters to underline, counted from 0: what the frame says, else the line without its indent.
fn columns(text: &str, location: &Location<'_>) -> (usize, usize) {
    let frame = location.frame;
    let characters = |bytes: usize| text.get(..bytes).map(|text| text.chars().count());
    let indent = text.chars().take_while(|character| character.is_whitespace()).count();
    let whole = (indent, text.trim_end().chars().count().max(indent));
    if frame.column == 0 {
        return whole;
    }
    let one_line = frame.end_line == frame.line && frame.end_column > frame.column;
    let end = if one_line { characters(frame.end_column as usize - 1) } else { Some(whole.1) };
    match (characters(frame.column as usize - 1), end) {
        (Some(start), Some(end)) if start < end => (start, end),
        // The file may have changed since the run.
        _ => whole,
    }
}

/// A line with underlines; of a long one what is around the first underline.
fn source_line(text: &str, spans: &[(usize, usize)]) -> String {
    let total = text.chars().count();
    let from = match spans.iter().map(|span| span.0).min() {
        Some(start) if total > COLUMNS && start > COLUMNS / 2 => start - COLUMNS / 4,
        _ => 0,
    };
    let to = if total > COLUMNS { (from + COLUMNS).min(total) } else { total };
    let mut html = String::new();
    if from > 0 {
        html.push('…');
    }
    let mut open = false;
    let mut run = String::new();
    for (index, character) in text.chars().enumerate().skip(from).take(to - from) {
        let inside = spans.iter().any(|&(start, end)| (start..end).contains(&index));
        if inside != open {
            html.push_str(&escape(&std::mem::take(&mut run)));
            html.push_str(if inside { "<mark>" } else { "</mark>" });
            open = inside;
        }
        run.push(character);
    }
    html.push_str(&escape(&run));
    if open {
        html.push_str("</mark>");
    }
    if to < total {
        html.push('…');
    }
    html
}

/// The code of a fix between the lines where it goes, without the indent that they share.
pub(super) fn insertion(location: &Location<'_>, code: &str, files: &mut Files<'_>) -> Option<String> {
    let lines = files.lines(location.path)?;
    let number = location.number as usize;
    let after = lines.get(number.checked_sub(1)?)?;
    let before = number.checked_sub(2).and_then(|index| lines.get(index));
    let indent: String = after.chars().take_while(|character| character.is_whitespace()).collect();
    let shared = before.filter(|before| !before.trim().is_empty()).map_or(indent.len(), |before| {
        before.bytes().zip(indent.bytes()).take_while(|(one, other)| one == other).count()
    });
    // What both begin with is white space, so it ends at a character.
    let shared = if indent.is_char_boundary(shared) { shared } else { 0 };
    let rest = |line: &'_ str| source_line(line.get(shared..).unwrap_or(""), &[]);
    let mut html = String::from("<pre class=\"change\" tabindex=\"0\">");
    if let Some(before) = before {
        let _ = write!(html, "<span class=\"line\" data-n=\"{}\">{}\n</span>", number - 1, rest(before));
    }
    for line in code.lines() {
        let (indent, line) = (escape(&indent[shared..]), escape(line));
        let _ = write!(html, "<span class=\"line new\" data-n=\"+\">{indent}{line}\n</span>");
    }
    let _ = write!(html, "<span class=\"line\" data-n=\"{number}\">{}\n</span></pre>", rest(after));
    Some(html)
}
