//! What the two operations of each finding wrote, as the Python side notes it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Which bytes: the rank of the process, the finding, which look at it, the execution, and which of several tensors.
type Key = (String, usize, String, u32, u32);

/// Of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshots {
    hashes: BTreeMap<Key, String>,
    /// For each finding how often both operations were executed at least.
    executions: BTreeMap<usize, u32>,
}

/// How a run with an operation made late compares with one in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// Executions that could be compared.
    pub(super) turns: usize,
    /// Executions that wrote other bytes.
    pub(super) other: usize,
    /// Executions whose bytes differ between two runs in order, too.
    pub(super) unsteady: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Hash { rank: String, finding: usize, what: String, turn: u32, bytes: String },
    Executions { finding: usize, executions: Executions },
}

#[derive(Deserialize)]
struct Executions {
    first: u32,
    second: u32,
}

impl Snapshots {
    /// Reads what the processes of a run have left.
    pub(super) fn read(folder: &Path) -> Self {
        let mut snapshots = Self::default();
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for file in files {
            snapshots.add(&std::fs::read_to_string(file.path()).unwrap_or_default());
        }
        snapshots
    }

    fn add(&mut self, text: &str) {
        for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            match line {
                Line::Hash { rank, finding, what, turn, bytes } => {
                    let mut key = (rank, finding, what, turn, 0);
                    while self.hashes.contains_key(&key) {
                        key.4 += 1;
                    }
                    self.hashes.insert(key, bytes);
                }
                Line::Executions { finding, executions } => {
                    *self.executions.entry(finding).or_default() += executions.first.min(executions.second);
                }
            }
        }
    }

    /// How often both operations of a finding were executed.
    pub(super) fn executions(&self, finding: usize) -> u32 {
        self.executions.get(&finding).copied().unwrap_or(0)
    }

    /// Compares what was seen in order, in order again, and late.
    pub(super) fn compare(&self, again: &Self, late: &Self, finding: usize) -> Compared {
        // Per rank and execution: whether it is steady, and whether it is other.
        let mut turns = BTreeMap::<(&str, u32), (bool, bool)>::new();
        for (key, bytes) in self.hashes.iter().filter(|(key, _)| key.1 == finding) {
            let (Some(same), Some(other)) = (again.hashes.get(key), late.hashes.get(key)) else { continue };
            let turn = turns.entry((&key.0, key.3)).or_default();
            let steady = bytes == same;
            turn.0 |= steady;
            turn.1 |= steady && bytes != other;
        }
        let mut compared = Compared::default();
        for (steady, other) in turns.into_values() {
            compared.turns += usize::from(steady);
            compared.other += usize::from(other);
            compared.unsteady += usize::from(!steady);
        }
        compared
    }
}

#[cfg(test)]
mod tests {
    use super::{Compared, Snapshots};

    fn snapshots(lines: &[(&str, u32, &str)]) -> Snapshots {
        let mut snapshots = Snapshots::default();
        let mut text = r#"{"rank":"","finding":0,"executions":{"first":2,"second":3}}"#.to_owned() + "\n";
        for (what, turn, bytes) in lines {
            let line =
                format!(r#"{{"rank":"","finding":0,"what":"{what}","turn":{turn},"bytes":"{bytes}"}}"#);
            text.push_str(&line);
            text.push('\n');
        }
        snapshots.add(&(text + "{\"rank\":\"\",\"fin"));
        snapshots
    }

    #[test]
    fn an_execution_counts_once_and_only_if_it_is_steady() {
        let order =
            snapshots(&[("second", 0, "a"), ("after", 0, "b"), ("second", 1, "c"), ("second", 2, "d")]);
        let again =
            snapshots(&[("second", 0, "a"), ("after", 0, "b"), ("second", 1, "x"), ("second", 2, "d")]);
        let late =
            snapshots(&[("second", 0, "z"), ("after", 0, "z"), ("second", 1, "z"), ("second", 2, "d")]);
        assert_eq!(order.compare(&again, &late, 0), Compared { turns: 2, other: 1, unsteady: 1 });
        assert_eq!(order.compare(&again, &again, 0), Compared { turns: 2, other: 0, unsteady: 1 });
        assert_eq!(order.compare(&again, &late, 1), Compared::default());
        assert_eq!((order.executions(0), order.executions(1)), (2, 0));
    }

    #[test]
    fn several_tensors_of_one_look_are_kept_apart() {
        let order = snapshots(&[("second", 0, "a"), ("second", 0, "b")]);
        let late = snapshots(&[("second", 0, "a"), ("second", 0, "c")]);
        assert_eq!(order.compare(&order, &late, 0), Compared { turns: 1, other: 1, unsteady: 0 });
    }
}
