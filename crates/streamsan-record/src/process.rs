//! The one recorder of a process: started once, closed at exit, switched off in a forked child.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{RecordError, Recorder, StartOptions};

static RECORDER: OnceLock<Recorder> = OnceLock::new();
static STARTED: AtomicBool = AtomicBool::new(false);

/// The recorder of this process, or `None` if nothing is recorded: it was never started, was closed, ran out of
/// disk, or this is a forked child.
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get().filter(|recorder| recorder.is_recording())
}

/// How many operations this process recorded, also after the trace was closed.
pub fn operations_recorded() -> u64 {
    RECORDER.get().map_or(0, Recorder::operations_recorded)
}

/// Starts recording. The calling thread becomes thread 0. The trace is closed when the process exits.
///
/// # Errors
///
/// If the file is there already (a child of a recorded process must not replace its parent's trace) or cannot be
/// made, or if this process is recorded already.
#[expect(clippy::needless_pass_by_value, reason = "options are made for this one call")]
pub fn start(options: StartOptions) -> Result<(), RecordError> {
    if STARTED.swap(true, Ordering::AcqRel) {
        return Err(RecordError::AlreadyStarted);
    }
    let recorder = Recorder::create(&options).inspect_err(|_| STARTED.store(false, Ordering::Release))?;
    if RECORDER.set(recorder).is_err() {
        return Err(RecordError::AlreadyStarted);
    }
    // SAFETY: plain registrations of functions that never unwind and live as long as the process.
    unsafe {
        libc::pthread_atfork(None, Some(after_fork_in_parent), Some(after_fork_in_child));
        libc::atexit(close_at_exit);
    }
    Ok(())
}

/// Tells the recorder, if this process is recorded.
pub fn report(what: impl FnOnce(&'static Recorder)) {
    ask(what);
}

/// Asks the recorder, if this process is recorded. A fault of the recorder's ends recording, for the runtime's calls and
/// the torch layer's alike, and nothing else: the program's call goes on.
pub fn ask<T>(question: impl FnOnce(&'static Recorder) -> T) -> Option<T> {
    let recorder = recorder()?;
    // What the panic left half done is not used again: nothing is recorded after.
    catch_unwind(AssertUnwindSafe(|| question(recorder))).inspect_err(|_| break_off(recorder)).ok()
}

/// A fault: the trace says from where on events are missing, and why, if that can still be written.
fn break_off(recorder: &Recorder) {
    // Its message has been printed; a second fault has nothing to add.
    drop(catch_unwind(AssertUnwindSafe(|| recorder.name_fault())));
    recorder.file.break_off();
}

/// The calling thread ends.
pub fn thread_ends() {
    ask(Recorder::end_thread);
}

extern "C" fn after_fork_in_parent() {
    ask(Recorder::forked);
}

extern "C" fn after_fork_in_child() {
    // Locks may be held by threads that are not in the child, so nothing but this is done.
    if let Some(recorder) = RECORDER.get() {
        recorder.file.abandon();
    }
}

extern "C" fn close_at_exit() {
    without_unwinding(|| {
        if let Some(recorder) = RECORDER.get() {
            recorder.close();
        }
    });
}

/// Runs `call`; a panic ends here, because the callers are C.
pub fn without_unwinding<T: Default>(call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_default()
}
