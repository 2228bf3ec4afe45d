//! A reader that knows how far it is, and stops before what it reads needs memory without bound.
//!
//! A parser of JSON keeps each string and the nesting in memory. Neither is long in a profile, but a small compressed file
//! can hold gigabytes of either.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{Error, Read, Result};
use std::rc::Rc;

/// What some programs write before UTF-8.
pub(crate) const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Bytes of one string.
const LONGEST: u64 = 16 << 20;
/// How deep lists and objects are nested.
const DEEPEST: u32 = 256;

/// How many lines are remembered: a parser stops at a mistake, and reads a little more.
const LINES: usize = 64;

/// How far a reader is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes read.
    at: Cell<u64>,
    /// Lines that ended.
    lines: Cell<usize>,
    /// Where the last lines start.
    starts: RefCell<VecDeque<u64>>,
}

impl Progress {
    /// Bytes read.
    pub(crate) fn at(&self) -> u64 {
        self.at.get()
    }

    /// The byte at a line and column, both counted from 1 as parsers do; what was read if that is not known.
    pub(crate) fn offset(&self, line: usize, column: usize) -> u64 {
        let starts = self.starts.borrow();
        let start = match (self.lines.get() + 1).checked_sub(line) {
            _ if line == 1 => Some(0),
            Some(back) if line > 1 => {
                starts.len().checked_sub(1 + back).and_then(|index| starts.get(index).copied())
            }
            _ => None,
        };
        start.map_or(self.at(), |start| start + column as u64)
    }

    fn line(&self) {
        self.lines.set(self.lines.get() + 1);
        let mut starts = self.starts.borrow_mut();
        if starts.len() == LINES {
            starts.pop_front();
        }
        starts.push_back(self.at());
    }
}

/// Reads from `inner` and counts.
#[derive(Debug)]
pub(crate) struct Guard<R> {
    inner: R,
    progress: Rc<Progress>,
    in_string: bool,
    escaped: bool,
    length: u64,
    depth: u32,
}

impl<R: Read> Guard<R> {
    /// `progress` is kept up to date.
    pub(crate) fn new(inner: R, progress: Rc<Progress>) -> Self {
        Self { inner, progress, in_string: false, escaped: false, length: 0, depth: 0 }
    }

    fn see(&mut self, byte: u8) -> Result<()> {
        self.progress.at.set(self.progress.at() + 1);
        if byte == b'\n' {
            self.progress.line();
        }
        if self.in_string {
            self.length += 1;
            if self.length > LONGEST {
                return Err(Error::other(format!("a string is longer than {} MiB", LONGEST >> 20)));
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return Ok(());
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.length = 0;
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(Error::other(format!("lists are nested more than {DEEPEST} deep")));
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        for byte in &mut buffer[..count] {
            // A byte order mark may stand before the JSON, and parsers refuse it: a space does not move what follows.
            let at = usize::try_from(self.progress.at()).unwrap_or(usize::MAX);
            if MARK.get(at) == Some(byte) {
                *byte = b' ';
            }
            self.see(*byte)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, Guard, LONGEST, Progress};
    use std::io::{Read, repeat};
    use std::rc::Rc;

    fn read(from: impl Read) -> (Result<u64, String>, u64) {
        let progress = Rc::new(Progress::default());
        let mut guard = Guard::new(from, progress.clone());
        let outcome = std::io::copy(&mut guard, &mut std::io::sink()).map_err(|error| error.to_string());
        (outcome, progress.at())
    }

    #[test]
    fn lines_lead_to_bytes() {
        let progress = Rc::new(Progress::default());
        let text: String =
            (0..200).flat_map(|index| ["xxxxxx".get(..index % 7).unwrap_or(""), "\n"]).collect();
        std::io::copy(&mut Guard::new(text.as_bytes(), progress.clone()), &mut std::io::sink()).unwrap();
        let start =
            |line: usize| text.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>() as u64;
        for line in [1, 150, 199, 200, 201] {
            assert_eq!(progress.offset(line, 3), start(line) + 3, "{line}");
        }
        // Too long ago, not yet there, and no line at all: what was read.
        for line in [0, 2, 100, 202] {
            assert_eq!(progress.offset(line, 3), text.len() as u64, "{line}");
        }
    }

    #[test]
    fn ordinary_text_passes_and_is_counted() {
        let text = r#"{"a \" [[[": [1, {"b": "\\"}]}"#.repeat(1000);
        assert_eq!(read(text.as_bytes()), (Ok(text.len() as u64), text.len() as u64));
    }

    #[test]
    fn endless_strings_and_nesting_end() {
        let (outcome, at) = read(b"\"".chain(repeat(b'x')));
        assert_eq!(outcome.unwrap_err(), "a string is longer than 16 MiB");
        assert_eq!(at, LONGEST + 2);
        let (outcome, at) = read(repeat(b'['));
        assert_eq!(outcome.unwrap_err(), "lists are nested more than 256 deep");
        assert_eq!(at, u64::from(DEEPEST) + 1);
    }
}
