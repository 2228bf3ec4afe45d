//! Trace files without their padding: most of a small file is zeros, and a fuzzer would change only those.
//!
//! The first byte says how to read the rest: [`RAW`] for a file as it is, else a set of flags. Then come two
//! bytes, how much is cut off the end of the file; the first 48 bytes of the header; and the chunks, each as
//! two bytes with the length of what it holds, its header of 64 bytes, and what it holds.

use streamsan_trace::file::layout::{CHUNK_HEADER, ChunkHeader, FileHeader, PAGE};

/// The rest is a file as it is.
pub const RAW: u8 = 0;
/// The chunks' lengths and the end of the file are put right.
pub const LENGTHS: u8 = 1;
/// Every chunk is made to hold all that it has.
pub const COMMITTED: u8 = 2;
/// The magic numbers are put right.
pub const MAGIC: u8 = 4;

const HEADER: usize = size_of::<FileHeader>();

/// The file that `input` stands for.
pub fn expand(input: &[u8]) -> Vec<u8> {
    let Some((&flags, rest)) = input.split_first() else { return Vec::new() };
    if flags == RAW {
        return rest.to_vec();
    }
    let mut rest = rest;
    let cut = word(&mut rest);
    let mut file = take(&mut rest, HEADER).to_vec();
    file.resize(PAGE, 0);
    while !rest.is_empty() {
        let length = word(&mut rest);
        let start = file.len();
        file.extend_from_slice(take(&mut rest, CHUNK_HEADER));
        file.resize(start + CHUNK_HEADER, 0);
        file.extend_from_slice(take(&mut rest, length));
        let held = (file.len() - start - CHUNK_HEADER) as u64;
        file.resize(file.len().next_multiple_of(PAGE), 0);
        let whole = (file.len() - start) as u64;
        if flags & MAGIC != 0 {
            file[start..start + 4].copy_from_slice(b"SSCK");
        }
        if flags & LENGTHS != 0 {
            file[start + 16..start + 24].copy_from_slice(&whole.to_le_bytes());
        }
        if flags & COMMITTED != 0 {
            let at = start + ChunkHeader::COMMITTED_OFFSET;
            file[at..at + 8].copy_from_slice(&held.to_le_bytes());
        }
    }
    if flags & MAGIC != 0 {
        file[..8].copy_from_slice(b"SSTRACE\0");
    }
    if flags & LENGTHS != 0 {
        let end = file.len() as u64;
        file[FileHeader::END_OFFSET..FileHeader::END_OFFSET + 8].copy_from_slice(&end.to_le_bytes());
    }
    file.truncate(file.len().saturating_sub(cut));
    file
}

/// The input that stands for a whole, sound file.
pub fn pack(file: &[u8]) -> Vec<u8> {
    let mut packed = vec![LENGTHS | COMMITTED | MAGIC, 0, 0];
    packed.extend_from_slice(&file[..HEADER]);
    let mut at = PAGE;
    while at < file.len() {
        let long = |offset: usize| {
            let bytes = file[at + offset..at + offset + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes) as usize
        };
        let (length, committed) = (long(16), long(ChunkHeader::COMMITTED_OFFSET).min(usize::from(u16::MAX)));
        packed.extend_from_slice(&(committed as u16).to_le_bytes());
        packed.extend_from_slice(&file[at..at + CHUNK_HEADER + committed]);
        at += length;
    }
    packed
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(length.min(rest.len()));
    *rest = left;
    taken
}

fn word(rest: &mut &[u8]) -> usize {
    let bytes = take(rest, 2);
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}
