//! What is kept of a profile: what ran on devices, what the host called, and which code it was in.

use crate::names::{NameId, Names};
use crate::spans::Span;
use std::collections::BTreeMap;

/// A profile that was read.
#[derive(Debug, Default)]
pub struct Profile {
    pub(crate) names: Names,
    /// What ran on devices, by its start.
    pub(crate) operations: Vec<Operation>,
    /// Calls of the CUDA runtime and driver, by their start.
    pub(crate) calls: Vec<Call>,
    /// Operators of torch, by their start.
    pub(crate) operators: Vec<Frame>,
    /// Python functions, by their start; empty if the profile has no stacks.
    pub(crate) functions: Vec<Frame>,
    /// The steps that the program announced (`prof.step()`), by their start.
    pub(crate) steps: Vec<Span>,
    /// Names of devices, by number.
    pub(crate) devices: BTreeMap<i64, String>,
    /// Categories that are not known, with how many events they have.
    pub(crate) unread: BTreeMap<String, u64>,
    /// Events of devices or calls that have no usable time.
    pub(crate) timeless: u64,
    /// All events of the file.
    pub(crate) events: u64,
}

/// What ran on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// When it ran.
    pub(crate) span: Span,
    pub(crate) device: i64,
    /// The number that CUPTI gives a stream; -1 if it is not said.
    pub(crate) stream: i64,
    /// Leads to the call that issued it.
    pub(crate) correlation: i64,
    pub(crate) kind: Kind,
    pub(crate) name: NameId,
    /// Of a copy.
    pub(crate) bytes: u64,
}

/// What an operation is, as far as it matters for what can overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Kernel,
    /// A kernel of NCCL: it waits for other devices.
    Collective,
    Memset,
    /// From the host to a device.
    Up(Memory),
    /// From a device to the host.
    Down(Memory),
    /// A copy within a device.
    Within,
    /// A copy between devices.
    Between,
    /// A copy within host memory.
    Host,
}

/// Host memory of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Memory {
    Pinned,
    Pageable,
    /// Managed, or not said.
    Other,
}

impl Kind {
    /// What a name such as `Memcpy HtoD (Pageable -> Device)` says.
    pub(crate) fn of_copy(name: &str) -> Self {
        let memory = || {
            let inside = name.split_once('(').map_or("", |(_, inside)| inside);
            if inside.contains("Pageable") {
                Memory::Pageable
            } else if inside.contains("Pinned") {
                Memory::Pinned
            } else {
                Memory::Other
            }
        };
        let direction = name.split_ascii_whitespace().nth(1).unwrap_or("");
        match direction {
            "HtoD" | "HtoA" => Self::Up(memory()),
            "DtoH" | "AtoH" => Self::Down(memory()),
            "PtoP" => Self::Between,
            "HtoH" => Self::Host,
            _ => Self::Within,
        }
    }

    /// What a kernel with this name is.
    pub(crate) fn of_kernel(name: &str) -> Self {
        if name.starts_with("nccl") { Self::Collective } else { Self::Kernel }
    }
}

/// A call that the host made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) span: Span,
    pub(crate) thread: NameId,
    pub(crate) name: NameId,
    pub(crate) correlation: i64,
}

/// An operator of torch or a Python function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) span: Span,
    pub(crate) thread: NameId,
    pub(crate) name: NameId,
}

impl Profile {
    /// Puts everything into the order of time: a file has it in any order.
    pub(crate) fn sort(&mut self) {
        self.operations.sort_by_key(|one| (one.span, one.device, one.stream, one.correlation));
        self.calls.sort_by_key(|one| (one.span.0, -one.span.1, one.thread, one.correlation));
        self.operators.sort_by_key(|one| (one.span.0, -one.span.1));
        self.functions.sort_by_key(|one| (one.span.0, -one.span.1));
        self.steps.sort_unstable();
    }

    /// Counts an event that is not read, by its category or what is odd about it.
    pub(crate) fn not_read(&mut self, what: &str) {
        if self.unread.contains_key(what) || self.unread.len() < 100 {
            let what: String = what.chars().take(60).collect();
            *self.unread.entry(what).or_default() += 1;
        }
    }

    /// The name of an id.
    pub(crate) fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Memory};

    #[test]
    fn copies_by_name() {
        for (name, kind) in [
            ("Memcpy HtoD (Pageable -> Device)", Kind::Up(Memory::Pageable)),
            ("Memcpy HtoD (Pinned -> Device)", Kind::Up(Memory::Pinned)),
            ("Memcpy HtoD (Managed -> Device)", Kind::Up(Memory::Other)),
            ("Memcpy DtoH (Device -> Pinned)", Kind::Down(Memory::Pinned)),
            ("Memcpy DtoH (Device -> Pageable)", Kind::Down(Memory::Pageable)),
            ("Memcpy DtoD (Device -> Device)", Kind::Within),
            ("Memcpy PtoP (Device -> Device)", Kind::Between),
            ("Memcpy HtoH (Pinned -> Pageable)", Kind::Host),
            ("Memcpy", Kind::Within),
            ("", Kind::Within),
        ] {
            assert_eq!(Kind::of_copy(name), kind, "{name}");
        }
        assert_eq!(Kind::of_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"), Kind::Collective);
        assert_eq!(Kind::of_kernel("void at::native::x"), Kind::Kernel);
    }
}
