//! Why recording cannot start.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why recording cannot start.
#[derive(Debug)]
pub enum RecordError {
    /// The trace file cannot be made or written.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This process is recorded already.
    AlreadyStarted,
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } if source.kind() == io::ErrorKind::AlreadyExists => write!(
                formatter,
                "cannot write the trace {}: the file exists; remove it, or name another one",
                path.display()
            ),
            Self::File { path, source } => {
                write!(formatter, "cannot write the trace {}: {source}", path.display())
            }
            Self::AlreadyStarted => formatter.write_str("this process is recorded already"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::AlreadyStarted => None,
        }
    }
}
