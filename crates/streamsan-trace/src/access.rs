//! Accesses: which bytes of which block an operation touches, and how.

use crate::{BlockId, ShapeId, StringId};

/// How an operation touches bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AccessMode {
    /// The bytes are read.
    Read = 0,
    /// The bytes are overwritten and not read before.
    Write = 1,
    /// The bytes are read and then written, as by an in-place operation.
    Update = 2,
    /// Not known: the operation was handed a pointer to the bytes.
    Unknown = 3,
}

impl AccessMode {
    /// Whether the bytes may change.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether old bytes may be seen.
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Write)
    }

    /// The mode stored as `value`, if there is one.
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Update,
            3 => Self::Unknown,
            _ => return None,
        })
    }
}

/// One access of one operation.
///
/// `offset` and `length` are in bytes from the start of the block and bound everything that is touched.
/// With a `shape` other than 0 only the bytes of that shape, placed at `offset`, are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Whose bytes.
    pub block: BlockId,
    /// How they are touched.
    pub mode: AccessMode,
    /// First byte touched, counted from the start of the block.
    pub offset: u64,
    /// Length of the bounding interval in bytes. At least 1.
    pub length: u64,
    /// Which bytes of the interval, if not all.
    pub shape: ShapeId,
    /// The argument's name in the operation's schema, if known.
    pub argument: StringId,
}

impl Access {
    /// One past the last byte touched.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
