//! Text with source lines: what people read first.

use crate::advice::{Advice, gone_with};
use crate::advised::Change;
use crate::headline::headline;
use crate::labels::{first_label, free_label, second_label};
use crate::names::Names;
use crate::notes::notes;
use crate::numbers::counted;
use crate::places::{Location, locate};
use crate::wrap::{folded, tied, tied_quotes};
use crate::{Checked, Options, Sources, printable};
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use streamsan_check::{Finding, Rule};
use streamsan_trace::Log;

pub(crate) fn render(checked: &[Checked<'_>], sources: &dyn Sources, options: &Options<'_>) -> String {
    let width = options.columns();
    let renderer = if options.color { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let mut files = Files { sources, texts: BTreeMap::new() };
    let mut explained = BTreeSet::new();
    let mut text = String::new();
    let mut numbered = None;
    let mut left = options.limit.unwrap_or(usize::MAX);
    for one in checked {
        let findings = &one.report.findings;
        let shown = &findings[..findings.len().min(left)];
        left -= shown.len();
        if checked.len() > 1 && !shown.is_empty() {
            let _ = write!(text, "{}:\n\n", printable(one.file));
        }
        let names = Names::new(one.log, one.report);
        for finding in shown {
            let explain = explained.insert(finding.rule);
            let drawn = render_finding(finding, one, &names, &mut files, explain, &renderer);
            text.push_str(&folded(&in_reading_order(&drawn), width));
            text.push_str("\n\n");
        }
        numbered = numbered.or(shown.first().map(|finding| finding.first.unwrap_or(finding.second).number));
        if shown.len() < findings.len() {
            let more = counted((findings.len() - shown.len()) as u64, "more finding", "more findings");
            let command = tied(&format!("streamsan check {}", printable(one.file)));
            text.push_str(&folded(&format!("{more}, not shown here: {command}\n\n"), width));
        }
    }
    if let Some(number) = numbered {
        let numbers = "operations and other calls are numbered in the order in which the host issued them";
        text.push_str(&folded(&format!("{number}: {numbers}.\n\n"), width));
    }
    text.push_str(&crate::summary(checked, options.width));
    text
}

/// Source files, each read once.
struct Files<'a> {
    sources: &'a dyn Sources,
    texts: BTreeMap<String, Option<Text>>,
}

/// A file with the place of its lines.
struct Text {
    text: String,
    /// The bytes of each line without its end; the first line has number 1 and index 0.
    lines: Vec<Range<usize>>,
}

impl Text {
    fn new(text: String) -> Self {
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let range = start..start + line.trim_end_matches(['\n', '\r']).len();
            start += line.len();
            range
        });
        Self { lines: lines.collect(), text }
    }

    fn line(&self, number: usize) -> Option<Range<usize>> {
        self.lines.get(number.checked_sub(1)?).cloned()
    }
}

impl Files<'_> {
    fn load(&mut self, path: &str) {
        if !self.texts.contains_key(path) {
            let text = self.sources.text(path).map(Text::new);
            self.texts.insert(path.to_owned(), text);
        }
    }

    fn get(&self, path: &str) -> Option<&Text> {
        self.texts.get(path)?.as_ref()
    }
}

/// One place with the label under it.
struct Mark<'a> {
    location: Location<'a>,
    label: String,
    kind: AnnotationKind,
}

fn render_finding(
    finding: &Finding,
    checked: &Checked<'_>,
    names: &Names<'_>,
    files: &mut Files<'_>,
    explain: bool,
    renderer: &Renderer,
) -> String {
    let log = checked.log;
    let rule = finding.rule;
    let level = match finding.level() {
        streamsan_check::Level::Error => Level::ERROR,
        streamsan_check::Level::Warning => Level::WARNING,
        streamsan_check::Level::Note => Level::NOTE,
    };
    let mut unplaced = Vec::new();
    let marks = marks(finding, log, names, &mut unplaced);
    for mark in &marks {
        files.load(mark.location.path);
    }
    let title = level.primary_title(tied_quotes(&headline(finding, names))).id(rule.code());
    let mut group = Group::with_title(title).elements(frames(&marks, files, &mut unplaced));
    // (1) is read first.
    unplaced.sort();
    let statements = notes(finding, log, names);
    group = group
        .elements(unplaced.into_iter().chain(statements).map(|note| Level::NOTE.message(sentence(&note))));
    let mut groups = vec![group];
    if let Some(advised) = &finding.advice {
        let change = Change::new(finding, advised, log, names);
        let standing = change.standing().map(|text| Level::NOTE.message(sentence(text)));
        groups.push(Group::with_title(Level::HELP.secondary_title(changed(&change))).elements(standing));
    } else if let Some(gone) = gone_with(finding, checked.report, log) {
        groups.push(Group::with_title(Level::HELP.secondary_title(sentence(&gone))));
    } else if let Some(fix) = &finding.fix {
        let advice = Advice::new(finding, fix, log, names);
        let title = Level::HELP.secondary_title(help(&advice));
        let statements = advice.alternatives.iter().map(|text| Level::NOTE.message(sentence(text)));
        groups.push(
            Group::with_title(title)
                .element(Level::NOTE.message(sentence(&advice.standing())))
                .elements(statements),
        );
    }
    if explain && let Some(last) = groups.pop() {
        groups.push(last.element(Level::HELP.message(explain_command(rule))));
    }
    renderer.render(&groups)
}

/// A sentence that may be broken between words.
fn sentence(text: &str) -> String {
    tied_quotes(&printable(text))
}

