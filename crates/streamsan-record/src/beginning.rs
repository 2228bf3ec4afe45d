//! Starts the recorder from the environment that `streamsan run` made, under a name that no other process has.

use std::env;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use streamsan_trace::CaptureKind;

use crate::{RecordError, StartOptions, env as names, start};

/// Starts the recorder if this process is to be recorded by the preloaded library for `device` (`virtual`, `cuda`). To be
/// called once, by that library; `devices` is asked only then. What fails is said on standard error, and the program goes on.
///
/// A forked child may call it again; that has an effect if the parent found no trace named.
pub fn begin(device: &str, capture: CaptureKind, devices: impl FnOnce() -> u32) {
    // A fault here must not leave the call it happens in.
    drop(catch_unwind(AssertUnwindSafe(|| start_here(device, capture, devices))));
}

static TRIED: AtomicBool = AtomicBool::new(false);

fn start_here(device: &str, capture: CaptureKind, devices: impl FnOnce() -> u32) {
    if env::var_os(names::DEVICE).is_some_and(|wanted| wanted != device) {
        return;
    }
    let Some(path) = env::var_os(names::TRACE).filter(|path| !path.is_empty()) else { return };
    // A forked child inherits what came of it.
    if TRIED.swap(true, Ordering::AcqRel) {
        return;
    }
    let (path, devices) = (PathBuf::from(path), devices());
    for path in names_to_try(&path) {
        match start(StartOptions { path, capture, devices }) {
            Err(RecordError::File { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                eprintln!("streamsan: recording is off: {error}");
                return;
            }
            Ok(()) => return,
        }
    }
    eprintln!(
        "streamsan: recording is off: all names for a trace of process {} are taken",
        std::process::id()
    );
}

/// How often a process may start itself again and still be recorded.
const TURNS: u32 = 1000;

/// The first process has the name that was asked for; each further one has its own.
fn names_to_try(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once(path.to_owned()).chain((1..=TURNS).map(move |turn| own_name(path, turn)))
}

/// `run.sstrace` becomes `run-p4711.sstrace`, and for a process that starts itself again `run-p4711-2.sstrace`.
fn own_name(path: &Path, turn: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let pid = std::process::id();
    let stem = if turn == 1 { format!("{stem}-p{pid}") } else { format!("{stem}-p{pid}-{turn}") };
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{}", extension.to_string_lossy()),
        None => stem,
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_process_that_starts_itself_again_has_a_name_left() {
        let names: Vec<PathBuf> = names_to_try(Path::new("/traces/run.sstrace")).collect();
        let id = std::process::id();
        for (turn, name) in [
            (0, "/traces/run.sstrace".to_owned()),
            (1, format!("/traces/run-p{id}.sstrace")),
            (12, format!("/traces/run-p{id}-12.sstrace")),
            (1000, format!("/traces/run-p{id}-1000.sstrace")),
        ] {
            assert_eq!(names[turn], Path::new(&name));
        }
        let different: HashSet<&PathBuf> = names.iter().collect();
        assert_eq!((names.len(), different.len()), (1001, 1001));
    }
}
