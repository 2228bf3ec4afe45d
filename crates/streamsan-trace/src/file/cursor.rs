//! The records of one thread, read through a window.

use std::collections::VecDeque;

use bytemuck::{Zeroable, cast_slice_mut};

use super::chunks::{Damage, Span};
use super::record::{RECORD, Record, followers};
use super::source::Source;

/// How many records a thread's window holds: 64 KiB, or less if there are many threads.
const WINDOW: std::ops::RangeInclusive<u64> = 16..=2048;

/// How many records the windows of the first threads hold together: 16 MiB.
const ALL_WINDOWS: u64 = 1 << 19;

/// Greatest event number: no run makes so many calls, and whoever counts on has room above it.
const MOST_NUMBER: u64 = 1 << 63;

/// Reads the records of one thread in order. More chunks and more records may come while it does.
#[derive(Debug)]
pub(super) struct Cursor {
    pub thread: u32,
    /// The chunk that is read and those after it.
    spans: VecDeque<Span>,
    /// Where in the file the next record is.
    pub at: u64,
    /// The last number taken.
    pub last_number: u64,
    window: Vec<Record>,
    /// How many records the window holds at most.
    most: u64,
    /// Which record of the window is the next.
    position: usize,
    /// Whether the merge has it in its queue.
    pub queued: bool,
}

/// What a cursor has next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peek {
    /// Nothing, or nothing yet.
    End,
    /// An event with this number.
    Number(u64),
    /// Events with numbers from this one on; the window is not filled for them yet.
    From(u64),
    /// The next record makes no sense; its number is greater than all before.
    Damage(Damage),
}

impl Cursor {
    /// The cursor of a thread when there are `others` already.
    pub fn new(thread: u32, others: usize) -> Self {
        Self {
            most: (ALL_WINDOWS / (others as u64 + 1)).clamp(*WINDOW.start(), *WINDOW.end()),
            thread,
            spans: VecDeque::new(),
            at: 0,
            last_number: 0,
            window: Vec::new(),
            position: 0,
            queued: false,
        }
    }

    /// Appends the thread's next chunk.
    pub fn push(&mut self, span: Span) {
        if self.spans.is_empty() {
            self.at = span.start;
        }
        self.spans.push_back(span);
    }

    /// Looks again how much of the thread's last chunk is committed.
    pub fn refresh<S: Source + ?Sized>(&mut self, source: &S) -> Result<(), Damage> {
        self.spans.back_mut().map_or(Ok(()), |span| span.refresh(source))
    }

    /// The next number is at least this.
    pub fn least_number(&self) -> u64 {
        self.bound().saturating_add(1)
    }

    /// Whether there is something to read.
    pub fn has_more(&self) -> bool {
        self.spans.len() > 1 || self.spans.front().is_some_and(|span| self.at < span.end || span.cut)
    }

    fn bound(&self) -> u64 {
        self.last_number.max(self.spans.front().map_or(0, |span| span.after_number))
    }

    /// What is next. `complete`: nothing is added to the file any more, so half an event stays half.
    pub fn peek<S: Source + ?Sized>(&mut self, source: &S, complete: bool) -> Peek {
        let Some(&span) = self.spans.front() else { return Peek::End };
        if self.at >= span.end {
            if span.cut {
                return Peek::Damage(Damage::new(span.end, Damage::CUT));
            }
            // Threads with nothing to read need no memory.
            (self.window, self.position) = (Vec::new(), 0);
            if self.spans.len() == 1 {
                return Peek::End;
            }
            self.spans.pop_front();
            self.at = self.spans.front().map_or(0, |span| span.start);
            return Peek::From(self.least_number());
        }
        let damage = |what| Peek::Damage(Damage::new(self.at, what));
        let left = (span.end - self.at) / RECORD as u64;
        if left == 0 {
            return damage("half a record");
        }
        let record = match self.current(source) {
            Ok(record) => record,
            Err(damage) => return Peek::Damage(damage),
        };
        let damage = |what| Peek::Damage(Damage::new(self.at, what));
        let Some(more) = followers(&record) else { return damage("a record of unknown kind") };
        if record.first <= self.bound() || record.first > MOST_NUMBER {
            return damage("an event number out of order");
        }
        // A length that was read while it was written can lie between the records of an event.
        if more as u64 >= left && !complete && !span.cut && self.spans.len() == 1 {
            return Peek::End;
        }
        Peek::Number(record.first)
    }

    /// How many records are left in this chunk.
    pub fn left(&self) -> u64 {
        self.spans.front().map_or(0, |span| span.end.saturating_sub(self.at) / RECORD as u64)
    }

    /// The next record of this chunk.
    pub fn current<S: Source + ?Sized>(&mut self, source: &S) -> Result<Record, Damage> {
        if let Some(record) = self.window.get(self.position) {
            return Ok(*record);
        }
        let count = self.left().min(self.most) as usize;
        self.position = 0;
        self.window.resize(count, Record::zeroed());
        let bytes = source.read_at(self.at, cast_slice_mut(&mut self.window));
        let bytes = bytes.map_err(|_| Damage::unreadable(self.at))?;
        self.window.truncate(bytes / RECORD);
        self.window.first().copied().ok_or(Damage::new(self.at + bytes as u64, Damage::CUT))
    }

    /// Goes on to the record after the next one.
    pub fn step(&mut self) {
        self.position += 1;
        self.at += RECORD as u64;
    }
}
