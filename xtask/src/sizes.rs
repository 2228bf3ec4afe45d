//! No source file over 800 lines: one idea each.

use crate::tree;
use std::path::Path;

const LIMIT: usize = 800;

/// Files that are too long.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for path in tree::files(root) {
        if !["rs", "py"].iter().any(|suffix| tree::has_suffix(&path, suffix)) {
            continue;
        }
        let lines = std::fs::read_to_string(root.join(&path)).map_or(0, |text| text.lines().count());
        if lines > LIMIT {
            problems.push(format!("{}: {lines} lines, the limit is {LIMIT}", path.display()));
        }
    }
    problems
}
