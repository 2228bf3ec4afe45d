//! The bytes that a copy moves and a memset fills, and moving and filling them.

use std::ptr;

use streamsan_record::{PointerKind, copy_label};
use streamsan_trace::OpKind;

use crate::errors::{Answer, Code};
use crate::graphs::work::is_mapped;
use crate::memory::{is_device_memory, region_at};
use crate::protection::{copy_is_pending, view};
use crate::streams::Stream;

/// Rows of bytes in memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Bytes of a row.
    pub width: usize,
    /// How many rows.
    pub height: usize,
}

impl Rows {
    /// Bytes from the first to the last, `pitch` apart.
    pub fn extent(self, pitch: usize) -> Result<usize, Code> {
        (self.height - 1)
            .checked_mul(pitch)
            .and_then(|bytes| bytes.checked_add(self.width))
            .ok_or(Code::INVALID_VALUE)
    }

    /// Refuses bytes that begin in device memory and end outside it.
    pub fn check(self, (start, pitch): (usize, usize), kind: PointerKind) -> Answer {
        let inside = match kind {
            PointerKind::Device(_) => is_device_memory(start, self.extent(pitch)?)?,
            PointerKind::Pinned | PointerKind::Pageable => true,
        };
        if inside { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    /// Refuses bytes that were there when a graph was captured, and have gone.
    fn check_still_there(self, (start, pitch): (usize, usize), kind: PointerKind) -> Answer {
        let length = self.extent(pitch)?;
        let there = match kind {
            PointerKind::Device(_) => is_device_memory(start, length)?,
            PointerKind::Pinned => region_at(start)?.is_some_and(|region| {
                start.saturating_add(length) <= region.start.saturating_add(region.size)
            }),
            PointerKind::Pageable => is_mapped(start, length),
        };
        if there { Ok(()) } else { Err(Code::ILLEGAL_ADDRESS) }
    }
}

/// Copies rows of bytes; `destination` and `source` are their first bytes and pitches.
///
/// # Safety
///
/// The rows may be read and written. They may overlap.
pub unsafe fn copy_rows(destination: (usize, usize), source: (usize, usize), rows: Rows) {
    for row in 0..rows.height {
        // SAFETY: a row of each, as the caller promises.
        unsafe {
            ptr::copy(
                (source.0 + row * source.1) as *const u8,
                (destination.0 + row * destination.1) as *mut u8,
                rows.width,
            );
        }
    }
}

/// A copy that has been looked at: it has bytes, and may be made.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// First byte and pitch.
    pub destination: (usize, usize),
    /// First byte and pitch.
    pub source: (usize, usize),
    /// How much.
    pub rows: Rows,
    /// Where it goes to.
    pub to: PointerKind,
    /// Where it comes from.
    pub from: PointerKind,
    /// Which way.
    pub kind: OpKind,
}

impl Transfer {
    /// Its name.
    pub fn label(&self) -> &'static str {
        copy_label(self.kind)
    }

    /// Moves the bytes.
    ///
    /// # Safety
    ///
    /// The rows may be read and written.
    pub unsafe fn run(&self) {
        let own = |(start, pitch)| (view(start), pitch);
        // SAFETY: as the caller promises.
        unsafe { copy_rows(own(self.destination), own(self.source), self.rows) };
    }

    /// Keeps the host from page-locked memory until it has waited for the copy.
    pub fn keep_pages(&self, stream: Stream) -> Answer {
        let ends = [(self.to, self.destination, true), (self.from, self.source, false)];
        for (kind, (start, pitch), writes) in ends {
            if kind == PointerKind::Pinned {
                copy_is_pending(stream, start, start + self.rows.extent(pitch)?, writes);
            }
        }
        Ok(())
    }

    /// Moves the bytes for a graph launched in `stream`.
    pub fn run_in_graph(&self, stream: Stream) -> Answer {
        self.rows.check_still_there(self.destination, self.to)?;
        self.rows.check_still_there(self.source, self.from)?;
        // SAFETY: the memory is there. That these bytes of it are the program's own, the program says, as for CUDA.
        unsafe { self.run() };
        self.keep_pages(stream)
    }
}

/// A memset that has been looked at.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// First byte.
    pub start: usize,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// What each byte becomes.
    pub value: u8,
    /// How much.
    pub rows: Rows,
    /// Where.
    pub kind: PointerKind,
}

impl Fill {
    /// Fills the bytes.
    ///
    /// # Safety
    ///
    /// The rows may be written.
    pub unsafe fn run(&self) {
        let own = view(self.start);
        for row in 0..self.rows.height {
            // SAFETY: a row, as the caller promises.
            unsafe { ptr::write_bytes((own + row * self.pitch) as *mut u8, self.value, self.rows.width) };
        }
    }

    /// Fills the bytes for a graph launched in `stream`.
    pub fn run_in_graph(&self, stream: Stream) -> Answer {
        let place = (self.start, self.pitch);
        self.rows.check_still_there(place, self.kind)?;
        // SAFETY: as for a copy.
        unsafe { self.run() };
        if self.kind == PointerKind::Pinned {
            copy_is_pending(stream, self.start, self.start + self.rows.extent(self.pitch)?, true);
        }
        Ok(())
    }
}
