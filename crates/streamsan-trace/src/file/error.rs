//! Why a file is no trace that can be read.

use std::fmt;
use std::io;

use super::layout::{OLDEST_VERSION, PAGE, VERSION};

/// Why a file is no trace that can be read.
///
/// Shown as a fragment that fits after "cannot read NAME: ". Damage after a good header is no error: the part
/// before it is kept and the trace gets a gap.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    Io(io::Error),
    /// The path is a directory.
    Directory,
    /// The path is a pipe, a device or a socket.
    NotAFile,
    /// The file has no bytes.
    Empty,
    /// The file does not start as a trace does.
    NotATrace,
    /// The file has a version that this build does not read.
    Version {
        /// The file's version.
        found: u32,
    },
    /// The file ends inside its header.
    HeaderCut {
        /// Where it ends, in bytes.
        length: usize,
    },
    /// A field of the header makes no sense.
    HeaderDamaged {
        /// Where the field is, in bytes.
        offset: usize,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// Something after the header makes no sense: told by readers that follow a file, which is otherwise a gap.
    Damaged {
        /// Where, in bytes.
        offset: u64,
        /// What, as a fragment.
        what: &'static str,
    },
    /// Another file is at the path, or the file was written anew.
    Replaced,
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(source) => match source.kind() {
                io::ErrorKind::NotFound => formatter.write_str("no such file"),
                io::ErrorKind::PermissionDenied => formatter.write_str("permission denied"),
                _ => write!(formatter, "{source}"),
            },
            Self::Directory => formatter.write_str("it is a directory; name a .sstrace file"),
            Self::NotAFile => formatter.write_str("it is no regular file; name a .sstrace file"),
            Self::Empty => {
                formatter.write_str("the file is empty; was the recorded program stopped before it began?")
            }
            Self::NotATrace => {
                formatter.write_str("it is not a streamsan trace (it does not start with SSTRACE)")
            }
            Self::Version { found } if *found > VERSION => write!(
                formatter,
                "it has version {found} of the format and this build reads up to {VERSION}; use a newer streamsan"
            ),
            Self::Version { found } => write!(
                formatter,
                "it has version {found} of the format and this build reads {OLDEST_VERSION} to {VERSION}; \
                 record it again"
            ),
            Self::HeaderCut { length } => {
                write!(formatter, "the file is cut off at byte {length}, inside its header of {PAGE} bytes")
            }
            Self::HeaderDamaged { offset, field, value } => {
                write!(formatter, "the header is damaged at byte {offset}: {field} is {value}")
            }
            Self::Damaged { offset, what } => write!(formatter, "it is damaged at byte {offset}: {what}"),
            Self::Replaced => formatter
                .write_str("another trace took its place while it was read; give each run a path of its own"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::IsADirectory { Self::Directory } else { Self::Io(source) }
    }
}
