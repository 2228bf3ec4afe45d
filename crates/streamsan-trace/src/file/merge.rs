//! Puts the records of all threads into the order of their numbers, checking each one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::chunks::{Damage, Span};
use super::cursor::{Cursor, Peek};
use super::known::Known;
use super::record::{UNUSED, decode, decode_access, followers};
use super::source::Source;
use crate::{Access, AccessRange, Event, EventKind, Tables, ThreadId};

/// More accesses than this have no place in one event: they are handed over together.
const MOST_ACCESSES: usize = 1 << 24;

/// Which events a merge takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take {
    /// Greatest number that can be relied on: none of a smaller number is missing.
    pub up_to: u64,
    /// Whether all that will come is there. If not, a missing number holds back the greater ones.
    pub complete: bool,
}

/// Merges what it is given, as far as it goes, and goes on when there is more.
#[derive(Debug, Default)]
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    by_thread: HashMap<u32, usize>,
    /// Cursors that have something, by their next number; with `false`, it is at least that one.
    queue: BinaryHeap<Reverse<(u64, bool, usize)>>,
    /// The last number taken whose event made sense.
    pub last: u64,
    /// The number of the last event handed over.
    pub last_event: u64,
    /// How many events were handed over.
    pub events: u64,
    /// How many numbers before the last one were not there.
    pub missing: u64,
    records: u64,
    /// Why nothing more is taken.
    pub damage: Option<Damage>,
    accesses: Vec<Access>,
}

impl Merge {
    /// Takes up a chunk. Those of one thread come in order.
    pub fn push(&mut self, span: Span) {
        let index = *self.by_thread.entry(span.thread).or_insert_with(|| {
            self.cursors.push(Cursor::new(span.thread, self.cursors.len()));
            self.cursors.len() - 1
        });
        self.cursors[index].push(span);
        self.enqueue(index);
    }

    fn enqueue(&mut self, index: usize) {
        let cursor = &mut self.cursors[index];
        if !cursor.queued && cursor.has_more() {
            cursor.queued = true;
            self.queue.push(Reverse((cursor.least_number(), false, index)));
        }
    }

    /// Looks again how much is committed.
    pub fn refresh<S: Source + ?Sized>(&mut self, source: &S) {
        for index in 0..self.cursors.len() {
            match self.cursors[index].refresh(source) {
                Ok(()) => self.enqueue(index),
                Err(damage) => self.damage = self.damage.or(Some(damage)),
            }
        }
    }

    /// Hands over events in the order of their numbers. `each` may refuse one, and say why: then this is where the
    /// trace ends.
    pub fn run<S: Source + ?Sized>(
        &mut self,
        source: &S,
        tables: &Tables,
        take: Take,
        mut each: impl FnMut(&Event, &[Access]) -> Result<(), &'static str>,
    ) {
        while self.damage.is_none() {
            let Some(&Reverse((number, exact, index))) = self.queue.peek() else { break };
            if number > take.up_to || !take.complete && number > self.last + 1 {
                break;
            }
            self.queue.pop();
            self.cursors[index].queued = false;
            if exact {
                if number <= self.last {
                    let at = self.cursors[index].at;
                    self.damage = Some(Damage::new(at, "an event number that is there twice"));
                    break;
                }
                if let Err(damage) = self.take_from(index, source, tables, take, &mut each) {
                    self.damage = Some(damage);
                }
            } else {
                let next = self.cursors[index].peek(source, take.complete);
                self.requeue(index, next);
            }
        }
    }

    fn requeue(&mut self, index: usize, next: Peek) {
        let (number, exact) = match next {
            Peek::End => return,
            Peek::Number(number) => (number, true),
            Peek::From(number) => (number, false),
            Peek::Damage(damage) => {
                self.damage = Some(damage);
                return;
            }
        };
        self.cursors[index].queued = true;
        self.queue.push(Reverse((number, exact, index)));
    }

    /// Takes the cursor's next event, and those after it while no other thread has an earlier one.
    fn take_from<S: Source + ?Sized>(
        &mut self,
        index: usize,
        source: &S,
        tables: &Tables,
        take: Take,
        each: &mut impl FnMut(&Event, &[Access]) -> Result<(), &'static str>,
    ) -> Result<(), Damage> {
        let others = self.queue.peek().map_or(u64::MAX, |&Reverse((number, _, _))| number);
        loop {
            self.take_one(index, source, tables, each)?;
            match self.cursors[index].peek(source, take.complete) {
                Peek::Number(next)
                    if next < others && next <= take.up_to && (take.complete || next == self.last + 1) => {}
                next => {
                    self.requeue(index, next);
                    return Ok(());
                }
            }
        }
    }

    fn take_one<S: Source + ?Sized>(
        &mut self,
        index: usize,
        source: &S,
        tables: &Tables,
        each: &mut impl FnMut(&Event, &[Access]) -> Result<(), &'static str>,
    ) -> Result<(), Damage> {
        let cursor = &mut self.cursors[index];
        let at = cursor.at;
        let damage = |what| Damage::new(at, what);
        let record = cursor.current(source)?;
        let count = followers(&record).ok_or(damage("a record of unknown kind"))?;
        if count as u64 >= cursor.left() {
            return Err(damage("an event whose accesses are cut off"));
        }
        if count > MOST_ACCESSES {
            return Err(damage("an event with more accesses than can be"));
        }
        cursor.step();
        cursor.last_number = record.first;
        self.records += 1;
        let missing = record.first - self.last - 1;
        if record.tag == UNUSED {
            self.last = record.first;
            self.missing += missing;
            return Ok(());
        }
        self.accesses.clear();
        let known = Known::after(self.records, tables);
        let thread = ThreadId(cursor.thread);
        // An event with accesses needs no other record to be decoded.
        let place = if count == 1 { Some(cursor.current(source)?) } else { None };
        let mut event =
            decode(&record, place.as_ref(), thread).ok_or(damage("an event with a field out of range"))?;
        if !known.event(&event) {
            return Err(damage("an event with an unknown id"));
        }
        if let EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } = &mut event.kind {
            *accesses = AccessRange { start: 0, count: count as u32 };
            for _ in 0..count {
                let access = decode_access(&cursor.current(source)?).filter(|access| known.access(access));
                let access = access.ok_or(Damage::new(cursor.at, "an access with a field out of range"))?;
                self.accesses.push(access);
                cursor.step();
            }
        } else if count == 1 {
            cursor.step();
        }
        self.records += count as u64;
        each(&event, &self.accesses).map_err(damage)?;
        (self.last, self.last_event) = (record.first, record.first);
        self.events += 1;
        self.missing += missing;
        Ok(())
    }
}
