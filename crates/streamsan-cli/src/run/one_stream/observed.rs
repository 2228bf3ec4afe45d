//! What a run showed, and how two runs differ in it.

use super::watched::{self, Key, Value};
use std::collections::BTreeMap;
use std::fmt;

/// What a run showed.
#[derive(Debug)]
pub(in crate::run) struct Observed {
    pub(super) status: i32,
    output: Vec<String>,
    pub(super) values: BTreeMap<Key, Value>,
}

/// What of a run differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::run) enum Subject {
    Status,
    /// A line of the output, from 1.
    Line(usize),
    Value(Key),
}

/// A difference between two runs.
#[derive(Debug)]
pub(in crate::run) struct Difference {
    pub(in crate::run) what: Subject,
    place: String,
    first: String,
    second: String,
}

impl Observed {
    pub(super) fn new(status: i32, output: &[u8], values: &str) -> Self {
        let output = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
        Self { status, output, values: watched::read(values) }
    }
}

/// How two runs differ.
pub(in crate::run) fn differences(first: &Observed, second: &Observed) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |what, place: &str, first: String, second: String| {
        found.push(Difference { what, place: place.to_owned(), first, second });
    };
    if first.status != second.status {
        add(Subject::Status, "", first.status.to_string(), second.status.to_string());
    }
    let keys: std::collections::BTreeSet<_> = first.values.keys().chain(second.values.keys()).collect();
    for key in keys {
        let (one, other) = (first.values.get(key), second.values.get(key));
        let same = |one: &Value, other: &Value| (&one.kind, &one.bytes) == (&other.kind, &other.bytes);
        if one.zip(other).is_some_and(|(one, other)| same(one, other)) {
            continue;
        }
        let place = one.or(other).map_or("", |value| &value.place);
        add(Subject::Value(key.clone()), place, spoken(one), spoken(other));
    }
    for index in 0..first.output.len().max(second.output.len()) {
        let (one, other) = (first.output.get(index), second.output.get(index));
        if one != other {
            let said = |line: Option<&String>| line.map_or("nothing".to_owned(), |line| quoted(line));
            add(Subject::Line(index + 1), "", said(one), said(other));
        }
    }
    found
}

fn spoken(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value { numbers, kind, bytes, .. }) => {
            format!("{numbers} ({kind}, bytes {})", bytes.get(..8).unwrap_or(bytes))
        }
    }
}

/// The start of a line, without control characters.
fn quoted(line: &str) -> String {
    let start: String = line.chars().filter(|character| !character.is_control()).take(60).collect();
    let more = if line.chars().nth(60).is_some() { "…" } else { "" };
    format!("\"{start}{more}\"")
}

impl Difference {
    /// Both, with a name for the second run.
    pub(in crate::run) fn told(&self, second: &str) -> String {
        format!("{}: {}; {second}: {}", self.subject(), self.first, self.second)
    }

    /// Whether the two still differ with their digits left out.
    pub(in crate::run) fn is_in_words(&self) -> bool {
        let words = |text: &str| text.replace(|character: char| character.is_ascii_digit(), "");
        words(&self.first) != words(&self.second)
    }

    fn subject(&self) -> String {
        match &self.what {
            Subject::Status => "exit status".to_owned(),
            Subject::Line(line) => format!("output, line {line}"),
            Subject::Value((rank, name, count)) => {
                let name: String = name.chars().filter(|character| !character.is_control()).collect();
                let turn = if *count > 0 { format!(", number {}", count + 1) } else { String::new() };
                let rank = if rank.is_empty() { String::new() } else { format!(", rank {rank}") };
                format!("`{name}`{turn}{rank} ({})", self.place)
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.told("on one stream"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Observed, differences};

    fn value(name: &str, bytes: &str) -> String {
        format!(
            "{{\"name\":\"{name}\",\"rank\":\"\",\"place\":\"a.py:3\",\"kind\":\"float32[]\",\"bytes\":\"{bytes}\",\"numbers\":\"1\"}}\n"
        )
    }

    #[test]
    fn values_are_compared_by_name_and_turn() {
        let first = Observed::new(0, b"a\nb\n", &(value("x", "00") + &value("x", "01")));
        let same = Observed::new(0, b"a\nb\n", &(value("x", "00") + &value("x", "01")));
        assert!(differences(&first, &same).is_empty());
        let other =
            Observed::new(1, b"a\nc\nd\n", &(value("x", "00") + &value("x", "02") + &value("y", "02")));
        let said: Vec<_> = differences(&first, &other).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "exit status: 0; on one stream: 1",
                "`x`, number 2 (a.py:3): 1 (float32[], bytes 01); on one stream: 1 (float32[], bytes 02)",
                "`y` (a.py:3): nothing; on one stream: 1 (float32[], bytes 02)",
                "output, line 2: \"b\"; on one stream: \"c\"",
                "output, line 3: nothing; on one stream: \"d\"",
            ]
        );
    }

    #[test]
    fn a_line_that_was_cut_off_is_no_value() {
        let cut = value("x", "00") + "{\"name\":\"x\",\"ra";
        assert_eq!(Observed::new(0, b"", &cut).values.len(), 1);
    }
}
