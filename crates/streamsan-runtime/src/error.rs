//! Errors of the runtime.

use std::fmt;

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No memory was left.
    OutOfMemory {
        /// `device memory` or `page-locked host memory`.
        space: &'static str,
        /// Bytes that were asked for.
        wanted: usize,
        /// Bytes that are in use.
        used: usize,
        /// Bytes that may be used; 0 if that is not known.
        limit: usize,
    },
    /// An operation failed; its stream does nothing any more.
    Operation {
        /// The stream's name.
        stream: String,
        /// The operation's name.
        operation: String,
        /// What it said.
        message: String,
    },
    /// Two lengths that must be equal are not.
    Length {
        /// Elements of the source.
        from: usize,
        /// Elements of the target.
        to: usize,
    },
    /// Things of two devices were used together.
    OtherDevice,
    /// There is no such device.
    NoDevice {
        /// What the driver said.
        reason: String,
    },
    /// Memory that is there could not be page-locked.
    NotPageLocked {
        /// Its size.
        bytes: usize,
        /// What the driver said.
        reason: String,
    },
    /// No thread could be started for a stream.
    NoThread {
        /// What the system said.
        reason: String,
    },
    /// An operation waited for its own device.
    InsideOperation,
    /// The back end cannot do this.
    Unsupported {
        /// What.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { space, wanted, used, limit } => write!(
                formatter,
                "out of {space}: {wanted} bytes wanted, {used} of {limit} in use: use fewer or smaller buffers, or raise the limit"
            ),
            Self::Operation { stream, operation, message } => {
                write!(formatter, "operation `{operation}` in stream `{stream}` failed: {message}")
            }
            Self::Length { from, to } => {
                write!(formatter, "lengths differ: {from} elements cannot be copied to {to}")
            }
            Self::OtherDevice => formatter.write_str(
                "a buffer or stream of another device: all parts of an operation must be of one device",
            ),
            Self::NotPageLocked { bytes, reason } => write!(
                formatter,
                "{bytes} bytes of host memory cannot be page-locked: {reason}: give them to a pipeline that copies them, or register fewer"
            ),
            Self::NoThread { reason } => {
                write!(formatter, "no thread for a stream: {reason}: use fewer streams at a time")
            }
            Self::InsideOperation => formatter.write_str(
                "an operation cannot wait for its own device, since it could wait for itself: wait outside of it",
            ),
            Self::NoDevice { reason } => write!(formatter, "no CUDA device can be used: {reason}"),
            Self::Unsupported { what } => write!(formatter, "this back end cannot {what}"),
        }
    }
}

impl std::error::Error for Error {}
