//! Lines and paths of source files, each file looked at once.

use crate::Sources;
use crate::places::repository_path;
use std::collections::{BTreeMap, HashMap};
use streamsan_trace::Log;

/// The source files that a report has asked for.
pub(crate) struct Lines<'a> {
    sources: &'a dyn Sources,
    files: BTreeMap<String, Option<File>>,
    /// By directory of the run and path.
    paths: HashMap<(String, String), String>,
}

/// A file with the starts of its lines.
struct File {
    text: String,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, files: BTreeMap::new(), paths: HashMap::new() }
    }

    fn file(&mut self, path: &str) -> Option<&File> {
        if !self.files.contains_key(path) {
            let file = self.sources.text(path).map(|text| {
                let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
                File { starts: [0].into_iter().chain(ends).collect(), text }
            });
            self.files.insert(path.to_owned(), file);
        }
        self.files.get(path)?.as_ref()
    }

    /// The whole text of a file.
    pub(crate) fn text(&mut self, path: &str) -> Option<&str> {
        self.file(path).map(|file| file.text.as_str())
    }

    /// One line, from 1, without its end.
    pub(crate) fn line(&mut self, path: &str, number: u32) -> Option<&str> {
        let file = self.file(path)?;
        let index = (number as usize).checked_sub(1)?;
        let start = *file.starts.get(index)?;
        let end = file.starts.get(index + 1).copied().unwrap_or(file.text.len());
        Some(file.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// A column in characters, from 1, for one in bytes, from 1, where the line is at hand; else as it is.
    pub(crate) fn column(&mut self, path: &str, line: u32, bytes: u32) -> u32 {
        let before = (bytes as usize).saturating_sub(1);
        match self.line(path, line).and_then(|text| text.get(..before)) {
            Some(text) => text.chars().count() as u32 + 1,
            None => bytes,
        }
    }

    /// The path of a file as its repository has it.
    pub(crate) fn repository_path(&mut self, path: &str, log: &dyn Log) -> &str {
        let key = (log.header().directory.clone(), path.to_owned());
        let sources = self.sources;
        self.paths.entry(key).or_insert_with(|| repository_path(path, log, sources))
    }
}
