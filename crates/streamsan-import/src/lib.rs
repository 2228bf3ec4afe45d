//! Other tools' files: what profiles of `torch.profiler` say about streams.
//!
//! A profile has times and no addresses. So it cannot show a race, and a trace of streamsan cannot say what a wait costs:
//! the two are read by different crates, and meet in the command.
//!
//! [`read`] keeps of the file what is needed, [`analyse`] computes, [`text`], [`json`] and [`html`] write it down.

mod analysis;
mod document;
mod enclosing;
mod error;
mod event;
mod guard;
mod html;
mod json;
mod lenient;
mod lines;
mod names;
mod place;
mod profile;
mod read;
mod spans;
mod text;
mod timeline;
mod words;

pub use analysis::{
    Analysis, Bound, Copies, Device, Engine, Host, Idle, Meanwhile, Pageable, Stream, Wait, analyse,
};
pub use error::ImportError;
pub use html::html;
pub use json::json;
pub use place::{Function, Place};
pub use profile::Profile;
pub use read::{is_profile, read};
pub use text::text;
