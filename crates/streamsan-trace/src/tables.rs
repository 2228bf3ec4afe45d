//! Interned things: strings, frames, call stacks, shapes, and the streams a frame can name.

use crate::{FrameId, ShapeId, SiteId, StreamId, StringId};
use std::collections::BTreeMap;

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameOrigin {
    /// The user's.
    #[default]
    User = 0,
    /// A library's, the interpreter's or our own: folded in reports.
    Library = 1,
}

/// A source position in one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Path of the file as the interpreter knows it.
    pub file: StringId,
    /// Qualified name of the function.
    pub function: StringId,
    /// First line of the statement or call, from 1. 0 is not known.
    pub line: u32,
    /// Last line of it; equal to `line` if not known.
    pub end_line: u32,
    /// First column in bytes, from 1. 0 is not known.
    pub column: u32,
    /// One past the last column. 0 is not known.
    pub end_column: u32,
    /// Whose code.
    pub origin: FrameOrigin,
}

/// One dimension of a strided shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeDimension {
    /// How many steps. At least 2 in a normal shape.
    pub size: u64,
    /// Bytes from one step to the next. Positive in a normal shape.
    pub stride: u64,
}

/// Strided bytes: runs of `run` bytes at every combination of steps.
///
/// Normal form: dimensions sorted by falling stride, none of size 1 or stride 0, no two that can be merged,
/// and `run` as long as it can be. A shape in normal form without dimensions is contiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Bytes of one run.
    pub run: u64,
    /// The steps.
    pub dimensions: Vec<ShapeDimension>,
}

impl Shape {
    /// The normal form of a tensor's `sizes` and `strides` (in elements) with elements of `element` bytes,
    /// and the byte offset of the lowest element relative to the tensor's data pointer (negative strides
    /// lower it). `None` if the tensor has no elements.
    ///
    /// ```
    /// use streamsan_trace::{Shape, ShapeDimension};
    /// let (column, lowest) = Shape::from_tensor(&[4, 1], &[8, 1], 4).unwrap();
    /// assert_eq!((column.run, column.dimensions.as_slice(), lowest), (4, &[ShapeDimension { size: 4, stride: 32 }][..], 0));
    /// let (whole, _) = Shape::from_tensor(&[4, 8], &[8, 1], 4).unwrap();
    /// assert!(whole.is_contiguous() && whole.length() == 128);
    /// ```
    pub fn from_tensor(sizes: &[u64], strides: &[i64], element: u64) -> Option<(Self, i64)> {
        let mut lowest = 0_i64;
        let mut dimensions = Vec::with_capacity(sizes.len());
        for (&size, &stride) in sizes.iter().zip(strides) {
            if size == 0 {
                return None;
            }
            let step = stride.saturating_mul(element.cast_signed());
            if step < 0 {
                lowest = lowest.saturating_add(step.saturating_mul(size.cast_signed() - 1));
            }
            if size > 1 && step != 0 {
                dimensions.push(ShapeDimension { size, stride: step.unsigned_abs() });
            }
        }
        dimensions.sort_by(|a, b| b.stride.cmp(&a.stride).then(b.size.cmp(&a.size)));
        let mut shape = Self { run: element, dimensions };
        shape.merge();
        Some((shape, lowest))
    }

    /// Merges dimensions that continue each other, innermost first.
    fn merge(&mut self) {
        while let Some(last) = self.dimensions.last().copied() {
            if last.stride > self.run {
                break;
            }
            // Steps no longer than the run leave no hole, overlapping or not.
            self.run = self.run.saturating_add(last.stride.saturating_mul(last.size - 1));
            self.dimensions.pop();
        }
        let mut index = self.dimensions.len();
        while index >= 2 {
            let (outer, inner) = (self.dimensions[index - 2], self.dimensions[index - 1]);
            if inner.stride.checked_mul(inner.size) == Some(outer.stride) {
                self.dimensions[index - 2] =
                    ShapeDimension { size: outer.size.saturating_mul(inner.size), stride: inner.stride };
                self.dimensions.remove(index - 1);
            }
            index -= 1;
        }
    }

    /// Whether every byte of the bounding interval is touched.
    pub fn is_contiguous(&self) -> bool {
        self.dimensions.is_empty()
    }

    /// Length of the bounding interval in bytes.
    pub fn length(&self) -> u64 {
        self.dimensions.iter().fold(self.run, |length, dimension| {
            length.saturating_add(dimension.stride.saturating_mul(dimension.size.saturating_sub(1)))
        })
    }
}

/// An expression that names a stream in one user frame: `self.side` in the frame of line 41.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VisibleStream {
    /// The frame in which the expression holds.
    pub frame: FrameId,
    /// The stream it gives.
    pub stream: StreamId,
    /// The expression.
    pub expression: StringId,
    /// How long it gives this stream.
    pub binding: Binding,
}

