//! The operations: with one rank, copies within its memory.

use std::ffi::c_int;

use streamsan_record::PointerKind;
use streamsan_record::collectives::{CallPlace, Collective, CollectiveCall, Rank, Touched, element_bytes};
use streamsan_trace::AccessMode;

use super::communicators::with;
use super::groups::enqueue;
use super::scaling::{Scale, scale_of};
use super::{Done, Failure, Status, answer};
use crate::call::{ask_recorder, record};
use crate::copies::{Rows, copy_rows};
use crate::delays::{self, Late, Source};
use crate::memory::is_device_memory;
use crate::pointers::kind_of;
use crate::protection::{copy_is_pending, view};
use crate::streams::enqueue_at;

/// The only rank there is.
const ALONE: Rank = Rank { own: 0, all: 1 };

/// An operation as a call asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Which.
    pub what: Collective,
    /// In which group.
    pub communicator: u64,
    name: &'static str,
    send: usize,
    receive: usize,
    bytes: usize,
    scale: Option<Scale>,
    stream: u64,
    place: Option<CallPlace>,
}

/// What the arguments of all operations say.
struct Arguments {
    what: Collective,
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    communicator: u64,
    stream: u64,
}

impl Arguments {
    /// Asks for the operation.
    fn enqueue(self, operator: Option<c_int>) -> Done {
        let name = self.what.name();
        let (Self { what, send, receive, communicator, stream, .. }, data_type) = (&self, self.data_type);
        with(*communicator, |_| Ok(()))?;
        let element = element_bytes(data_type)
            .ok_or_else(|| Failure::argument(format!("{name} was called with data type {data_type}")))?;
        let bytes = self
            .count
            .checked_mul(element as usize)
            .ok_or_else(|| Failure::argument(format!("{name} was called for more bytes than there are")))?;
        let scale = operator.map_or(Ok(None), |number| scale_of(*communicator, number, data_type))?;
        let place = ask_recorder(streamsan_record::Recorder::call_place);
        enqueue(Request {
            what: *what,
            communicator: *communicator,
            name,
            send: *send,
            receive: *receive,
            bytes,
            scale,
            stream: *stream,
            place,
        })
    }
}

impl Request {
    /// What is sent to oneself and received.
    pub fn pair(send: &Self, receive: &Self) -> Result<Self, Failure> {
        if send.bytes == receive.bytes {
            // In the stream of the receive: both have to have begun, and what is received is used after it.
            Ok(Self { what: Collective::AllToAll, name: "nccl:send and recv", send: send.send, ..*receive })
        } else {
            Err(Failure::usage(format!(
                "{} bytes are sent to oneself and {} received",
                send.bytes, receive.bytes
            )))
        }
    }

    /// Enqueues the operation in its stream.
    pub fn run(&self) -> Done {
        let mut touched = self.what.touches(self.send as u64, self.receive as u64, self.bytes as u64, ALONE);
        let factor = self.scale.and_then(|scale| scale.device_bytes());
        touched.extend(factor.map(|(address, bytes)| Touched {
            address: address as u64,
            bytes: bytes as u64,
            mode: AccessMode::Read,
        }));
        for one in &touched {
            self.check(one)?;
        }
        let (stream, chain, position) = enqueue_at(self.stream)?;
        if let Some(place) = self.place {
            let call = CollectiveCall {
                stream: stream.handle,
                device: stream.device,
                name: self.name,
                touched: &touched,
            };
            record(|recorder| recorder.collective(&call, place));
        }
        let rows = Rows { width: self.bytes, height: 1 };
        let own = |start: usize| (view(start), self.bytes);
        match self.scale {
            _ if self.bytes == 0 => {}
            Some(scale) => {
                delays::before_work_of(stream)?;
                // SAFETY: checked to be memory of the device, or page-locked: the program's own, as for NCCL.
                unsafe { scale.apply(own(self.receive).0, own(self.send).0, self.bytes) };
            }
            None if self.send == self.receive => {}
            None if delays::is_on() => delays::put_aside(Late {
                chain,
                position,
                destination: (self.receive, self.bytes),
                source: Source::Memory(self.send, self.bytes),
                rows,
            })?,
            // SAFETY: as above.
            None => unsafe { copy_rows(own(self.receive), own(self.send), rows) },
        }
        for one in touched {
            let (start, end) = (one.address as usize, (one.address + one.bytes) as usize);
            if kind_of(start)? == PointerKind::Pinned {
                copy_is_pending(stream, start, end, one.mode.writes());
            }
        }
        Ok(())
    }

    fn check(&self, touched: &Touched) -> Done {
        let (start, bytes) = (touched.address as usize, touched.bytes as usize);
        let fits = match kind_of(start)? {
            PointerKind::Device(_) => is_device_memory(start, bytes)?,
            PointerKind::Pinned => true,
            PointerKind::Pageable => false,
        };
        if fits {
            return Ok(());
        }
        Err(Failure::argument(format!(
            "the {bytes} bytes at {start:#x} of {} are not device memory",
            self.name
        )))
    }
}

