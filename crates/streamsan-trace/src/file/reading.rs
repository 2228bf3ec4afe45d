//! One way through a file: its header, its chunks, its tables, then its events. The whole file at once, or as it grows.

use bytemuck::pod_read_unaligned;

use super::blob::Collector;
use super::blobs::Blobs;
use super::chunks::{Damage, Scan, Span};
use super::error::ReadError;
use super::layout::{ChunkKind, FILE_MAGIC, FileHeader, OLDEST_VERSION, PAGE, VERSION};
use super::merge::{Merge, Take};
use super::source::{Source, read_length};
use crate::{Access, CaptureKind, Event, EventKind, GapReason, Header, OpNumber, SiteId, Tables, ThreadId};

/// What was read of a file so far.
#[derive(Debug)]
pub(super) struct Reading<S> {
    source: S,
    file: FileHeader,
    /// Where the last chunk ended when the file was looked at.
    end: u64,
    scan: Scan,
    /// Chunks of records that were found too late for this turn.
    later: Vec<Span>,
    /// All chunks of records, if they are to be kept.
    kept: Option<Vec<Span>>,
    /// The greatest number asked for.
    most: u64,
    blobs: Blobs,
    pub collector: Collector,
    pub merge: Merge,
}

impl<S: Source> Reading<S> {
    /// Reads the header.
    pub fn open(source: S) -> Result<Self, ReadError> {
        let (file, header) = read_header(&source)?;
        Ok(Self {
            source,
            file,
            end: 0,
            scan: Scan::new(),
            later: Vec::new(),
            kept: None,
            most: u64::MAX,
            blobs: Blobs::default(),
            collector: Collector { tables: Tables::default(), header },
            merge: Merge::default(),
        })
    }

    /// Reads the header, to read no event after `up_to`, and to keep the chunks of records.
    pub fn open_kept(source: S, up_to: u64) -> Result<Self, ReadError> {
        Ok(Self { kept: Some(Vec::new()), most: up_to, ..Self::open(source)? })
    }

    /// Where the bytes come from, what was collected, and the chunks that were kept.
    pub fn into_parts(self) -> (S, Collector, Vec<Span>) {
        (self.source, self.collector, self.kept.unwrap_or_default())
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Finds what was added to the file, and brings the tables up to date. `complete`: nothing is added any more.
    ///
    /// What is committed in records is read before what is committed in tables, so that every name is known.
    pub fn refresh(&mut self, complete: bool) -> Result<(), ReadError> {
        let (file, header) = read_header(&self.source)?;
        let same = |file: FileHeader| (file.version, file.capture, file.pid, file.devices);
        if same(file) != same(self.file) {
            return Err(ReadError::Replaced);
        }
        self.file = file;
        self.collector.header.closed = header.closed;
        self.look()?;
        // A thread's last chunk is full once there is another; so this comes after the chunks were found.
        self.merge.refresh(&self.source);
        let mut damage = None;
        for mut span in self.later.drain(..) {
            match span.refresh(&self.source) {
                Ok(()) => {
                    self.merge.push(span);
                    if let Some(kept) = &mut self.kept {
                        kept.push(span);
                    }
                }
                Err(found) => damage = damage.or(Some(found)),
            }
        }
        self.merge.damage = self.merge.damage.or(damage);
        self.look()?;
        self.blobs.refresh(&self.source);
        self.blobs.advance(&self.source, complete, &mut self.collector);
        Ok(())
    }

    /// Finds the chunks that are new.
    fn look(&mut self) -> Result<(), ReadError> {
        let end = read_length(&self.source, FileHeader::END_OFFSET as u64, self.end)?;
        let length = self.source.length()?;
        let Some(end) = end else { return Err(ReadError::HeaderCut { length: length as usize }) };
        if end < self.end {
            return Err(ReadError::Replaced);
        }
        self.end = end;
        let (later, blobs) = (&mut self.later, &mut self.blobs);
        self.scan.advance(&self.source, length, end, |span| match span.kind {
            ChunkKind::Records => later.push(span),
            ChunkKind::Blobs => blobs.push(span),
        });
        // Cut after its chunks were found.
        if self.scan.damage.is_none() && length < end {
            self.scan.damage = Some(Damage::new(length, Damage::CUT));
        }
        Ok(())
    }

    /// The greatest number that can be relied on.
    pub fn up_to(&self) -> u64 {
        let before_loss = if self.file.lost_from == 0 { u64::MAX } else { self.file.lost_from - 1 };
        self.scan.reliable.min(before_loss).min(self.most)
    }

    /// Hands over events, as [`Merge::run`] does.
    pub fn run(
        &mut self,
        complete: bool,
        mut each: impl FnMut(&Tables, &Event, &[Access]) -> Result<(), &'static str>,
    ) {
        let take = Take { up_to: self.up_to(), complete };
        let tables = &self.collector.tables;
        self.merge.run(&self.source, tables, take, |event, accesses| each(tables, event, accesses));
    }

    /// The first thing in the file that makes no sense.
    pub fn damage(&self) -> Option<Damage> {
        self.scan.damage.or(self.blobs.damage).or(self.merge.damage)
    }

    /// What a log ends with that is not whole.
    pub fn gaps(&mut self) -> Vec<Event> {
        let mut gaps = Vec::new();
        let mut number = self.merge.last_event;
        let damage = self.damage();
        let lost_from = self.file.lost_from;
        let Collector { tables, header } = &mut self.collector;
        let mut push = |reason, detail: &str| {
            number = number.saturating_add(1);
            let kind = EventKind::Gap { reason, detail: tables.intern_string(detail) };
            let (thread, site) = (ThreadId(0), SiteId(0));
            gaps.push(Event { number: OpNumber(number), thread, site, kind });
        };
        if let Some(Damage { offset, what }) = damage {
            push(GapReason::Damaged, &format!("damaged at byte {offset}: {what}"));
        }
        if lost_from != 0 {
            push(GapReason::Lost, &format!("the trace could not be written from #{lost_from} on"));
        }
        if !header.closed {
            push(GapReason::NotClosed, "");
        }
        gaps
    }
}

fn read_header<S: Source>(source: &S) -> Result<(FileHeader, Header), ReadError> {
    let mut page = [0; PAGE];
    let count = source.read_at(0, &mut page)?;
    let bytes = &page[..count];
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let magic = bytes.len().min(FILE_MAGIC.len());
    if bytes[..magic] != FILE_MAGIC[..magic] {
        return Err(ReadError::NotATrace);
    }
    let cut = ReadError::HeaderCut { length: bytes.len() };
    let Some(start) = bytes.get(..size_of::<FileHeader>()) else { return Err(cut) };
    let file: FileHeader = pod_read_unaligned(start);
    if !(OLDEST_VERSION..=VERSION).contains(&file.version) {
        return Err(ReadError::Version { found: file.version });
    }
    if bytes.len() < PAGE {
        return Err(cut);
    }
    let damaged = |offset, field, value| ReadError::HeaderDamaged { offset, field, value };
    if file.header_length != PAGE as u32 {
        return Err(damaged(12, "header length", file.header_length));
    }
    let capture = match file.capture {
        0 => CaptureKind::Virtual,
        1 => CaptureKind::Cuda,
        2 => CaptureKind::Sim,
        other => return Err(damaged(16, "capture kind", other)),
    };
    let closed = match file.closed {
        0 => false,
        1 => true,
        other => return Err(damaged(FileHeader::CLOSED_OFFSET, "closed flag", other)),
    };
    Ok((file, Header { capture, pid: file.pid, devices: file.devices, closed, ..Header::default() }))
}
