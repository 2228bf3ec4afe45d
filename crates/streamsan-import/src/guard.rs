//! A reader that knows how far it is, and stops before what it reads needs memory without bound.
//!
//! A parser of JSON keeps each string and the nesting in memory. Neither is long in a profile, but a small compressed file
//! can hold gigabytes of either.

use std::cell::Cell;
use std::io::{Error, Read, Result};
use std::rc::Rc;

/// Bytes of one string.
const LONGEST: u64 = 16 << 20;
/// How deep lists and objects are nested.
const DEEPEST: u32 = 256;

/// Reads from `inner` and counts.
#[derive(Debug)]
pub(crate) struct Guard<R> {
    inner: R,
    at: Rc<Cell<u64>>,
    in_string: bool,
    escaped: bool,
    length: u64,
    depth: u32,
}

impl<R: Read> Guard<R> {
    /// `at` is kept at the number of bytes read.
    pub(crate) fn new(inner: R, at: Rc<Cell<u64>>) -> Self {
        Self { inner, at, in_string: false, escaped: false, length: 0, depth: 0 }
    }

    fn see(&mut self, byte: u8) -> Result<()> {
        self.at.set(self.at.get() + 1);
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
        for &byte in &buffer[..count] {
            self.see(byte)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, Guard, LONGEST};
    use std::cell::Cell;
    use std::io::{Read, repeat};
    use std::rc::Rc;

    fn read(from: impl Read) -> (Result<u64, String>, u64) {
        let at = Rc::new(Cell::new(0));
        let mut guard = Guard::new(from, at.clone());
        let outcome = std::io::copy(&mut guard, &mut std::io::sink()).map_err(|error| error.to_string());
        (outcome, at.get())
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
