//! Source text, which the caller reads.

/// Gives the text of source files.
pub trait Sources {
    /// The text of a file, or `None` if it cannot be read. `path` is as the trace has it.
    fn text(&self, path: &str) -> Option<String>;

    /// The path of a file relative to the root of its repository, with `/`. `None` if there is no repository.
    /// `path` is absolute, unless the trace says nothing of a directory.
    fn repository_path(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
}

/// No source is at hand: reports name places and show no code.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn text(&self, _path: &str) -> Option<String> {
        None
    }
}
