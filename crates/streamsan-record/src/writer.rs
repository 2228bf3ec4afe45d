//! The trace file as it grows: its header, its counter of events, and chunks with their committed lengths.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::{bytes_of, cast_slice_mut};
use streamsan_trace::CaptureKind;
use streamsan_trace::file::layout::{CHUNK_HEADER, ChunkHeader, ChunkKind, FileHeader, PAGE};
use streamsan_trace::file::record::{RECORD, Record};

use crate::descriptor::Descriptor;
use crate::mapping::Mapping;

/// The file of one trace.
#[derive(Debug)]
pub struct TraceFile {
    header: Mapping,
    /// Its lock also keeps chunks in the order of their `after_number`.
    end: Mutex<End>,
    /// The last event number given out.
    counter: AtomicU64,
    /// One of the states below.
    state: AtomicU8,
}

/// The end of the file, where it grows.
#[derive(Debug)]
struct End {
    descriptor: Descriptor,
    /// Where the next chunk goes.
    offset: u64,
}

const RECORDING: u8 = 0;
/// The disk is full, or the program closed the file and it is not at its path any more.
const LOST: u8 = 1;
const CLOSED: u8 = 2;
/// This is a forked child, and the file its parent's.
const ABANDONED: u8 = 3;

/// A mapped chunk that is being filled.
#[derive(Debug)]
pub struct Chunk {
    map: Mapping,
    committed: usize,
}

/// Nothing can be written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl TraceFile {
    /// Makes the file. It must not exist: a child of the recorded process that inherited its environment must
    /// not replace its parent's trace.
    pub fn create(path: &Path, capture: CaptureKind, devices: u32) -> io::Result<Self> {
        let mut descriptor = Descriptor::create(path)?;
        let mapped = descriptor.file().and_then(|file| Mapping::new(file, 0, PAGE));
        let mut header = mapped.inspect_err(|_| {
            // An empty file would only puzzle whoever reads it.
            let _ = fs::remove_file(path);
        })?;
        let start = FileHeader { end: 0, ..FileHeader::open(capture, std::process::id(), devices) };
        header.bytes_mut(0, size_of::<FileHeader>()).copy_from_slice(bytes_of(&start));
        // Last: readers that wait for the file take the header as whole then.
        header.atomic_u64(FileHeader::END_OFFSET).store(PAGE as u64, Ordering::Release);
        Ok(Self {
            header,
            end: Mutex::new(End { descriptor, offset: PAGE as u64 }),
            counter: AtomicU64::new(0),
            state: AtomicU8::new(RECORDING),
        })
    }

    /// Where it is, absolute.
    pub fn path(&self) -> PathBuf {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).descriptor.path().to_owned()
    }

    /// The next event number.
    pub fn next_number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last event number given out.
    pub fn last_number(&self) -> u64 {
        self.counter.load(Ordering::Acquire)
    }

    /// Whether nothing is written any more.
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) != RECORDING
    }

    /// Stops because the event `number` could not be written.
    fn lose(&self, number: u64) {
        let _ = self.state.compare_exchange(RECORDING, LOST, Ordering::AcqRel, Ordering::Acquire);
        let lost_from = self.header.atomic_u64(FileHeader::LOST_FROM_OFFSET);
        let earlier = |known| (known == 0 || number < known).then_some(number);
        let _ = lost_from.fetch_update(Ordering::AcqRel, Ordering::Acquire, earlier);
    }

    /// Stops because whoever writes has failed: what follows is missing.
    pub fn break_off(&self) {
        self.lose(self.last_number() + 1);
    }

    /// Writes nothing from now on, but for events whose number and room were taken before. Whether the caller is
    /// the first to close.
    pub fn begin_close(&self) -> bool {
        let open = |state| (state == RECORDING || state == LOST).then_some(CLOSED);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, open).is_ok()
    }

    /// Says in the file that it was closed.
    pub fn mark_closed(&self) {
        self.header.atomic_u32(FileHeader::CLOSED_OFFSET).store(1, Ordering::Release);
    }

    /// Leaves the file alone from now on: for a forked child.
    pub fn abandon(&self) {
        self.state.store(ABANDONED, Ordering::Release);
    }

    /// A new chunk of `length` bytes, which are whole pages, for events whose numbers are taken afterwards. When the
    /// disk is full, or the file is out of reach, recording stops and the header says from which event on.
    pub fn allocate(&self, kind: ChunkKind, thread: u32, length: usize) -> Result<Chunk, Stopped> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_stopped() {
            return Err(Stopped);
        }
        let after_number = self.last_number();
        let offset = end.offset;
        let mapped = end.descriptor.file().and_then(|file| Mapping::new(file, offset, length));
        let Ok(mut map) = mapped else {
            self.lose(after_number + 1);
            return Err(Stopped);
        };
        let header = ChunkHeader::new(kind, thread, length as u64, after_number);
        map.bytes_mut(0, CHUNK_HEADER).copy_from_slice(bytes_of(&header));
        end.offset += length as u64;
        self.header.atomic_u64(FileHeader::END_OFFSET).store(end.offset, Ordering::Release);
        Ok(Chunk { map, committed: 0 })
    }
}

impl Chunk {
    /// Whether `more` bytes fit.
    pub fn has_room_for(&self, more: usize) -> bool {
        CHUNK_HEADER + self.committed + more <= self.map.length()
    }

    /// The next `count` records, to be filled and then committed. There must be room.
    pub fn records(&mut self, count: usize) -> &mut [Record] {
        cast_slice_mut(self.map.bytes_mut(CHUNK_HEADER + self.committed, count * RECORD))
    }

    /// Appends bytes. There must be room.
    pub fn append(&mut self, bytes: &[u8]) {
        self.map.bytes_mut(CHUNK_HEADER + self.committed, bytes.len()).copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Lets readers see `more` bytes.
    pub fn commit(&mut self, more: usize) {
        self.committed += more;
        self.map.atomic_u64(ChunkHeader::COMMITTED_OFFSET).store(self.committed as u64, Ordering::Release);
    }
}
