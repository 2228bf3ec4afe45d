//! What the preloaded library tells the recorder about a runtime call.

use std::path::PathBuf;

use streamsan_trace::{CaptureKind, OpKind};

/// How to start recording.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// Where the trace goes. An existing file is replaced.
    pub path: PathBuf,
    /// What is recorded.
    pub capture: CaptureKind,
    /// How many devices the process sees.
    pub devices: u32,
}

/// Which shared library made a runtime call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// `libtorch_python`: Python's own streams and events.
    TorchPython,
    /// `libc10_cuda`: the device allocator, `torch.Event`, and the autograd engine's events.
    C10Cuda,
    /// `libtorch_cuda`: kernels, copies, the pinned allocator.
    TorchCuda,
    /// Anything else.
    Other,
}

/// What a host wait waits for, by raw handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOn {
    /// The last record of this event.
    Event(u64),
    /// The stream with this handle (0: the legacy default stream) of this device.
    Stream(u64, u32),
    /// All streams of this device.
    Device(u32),
}

/// Which bytes a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLayout {
    /// That many bytes in one piece.
    Linear {
        /// Bytes.
        bytes: u64,
    },
    /// `height` rows of `width` bytes.
    Pitched {
        /// Bytes of a row.
        width: u64,
        /// Rows.
        height: u64,
        /// Bytes from one row of the destination to the next.
        destination_pitch: u64,
        /// Bytes from one row of the source to the next.
        source_pitch: u64,
    },
}

/// A copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyCall<'a> {
    /// The stream's raw handle; 0 is the legacy default stream of `device`.
    pub stream: u64,
    /// The calling thread's current device.
    pub device: u32,
    /// First byte written.
    pub destination: u64,
    /// First byte read.
    pub source: u64,
    /// How many bytes.
    pub layout: CopyLayout,
    /// Which way.
    pub kind: OpKind,
    /// Whether the call returned only when the copy was done. The host then knows that all work issued to the
    /// stream so far has finished.
    pub blocking: bool,
    /// Name of the operation if the thread's context has none, such as `memcpy HtoD`.
    pub label: &'a str,
}

/// A memset of `height` rows of `width` bytes, `pitch` bytes apart.
#[derive(Clone, Copy, Debug)]
pub struct MemsetCall {
    /// The stream's raw handle; 0 is the legacy default stream of `device`.
    pub stream: u64,
    /// The calling thread's current device.
    pub device: u32,
    /// First byte written.
    pub address: u64,
    /// Bytes from one row to the next; without meaning if `height` is 1.
    pub pitch: u64,
    /// Bytes of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Whether the call returned only when it was done.
    pub blocking: bool,
}
