//! `--live`: the traces of a run are checked while the program runs, and each finding is said at once.
//!
//! A thread of its own reads the files that the program writes, so the program waits for nothing. If the check is slower
//! than the program it lags; what is still open at the end is in the report, which is made from the files as ever.

use super::child::Running;
use super::traces::Traces;
use crate::live::{LiveTrace, NewFinding};
use crate::output::say;
use crate::wanted::Wanted;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the files are looked at.
const TURN: Duration = Duration::from_millis(50);

/// How long a program that was asked to end may take.
const GRACE: Duration = Duration::from_secs(10);

/// The thread that watches.
#[derive(Debug)]
pub(super) struct Watch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<bool>,
}

impl Watch {
    /// Starts to watch. With `halt` the program is ended at the first error.
    pub(super) fn start(traces: Arc<Traces>, program: Running, wanted: Wanted, halt: bool) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut watcher = Watcher { traces, program, wanted, open: BTreeMap::new(), halted: None };
            while !flag.load(Ordering::SeqCst) {
                watcher.turn(halt);
                std::thread::sleep(TURN);
            }
            watcher.halted.is_some()
        });
        Self { ended, thread }
    }

    /// The program has ended. Whether it was ended here.
    pub(super) fn finish(self) -> bool {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.join().unwrap_or(false)
    }
}

struct Watcher {
    traces: Arc<Traces>,
    program: Running,
    wanted: Wanted,
    /// `None`: cannot be followed, and that was said.
    open: BTreeMap<PathBuf, Option<LiveTrace>>,
    /// When the program was asked to end.
    halted: Option<Instant>,
}

impl Watcher {
    fn turn(&mut self, halt: bool) {
        if let Some(since) = self.halted {
            if since.elapsed() > GRACE {
                self.program.send(Signal::KILL);
            }
            return;
        }
        for path in self.traces.found() {
            let found = self.advance(&path);
            for finding in &found {
                tell(finding);
            }
            if halt && found.iter().any(|finding| finding.is_error) {
                say("ending the program at the first error (--halt-on-error)");
                self.halted = Some(Instant::now());
                self.program.send(Signal::TERM);
                return;
            }
        }
    }

    fn advance(&mut self, path: &Path) -> Vec<NewFinding> {
        let shown = path.display().to_string();
        let wanted = &self.wanted;
        let open = || match LiveTrace::with(path, wanted.clone()) {
            Ok(trace) => Some(trace),
            Err(error) => {
                say(&format!("cannot check {shown} live: {error}"));
                None
            }
        };
        let slot = self.open.entry(path.to_owned()).or_insert_with(open);
        let Some(trace) = slot else { return Vec::new() };
        match trace.advance() {
            Ok(found) => found,
            Err(error) => {
                say(&format!("{shown} is not checked live any more: {error}"));
                *slot = None;
                Vec::new()
            }
        }
    }
}

fn tell(finding: &NewFinding) {
    say(&finding.line);
    if let Some(fix) = &finding.fix {
        say(&format!("  fix, not verified yet: {}", fix.replace('\n', "; ")));
    }
}
