//! Reads the interned things of a file into its tables, also while the file grows.

use std::collections::VecDeque;

use super::blob::{Collector, ENTRY_HEADER, padded};
use super::chunks::{Damage, Span};
use super::source::Source;

/// Bytes read at once, unless an entry needs more.
const WINDOW: u64 = 64 * 1024;

/// Longest entry: no program has strings or stacks of this size, and a sparse file claims them for nothing.
const MOST_ENTRY: u64 = 1 << 24;

/// All entries together, likewise.
const MOST_BYTES: u64 = 1 << 29;

/// Reads the blob chunks of a file.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    /// The chunk that is read and those after it.
    spans: VecDeque<Span>,
    /// Where in the file the next entry is.
    at: u64,
    window: Vec<u8>,
    /// Where in the file the window starts.
    window_at: u64,
    taken: u64,
    /// Why nothing more is read.
    pub damage: Option<Damage>,
}

impl Blobs {
    /// Takes up the next chunk.
    pub fn push(&mut self, span: Span) {
        if self.spans.is_empty() {
            self.at = span.start;
        }
        self.spans.push_back(span);
    }

    /// Looks again how much is committed, in all chunks: they may have been found before they were full.
    pub fn refresh<S: Source + ?Sized>(&mut self, source: &S) {
        for span in &mut self.spans {
            if let Err(damage) = span.refresh(source) {
                self.damage = self.damage.or(Some(damage));
            }
        }
    }

    /// Adds what is committed to the tables. `complete`: nothing is added to the file any more.
    pub fn advance<S: Source + ?Sized>(&mut self, source: &S, complete: bool, collector: &mut Collector) {
        while self.damage.is_none() {
            let Some(&span) = self.spans.front() else { break };
            if self.at < span.end {
                match self.take(source, span, collector) {
                    Ok(next) => {
                        self.taken += next - self.at;
                        self.at = next;
                    }
                    // The last entry may be on its way.
                    Err(Damage { what: HALF, .. }) if !complete && self.spans.len() == 1 => break,
                    Err(damage) => self.damage = Some(damage),
                }
            } else if self.spans.len() > 1 {
                self.spans.pop_front();
                self.at = self.spans.front().map_or(0, |span| span.start);
            } else {
                break;
            }
        }
        (self.window, self.window_at) = (Vec::new(), 0);
    }

    /// Takes the next entry of `span` and says where the one after it is.
    fn take<S: Source + ?Sized>(
        &mut self,
        source: &S,
        span: Span,
        collector: &mut Collector,
    ) -> Result<u64, Damage> {
        let at = self.at;
        let damage = |what| Damage::new(at, what);
        let header = self.bytes(source, ENTRY_HEADER as u64, span.end)?;
        let header: [u8; ENTRY_HEADER] = header.try_into().map_err(|_| damage(HALF))?;
        let length = (ENTRY_HEADER + padded(&header)) as u64;
        if length > MOST_ENTRY || self.taken + length > MOST_BYTES {
            return Err(damage("interned things that are too large"));
        }
        let entry = self.bytes(source, length, span.end)?;
        if (entry.len() as u64) < length {
            return Err(damage(HALF));
        }
        collector.take(entry).ok_or(damage("an interned entry out of range"))?;
        Ok(at + length)
    }

    /// The next `count` bytes, or fewer if there are no more before `end`.
    fn bytes<S: Source + ?Sized>(&mut self, source: &S, count: u64, end: u64) -> Result<&[u8], Damage> {
        let count = count.min(end - self.at);
        let window_end = self.window_at + self.window.len() as u64;
        if self.at < self.window_at || self.at + count > window_end {
            let wanted = count.max(WINDOW).min(end - self.at);
            self.window.resize(wanted as usize, 0);
            let there = source.read_at(self.at, &mut self.window);
            self.window.truncate(there.map_err(|_| Damage::unreadable(self.at))?);
            self.window_at = self.at;
        }
        let start = (self.at - self.window_at) as usize;
        let last = self.window.len().min(start + count as usize);
        Ok(&self.window[start..last])
    }
}

const HALF: &str = "half an interned entry";
