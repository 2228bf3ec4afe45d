//! NCCL's operations: their names, the bytes they touch, and their record.
//!
//! Numbers and shapes of the calls are those of NCCL's public interface, which has kept them since 2.4.

use streamsan_trace::{Access, AccessMode, OpKind, ShapeId, StringId};

use crate::Recorder;
use crate::operations::sound;
use crate::thread::Context;

/// One of NCCL's operations. Ranks are positions in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// All ranks get the reduced buffers of all.
    AllReduce,
    /// All ranks get the root's buffer.
    Broadcast {
        /// The rank that gives.
        root: u32,
    },
    /// The root gets the reduced buffers of all.
    Reduce {
        /// The rank that gets.
        root: u32,
    },
    /// All ranks get the buffers of all, one after the other.
    AllGather,
    /// Each rank gets its part of the reduced buffers of all.
    ReduceScatter,
    /// Each rank gets its part of the buffers of all.
    AllToAll,
    /// The root gets the buffers of all.
    Gather {
        /// The rank that gets.
        root: u32,
    },
    /// Each rank gets its part of the root's buffer.
    Scatter {
        /// The rank that gives.
        root: u32,
    },
    /// A buffer goes to another rank.
    Send,
    /// A buffer comes from another rank.
    Receive,
}

/// Which rank of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// This process's, from 0.
    pub own: u32,
    /// All of them.
    pub all: u32,
}

/// Bytes that one operation touches on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// First byte.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How.
    pub mode: AccessMode,
}

/// Bytes of one element of NCCL's data type number `data_type`, or `None` if there is no such type.
pub const fn element_bytes(data_type: i32) -> Option<u64> {
    match data_type {
        // Signed, unsigned, and the two of eight-bit floating point.
        0 | 1 | 10 | 11 => Some(1),
        // Half, bfloat16.
        6 | 9 => Some(2),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}

impl Collective {
    /// The name that torch's profiler gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "nccl:all_reduce",
            Self::Broadcast { .. } => "nccl:broadcast",
            Self::Reduce { .. } => "nccl:reduce",
            Self::AllGather => "nccl:all_gather",
            Self::ReduceScatter => "nccl:reduce_scatter",
            Self::AllToAll => "nccl:all_to_all",
            Self::Gather { .. } => "nccl:gather",
            Self::Scatter { .. } => "nccl:scatter",
            Self::Send => "nccl:send",
            Self::Receive => "nccl:recv",
        }
    }

    /// Bytes of the buffer that is sent and of the one that is received into, on the ranks that have them, when the
    /// call names `bytes` bytes.
    pub const fn sizes(self, bytes: u64, all: u32) -> (u64, u64) {
        let whole = bytes.saturating_mul(all as u64);
        match self {
            Self::AllReduce | Self::Broadcast { .. } | Self::Reduce { .. } => (bytes, bytes),
            Self::AllGather | Self::Gather { .. } => (bytes, whole),
            Self::ReduceScatter | Self::Scatter { .. } => (whole, bytes),
            Self::AllToAll => (whole, whole),
            Self::Send => (bytes, 0),
            Self::Receive => (0, bytes),
        }
    }

    /// What this rank touches: reads first. `bytes` is the count of the call times the size of an element; a
    /// buffer in which the operation works in place is read and then written.
    ///
    /// ```
    /// use streamsan_record::collectives::{Collective, Rank, Touched};
    /// use streamsan_trace::AccessMode;
    /// let touched = Collective::AllGather.touches(0x1000, 0x2000, 16, Rank { own: 1, all: 4 });
    /// assert_eq!(touched, [
    ///     Touched { address: 0x1000, bytes: 16, mode: AccessMode::Read },
    ///     Touched { address: 0x2000, bytes: 64, mode: AccessMode::Write },
    /// ]);
    /// ```
    pub fn touches(self, send: u64, receive: u64, bytes: u64, rank: Rank) -> Vec<Touched> {
        let (send_bytes, receive_bytes) = self.sizes(bytes, rank.all);
        let (is_giver, is_getter) = match self {
            Self::Broadcast { root } | Self::Scatter { root } => (root == rank.own, true),
            Self::Reduce { root } | Self::Gather { root } => (true, root == rank.own),
            _ => (true, true),
        };
        let read = Touched { address: send, bytes: send_bytes, mode: AccessMode::Read };
        let write = Touched { address: receive, bytes: receive_bytes, mode: AccessMode::Write };
        let in_place = is_giver && is_getter && send == receive;
        let mut touched = match self {
            // The root's buffer stays what it is.
            Self::Broadcast { .. } if in_place => vec![read],
            _ if in_place && send_bytes == receive_bytes => {
                vec![Touched { mode: AccessMode::Update, ..read }]
            }
            _ => [(is_giver, read), (is_getter, write)]
                .into_iter()
                .filter_map(|(is_there, touched)| is_there.then_some(touched))
                .collect(),
        };
        touched.retain(|touched| touched.bytes > 0);
        touched
    }
}

