//! The `.sstrace` file: how a trace lies on disk. `docs/trace-format.md` describes it.
//!
//! [`layout`] alone knows where each field lies; the recorder in a watched process writes through it,
//! [`write()`] and [`read`] work on whole traces.

pub mod blob;
mod blobs;
mod chunks;
mod cursor;
mod error;
mod excerpt;
mod follow;
mod known;
pub mod layout;
mod merge;
mod read;
mod reading;
pub mod record;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod write;

pub use error::ReadError;
pub use excerpt::write_excerpt;
pub use follow::Follower;
pub use read::{read, read_bytes};
pub use stream::TraceFile;
pub use write::{write, write_bytes};
