//! What the command reads that people write by hand, from text in memory: tests and fuzzing need no files for it.

use crate::baseline::Baseline;
use crate::config;
pub use crate::ignore_comments::Mistake;
use crate::ignore_comments::scan;
use std::path::Path;
use streamsan_check::IgnoreComment;

/// Reads a `pyproject.toml`; says for each path which of its `per-file-ignores` cover it, by their order. `None`: the
/// file has no table of ours.
///
/// ```
/// let text = "[tool.streamsan.per-file-ignores]\n\"tests/*\" = [\"SS101\"]\n";
/// let covered = streamsan_cli::texts::settings(text, &["tests/a.py", "train.py"]).unwrap();
/// assert_eq!(covered, Some(vec![vec![0], vec![]]));
/// ```
///
/// # Errors
///
/// What is wrong with the file, with its line.
pub fn settings(text: &str, paths: &[&str]) -> Result<Option<Vec<Vec<usize>>>, String> {
    let settings = config::parse(text, "pyproject.toml", Path::new("")).map_err(|fault| fault.to_string())?;
    Ok(settings.map(|settings| {
        let patterns = || settings.per_file_ignores.iter().enumerate();
        let covering =
            |path| patterns().filter(|(_, entry)| entry.covers(path)).map(|(index, _)| index).collect();
        paths.iter().map(|path| covering(path)).collect()
    }))
}

/// Reads a baseline; gives it as it would be written.
///
/// # Errors
///
/// What is wrong with it, with its line.
pub fn baseline(bytes: &[u8]) -> Result<String, String> {
    Baseline::parse(bytes, "known.json").map(|baseline| baseline.text()).map_err(|fault| fault.to_string())
}

/// The ignore comments of a source file, and what is wrong with those that are not as they should be.
///
/// ```
/// let (comments, mistakes) = streamsan_cli::texts::ignore_comments("y = x  # streamsan: ignore[SS101] it waits\n");
/// assert_eq!((comments.len(), comments[0].line, mistakes.len()), (1, 1, 0));
/// ```
pub fn ignore_comments(text: &str) -> (Vec<IgnoreComment>, Vec<Mistake>) {
    let (mut comments, mut mistakes) = (Vec::new(), Vec::new());
    scan("a.py", text, &mut comments, &mut mistakes);
    (comments, mistakes)
}
