//! Repository checks and generated files.
//!
//! `cargo run -p xtask -- tidy` fails on an arrow between crates that is not in the table, on a file that is
//! too long, on a rule without a page, on forbidden words in pure crates, and on generated pages that are
//! stale. `cargo run -p xtask -- gen` writes the generated pages.

mod arrows;
mod generated;
mod purity;
mod sizes;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = root();
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(&root),
        Some("gen") => generated::write(&root),
        _ => Err(vec!["usage: cargo run -p xtask -- tidy|gen".to_owned()]),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root folder").to_owned()
}

fn tidy(root: &Path) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    problems.extend(arrows::check(root));
    problems.extend(sizes::check(root));
    problems.extend(purity::check(root));
    problems.extend(generated::check(root));
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
