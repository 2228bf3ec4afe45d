//! A part of the trace file in memory. All unsafe access to it is here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// Bytes of the file that were allocated on disk before they were mapped, so that writing them cannot fail for want
/// of space. (Another process that cuts the file meanwhile raises SIGBUS here, as for any writer of a mapped file.)
#[derive(Debug)]
pub struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    /// Allocates and maps `length` bytes from `offset` on; both are whole pages.
    pub fn new(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        allocate(file, offset, length as u64)?;
        let map = MmapOptions::new().offset(offset).len(length).map_raw(file)?;
        // One fault for all pages instead of one for each; a kernel that does not know the advice changes nothing.
        let _ = map.advise(Advice::PopulateWrite);
        Ok(Self { map })
    }

    /// Bytes mapped.
    pub fn length(&self) -> usize {
        self.map.len()
    }

    /// Bytes that nobody reads yet.
    ///
    /// # Panics
    ///
    /// If they are outside the mapping.
    pub fn bytes_mut(&mut self, start: usize, count: usize) -> &mut [u8] {
        assert!(start.checked_add(count).is_some_and(|end| end <= self.map.len()));
        // SAFETY: the range lies in the mapping, and `&mut self` makes this its only reference in the process.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(start), count) }
    }

    /// A number that readers in other processes may look at.
    ///
    /// # Panics
    ///
    /// If it is outside the mapping or not aligned.
    #[expect(clippy::cast_ptr_alignment, reason = "checked")]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.map.len());
        // SAFETY: in the mapping, which starts at a page, and aligned. Once shared, the field is only used atomically.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast::<u64>()) }
    }

    /// Likewise, of 4 bytes.
    ///
    /// # Panics
    ///
    /// If it is outside the mapping or not aligned.
    #[expect(clippy::cast_ptr_alignment, reason = "checked")]
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.map.len());
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast::<u32>()) }
    }
}

/// Makes the bytes exist on disk.
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
