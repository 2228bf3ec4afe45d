//! The traces of one run: one for each process in which CUDA code was loaded.
//!
//! The first process writes the file that was asked for, `run.sstrace`; each further one writes
//! `run-p<pid>.sstrace` beside it (`streamsan-device`, `recording.rs`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the traces of a run are.
#[derive(Debug)]
pub(super) struct Traces {
    main: PathBuf,
    /// Traces of further processes of earlier runs.
    old: BTreeSet<PathBuf>,
}

impl Traces {
    /// Before the run: whatever is beside `main` now is not of this run.
    pub(super) fn new(main: &Path) -> Self {
        Self { main: main.to_owned(), old: siblings(main).collect() }
    }

    /// After the run: the traces that are there, the first process's first.
    pub(super) fn found(&self) -> Vec<PathBuf> {
        let further: BTreeSet<PathBuf> =
            siblings(&self.main).filter(|path| !self.old.contains(path)).collect();
        self.main.exists().then(|| self.main.clone()).into_iter().chain(further).collect()
    }
}

fn siblings(main: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = main.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = format!("{}-p", main.file_stem().unwrap_or_default().to_string_lossy());
    let suffix =
        main.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(&suffix));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Traces;

    #[test]
    fn further_processes_of_this_run_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("run-p7.sstrace"), "").unwrap();
        let traces = Traces::new(&path("run.sstrace"));
        for name in [
            "run.sstrace",
            "run-p8.sstrace",
            "run-p8-2.sstrace",
            "run-px.sstrace",
            "run-p9.txt",
            "other-p3.sstrace",
        ] {
            std::fs::write(path(name), "").unwrap();
        }
        assert_eq!(traces.found(), [path("run.sstrace"), path("run-p8-2.sstrace"), path("run-p8.sstrace")]);
    }
}
