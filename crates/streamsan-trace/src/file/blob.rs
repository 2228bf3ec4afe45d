//! Blob entries: interned things of any length. Ids count up by kind, in the order of the entries.

use crate::{
    Binding, Frame, FrameId, FrameOrigin, Header, OpNumber, Placement, Reach, Shape, ShapeDimension,
    StreamId, StringId, Tables, VisibleStream,
};

/// Bytes before an entry's payload: kind, id, payload length, a reserved word.
pub const ENTRY_HEADER: usize = 16;

/// Entries start at multiples of this.
pub const ENTRY_ALIGNMENT: usize = 8;

const STRING: u32 = 1;
const FRAME: u32 = 2;
const SITE: u32 = 3;
const SHAPE: u32 = 4;
const VISIBLE_STREAM: u32 = 5;
const HEADER_TEXT: u32 = 6;
const PLACEMENT: u32 = 7;

/// One interned thing, as it is written.
#[derive(Clone, Copy, Debug)]
pub enum Blob<'a> {
    /// A string with its id.
    String(u32, &'a str),
    /// A frame with its id.
    Frame(u32, &'a Frame),
    /// A call stack with its id.
    Site(u32, &'a [FrameId]),
    /// A shape with its id.
    Shape(u32, &'a Shape),
    /// A stream that a frame can name.
    VisibleStream(&'a VisibleStream),
    /// Where code goes that is to run before what a frame does.
    Placement(FrameId, Placement),
    /// A text of the header: 0 command, 1 directory, 2 versions. The last one counts.
    HeaderText(u32, &'a str),
}

/// Appends an entry to `target`, padded so that the next one is aligned.
pub fn encode(blob: &Blob<'_>, target: &mut Vec<u8>) {
    let start = target.len();
    let (kind, id) = match *blob {
        Blob::String(id, _) => (STRING, id),
        Blob::Frame(id, _) => (FRAME, id),
        Blob::Site(id, _) => (SITE, id),
        Blob::Shape(id, _) => (SHAPE, id),
        Blob::VisibleStream(visible) => (VISIBLE_STREAM, visible.binding as u32),
        Blob::Placement(_, placement) => (PLACEMENT, placement.reach as u32),
        Blob::HeaderText(which, _) => (HEADER_TEXT, which),
    };
    push_words(target, &[kind, id, 0, 0]);
    match *blob {
        Blob::String(_, text) | Blob::HeaderText(_, text) => target.extend_from_slice(text.as_bytes()),
        Blob::Frame(_, frame) => push_words(
            target,
            &[
                frame.file.0,
                frame.function.0,
                frame.line,
                frame.end_line,
                frame.column,
                frame.end_column,
                frame.origin as u32,
            ],
        ),
        Blob::Site(_, frames) => {
            for frame in frames {
                push_words(target, &[frame.0]);
            }
        }
        Blob::Shape(_, shape) => {
            target.extend_from_slice(&shape.run.to_le_bytes());
            for dimension in &shape.dimensions {
                target.extend_from_slice(&dimension.size.to_le_bytes());
                target.extend_from_slice(&dimension.stride.to_le_bytes());
            }
        }
        Blob::VisibleStream(visible) => {
            push_words(target, &[visible.frame.0, visible.stream.0, visible.expression.0]);
        }
        Blob::Placement(frame, placement) => push_words(target, &[frame.0, placement.line]),
    }
    let length = (target.len() - start - ENTRY_HEADER) as u32;
    target[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
    target.resize(start + (target.len() - start).next_multiple_of(ENTRY_ALIGNMENT), 0);
}

fn push_words(target: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        target.extend_from_slice(&word.to_le_bytes());
    }
}

fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..index * 4 + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn long(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * 8..index * 8 + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Bytes of the payload of the entry with this header, with the zeros after it.
pub(super) fn padded(header: &[u8; ENTRY_HEADER]) -> usize {
    word(header, 2).map_or(0, |length| (length as usize).next_multiple_of(ENTRY_ALIGNMENT))
}

/// `first last`, in decimal.
fn region(text: &str) -> Option<(OpNumber, OpNumber)> {
    let (first, last) = text.split_once(' ')?;
    Some((OpNumber(first.parse().ok()?), OpNumber(last.parse().ok()?)))
}

/// Collects entries into tables and header texts.
#[derive(Debug)]
pub(super) struct Collector {
    pub tables: Tables,
    pub header: Header,
}

impl Collector {
    /// Takes one entry, all of it and nothing else. `None` if it makes no sense.
    pub fn take(&mut self, entry: &[u8]) -> Option<()> {
        let (header, rest) = entry.split_at_checked(ENTRY_HEADER)?;
        let (kind, id, length) = (word(header, 0)?, word(header, 1)?, word(header, 2)? as usize);
        if word(header, 3)? != 0 {
            return None;
        }
        let payload = rest.get(..length)?;
        let tables = &mut self.tables;
        match kind {
            STRING => {
                expect_id(id, tables.strings.len())?;
                tables.strings.push(std::str::from_utf8(payload).ok()?.to_owned());
            }
            FRAME => {
                expect_id(id, tables.frames.len())?;
                let frame = self.frame(payload)?;
                self.tables.frames.push(frame);
            }
            SITE => {
                expect_id(id, tables.sites.len())?;
                let site = self.site(payload)?;
                self.tables.sites.push(site);
            }
            SHAPE => {
                expect_id(id, tables.shapes.len())?;
                tables.shapes.push(shape(payload)?);
            }
            VISIBLE_STREAM => {
                let visible = self.visible_stream(id, payload)?;
                self.tables.visible_streams.push(visible);
            }
            PLACEMENT => {
                let (frame, placement) = self.placement(id, payload)?;
                self.tables.placements.insert(frame, placement);
            }
            HEADER_TEXT => {
                let text = std::str::from_utf8(payload).ok()?.to_owned();
                match id {
                    0 => self.header.command = text,
                    1 => self.header.directory = text,
                    2 => self.header.versions = text,
                    3 => self.header.region = Some(region(&text)?),
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn frame(&self, payload: &[u8]) -> Option<Frame> {
        if payload.len() != 28 {
            return None;
        }
        let frame = Frame {
            file: StringId(word(payload, 0)?),
            function: StringId(word(payload, 1)?),
            line: word(payload, 2)?,
            end_line: word(payload, 3)?,
            column: word(payload, 4)?,
            end_column: word(payload, 5)?,
            origin: match word(payload, 6)? {
                0 => FrameOrigin::User,
                1 => FrameOrigin::Library,
                _ => return None,
            },
        };
        let strings = self.tables.strings.len();
        (frame.file.index() < strings && frame.function.index() < strings).then_some(frame)
    }

    fn site(&self, payload: &[u8]) -> Option<Vec<FrameId>> {
        if !payload.len().is_multiple_of(4) {
            return None;
        }
        let frames = self.tables.frames.len();
        (0..payload.len() / 4)
            .map(|index| word(payload, index).map(FrameId).filter(|frame| frame.index() < frames))
            .collect()
    }

    fn placement(&self, reach: u32, payload: &[u8]) -> Option<(FrameId, Placement)> {
        if payload.len() != 8 {
            return None;
        }
        let frame = FrameId(word(payload, 0)?);
        let placement = Placement { line: word(payload, 1)?, reach: Reach::from_number(reach)? };
        (frame.index() < self.tables.frames.len() && placement.line > 0).then_some((frame, placement))
    }

    fn visible_stream(&self, binding: u32, payload: &[u8]) -> Option<VisibleStream> {
        if payload.len() != 12 {
            return None;
        }
        let visible = VisibleStream {
            frame: FrameId(word(payload, 0)?),
            stream: StreamId(word(payload, 1)?),
            expression: StringId(word(payload, 2)?),
            binding: Binding::from_number(binding),
        };
        let known = visible.frame.index() < self.tables.frames.len()
            && visible.expression.index() < self.tables.strings.len();
        known.then_some(visible)
    }
}

fn expect_id(id: u32, next: usize) -> Option<()> {
    (id as usize == next).then_some(())
}

/// Most dimensions of a shape. Tensors have fewer (64 in torch), and shapes are compared dimension by dimension.
pub const MOST_DIMENSIONS: usize = 128;

fn shape(payload: &[u8]) -> Option<Shape> {
    if payload.len() % 16 != 8 {
        return None;
    }
    let dimensions = (0..payload.len() / 16)
        .map(|index| {
            let (size, stride) = (long(payload, 1 + 2 * index)?, long(payload, 2 + 2 * index)?);
            (size >= 2 && stride > 0).then_some(ShapeDimension { size, stride })
        })
        .collect::<Option<Vec<_>>>()?;
    let run = long(payload, 0)?;
    let whole = dimensions.iter().try_fold(run, |length, dimension| {
        length.checked_add(dimension.stride.checked_mul(dimension.size - 1)?)
    });
    (dimensions.len() <= MOST_DIMENSIONS && whole.is_some()).then_some(Shape { run, dimensions })
}
