//! The operations: with one rank, copies within its memory.

use std::ffi::c_int;

use streamsan_record::collectives::{CallPlace, Collective, CollectiveCall, element_bytes};

use super::communicators::with;
use super::groups::enqueue;
use super::movement::Movement;
use super::scaling::scale_of;
use super::{Done, Failure, Status, answer};
use crate::call::{ask_recorder, record};
use crate::capture;
use crate::delays::{self, Late, Source};
use crate::graphs::Work;
use crate::streams::{Stream, enqueue_at};
use crate::transfers::Rows;

/// An operation as a call asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What it does.
    pub movement: Movement,
    /// In which group.
    pub communicator: u64,
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
        let movement = Movement { what: *what, name, send: *send, receive: *receive, bytes, scale };
        enqueue(Request { movement, communicator: *communicator, stream: *stream, place })
    }
}

impl Request {
    /// What is sent to oneself and received: in the stream of the receive, since what is received is used after it.
    pub fn pair(send: &Self, receive: &Self) -> Result<Self, Failure> {
        Ok(Self { movement: Movement::pair(&send.movement, &receive.movement)?, ..*receive })
    }

    /// Enqueues the operation in its stream.
    pub fn run(&self) -> Done {
        let movement = self.movement;
        movement.check()?;
        if let Some(stream) = capture::add(self.stream, || Work::Collective(movement))? {
            self.record(stream);
            return Ok(());
        }
        let (stream, chain, position) = enqueue_at(self.stream)?;
        self.record(stream);
        if let (true, Some((destination, source))) = (delays::is_on(), movement.copy()) {
            let rows = Rows { width: movement.bytes, height: 1 };
            let source = Source::Memory(source, movement.bytes);
            let destination = (destination, movement.bytes);
            delays::put_aside(Late { chain, position, destination, source, rows })?;
        } else {
            delays::before_work_of(stream)?;
            // SAFETY: checked. That these bytes are the program's own, the program says, as for NCCL.
            unsafe { movement.run() };
        }
        Ok(movement.keep_pages(stream)?)
    }

    fn record(&self, stream: Stream) {
        let Some(place) = self.place else { return };
        let touched = self.movement.touched();
        let name = self.movement.name;
        let call = CollectiveCall { stream: stream.handle, device: stream.device, name, touched: &touched };
        record(|recorder| recorder.collective(&call, place));
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
