//! The files of the repository that are ours: tracked or about to be.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths below `root`, relative to it, that git knows or would add.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .expect("git runs in the repository");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect()
}

/// Whether the path has this suffix.
pub fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|extension| extension == suffix)
}
