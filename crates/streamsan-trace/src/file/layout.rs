//! Where each field of the file lies. All numbers are little-endian.
//!
//! The file is a header page and then chunks, each of whole pages. A chunk holds either records of one thread
//! or blob entries; its header says how many of its bytes are committed.

use bytemuck::{Pod, Zeroable};

use crate::CaptureKind;

const _: () = assert!(cfg!(target_endian = "little"), "trace files are mapped as little-endian structures");

/// First bytes of every trace.
pub const FILE_MAGIC: [u8; 8] = *b"SSTRACE\0";

/// The version that this build writes.
pub const VERSION: u32 = 1;

/// The oldest version that this build reads.
pub const OLDEST_VERSION: u32 = 1;

/// Bytes of a page: the length of the file's header, and the unit of chunk sizes.
pub const PAGE: usize = 4096;

/// First bytes of every chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"SSCK");

/// Bytes of a chunk's header.
pub const CHUNK_HEADER: usize = size_of::<ChunkHeader>();

/// Bytes of a thread's first chunk, header included: short-lived threads cost a page.
pub const FIRST_CHUNK: usize = PAGE;

/// Bytes of other chunks, header included, unless one group of records or one entry needs more.
pub const CHUNK: usize = 256 * 1024;

/// The start of the header page; the rest of the page is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct FileHeader {
    /// [`FILE_MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Bytes of the header: [`PAGE`].
    pub header_length: u32,
    /// [`CaptureKind`] as a number.
    pub capture: u32,
    /// The process.
    pub pid: u32,
    /// How many devices it saw.
    pub devices: u32,
    /// 0 while recording, 1 once closed. Written atomically.
    pub closed: u32,
    /// Number of the first event that was lost because the disk was full; 0 if none was. Written atomically.
    pub lost_from: u64,
    /// Where the last chunk ends, in bytes from the start of the file. Written atomically, after the chunk's header.
    pub end: u64,
}

impl FileHeader {
    /// Offset of [`FileHeader::closed`] in the file.
    pub const CLOSED_OFFSET: usize = 28;
    /// Offset of [`FileHeader::lost_from`] in the file.
    pub const LOST_FROM_OFFSET: usize = 32;
    /// Offset of [`FileHeader::end`] in the file.
    pub const END_OFFSET: usize = 40;

    /// The header of a trace that is being recorded.
    pub fn open(capture: CaptureKind, pid: u32, devices: u32) -> Self {
        Self {
            magic: FILE_MAGIC,
            version: VERSION,
            header_length: PAGE as u32,
            capture: capture as u32,
            pid,
            devices,
            closed: 0,
            lost_from: 0,
            end: PAGE as u64,
        }
    }
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ChunkKind {
    /// Records of one thread ([`super::record::Record`]).
    Records = 1,
    /// Interned things ([`super::blob`]).
    Blobs = 2,
}

impl ChunkKind {
    /// The kind stored as `value`, if there is one.
    pub const fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::Records,
            2 => Self::Blobs,
            _ => return None,
        })
    }
}

/// The start of a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ChunkHeader {
    /// [`CHUNK_MAGIC`].
    pub magic: u32,
    /// [`ChunkKind`] as a number.
    pub kind: u32,
    /// The thread whose records these are; 0 for blobs.
    pub thread: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes of the chunk with its header: whole pages.
    pub length: u64,
    /// Bytes after the header that may be read. Written atomically, after the bytes.
    pub committed: u64,
    /// The process's counter when the chunk was made: all records in it have greater numbers. Never falls from
    /// one chunk to the next.
    pub after_number: u64,
    /// 0.
    pub unused: [u64; 3],
}

impl ChunkHeader {
    /// Offset of [`ChunkHeader::committed`] in the chunk.
    pub const COMMITTED_OFFSET: usize = 24;

    /// The header of an empty chunk.
    pub fn new(kind: ChunkKind, thread: u32, length: u64, after_number: u64) -> Self {
        let kind = kind as u32;
        Self {
            magic: CHUNK_MAGIC,
            kind,
            thread,
            reserved: 0,
            length,
            committed: 0,
            after_number,
            unused: [0; 3],
        }
    }
}

/// Bytes of a chunk that can hold `payload` bytes and is `usual` bytes long if that is enough.
pub const fn chunk_length(payload: usize, usual: usize) -> usize {
    let needed = (CHUNK_HEADER + payload).next_multiple_of(PAGE);
    if needed > usual { needed } else { usual }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn headers_lie_where_the_format_says() {
        assert_eq!(size_of::<FileHeader>(), 48);
        assert_eq!(offset_of!(FileHeader, closed), FileHeader::CLOSED_OFFSET);
        assert_eq!(offset_of!(FileHeader, lost_from), FileHeader::LOST_FROM_OFFSET);
        assert_eq!(offset_of!(FileHeader, end), FileHeader::END_OFFSET);
        assert_eq!(size_of::<ChunkHeader>(), 64);
        assert_eq!(offset_of!(ChunkHeader, committed), ChunkHeader::COMMITTED_OFFSET);
    }

    #[test]
    fn chunks_are_whole_pages() {
        assert_eq!(chunk_length(32, CHUNK), CHUNK);
        assert_eq!(chunk_length(CHUNK, CHUNK), CHUNK + PAGE);
        assert_eq!(chunk_length(PAGE - CHUNK_HEADER, FIRST_CHUNK), PAGE);
    }
}
