//! Values that the program gave to `streamsan.watch`, as its Python side writes them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Which value: the rank of its process, its name, and how often the name came before.
pub(super) type Key = (String, String, u32);

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Value {
    name: String,
    rank: String,
    /// `train.py:14`.
    pub(super) place: String,
    /// Type and shape: `float32[2, 3]`.
    pub(super) kind: String,
    /// A hash of its bytes, in hexadecimal digits.
    pub(super) bytes: String,
    /// Mean, least and greatest.
    pub(super) numbers: String,
}

/// Reads the lines. A line that was cut off when the program was killed is left out.
pub(super) fn read(text: &str) -> BTreeMap<Key, Value> {
    let mut counts = BTreeMap::<(String, String), u32>::new();
    let mut values = BTreeMap::new();
    for value in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let key = (value.rank.clone(), value.name.clone());
        let count = counts.entry(key.clone()).or_default();
        values.insert((key.0, key.1, *count), value);
        *count += 1;
    }
    values
}
