//! The recorder inside a process: it turns runtime calls and torch's callbacks into the events of a trace.
//!
//! The preloaded library owns the one recorder of a process: it calls [`start`] once and then the methods of
//! [`recorder`]. The Python layer talks to the same recorder through the C [`table()`].

mod beginning;
mod blocks;
pub mod callers;
mod calls;
pub mod collectives;
mod descriptor;
pub mod env;
mod error;
mod exports;
mod feed;
mod graphs;
mod handles;
mod intern;
mod mapping;
mod operations;
mod parent;
mod pointers;
mod process;
mod questions;
mod ranges;
mod recorder;
pub mod table;
#[cfg(test)]
mod tests;
mod thread;
mod works;
mod writer;

pub use beginning::begin;
pub use calls::{CopyCall, CopyLayout, Library, MemsetCall, StartOptions, WaitOn};
pub use error::RecordError;
pub use exports::table;
pub use parent::follow as follow_parent;
pub use pointers::{PointerKind, copy_kind, copy_label, holds_host};
pub use process::{ask, recorder, report, start};
pub use recorder::Recorder;
