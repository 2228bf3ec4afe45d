//! Comments that mean something: labels such as `# (1)` and expectations such as
//! `# error: [SS101] after (1), missing default -> side`.

/// How serious an expected finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedLevel {
    /// `# error:`
    Error,
    /// `# warning:`
    Warning,
    /// `# advice:`
    Advice,
}

/// A finding that a test expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line of the later operation, or of the only one.
    pub line: u32,
    /// How serious.
    pub level: ExpectedLevel,
    /// The rule's code, as written.
    pub rule: String,
    /// The line of the earlier operation, if the test names it.
    pub after: Option<u32>,
    /// The line of the free, if the test names it.
    pub free: Option<u32>,
    /// The streams of the earlier and the later operation, if the test names them.
    pub missing: Option<(String, String)>,
}

/// All labels and expectations of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Label and the line that carries it.
    pub labels: Vec<(u32, u32)>,
    /// Expectations by line.
    pub expectations: Vec<Expectation>,
}

/// An expectation whose label is not resolved yet.
struct Unresolved {
    expectation: Expectation,
    label: Option<u32>,
    free: Option<u32>,
}

/// Collects the comments of one block.
#[derive(Default)]
pub(crate) struct Collector {
    labels: Vec<(u32, u32)>,
    unresolved: Vec<Unresolved>,
}

impl Collector {
    /// Reads the comment of one line, without its first `#`.
    pub(crate) fn comment(&mut self, line: u32, comment: &str) -> Result<(), String> {
        for part in comment.split('#').map(str::trim) {
            if let Some(number) = label(part) {
                if let Some((_, other)) = self.labels.iter().find(|(known, _)| *known == number) {
                    return Err(format!("label ({number}) is on line {other} already: use another number"));
                }
                self.labels.push((number, line));
            } else if let Some(rest) = part.strip_prefix("error:") {
                self.unresolved.push(expectation(line, ExpectedLevel::Error, rest)?);
            } else if let Some(rest) = part.strip_prefix("warning:") {
                self.unresolved.push(expectation(line, ExpectedLevel::Warning, rest)?);
            } else if let Some(rest) = part.strip_prefix("advice:") {
                self.unresolved.push(expectation(line, ExpectedLevel::Advice, rest)?);
            } else if part.contains("[SS") {
                return Err(format!(
                    "`# {part}` looks like an expectation: write `# error: [SS101] after (1)`, `# warning: [SS401]` or `# advice: [SS703]`"
                ));
            }
        }
        Ok(())
    }

    /// Resolves the labels. An error has the line it belongs to.
    pub(crate) fn finish(self, streams: &[&str]) -> Result<Annotations, (u32, String)> {
        let Self { labels, unresolved } = self;
        let mut expectations = Vec::new();
        for Unresolved { mut expectation, label, free } in unresolved {
            let line = expectation.line;
            let resolve = |label: Option<u32>| {
                let Some(number) = label else { return Ok(None) };
                let found = labels.iter().find(|(known, _)| *known == number).map(|(_, line)| *line);
                found
                    .map(Some)
                    .ok_or_else(|| (line, format!("no line has label ({number}): add `# ({number})` to one")))
            };
            expectation.after = resolve(label)?;
            expectation.free = resolve(free)?;
            if let Some((from, to)) = &expectation.missing
                && let Some(name) =
                    [from, to].into_iter().find(|name| *name != "host" && !streams.contains(&name.as_str()))
            {
                return Err((line, format!("`missing` names `{name}`, which is no stream of this program")));
            }
            expectations.push(expectation);
        }
        Ok(Annotations { labels, expectations })
    }
}

/// The number of a label `(3)`.
fn label(text: &str) -> Option<u32> {
    text.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
}

/// Reads `[SS101] after (1), missing a -> b`.
fn expectation(line: u32, level: ExpectedLevel, text: &str) -> Result<Unresolved, String> {
    let wrong = || {
        format!(
            "cannot read expectation `{}`: write `[SS101]`, `[SS101] after (1)`, `[SS101] after (1), missing a -> b` or `[SS202] after (1), free (2)`",
            text.trim()
        )
    };
    let (rule, rest) =
        text.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
    let rule = rule.trim();
    let mut expectation =
        Expectation { line, level, rule: rule.to_owned(), after: None, free: None, missing: None };
    let (mut number, mut free) = (None, None);
    for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if let Some(after) = part.strip_prefix("after ") {
            number = Some(label(after.trim()).ok_or_else(wrong)?);
        } else if let Some(place) = part.strip_prefix("free ") {
            free = Some(label(place.trim()).ok_or_else(wrong)?);
        } else if let Some(edge) = part.strip_prefix("missing ") {
            let (from, to) = edge.split_once("->").ok_or_else(wrong)?;
            expectation.missing = Some((from.trim().to_owned(), to.trim().to_owned()));
        } else {
            return Err(wrong());
        }
    }
    if rule.is_empty() {
        return Err(wrong());
    }
    Ok(Unresolved { expectation, label: number, free })
}
