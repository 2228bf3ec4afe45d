//! Puts the records of all threads into the order of their numbers, checking each one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bytemuck::pod_read_unaligned;

use super::record::{RECORD, Record, decode, decode_access, followers};
use crate::{
    Access, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, SiteId, StreamId, StringId, Subject,
    Tables, ThreadId, Trace, WaitTarget,
};

/// The committed records of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub thread: u32,
    /// First byte, from the start of the file.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// All numbers in it are greater.
    pub after_number: u64,
    /// Whether more was committed than is there.
    pub cut: bool,
}

/// Something in the file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where, from the start of the file.
    pub offset: usize,
    /// What, as a fragment.
    pub what: &'static str,
}

/// Bounds of ids that no table gives.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Greatest stream, event, block and device id, and thread.
    pub id: u32,
    /// Greatest number that can be relied on: none of a smaller number is missing.
    pub number: u64,
}

/// The records of one thread.
struct Cursor {
    spans: Vec<Span>,
    /// Which span is being read.
    index: usize,
    /// Where in the file the next record is.
    at: usize,
    last_number: u64,
}

enum Peek {
    End,
    Number(u64),
    /// The next record makes no sense; its number is greater than this.
    Damage(u64, Damage),
}

impl Cursor {
    fn peek(&mut self, bytes: &[u8]) -> Peek {
        loop {
            let Some(span) = self.spans.get(self.index) else { return Peek::End };
            self.at = self.at.max(span.start);
            if self.at < span.end {
                break;
            }
            if span.cut {
                let bound = self.last_number.max(span.after_number);
                return Peek::Damage(bound, Damage { offset: span.end, what: "the file is cut off" });
            }
            self.index += 1;
            self.at = 0;
        }
        let span = self.spans[self.index];
        let bound = self.last_number.max(span.after_number);
        let damage = |what| Peek::Damage(bound, Damage { offset: self.at, what });
        let Some(record) = record_at(bytes, self.at, span.end) else { return damage("half a record") };
        if followers(&record).is_none() {
            return damage("a record of unknown kind");
        }
        if record.first <= bound {
            return damage("an event number out of order");
        }
        Peek::Number(record.first)
    }
}

fn record_at(bytes: &[u8], at: usize, end: usize) -> Option<Record> {
    let record = bytes.get(at..end)?.get(..RECORD)?;
    Some(pod_read_unaligned(record))
}

/// Merges `spans` into `trace`, whose tables are complete. What ended the merge early, if something did.
pub fn merge(bytes: &[u8], spans: &[Span], limits: Limits, trace: &mut Trace) -> Option<Damage> {
    let mut by_thread: BTreeMap<u32, Cursor> = BTreeMap::new();
    for span in spans {
        let cursor = by_thread.entry(span.thread).or_insert_with(|| Cursor {
            spans: Vec::new(),
            index: 0,
            at: 0,
            last_number: 0,
        });
        cursor.spans.push(*span);
    }
    let mut cursors: Vec<Cursor> = by_thread.into_values().collect();
    let mut merge = Merge { bytes, limits, trace, heap: BinaryHeap::new(), damage: None };
    for (index, cursor) in cursors.iter_mut().enumerate() {
        merge.advance(index, cursor);
    }
    let mut last = 0;
    while let Some(Reverse((number, index))) = merge.heap.pop() {
        if number > merge.limits.number {
            break;
        }
        let cursor = &mut cursors[index];
        if number == last {
            merge.damage = Some(Damage { offset: cursor.at, what: "an event number that is there twice" });
            break;
        }
        if let Err(damage) = merge.take(cursor) {
            merge.damage = Some(damage);
            break;
        }
        last = number;
        merge.advance(index, cursor);
    }
    merge.damage
}

struct Merge<'a> {
    bytes: &'a [u8],
    limits: Limits,
    trace: &'a mut Trace,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    damage: Option<Damage>,
}

