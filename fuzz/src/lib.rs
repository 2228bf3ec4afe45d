//! Bodies of the fuzz targets.
//!
//! Each takes bytes and panics if a promise is broken. `fuzz_targets/` hands them what libFuzzer makes up;
//! `crates/streamsan-cli/tests/replay.rs` includes this file and hands them what is kept in `corpus/` and
//! `regressions/`, under stable Rust.

mod baseline;
mod exercise;
mod follower;
mod ignore_comments;
pub mod limits;
mod markdown;
pub mod packed;
mod program_text;
mod settings;
mod structure;
mod trace_bytes;
mod trace_structured;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders in `corpus/` and `regressions/`.
pub const TARGETS: &[Target] = &[
    ("trace_bytes", trace_bytes::run),
    ("trace_structured", trace_structured::run),
    ("follower", follower::run),
    ("program_text", program_text::run),
    ("markdown", markdown::run),
    ("settings", settings::run),
    ("baseline", baseline::run),
    ("ignore_comments", ignore_comments::run),
];

/// Runs the body of one target within the limits.
///
/// # Panics
///
/// If there is no such target, a promise is broken, or the input takes too much time or memory.
pub fn run(name: &str, input: &[u8]) {
    let (_, body) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of the list");
    limits::within(|| body(input));
}
