//! Writes a whole trace: for tests, simulated programs and importers. The recorder writes piece by piece.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use bytemuck::{Zeroable, bytes_of, cast_slice};

use super::blob::{self, Blob};
use super::layout::{CHUNK_HEADER, ChunkHeader, ChunkKind, FIRST_CHUNK, FileHeader, PAGE, chunk_length};
use super::record::{RECORD, Record, encode, record_count};
use crate::{EventKind, FrameId, Trace};

/// Writes `trace` to a file, replacing one that is there.
///
/// # Errors
///
/// If the trace is not sound (see [`write_bytes`]) or the file cannot be written.
pub fn write(trace: &Trace, path: &Path) -> io::Result<()> {
    fs::write(path, write_bytes(trace)?)
}

/// The bytes of `trace`'s file.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] if event numbers do not rise from at least 1, or an access range lies outside
/// the trace.
pub fn write_bytes(trace: &Trace) -> io::Result<Vec<u8>> {
    let mut builder = Builder::default();
    builder.add_tables(trace);
    builder.add_events(trace)?;
    Ok(builder.finish(trace))
}

/// Bytes of chunks other than first ones: less than the recorder's, because simulated programs are short.
pub(super) const CHUNK: usize = 64 * 1024;

struct Chunk {
    kind: ChunkKind,
    thread: u32,
    length: usize,
    after_number: u64,
    payload: Vec<u8>,
}

impl Chunk {
    fn has_room_for(&self, more: usize) -> bool {
        CHUNK_HEADER + self.payload.len() + more <= self.length
    }
}

#[derive(Default)]
struct Builder {
    chunks: Vec<Chunk>,
    /// The chunk that takes blobs.
    blobs: Option<usize>,
    /// The chunk that takes each thread's records.
    threads: HashMap<u32, usize>,
}

impl Builder {
    fn open(&mut self, kind: ChunkKind, thread: u32, length: usize, after_number: u64) -> usize {
        self.chunks.push(Chunk { kind, thread, length, after_number, payload: Vec::new() });
        self.chunks.len() - 1
    }

    fn add_blob(&mut self, entry: &Blob<'_>) {
        let mut bytes = Vec::new();
        blob::encode(entry, &mut bytes);
        let index = match self.blobs {
            Some(index) if self.chunks[index].has_room_for(bytes.len()) => index,
            open => {
                let usual = if open.is_some() { CHUNK } else { FIRST_CHUNK };
                self.open(ChunkKind::Blobs, 0, chunk_length(bytes.len(), usual), 0)
            }
        };
        self.blobs = Some(index);
        self.chunks[index].payload.extend_from_slice(&bytes);
    }

    fn add_tables(&mut self, trace: &Trace) {
        let header = &trace.header;
        for (which, text) in (0..).zip([&header.command, &header.directory, &header.versions]) {
            if !text.is_empty() {
                self.add_blob(&Blob::HeaderText(which, text));
            }
        }
        if let Some((first, last)) = header.region {
            self.add_blob(&Blob::HeaderText(3, &format!("{} {}", first.0, last.0)));
        }
        let tables = &trace.tables;
        for (id, text) in (0..).zip(&tables.strings).skip(1) {
            self.add_blob(&Blob::String(id, text));
        }
        for (id, frame) in (0..).zip(&tables.frames) {
            self.add_blob(&Blob::Frame(id, frame));
        }
        for (id, site) in (0..).zip(&tables.sites).skip(1) {
            let site: &[FrameId] = site;
            self.add_blob(&Blob::Site(id, site));
        }
        for (id, shape) in (0..).zip(&tables.shapes).skip(1) {
            self.add_blob(&Blob::Shape(id, shape));
        }
        for visible in &tables.visible_streams {
            self.add_blob(&Blob::VisibleStream(visible));
        }
        for (&frame, &placement) in &tables.placements {
            self.add_blob(&Blob::Placement(frame, placement));
        }
    }

    fn add_events(&mut self, trace: &Trace) -> io::Result<()> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let mut last = 0;
        let mut records = Vec::new();
        for event in &trace.events {
            if event.number.0 <= last {
                return Err(invalid(format!("event {} is out of order", event.number)));
            }
            let accesses = match event.kind {
                EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } => {
                    let known = trace.accesses(accesses);
                    if known.len() != accesses.count as usize {
                        return Err(invalid(format!(
                            "event {} has accesses outside the trace",
                            event.number
                        )));
                    }
                    known
                }
                _ => &[],
            };
            records.clear();
            records.resize(record_count(&event.kind, accesses.len()), Record::zeroed());
            encode(event.number, event.site, &event.kind, accesses, &mut records);
            let thread = event.thread.0;
            let needed = records.len() * RECORD;
            let index = match self.threads.get(&thread) {
                Some(&index) if self.chunks[index].has_room_for(needed) => index,
                open => {
                    let usual = if open.is_some() { CHUNK } else { FIRST_CHUNK };
                    self.open(ChunkKind::Records, thread, chunk_length(needed, usual), last)
                }
            };
            self.threads.insert(thread, index);
            self.chunks[index].payload.extend_from_slice(cast_slice(&records));
            last = event.number.0;
        }
        Ok(())
    }

    fn finish(self, trace: &Trace) -> Vec<u8> {
        let end = PAGE + self.chunks.iter().map(|chunk| chunk.length).sum::<usize>();
        let mut bytes = Vec::with_capacity(end);
        let mut header = FileHeader::open(trace.header.capture, trace.header.pid, trace.header.devices);
        header.closed = u32::from(trace.header.closed);
        header.end = end as u64;
        bytes.extend_from_slice(bytes_of(&header));
        bytes.resize(PAGE, 0);
        for chunk in &self.chunks {
            let mut header =
                ChunkHeader::new(chunk.kind, chunk.thread, chunk.length as u64, chunk.after_number);
            header.committed = chunk.payload.len() as u64;
            let next = bytes.len() + chunk.length;
            bytes.extend_from_slice(bytes_of(&header));
            bytes.extend_from_slice(&chunk.payload);
            bytes.resize(next, 0);
        }
        bytes
    }
}
