//! The trace file as it grows: chunks that are allocated on disk before they are mapped, and committed lengths.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::{bytes_of, cast_slice_mut};
use memmap2::{MmapMut, MmapOptions};
use streamsan_trace::CaptureKind;
use streamsan_trace::file::layout::{CHUNK_HEADER, ChunkHeader, ChunkKind, FileHeader, PAGE};
use streamsan_trace::file::record::{RECORD, Record};

/// The file of one trace.
#[derive(Debug)]
pub struct TraceFile {
    file: File,
    header: MmapMut,
    /// Where the next chunk goes. Its lock also keeps chunks in the order of their `after_number`.
    end: Mutex<u64>,
    /// The last event number given out.
    counter: AtomicU64,
    /// One of the states below.
    state: AtomicU8,
}

const RECORDING: u8 = 0;
/// The disk is full.
const LOST: u8 = 1;
const CLOSED: u8 = 2;
/// This is a forked child, and the file its parent's.
const ABANDONED: u8 = 3;

/// A mapped chunk that is being filled.
#[derive(Debug)]
pub struct Chunk {
    map: MmapMut,
    committed: usize,
}

/// Nothing can be written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl TraceFile {
    /// Makes the file. It must not exist: a child of the recorded process that inherited its environment must
    /// not replace its parent's trace.
    pub fn create(path: &Path, capture: CaptureKind, devices: u32) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        allocate(&file, 0, PAGE as u64)?;
        // SAFETY: the page was allocated just now and the file is ours; a program that cuts the file while it is
        // recorded gets SIGBUS, as any writer of a mapped file does.
        let mut header = unsafe { MmapOptions::new().len(PAGE).map_mut(&file)? };
        let start = FileHeader::open(capture, std::process::id(), devices);
        header[..size_of::<FileHeader>()].copy_from_slice(bytes_of(&start));
        Ok(Self {
            file,
            header,
            end: Mutex::new(PAGE as u64),
            counter: AtomicU64::new(0),
            state: AtomicU8::new(RECORDING),
        })
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
    pub fn lose(&self, number: u64) {
        let _ = self.state.compare_exchange(RECORDING, LOST, Ordering::AcqRel, Ordering::Acquire);
        let lost_from = self.header_u64(FileHeader::LOST_FROM_OFFSET);
        let _ = lost_from.fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
            (known == 0 || number < known).then_some(number)
        });
    }

    /// Writes nothing from now on, but for events whose number and room were taken before. Whether the caller is
    /// the first to close.
    pub fn begin_close(&self) -> bool {
        let open = |state| (state == RECORDING || state == LOST).then_some(CLOSED);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, open).is_ok()
    }

    /// Leaves the file alone from now on: for a forked child.
    pub fn abandon(&self) {
        self.state.store(ABANDONED, Ordering::Release);
    }

    /// Says in the file that it was closed.
    pub fn mark_closed(&self) {
        // SAFETY: the offset lies in the header page and is a multiple of 4; the field is only used atomically.
        let closed = unsafe { &*self.header.as_ptr().add(FileHeader::CLOSED_OFFSET).cast::<AtomicU32>() };
        closed.store(1, Ordering::Release);
    }

    /// A new chunk of `length` bytes, which are whole pages, for events whose numbers are taken afterwards. When the
    /// disk is full recording stops and the header says from which event on.
    pub fn allocate(&self, kind: ChunkKind, thread: u32, length: usize) -> Result<Chunk, Stopped> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_stopped() {
            return Err(Stopped);
        }
        let after_number = self.last_number();
        match self.map(*end, kind, thread, length, after_number) {
            Ok(chunk) => {
                *end += length as u64;
                self.header_u64(FileHeader::END_OFFSET).store(*end, Ordering::Release);
                Ok(chunk)
            }
            Err(_) => {
                drop(end);
                self.lose(after_number + 1);
                Err(Stopped)
            }
        }
    }

    fn map(&self, offset: u64, kind: ChunkKind, thread: u32, length: usize, after: u64) -> io::Result<Chunk> {
        allocate(&self.file, offset, length as u64)?;
        // SAFETY: as in `create`: the bytes were allocated just now, so writing them cannot fail.
        let mut map = unsafe { MmapOptions::new().offset(offset).len(length).map_mut(&self.file)? };
        map[..CHUNK_HEADER].copy_from_slice(bytes_of(&ChunkHeader::new(kind, thread, length as u64, after)));
        Ok(Chunk { map, committed: 0 })
    }

    fn header_u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offsets used here lie in the header page and are multiples of 8; these fields are only used
        // atomically once the file exists.
        unsafe { &*self.header.as_ptr().add(offset).cast::<AtomicU64>() }
    }
}

impl Chunk {
    /// Whether `more` bytes fit.
    pub fn has_room_for(&self, more: usize) -> bool {
        CHUNK_HEADER + self.committed + more <= self.map.len()
    }

    /// The next `count` records, to be filled and then committed. There must be room.
    pub fn records(&mut self, count: usize) -> &mut [Record] {
        let start = CHUNK_HEADER + self.committed;
        cast_slice_mut(&mut self.map[start..start + count * RECORD])
    }

    /// Appends bytes. There must be room.
    pub fn append(&mut self, bytes: &[u8]) {
        let start = CHUNK_HEADER + self.committed;
        self.map[start..start + bytes.len()].copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Lets readers see `more` bytes.
    pub fn commit(&mut self, more: usize) {
        self.committed += more;
        // SAFETY: the offset lies in the chunk's header and is a multiple of 8; the field is only used atomically.
        let committed = unsafe { &*self.map.as_ptr().add(ChunkHeader::COMMITTED_OFFSET).cast::<AtomicU64>() };
        committed.store(self.committed as u64, Ordering::Release);
    }
}

/// Makes the bytes exist on disk, so that a write to their mapping cannot fail for want of space.
fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let (Ok(start), Ok(count)) = (libc::off_t::try_from(offset), libc::off_t::try_from(length)) else {
        return Err(io::ErrorKind::FileTooLarge.into());
    };
    loop {
        // SAFETY: a plain system call on a descriptor that is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), start, count) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