/// How long an expression gives the stream that it gave when its frame was met first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Binding {
    /// Another one may be meant the next time: a parameter, the variable of a loop.
    #[default]
    Momentary = 0,
    /// Only the statement that makes the stream binds it: as long as that has made one stream.
    Created = 1,
    /// As long as the program runs.
    Lasting = 2,
}

impl Binding {
    /// From its number; one that is not known promises nothing.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Created,
            2 => Self::Lasting,
            _ => Self::Momentary,
        }
    }
}

/// Where code goes that is to run before what a frame does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The line before which it goes, from 1: the first one of the statement.
    pub line: u32,
    /// How the frame's place is reached from there.
    pub reach: Reach,
}

/// How often what a frame does runs after the line before its statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reach {
    /// Once.
    #[default]
    Once = 0,
    /// Perhaps several times, in a comprehension of the statement.
    Repeated = 1,
    /// Again in each turn, in the header of a loop: the line before it is not.
    Header = 2,
    /// When something calls or asks for it: the body of a lambda or of a generator expression.
    Later = 3,
}

impl Reach {
    /// From its number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Once, Self::Repeated, Self::Header, Self::Later].get(number as usize).copied()
    }

    /// Whether code before the line runs each time before the frame's place.
    #[must_use]
    pub fn is_after_line(self) -> bool {
        matches!(self, Self::Once | Self::Repeated)
    }
}

/// All interned things of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Strings by id; the first is empty.
    pub strings: Vec<String>,
    /// Frames by id.
    pub frames: Vec<Frame>,
    /// Call stacks by id, innermost frame first; the first is empty.
    pub sites: Vec<Vec<FrameId>>,
    /// Shapes by id; the first is contiguous.
    pub shapes: Vec<Shape>,
    /// Which frames can name which streams.
    pub visible_streams: Vec<VisibleStream>,
    /// Of frames whose statement begins on another line, or is not reached once from the line before it.
    pub placements: BTreeMap<FrameId, Placement>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            strings: vec![String::new()],
            frames: Vec::new(),
            sites: vec![Vec::new()],
            shapes: vec![Shape::default()],
            visible_streams: Vec::new(),
            placements: BTreeMap::new(),
        }
    }
}

impl Tables {
    /// The string, or the empty one if the id is unknown.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id.index()).map_or("", String::as_str)
    }

    /// The frames of a site, innermost first.
    pub fn stack(&self, site: SiteId) -> impl Iterator<Item = (FrameId, &Frame)> {
        let ids = self.sites.get(site.index()).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|&id| self.frames.get(id.index()).map(|frame| (id, frame)))
    }

    /// The innermost frame of user code, or the innermost frame if there is none.
    pub fn user_frame(&self, site: SiteId) -> Option<(FrameId, &Frame)> {
        self.stack(site)
            .find(|(_, frame)| frame.origin == FrameOrigin::User)
            .or_else(|| self.stack(site).next())
    }

    /// Where code goes that is to run before what the frame does. `None` if the frame is unknown.
    pub fn placement(&self, frame: FrameId) -> Option<Placement> {
        let line = self.frames.get(frame.index())?.line;
        let placement = self.placements.get(&frame).copied();
        Some(placement.unwrap_or(Placement { line, reach: Reach::Once }))
    }

    /// File and first line of the frame's statement: frames that have these in common run after the same line.
    pub fn statement(&self, frame: FrameId) -> Option<(StringId, u32)> {
        let file = self.frames.get(frame.index())?.file;
        Some((file, self.placement(frame)?.line))
    }

    /// The strided shape, or `None` for a contiguous access.
    pub fn shape(&self, id: ShapeId) -> Option<&Shape> {
        if id.0 == 0 { None } else { self.shapes.get(id.index()) }
    }

    /// Interns a string: a linear search, for builders of small traces.
    pub fn intern_string(&mut self, text: &str) -> StringId {
        let index = self.strings.iter().position(|known| known == text).unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        });
        StringId(index as u32)
    }

    /// Interns a shape; a contiguous one is id 0.
    pub fn intern_shape(&mut self, shape: Shape) -> ShapeId {
        if shape.is_contiguous() {
            return ShapeId(0);
        }
        let index = self.shapes.iter().position(|known| *known == shape).unwrap_or_else(|| {
            self.shapes.push(shape);
            self.shapes.len() - 1
        });
        ShapeId(index as u32)
    }

    /// Interns a frame.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let index = self.frames.iter().position(|known| *known == frame).unwrap_or_else(|| {
            self.frames.push(frame);
            self.frames.len() - 1
        });
        FrameId(index as u32)
    }

    /// Interns a call stack.
    pub fn intern_site(&mut self, stack: Vec<FrameId>) -> SiteId {
        let index = self.sites.iter().position(|known| *known == stack).unwrap_or_else(|| {
            self.sites.push(stack);
            self.sites.len() - 1
        });
        SiteId(index as u32)
    }
}
