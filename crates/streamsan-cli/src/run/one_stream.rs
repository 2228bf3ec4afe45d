//! `run --one-stream`: the program runs again as if all its work were on one stream, and what it shows is compared.
//!
//! The first run does asynchronous copies as late as its waits allow, the second does each operation when it is
//! issued. A program whose waits are complete cannot tell the two apart. If they differ, a third run, like the
//! second, shows what differs by itself: times, random numbers.

mod observed;
mod watched;

use super::{End, child};
use crate::environment as variables;
use crate::fault::Fault;
use crate::output::say;
pub(super) use observed::{Difference, Observed, Subject, differences};
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// How many differences are said.
const SAID: usize = 8;
/// How much of the output is compared, in bytes.
const OUTPUT: usize = 16 << 20;

/// Files of the runs; gone at the end.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(purpose: &str) -> Result<Self, Fault> {
        let path = std::env::temp_dir().join(format!("streamsan-{purpose}-{}", std::process::id()));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Fault::new(format!("cannot make the folder {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run that is watched.
#[derive(Debug)]
pub(super) struct Side {
    watched: PathBuf,
    output: JoinHandle<Vec<u8>>,
}

impl Side {
    /// Prepares the first run, whose output is shown, or a further one.
    pub(super) fn new(
        command: &mut Command,
        folder: &Folder,
        name: &str,
        first: bool,
    ) -> Result<Self, Fault> {
        let watched = folder.file(&format!("{name}.values"));
        let (reader, writer) =
            std::io::pipe().map_err(|error| Fault::new(format!("cannot make a pipe: {error}")))?;
        command
            .env(variables::WATCH, &watched)
            .env(variables::DELAY_COPIES, if first { "1" } else { "0" })
            .stdin(Stdio::null())
            .stdout(writer);
        if !first {
            command.stderr(Stdio::null());
        }
        Ok(Self { watched, output: std::thread::spawn(move || collect(reader, first)) })
    }

    /// After the run, when the command is gone: what it showed.
    pub(super) fn finish(self, end: End) -> Observed {
        let output = self.output.join().unwrap_or_default();
        let values = std::fs::read_to_string(&self.watched).unwrap_or_default();
        Observed::new(end.code(), &output, &values)
    }
}

/// Reads to the end; shows all and keeps the first part.
fn collect(mut reader: impl Read, show: bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 1 << 13];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return kept,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return kept,
        };
        if show {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(&buffer[..count]).and_then(|()| out.flush());
        }
        let room = OUTPUT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&buffer[..room]);
    }
}

/// What the comparison came to.
#[derive(Debug)]
pub(super) struct Outcome {
    differences: Vec<Difference>,
    /// How many more differ between two equal runs, too.
    unsteady: usize,
    values: usize,
    status: i32,
}

/// Runs the program once more, or twice. `prepared` gives a command that writes its trace to a path.
pub(super) fn compare(
    first: &Observed,
    folder: &Folder,
    name: &str,
    prepared: impl Fn(&Path) -> Result<Command, Fault>,
) -> Result<Outcome, Fault> {
    let again = |which: &str| -> Result<Observed, Fault> {
        let mut command = prepared(&folder.file(&format!("{which}.sstrace")))?;
        let side = Side::new(&mut command, folder, which, false)?;
        let end = child::run(command, name, |_| {})?;
        Ok(side.finish(end))
    };
    say("running it again as if all were on one stream: each operation is done when it is issued");
    let second = again("second")?;
    let mut found = differences(first, &second);
    let mut unsteady = 0;
    if !found.is_empty() {
        say("the two differ; running it once more to see what differs by itself");
        let third = again("third")?;
        let own: BTreeSet<_> = differences(&second, &third).into_iter().map(|other| other.what).collect();
        let before = found.len();
        found.retain(|difference| !own.contains(&difference.what));
        unsteady = before - found.len();
    }
    Ok(Outcome { differences: found, unsteady, values: first.values.len(), status: second.status })
}

impl Outcome {
    /// Whether the runs differ in more than two equal runs do.
    pub(super) fn differs(&self) -> bool {
        !self.differences.is_empty()
    }

    /// Says it.
    pub(super) fn say(&self) {
        let compared = match self.values {
            0 => "exit status and output (no value was given to streamsan.watch)".to_owned(),
            1 => "exit status, output and 1 watched value".to_owned(),
            count => format!("exit status, output and {count} watched values"),
        };
        say(&format!("one stream: compared {compared}"));
        for difference in self.differences.iter().take(SAID) {
            say(&format!("  {difference}"));
        }
        if self.differences.len() > SAID {
            say(&format!("  and {} more differences", self.differences.len() - SAID));
        }
        if self.unsteady > 0 {
            say(&format!(
                "  {} not counted: they also differ between two runs on one stream (time, random numbers)",
                if self.unsteady == 1 {
                    "1 difference is".to_owned()
                } else {
                    format!("{} differences are", self.unsteady)
                }
            ));
        }
        say(if self.differs() {
            "the values depend on when copies are done: a wait is missing. What changes from run to run by itself was left out as far as one more run on one stream showed it"
        } else if self.status != 0 {
            "no difference shown, but the program failed in both runs"
        } else {
            "no difference shown. That proves nothing: only copies were done late here, never kernels. What the check found counts"
        });
    }
}
