//! Why a profile cannot be read.

use std::fmt;

/// Why a file cannot be read as a profile, or says nothing about a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// The file cannot be opened.
    Open(String),
    /// It is not what it should be.
    Malformed {
        /// What is wrong: a lowercase fragment.
        reason: String,
        /// Where: bytes from the start of the JSON.
        offset: u64,
        /// Whether the JSON lies compressed in the file, so that the offset is one of the unpacked text.
        compressed: bool,
    },
    /// A profile of something that is not supported.
    Unsupported(String),
    /// A profile in which no GPU did anything. `calls`: how many CUDA calls the host made.
    Nothing {
        /// Calls of the CUDA runtime or driver in the profile.
        calls: u64,
    },
}

impl ImportError {
    /// What to do about it, if something can be said.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Open(_) => None,
            Self::Malformed { .. } => Some(
                "give a file that `torch.profiler` wrote: prof.export_chrome_trace(\"profile.json\"), or the .pt.trace.json of a trace handler",
            ),
            Self::Unsupported(_) => Some("record it on a CUDA device"),
            Self::Nothing { .. } => Some(
                "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]), and end it after the device is done",
            ),
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(reason) | Self::Unsupported(reason) => formatter.write_str(reason),
            Self::Malformed { reason, offset, compressed } => {
                let of = if *compressed { " of the unpacked text" } else { "" };
                write!(formatter, "{reason}, at byte {offset}{of}")
            }
            Self::Nothing { calls: 0 } => formatter.write_str("nothing ran on a GPU in this profile"),
            Self::Nothing { calls } => write!(
                formatter,
                "nothing ran on a GPU in this profile, though the host made {calls} CUDA calls"
            ),
        }
    }
}

impl std::error::Error for ImportError {}
