//! The recorder inside a process: it turns runtime calls and torch's callbacks into the events of a trace.
//!
//! The preloaded library owns the one recorder of a process: it calls [`start`] once and then the methods of
//! [`recorder`]. The Python layer talks to the same recorder through the C [`table()`].

mod blocks;
mod calls;
mod descriptor;
pub mod env;
mod error;
mod exports;
mod feed;
mod handles;
mod intern;
mod mapping;
mod operations;
mod process;
mod questions;
mod ranges;
mod recorder;
pub mod table;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

pub use calls::{CopyCall, CopyLayout, Library, MemsetCall, StartOptions, WaitOn};
pub use error::RecordError;
pub use exports::table;
pub use process::{recorder, start};
pub use recorder::Recorder;
