//! Interning: each string, frame, stack and shape is written once, before the first record that names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use streamsan_trace::file::blob::{Blob, MOST_DIMENSIONS, encode};
use streamsan_trace::file::layout::{CHUNK, ChunkKind, FIRST_CHUNK, chunk_length};
use streamsan_trace::{Frame, FrameId, Placement, Shape, ShapeId, SiteId, StringId, VisibleStream};

use crate::writer::{Chunk, Stopped, TraceFile};

/// How many of each there are: each operation brings ids, which are checked without the interner's lock.
#[derive(Debug, Default)]
pub struct Counts {
    strings: AtomicU32,
    sites: AtomicU32,
    shapes: AtomicU32,
}

impl Counts {
    /// The id, or 0 if there is no such string.
    pub fn checked_string(&self, id: u32) -> StringId {
        StringId(checked(&self.strings, id))
    }

    /// The id, or 0 if there is no such stack.
    pub fn checked_site(&self, id: u32) -> SiteId {
        SiteId(checked(&self.sites, id))
    }

    /// The id, or 0 if there is no such shape.
    pub fn checked_shape(&self, id: u32) -> ShapeId {
        ShapeId(checked(&self.shapes, id))
    }
}

fn checked(count: &AtomicU32, id: u32) -> u32 {
    if id <= count.load(Ordering::Acquire) { id } else { 0 }
}

/// All that is interned so far.
#[derive(Debug, Default)]
pub struct Interner {
    pub counts: Arc<Counts>,
    strings: FxHashMap<Box<str>, StringId>,
    frames: FxHashMap<Frame, FrameId>,
    sites: FxHashMap<Box<[FrameId]>, SiteId>,
    shapes: FxHashMap<Shape, ShapeId>,
    visible_streams: FxHashSet<VisibleStream>,
    placements: FxHashMap<FrameId, Placement>,
    chunk: Option<Chunk>,
    buffer: Vec<u8>,
}

impl Interner {
    /// The string's id, or 0 if recording has stopped.
    pub fn string(&mut self, file: &TraceFile, text: &str) -> StringId {
        if text.is_empty() {
            return StringId(0);
        }
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = StringId(self.strings.len() as u32 + 1);
        if self.write(file, &Blob::String(id.0, text)).is_err() {
            return StringId(0);
        }
        self.strings.insert(text.into(), id);
        self.counts.strings.store(id.0, Ordering::Release);
        id
    }

    /// The frame's id; `None` if one of its strings is unknown or recording has stopped.
    pub fn frame(&mut self, file: &TraceFile, frame: Frame) -> Option<FrameId> {
        if let Some(&id) = self.frames.get(&frame) {
            return Some(id);
        }
        if !self.knows_string(frame.file) || !self.knows_string(frame.function) {
            return None;
        }
        let id = FrameId(self.frames.len() as u32);
        self.write(file, &Blob::Frame(id.0, &frame)).ok()?;
        self.frames.insert(frame, id);
        Some(id)
    }

    /// The stack's id; 0, the empty stack, if a frame is unknown or recording has stopped.
    pub fn site(&mut self, file: &TraceFile, frames: &[FrameId]) -> SiteId {
        if frames.is_empty() || frames.iter().any(|&frame| !self.knows_frame(frame)) {
            return SiteId(0);
        }
        if let Some(&id) = self.sites.get(frames) {
            return id;
        }
        let id = SiteId(self.sites.len() as u32 + 1);
        if self.write(file, &Blob::Site(id.0, frames)).is_err() {
            return SiteId(0);
        }
        self.sites.insert(frames.into(), id);
        self.counts.sites.store(id.0, Ordering::Release);
        id
    }

    /// The shape's id; 0, contiguous, if recording has stopped or there is no such shape.
    pub fn shape(&mut self, file: &TraceFile, mut shape: Shape) -> ShapeId {
        // Steps of no extent touch nothing more; the file does not hold them.
        shape.dimensions.retain(|dimension| dimension.size >= 2 && dimension.stride > 0);
        // Longer than memory: no call that succeeds has one, and no reader takes it.
        if shape.is_contiguous() || shape.length() == u64::MAX || shape.dimensions.len() > MOST_DIMENSIONS {
            return ShapeId(0);
        }
        if let Some(&id) = self.shapes.get(&shape) {
            return id;
        }
        let id = ShapeId(self.shapes.len() as u32 + 1);
        if self.write(file, &Blob::Shape(id.0, &shape)).is_err() {
            return ShapeId(0);
        }
        self.shapes.insert(shape, id);
        self.counts.shapes.store(id.0, Ordering::Release);
        id
    }

    /// Notes that a frame can name a stream.
    pub fn visible_stream(&mut self, file: &TraceFile, visible: VisibleStream) {
        if self.knows_frame(visible.frame)
            && self.knows_string(visible.expression)
            && !self.visible_streams.contains(&visible)
            && self.write(file, &Blob::VisibleStream(&visible)).is_ok()
        {
            self.visible_streams.insert(visible);
        }
    }

    /// Notes where code goes that is to run before what a frame does.
    pub fn placement(&mut self, file: &TraceFile, frame: FrameId, placement: Placement) {
        if self.knows_frame(frame)
            && placement.line > 0
            && self.placements.get(&frame) != Some(&placement)
            && self.write(file, &Blob::Placement(frame, placement)).is_ok()
        {
            self.placements.insert(frame, placement);
        }
    }

    /// Sets a text of the header.
    pub fn header_text(&mut self, file: &TraceFile, which: u32, text: &str) {
        if which <= 2 {
            let _ = self.write(file, &Blob::HeaderText(which, text));
        }
    }

    fn knows_string(&self, id: StringId) -> bool {
        id.index() <= self.strings.len()
    }

    fn knows_frame(&self, id: FrameId) -> bool {
        id.index() < self.frames.len()
    }

    fn write(&mut self, file: &TraceFile, blob: &Blob<'_>) -> Result<(), Stopped> {
        self.buffer.clear();
        encode(blob, &mut self.buffer);
        if file.is_stopped() {
            return Err(Stopped);
        }
        let length = self.buffer.len();
        let chunk = match self.chunk.take() {
            Some(chunk) if chunk.has_room_for(length) => chunk,
            full => {
                let usual = if full.is_some() { CHUNK } else { FIRST_CHUNK };
                file.allocate(ChunkKind::Blobs, 0, chunk_length(length, usual))?
            }
        };
        self.chunk.insert(chunk).append(&self.buffer);
        Ok(())
    }
}
