//! The place where a run writes its trace: one run at a time, and an old trace goes only when a new one comes.

use crate::fault::Fault;
use std::fs::{File, read_to_string, remove_file, rename};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// First bytes of a trace (`docs/trace-format.md`).
const MAGIC: &[u8] = b"SSTRACE";

/// Held while the program runs.
#[derive(Debug)]
pub(super) struct Place {
    trace: PathBuf,
    lock: PathBuf,
    /// The trace that was there, moved aside.
    old: Option<PathBuf>,
    kept_new: std::cell::Cell<bool>,
}

impl Place {
    /// Takes the place, or says why it cannot be had.
    pub(super) fn take(trace: &Path) -> Result<Self, Fault> {
        let shown = trace.display();
        let cannot = |error: std::io::Error| Fault::new(format!("cannot write {shown}: {error}"));
        if trace.is_file() && !is_trace(trace) {
            return Err(Fault::new(format!("cannot write {shown}: the file that is there is no trace"))
                .help("choose another name; --force replaces traces only"));
        }
        let lock = beside(trace, "lock");
        if let Some(holder) = holder(&lock) {
            return Err(Fault::new(format!(
                "cannot write {shown}: another run, process {holder}, writes it"
            ))
            .help("wait for it, or choose another name with -o"));
        }
        // What a run that was killed has left.
        let _ = remove_file(&lock);
        let mut file = File::create_new(&lock).map_err(cannot)?;
        write!(file, "{}", std::process::id()).map_err(cannot)?;
        let mut place =
            Self { trace: trace.to_owned(), lock, old: None, kept_new: std::cell::Cell::new(false) };
        if trace.is_file() {
            let old = beside(trace, "old");
            rename(trace, &old).map_err(cannot)?;
            place.old = Some(old);
        }
        Ok(place)
    }

    /// The program has run: what was there before is not needed any more.
    pub(super) fn keep_new(&self) {
        self.kept_new.set(true);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(old) = &self.old {
            let _ = if self.kept_new.get() { remove_file(old) } else { rename(old, &self.trace) };
        }
        let _ = remove_file(&self.lock);
    }
}

fn beside(trace: &Path, suffix: &str) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(format!(".{suffix}"));
    PathBuf::from(name)
}

/// An empty file is what a run leaves that was stopped before it began.
fn is_trace(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|count| count == 0 || start == MAGIC)
}

/// The process that holds the lock, if it lives.
fn holder(lock: &Path) -> Option<u32> {
    let pid: u32 = read_to_string(lock).ok()?.trim().parse().ok()?;
    Path::new("/proc").join(pid.to_string()).exists().then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn an_old_trace_comes_back_if_nothing_ran() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("run.sstrace");
        std::fs::write(&trace, "SSTRACE old").unwrap();
        drop(Place::take(&trace).unwrap());
        assert_eq!(std::fs::read_to_string(&trace).unwrap(), "SSTRACE old");
        let place = Place::take(&trace).unwrap();
        std::fs::write(&trace, "SSTRACE new").unwrap();
        place.keep_new();
        assert!(Place::take(&trace).unwrap_err().to_string().contains("another run"));
        drop(place);
        assert_eq!(std::fs::read_to_string(&trace).unwrap(), "SSTRACE new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_trace_stays() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("train.py");
        std::fs::write(&script, "print(1)").unwrap();
        assert!(Place::take(&script).unwrap_err().to_string().contains("is no trace"));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), "print(1)");
    }
}
