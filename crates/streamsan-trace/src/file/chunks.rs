//! The chunks of a file, found one after the other, also while the file grows.

use std::io;

use bytemuck::{Zeroable, bytes_of_mut};

use super::known::SMALL_ID;
use super::layout::{CHUNK_HEADER, CHUNK_MAGIC, ChunkHeader, ChunkKind, PAGE};
use super::source::{Source, read_length};

/// Something in the file that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// Where, from the start of the file.
    pub offset: u64,
    /// What, as a fragment.
    pub what: &'static str,
}

impl Damage {
    pub const CUT: &'static str = "the file is cut off";

    pub const fn new(offset: u64, what: &'static str) -> Self {
        Self { offset, what }
    }

    /// The system could not read the file here.
    pub fn unreadable(offset: u64) -> Self {
        Self::new(offset, "the file cannot be read here")
    }
}

/// The committed bytes of one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub kind: ChunkKind,
    /// Whose records.
    pub thread: u32,
    /// First byte, from the start of the file.
    pub start: u64,
    /// One past the last committed byte that is there.
    pub end: u64,
    /// One past the last byte of the chunk.
    pub limit: u64,
    /// All numbers in it are greater.
    pub after_number: u64,
    /// Whether more was committed than is there.
    pub cut: bool,
}

impl Span {
    /// Looks again how much is committed.
    pub fn refresh<S: Source + ?Sized>(&mut self, source: &S) -> Result<(), Damage> {
        if self.cut {
            return Ok(());
        }
        let chunk = self.start - CHUNK_HEADER as u64;
        let field = chunk + ChunkHeader::COMMITTED_OFFSET as u64;
        let committed =
            read_length(source, field, self.end - self.start).map_err(|_| Damage::unreadable(field))?;
        // A file that shrank is noticed where its bytes are missing.
        let Some(committed) = committed else { return Ok(()) };
        if committed > self.limit - self.start {
            return Err(Damage::new(chunk, "a chunk that holds more than its length"));
        }
        if self.start + committed < self.end {
            return Err(Damage::new(chunk, "a chunk that holds less than before"));
        }
        self.end = self.start + committed;
        Ok(())
    }
}

/// Finds chunks.
#[derive(Debug)]
pub(super) struct Scan {
    /// Where the next chunk is.
    at: u64,
    after_number: u64,
    found: u32,
    /// Why nothing more is found.
    pub damage: Option<Damage>,
    /// No event up to this number can be in a chunk that was not found.
    pub reliable: u64,
}

impl Scan {
    pub fn new() -> Self {
        Self { at: PAGE as u64, after_number: 0, found: 0, damage: None, reliable: u64::MAX }
    }

    /// Finds the chunks between the last one found and `end`. The file has `length` bytes.
    pub fn advance<S: Source + ?Sized>(
        &mut self,
        source: &S,
        length: u64,
        end: u64,
        mut each: impl FnMut(Span),
    ) {
        while self.damage.is_none() && self.at < end {
            match self.chunk(source, length, end) {
                Ok(span) => {
                    self.after_number = span.after_number;
                    self.found = self.found.saturating_add(1);
                    each(span);
                    if length < span.limit {
                        self.damage = Some(Damage::new(length, Damage::CUT));
                        if span.limit != end {
                            self.reliable = self.after_number;
                        }
                    }
                    self.at = span.limit;
                }
                Err(what) => {
                    self.damage = Some(Damage::new(self.at.min(length), what));
                    self.reliable = self.after_number;
                }
            }
        }
    }

    /// The chunk at the place reached.
    fn chunk<S: Source + ?Sized>(&self, source: &S, length: u64, end: u64) -> Result<Span, &'static str> {
        let mut header = ChunkHeader::zeroed();
        let bytes: io::Result<usize> = source.read_at(self.at, bytes_of_mut(&mut header));
        if bytes.map_err(|_| "the file cannot be read here")? < CHUNK_HEADER {
            return Err(Damage::CUT);
        }
        if header.magic != CHUNK_MAGIC {
            return Err("no chunk where one should be");
        }
        let kind = ChunkKind::from_u32(header.kind).ok_or("a chunk of unknown kind")?;
        let whole_pages = header.length != 0 && header.length.is_multiple_of(PAGE as u64);
        if !whole_pages || header.length > end - self.at {
            return Err("a chunk of impossible length");
        }
        if header.committed > header.length - CHUNK_HEADER as u64 {
            return Err("a chunk that holds more than its length");
        }
        // Each thread has a chunk, but for those that wrote nothing.
        let threads = self.found.saturating_add(SMALL_ID);
        if header.after_number < self.after_number || header.thread > threads {
            return Err("a chunk header with a field out of range");
        }
        let start = self.at + CHUNK_HEADER as u64;
        let committed = start + header.committed;
        let there = committed.min(length);
        Ok(Span {
            kind,
            thread: header.thread,
            start,
            end: there,
            limit: self.at + header.length,
            after_number: header.after_number,
            cut: there < committed,
        })
    }
}