/// The root of an operation, which must be a rank.
fn root(number: c_int) -> Result<u32, Failure> {
    match number {
        0 => Ok(0),
        _ => Err(Failure::argument(format!("rank {number} is not in a group of one process"))),
    }
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllReduce(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    operator: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    let what = Collective::AllReduce;
    answer(|| {
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(Some(operator))
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclReduceScatter(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    operator: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    let what = Collective::ReduceScatter;
    answer(|| {
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(Some(operator))
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclReduce(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    operator: c_int,
    to: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        let what = Collective::Reduce { root: root(to)? };
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(Some(operator))
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclBroadcast(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    from: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        let what = Collective::Broadcast { root: root(from)? };
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclBcast(
    buffer: usize,
    count: usize,
    data_type: c_int,
    from: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    ncclBroadcast(buffer, buffer, count, data_type, from, communicator, stream)
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllGather(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    let what = Collective::AllGather;
    answer(|| Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None))
}

#[unsafe(no_mangle)]
extern "C" fn ncclAlltoAll(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    let what = Collective::AllToAll;
    answer(|| Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None))
}

#[unsafe(no_mangle)]
extern "C" fn ncclGather(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    to: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        let what = Collective::Gather { root: root(to)? };
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclScatter(
    send: usize,
    receive: usize,
    count: usize,
    data_type: c_int,
    from: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        let what = Collective::Scatter { root: root(from)? };
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclSend(
    send: usize,
    count: usize,
    data_type: c_int,
    peer: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        root(peer)?;
        let (what, receive) = (Collective::Send, 0);
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None)
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclRecv(
    receive: usize,
    count: usize,
    data_type: c_int,
    peer: c_int,
    communicator: u64,
    stream: u64,
) -> Status {
    answer(|| {
        root(peer)?;
        let (what, send) = (Collective::Receive, 0);
        Arguments { what, send, receive, count, data_type, communicator, stream }.enqueue(None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{allocate, free};
    use crate::nccl::communicators::alone;
    use crate::nccl::groups::{ncclGroupEnd, ncclGroupStart};

    const INT8: c_int = 0;
    const SINGLE: c_int = 7;

    #[test]
    fn a_gather_of_one_is_a_copy_and_refuses_ordinary_memory() {
        let (communicator, memory) = (alone(), allocate(0, 64).expect("the default limit allows it"));
        // SAFETY: our own bytes, here and below.
        unsafe { (memory as *mut [u8; 4]).write([1, 2, 3, 4]) };
        assert_eq!(ncclAllGather(memory, memory + 8, 4, INT8, communicator, 0), Status::SUCCESS);
        // SAFETY: as above.
        assert_eq!(unsafe { ((memory + 8) as *const [u8; 4]).read() }, [1, 2, 3, 4]);
        let local = [0_u8; 4];
        let status = ncclAllGather(local.as_ptr() as usize, memory, 4, INT8, communicator, 0);
        assert_eq!(status, Status::INVALID_ARGUMENT);
        assert_eq!(ncclAllGather(memory, memory + 8, 4, 99, communicator, 0), Status::INVALID_ARGUMENT);
        let status = ncclBroadcast(memory, memory, 4, INT8, 1, communicator, 0);
        assert_eq!(status, Status::INVALID_ARGUMENT);
        assert_eq!(free(memory), Ok(()));
    }

    #[test]
    fn a_group_begins_at_its_end_and_sends_meet_receives() {
        let (communicator, memory) = (alone(), allocate(0, 64).expect("the default limit allows it"));
        // SAFETY: our own bytes, here and below.
        unsafe { (memory as *mut [f32; 2]).write([1.0, 2.0]) };
        let first = || unsafe { ((memory + 32) as *const f32).read() };
        assert_eq!(ncclGroupStart(), Status::SUCCESS);
        assert_eq!(ncclSend(memory, 2, SINGLE, 0, communicator, 0), Status::SUCCESS);
        assert_eq!(ncclRecv(memory + 32, 2, SINGLE, 0, communicator, 0), Status::SUCCESS);
        assert_eq!(first().to_bits(), 0);
        assert_eq!(ncclGroupEnd(), Status::SUCCESS);
        assert_eq!(first().to_bits(), 1.0_f32.to_bits());
        assert_eq!(ncclSend(memory, 2, SINGLE, 0, communicator, 0), Status::INVALID_USAGE);
        assert_eq!(ncclRecv(memory, 2, SINGLE, 0, communicator, 0), Status::INVALID_USAGE);
        assert_eq!(ncclGroupEnd(), Status::INVALID_USAGE);
        assert_eq!(free(memory), Ok(()));
    }
}