/// The advice with its code in one piece.
fn help(advice: &Advice<'_>) -> String {
    let code = advice.code.as_deref().unwrap_or_default();
    let line = sentence(&advice.line());
    code.lines().fold(line, |line, code| line.replace(&sentence(code), &tied(&printable(code))))
}

/// A change with its code in one piece.
fn changed(change: &Change<'_>) -> String {
    let code = change.code.as_deref().unwrap_or_default();
    let line = sentence(&change.line);
    code.lines().fold(line, |line, code| line.replace(&sentence(code), &tied(&printable(code))))
}

/// The renderer points at the main place with `-->` and at all others with `:::`; here the first one that is read has
/// the arrow.
fn in_reading_order(text: &str) -> String {
    let mut arrow = "-->";
    let mut ordered = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let plain = line.trim_start_matches(|character: char| !"-:|=".contains(character));
        if plain.starts_with("-->") || plain.starts_with(":::") {
            ordered.push_str(&line.replacen(&plain[..3], arrow, 1));
            arrow = ":::";
        } else {
            ordered.push_str(line);
        }
    }
    ordered
}

fn explain_command(rule: Rule) -> String {
    format!("streamsan explain {}", rule.code())
}

/// The places of a finding, in the order of their numbers. Labels of places that are not known go to `unplaced`.
fn marks<'a>(
    finding: &Finding,
    log: &'a dyn Log,
    names: &Names<'_>,
    unplaced: &mut Vec<String>,
) -> Vec<Mark<'a>> {
    let mut places = Vec::new();
    if let Some(first) = &finding.first {
        places.push((first.site, first_label(finding, first, log, names)));
    }
    if let Some(free) = &finding.free {
        places.push((free.site, free_label(finding, free, names)));
    }
    places.push((finding.second.site, second_label(finding, log, names)));
    // The free is what has to change; the access after it only shows what might have happened.
    let is_free = finding.rule == Rule::Ss203 && finding.free.is_some();
    let primary = places.len() - if is_free { 2 } else { 1 };
    let mut marks = Vec::new();
    for (index, (site, label)) in places.into_iter().enumerate() {
        let kind = if index == primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        match locate(log, site) {
            Some(location) => marks.push(Mark { location, label, kind }),
            None => unplaced.push(format!("{label}, at an unknown place")),
        }
    }
    marks
}

/// Snippets in the order of the marks, or bare places where there is no source. Marks of one file that stand in it in
/// that order share a snippet.
fn frames<'a>(marks: &[Mark<'a>], files: &'a Files<'_>, unplaced: &mut Vec<String>) -> Vec<Element<'a>> {
    let mut elements = Vec::new();
    let mut together: Vec<(&Mark<'a>, Range<usize>)> = Vec::new();
    for mark in marks {
        let path = mark.location.path;
        let text = files.get(path);
        let span = text.and_then(|text| span(text, &mark.location));
        let follows = together.last().is_some_and(|(last, _)| {
            last.location.path == path && last.location.frame.line < mark.location.frame.line
        });
        if !follows {
            elements.extend(snippet(files, &std::mem::take(&mut together)));
        }
        if let Some(span) = span {
            together.push((mark, span));
            continue;
        }
        elements.extend(snippet(files, &std::mem::take(&mut together)));
        let origin = Origin::path(printable(mark.location.shown));
        let (line, column) = (mark.location.frame.line as usize, mark.location.frame.column as usize);
        let origin = if line > 0 { origin.line(line) } else { origin };
        elements.push(if column > 0 { origin.char_column(column) } else { origin }.into());
        unplaced.push(format!("{}, at {}", mark.label, mark.location.line()));
    }
    elements.extend(snippet(files, &together));
    elements
}

/// The lines of some marks of one file.
fn snippet<'a>(files: &'a Files<'_>, marks: &[(&Mark<'a>, Range<usize>)]) -> Option<Element<'a>> {
    let (first, last) = (marks.first()?.0.location, marks.last()?.0.location);
    let text = files.get(first.path)?;
    let (from, to) = (first.frame.line as usize, last.frame.line as usize);
    let start = text.line(from).map_or(0, |range| range.start);
    let end = text.line(to).map_or(text.text.len(), |range| range.end);
    let annotations = marks.iter().map(|(mark, span)| {
        mark.kind.span(span.start - start..span.end - start).label(tied_quotes(&printable(&mark.label)))
    });
    let source = Snippet::source(text.text[start..end].to_owned());
    Some(source.line_start(from).path(printable(first.shown)).annotations(annotations).into())
}

/// The bytes to underline: what the frame says, on its first line; without columns the whole line.
fn span(source: &Text, location: &Location<'_>) -> Option<Range<usize>> {
    let frame = location.frame;
    let text = source.text.as_str();
    let line = source.line(frame.line as usize)?;
    let content = &text[line.clone()];
    let indent = content.len() - content.trim_start().len();
    let whole = line.start + indent..line.start + content.trim_end().len();
    if whole.is_empty() {
        return None;
    }
    if frame.column == 0 {
        return Some(whole);
    }
    let start = line.start + frame.column as usize - 1;
    let end = if frame.end_line == frame.line && frame.end_column > frame.column {
        line.start + frame.end_column as usize - 1
    } else {
        whole.end
    };
    // The file may have changed since the run.
    let fits = start < end && end <= line.end && text.is_char_boundary(start) && text.is_char_boundary(end);
    Some(if fits { start..end } else { whole })
}
