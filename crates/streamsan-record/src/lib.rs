//! The recorder inside a process: it turns runtime calls and torch's callbacks into the events of a trace.
//!
//! The preloaded library owns the one recorder of a process: it calls [`start`] once and then the methods of
//! [`recorder`]. The Python layer talks to the same recorder through the C [`table()`].

mod calls;
pub mod env;
mod error;
mod recorder;
pub mod table;

pub use calls::{CopyCall, CopyLayout, Library, MemsetCall, StartOptions, WaitOn};
pub use error::RecordError;
pub use recorder::Recorder;

/// The recorder of this process, or `None` if nothing is recorded: it was never started, was closed, ran out of
/// disk, or this is a forked child.
pub fn recorder() -> Option<&'static Recorder> {
    None
}

/// Starts recording. The calling thread becomes thread 0.
///
/// # Errors
///
/// If the file cannot be made, or if this process is recorded already.
pub fn start(options: StartOptions) -> Result<(), RecordError> {
    let _ = options;
    Err(RecordError::AlreadyStarted)
}

/// The C table. It is there whether or not this process is recorded.
pub fn table() -> &'static table::RecorderTable {
    unimplemented!("follows")
}