impl Merge<'_> {
    /// Queues the cursor's next record.
    fn advance(&mut self, index: usize, cursor: &mut Cursor) {
        match cursor.peek(self.bytes) {
            Peek::End => {}
            Peek::Number(number) => self.heap.push(Reverse((number, index))),
            Peek::Damage(bound, damage) => {
                if bound <= self.limits.number {
                    self.limits.number = bound;
                    self.damage = Some(damage);
                }
            }
        }
    }

    /// Appends the cursor's next event with its accesses.
    fn take(&mut self, cursor: &mut Cursor) -> Result<(), Damage> {
        let span = cursor.spans[cursor.index];
        let damage = |offset, what| Damage { offset, what };
        let record = record_at(self.bytes, cursor.at, span.end).ok_or(damage(cursor.at, "half a record"))?;
        let count = followers(&record).ok_or(damage(cursor.at, "a record of unknown kind"))?;
        let left = (span.end - cursor.at) / RECORD - 1;
        if count > left {
            return Err(damage(cursor.at, "an event whose accesses are cut off"));
        }
        let after = cursor.at + RECORD;
        let place = (count > 0).then(|| record_at(self.bytes, after, span.end)).flatten();
        let mut event = decode(&record, place.as_ref(), ThreadId(span.thread))
            .ok_or(damage(cursor.at, "an event with a field out of range"))?;
        if !self.event_is_known(&event) {
            return Err(damage(cursor.at, "an event with an unknown id"));
        }
        if let EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } = &mut event.kind {
            let start = self.trace.accesses.len();
            if start + count > u32::MAX as usize {
                return Err(damage(cursor.at, "more accesses than a trace can hold"));
            }
            *accesses = AccessRange { start: start as u32, count: count as u32 };
            for index in 0..count {
                let at = after + index * RECORD;
                let access = record_at(self.bytes, at, span.end)
                    .and_then(|record| decode_access(&record))
                    .filter(|access| self.access_is_known(access));
                let Some(access) = access else {
                    self.trace.accesses.truncate(start);
                    return Err(damage(at, "an access with a field out of range"));
                };
                self.trace.accesses.push(access);
            }
        }
        self.trace.events.push(event);
        cursor.at = after + count * RECORD;
        cursor.last_number = record.first;
        Ok(())
    }

    fn access_is_known(&self, access: &Access) -> bool {
        let tables = &self.trace.tables;
        access.block.0 <= self.limits.id
            && access.length >= 1
            && access.offset.checked_add(access.length).is_some()
            && access.shape.index() < tables.shapes.len()
            && access.argument.index() < tables.strings.len()
    }

    fn event_is_known(&self, event: &Event) -> bool {
        let limit = self.limits.id;
        let tables: &Tables = &self.trace.tables;
        let site = |id: SiteId| id.index() < tables.sites.len();
        let string = |id: StringId| id.index() < tables.strings.len();
        let stream = |id: StreamId| id.0 <= limit;
        let block = |id: BlockId| id.0 <= limit;
        let cuda_event = |id: EventId| id.0 <= limit;
        let device = |id: DeviceId| id.0 <= limit;
        let target = |target: WaitTarget| match target {
            WaitTarget::Event(id) => cuda_event(id),
            WaitTarget::Stream(id) => stream(id),
            WaitTarget::Device(id) => device(id),
        };
        site(event.site)
            && match event.kind {
                EventKind::StreamCreate { stream: id, device: on, .. } => stream(id) && device(on),
                EventKind::StreamDestroy { stream: id } | EventKind::StreamObject { stream: id, .. } => {
                    stream(id)
                }
                EventKind::EventRecord { event, stream: id } | EventKind::EventWait { event, stream: id } => {
                    cuda_event(event) && stream(id)
                }
                EventKind::HostWaitBegin { target: of } | EventKind::HostWait { target: of, .. } => {
                    target(of)
                }
                EventKind::Op { stream: id, label, forward_site, .. } => {
                    stream(id) && string(label) && site(forward_site)
                }
                EventKind::Alloc { block: id, stream: owner, address, size, .. } => {
                    block(id) && stream(owner) && address.checked_add(size).is_some()
                }
                EventKind::BlockSize { block: id, .. }
                | EventKind::FreeRequest { block: id }
                | EventKind::FreeDone { block: id } => block(id),
                EventKind::FreeGuard { block: id, stream: on }
                | EventKind::RecordStream { block: id, stream: on } => block(id) && stream(on),
                EventKind::HostAccess { label, .. } | EventKind::RangeBegin { label, .. } => string(label),
                EventKind::Escape { block: id, label } => block(id) && string(label),
                EventKind::Name { subject, name, .. } => {
                    string(name)
                        && match subject {
                            Subject::Stream(id) => stream(id),
                            Subject::Block(id) => block(id),
                        }
                }
                EventKind::RangeEnd { .. } => true,
                EventKind::Gap { detail, .. } => string(detail),
            }
    }
}
