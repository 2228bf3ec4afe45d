//! Checks while parsing: what is alive, and whose memory can be handed out.

use crate::memory::Memory;
use crate::program::{BufferKind, GRANULE, Program};

/// What is alive so far.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    freed: Vec<usize>,
}

impl Lifetimes {
    fn alive(&self, program: &Program, buffer: usize) -> Result<(), String> {
        if self.freed.contains(&buffer) {
            return Err(format!("`{}` was freed before: use another name", program.buffers[buffer].name));
        }
        Ok(())
    }

    /// A block is handed out, the last buffer of the program: checks where its memory comes from.
    pub(crate) fn allocate(&self, program: &Program, buffer: usize) -> Result<(), String> {
        let new = &program.buffers[buffer];
        let BufferKind::Cached { owner, within: Some(within) } = new.kind else { return Ok(()) };
        let old = &program.buffers[within.buffer];
        let BufferKind::Cached { owner: old_owner, .. } = old.kind else {
            return Err(format!("`{}` is no block of the caching allocator: use `alloc`", old.name));
        };
        if !self.freed.contains(&within.buffer) {
            return Err(format!("`{0}` has not been freed: add `host: free {0}` above", old.name));
        }
        if old_owner != owner {
            return Err(format!(
                "`{}` belongs to stream `{}`: only that stream gets its memory",
                old.name, program.streams[old_owner].name
            ));
        }
        if within.low % GRANULE != 0 {
            return Err(format!("a block cannot start at byte {}: use a multiple of {GRANULE}", within.low));
        }
        let whole = old.reserved();
        let high = within.high.unwrap_or(whole);
        if high > whole {
            return Err(format!("the range ends after the {whole} bytes of `{}`", old.name));
        }
        if within.low + new.size > high || within.low + new.reserved() > whole {
            return Err(format!(
                "`{}` does not fit: {} bytes are to be had there",
                new.name,
                high - within.low
            ));
        }
        let extents = Memory::new(program).extents;
        let place = extents[buffer];
        let taken = (0..buffer).find(|&other| {
            let cached = program.buffers[other].owner().is_some();
            let overlaps = extents[other].start < place.end && place.start < extents[other].end;
            cached && overlaps && !self.freed.contains(&other)
        });
        match taken {
            Some(other) => Err(format!("`{0}` has that memory: free it above", program.buffers[other].name)),
            None => Ok(()),
        }
    }

    pub(crate) fn free(&mut self, program: &Program, buffer: usize) -> Result<(), String> {
        self.alive(program, buffer)?;
        let named = &program.buffers[buffer];
        if named.kind == BufferKind::Device {
            return Err(format!(
                "`{}` lives as long as the program: use `alloc` for a block that can be freed",
                named.name
            ));
        }
        self.freed.push(buffer);
        Ok(())
    }

    pub(crate) fn record_stream(&self, program: &Program, buffer: usize) -> Result<(), String> {
        let named = &program.buffers[buffer];
        if named.owner().is_none() {
            return Err(format!("`{}` has no owner stream: record_stream is for `alloc`", named.name));
        }
        self.alive(program, buffer)
    }

    /// A freed block can be touched, which is the mistake to be found; freed pinned memory is not mapped.
    pub(crate) fn touch(&self, program: &Program, buffer: usize) -> Result<(), String> {
        if program.buffers[buffer].kind == BufferKind::Pinned { self.alive(program, buffer) } else { Ok(()) }
    }
}