/// Where in the program a call was made whose work begins later, such as at the end of a group.
#[derive(Clone, Copy, Debug)]
pub struct CallPlace(Context);

/// An operation that was enqueued.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCall<'a> {
    /// The stream's raw handle; 0 is the legacy default stream of `device`.
    pub stream: u64,
    /// The communicator's device.
    pub device: u32,
    /// What it is called in reports.
    pub name: &'a str,
    /// The bytes it touches on this rank.
    pub touched: &'a [Touched],
}

impl Recorder {
    /// The place of the program that calls now.
    pub fn call_place(&self) -> CallPlace {
        self.locate(true);
        CallPlace(self.begin().context)
    }

    /// A collective was enqueued by a call that was made at `place`.
    pub fn collective(&self, call: &CollectiveCall<'_>, place: CallPlace) {
        let label = self.string(call.name);
        let mut thread = self.begin();
        let here = std::mem::replace(&mut thread.context, place.0);
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, call.stream, call.device);
        let accesses: Vec<Access> = call
            .touched
            .iter()
            .filter_map(|&Touched { address, bytes, mode }| {
                let (block, offset) = known.blocks.resolve(address)?;
                let (shape, argument) = (ShapeId(0), StringId(0));
                sound(Access { block, mode, offset, length: bytes, shape, argument })
            })
            .collect();
        drop(known);
        self.put_operation(&mut thread, stream, label, OpKind::Collective, false, &accesses);
        thread.context = here;
        thread.collective = Some(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: u64 = 0x1000;
    const RECEIVE: u64 = 0x9000;

    fn modes(collective: Collective, receive: u64, rank: Rank) -> Vec<(u64, u64, AccessMode)> {
        let touched = collective.touches(SEND, receive, 8, rank);
        touched.into_iter().map(|touched| (touched.address, touched.bytes, touched.mode)).collect()
    }

    #[test]
    fn a_rank_touches_what_the_operation_needs_of_it() {
        use AccessMode::{Read, Write};
        let (first, second) = (Rank { own: 0, all: 2 }, Rank { own: 1, all: 2 });
        let both = [(SEND, 8, Read), (RECEIVE, 8, Write)];
        assert_eq!(modes(Collective::AllReduce, RECEIVE, first), both);
        assert_eq!(modes(Collective::Broadcast { root: 0 }, RECEIVE, first), both);
        assert_eq!(modes(Collective::Broadcast { root: 0 }, RECEIVE, second), both[1..]);
        assert_eq!(modes(Collective::Reduce { root: 0 }, RECEIVE, first), both);
        assert_eq!(modes(Collective::Reduce { root: 0 }, RECEIVE, second), both[..1]);
        assert_eq!(modes(Collective::Send, 0, first), both[..1]);
        assert_eq!(modes(Collective::Receive, RECEIVE, first), both[1..]);
        let scattered = modes(Collective::ReduceScatter, RECEIVE, second);
        assert_eq!(scattered, [(SEND, 16, Read), (RECEIVE, 8, Write)]);
        let all = modes(Collective::AllToAll, RECEIVE, second);
        assert_eq!(all, [(SEND, 16, Read), (RECEIVE, 16, Write)]);
        assert_eq!(modes(Collective::Gather { root: 1 }, RECEIVE, first), both[..1]);
    }

    #[test]
    fn a_buffer_worked_on_in_place_is_touched_once() {
        let alone = Rank { own: 0, all: 1 };
        assert_eq!(modes(Collective::AllReduce, SEND, alone), [(SEND, 8, AccessMode::Update)]);
        assert_eq!(modes(Collective::Broadcast { root: 0 }, SEND, alone), [(SEND, 8, AccessMode::Read)]);
        assert_eq!(Collective::AllReduce.touches(SEND, RECEIVE, 0, alone), []);
    }
}
