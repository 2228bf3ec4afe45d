//! Source text, which the caller reads.

/// Gives the text of source files.
pub trait Sources {
    /// The text of a file, or `None` if it cannot be read. `path` is as the trace has it.
    fn text(&self, path: &str) -> Option<String>;
}

/// No source is at hand: reports name places and show no code.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn text(&self, _path: &str) -> Option<String> {
        None
    }
}
