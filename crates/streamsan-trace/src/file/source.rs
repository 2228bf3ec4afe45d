//! Where the bytes of a trace come from.
//!
//! A file is read with `pread` and never mapped: a file that shrinks under a mapping ends the process with SIGBUS.
//! That a reader sees what the recorder wrote through its mapping is Linux's promise for one machine: `read` copies
//! from the page cache, and a shared mapping is made of the same pages (`mmap(2)`, `MAP_SHARED`: updates are visible
//! to other processes that map the region, and carried through to the file). The recorder stores a length with
//! release order after the bytes it covers; a reader copies the length first, in a system call of its own, and
//! [`read_length`] puts an acquire fence between it and what is copied later.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

/// Bytes that can be read at any place.
pub(super) trait Source {
    /// How many there are now.
    fn length(&self) -> io::Result<u64>;

    /// Fills `target` with the bytes from `offset` on, as far as there are any. How many.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize>;
}

impl<S: Source + ?Sized> Source for &S {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, target)
    }
}

impl Source for [u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or(&[]);
        let count = rest.len().min(target.len());
        target[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < target.len() {
            match FileExt::read_at(self, &mut target[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

/// A length at `offset` that the recorder raises while it is read, and that was `known` before; `None` if the bytes are
/// not there.
///
/// What it covers may be read afterwards. Linux copies eight aligned bytes at once on the machines it runs on, but
/// promises that nowhere, so a new value is copied twice and the smaller one counts: a mixture of old and new bytes
/// that is too great would have to come twice.
pub(super) fn read_length<S: Source + ?Sized>(
    source: &S,
    offset: u64,
    known: u64,
) -> io::Result<Option<u64>> {
    let mut least = u64::MAX;
    for _ in 0..2 {
        let mut bytes = [0; 8];
        if source.read_at(offset, &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        least = least.min(u64::from_le_bytes(bytes));
        if least == known {
            break;
        }
    }
    fence(Ordering::Acquire);
    Ok(Some(least))
}
