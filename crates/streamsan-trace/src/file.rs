//! The `.sstrace` file: how a trace lies on disk. `docs/trace-format.md` describes it.
//!
//! [`layout`] alone knows where each field lies; the recorder in a watched process writes through it,
//! [`write()`] and [`read`] work on whole traces.

pub mod blob;
mod error;
pub mod layout;
mod merge;
mod read;
pub mod record;
#[cfg(test)]
mod tests;
mod write;

pub use error::ReadError;
pub use read::{read, read_bytes};
pub use write::{write, write_bytes};
