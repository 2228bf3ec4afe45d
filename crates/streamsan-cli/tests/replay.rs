//! What fuzzing keeps, under stable Rust: every input of `fuzz/corpus` and `fuzz/regressions` once more.
//!
//! The bodies of the targets are those of `fuzz/`, which is a workspace of its own because libFuzzer needs nightly
//! Rust. `docs/fuzzing.md` says how to run it.

#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub, clippy::pedantic)]
mod fuzz;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// The inputs that are kept for a target, in a fixed order.
fn inputs(target: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut found: Vec<PathBuf> = ["corpus", "regressions"]
        .iter()
        .filter_map(|kept| fs::read_dir(root.join(kept).join(target)).ok())
        .flat_map(|folder| folder.map(|entry| entry.expect("an entry of a folder can be read").path()))
        .collect();
    found.sort();
    found
}

/// One test: the limits on memory are for one input at a time.
#[test]
fn what_is_kept_breaks_no_promise() {
    let mut broken = Vec::new();
    for (target, _) in fuzz::TARGETS {
        let inputs = inputs(target);
        assert!(inputs.len() > 10, "{target}: its corpus is not there");
        for path in inputs {
            let input = fs::read(&path).expect("an input can be read");
            if catch_unwind(|| fuzz::run(target, &input)).is_err() {
                broken.push(path.display().to_string());
            }
        }
    }
    assert!(broken.is_empty(), "these inputs break a promise; the panics are above:\n{}", broken.join("\n"));
}
