//! Reads a trace: the header, the chunks, the tables, then the events in order.

use std::fs;
use std::path::Path;

use bytemuck::pod_read_unaligned;

use super::blob::Collector;
use super::error::ReadError;
use super::layout::{
    CHUNK_HEADER, CHUNK_MAGIC, ChunkHeader, ChunkKind, FILE_MAGIC, FileHeader, OLDEST_VERSION, PAGE, VERSION,
};
use super::merge::{Damage, Limits, Span, merge};
use super::record::RECORD;
use crate::{CaptureKind, Event, EventKind, GapReason, Header, OpNumber, SiteId, Tables, ThreadId, Trace};

/// Ids up to this are accepted however short the file is; greater ones only if there are as many records.
const SMALL_ID: u32 = 1 << 16;

/// Reads the trace at `path`.
///
/// A trace that was cut off, damaged, or not closed is read as far as it can be relied on and gets a
/// [`EventKind::Gap`] at its end that says so.
///
/// # Errors
///
/// If the file cannot be read, is no trace, has another version, or its header is not whole.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(ReadError::Directory);
    }
    // A pipe or a device may have no end.
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    read_bytes(&fs::read(path)?)
}

/// Reads a trace from the bytes of its file; like [`read`].
///
/// # Errors
///
/// If the bytes are no trace, have another version, or the header is not whole.
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    let (file, header) = read_header(bytes)?;
    let mut chunks = scan(bytes, file.end);
    let mut damages = Vec::new();
    if let Some(damage) = chunks.damage.take() {
        damages.push(damage);
    }
    let records: usize = chunks.records.iter().map(|span| (span.end - span.start) / RECORD).sum();
    let id_limit = u32::try_from(records).unwrap_or(u32::MAX).max(SMALL_ID);

    let mut collector = Collector { tables: Tables::default(), header, id_limit };
    for blobs in &chunks.blobs {
        if let Err(offset) = collector.take_all(&bytes[blobs.start..blobs.end]) {
            damages.push(Damage { offset: blobs.start + offset, what: "an interned entry out of range" });
            break;
        }
    }

    let mut trace = Trace { header: collector.header, tables: collector.tables, ..Trace::default() };
    let before_loss = if file.lost_from == 0 { u64::MAX } else { file.lost_from - 1 };
    let limits = Limits { id: id_limit, number: chunks.reliable.min(before_loss) };
    damages.extend(merge(bytes, &chunks.records, limits, &mut trace));
    if let Some(damage) = damages.first() {
        let detail = format!("damaged at byte {}: {}", damage.offset, damage.what);
        push_gap(&mut trace, GapReason::Damaged, &detail);
    }
    if file.lost_from != 0 {
        let detail = format!("the trace could not be written from #{} on", file.lost_from);
        push_gap(&mut trace, GapReason::Lost, &detail);
    }
    if !trace.header.closed {
        push_gap(&mut trace, GapReason::NotClosed, "");
    }
    Ok(trace)
}

fn push_gap(trace: &mut Trace, reason: GapReason, detail: &str) {
    let detail = trace.tables.intern_string(detail);
    let number = OpNumber(trace.events.last().map_or(0, |event| event.number.0).saturating_add(1));
    let kind = EventKind::Gap { reason, detail };
    trace.events.push(Event { number, thread: ThreadId(0), site: SiteId(0), kind });
}

fn read_header(bytes: &[u8]) -> Result<(FileHeader, Header), ReadError> {
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

/// What the chunks of a file are.
struct Chunks {
    records: Vec<Span>,
    blobs: Vec<Span>,
    damage: Option<Damage>,
    /// No event up to this number can be in a chunk that was not found.
    reliable: u64,
}

/// Finds the chunks between the header and `end`.
fn scan(bytes: &[u8], end: u64) -> Chunks {
    let mut chunks = Chunks { records: Vec::new(), blobs: Vec::new(), damage: None, reliable: u64::MAX };
    let mut at = PAGE;
    let mut after_number = 0;
    while (at as u64) < end {
        match chunk_at(bytes, at, end, after_number) {
            Ok((kind, span, length)) => {
                after_number = span.after_number;
                match kind {
                    ChunkKind::Records => chunks.records.push(span),
                    ChunkKind::Blobs => chunks.blobs.push(span),
                }
                let next = at + length;
                if bytes.len() < next {
                    chunks.damage = Some(Damage { offset: bytes.len(), what: "the file is cut off" });
                    if next as u64 != end {
                        chunks.reliable = after_number;
                    }
                    break;
                }
                at = next;
            }
            Err(what) => {
                chunks.damage = Some(Damage { offset: at.min(bytes.len()), what });
                chunks.reliable = after_number;
                break;
            }
        }
    }
    chunks
}

/// The chunk at `at`: what it holds, its committed bytes as far as they are there, and its length in the file.
fn chunk_at(
    bytes: &[u8],
    at: usize,
    end: u64,
    before: u64,
) -> Result<(ChunkKind, Span, usize), &'static str> {
    let header = bytes.get(at..).and_then(|rest| rest.get(..CHUNK_HEADER)).ok_or("the file is cut off")?;
    let header: ChunkHeader = pod_read_unaligned(header);
    if header.magic != CHUNK_MAGIC {
        return Err("no chunk where one should be");
    }
    let kind = ChunkKind::from_u32(header.kind).ok_or("a chunk of unknown kind")?;
    let whole_pages = header.length != 0 && header.length.is_multiple_of(PAGE as u64);
    if !whole_pages || header.length > end - at as u64 {
        return Err("a chunk of impossible length");
    }
    let length = header.length as usize;
    if header.committed > (length - CHUNK_HEADER) as u64 {
        return Err("a chunk that holds more than its length");
    }
    // Each thread has a chunk.
    let threads = u32::try_from(bytes.len() / PAGE).unwrap_or(u32::MAX).max(SMALL_ID);
    if header.after_number < before || header.thread > threads {
        return Err("a chunk header with a field out of range");
    }
    let start = at + CHUNK_HEADER;
    let committed = start + header.committed as usize;
    let there = committed.min(bytes.len());
    let span = Span {
        thread: header.thread,
        start,
        end: there,
        after_number: header.after_number,
        cut: there < committed,
    };
    Ok((kind, span, length))
}
