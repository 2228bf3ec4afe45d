//! NCCL's operations, passed on to NVIDIA's library and recorded.
//!
//! Only what touches memory is here, and groups, at whose end it begins. What NCCL does besides (its own threads, its own
//! streams, memory of other processes) is not recorded: to this process an operation is work of the stream that it
//! was given, on the buffers that it was given.

use std::cell::RefCell;
use std::ffi::{CStr, c_int};

use streamsan_record::Recorder;
use streamsan_record::collectives::{CallPlace, Collective, CollectiveCall, Rank, element_bytes};

use crate::recording::{begin, report};
use crate::streams::{Stream, stream as resolved};

/// `ncclResult_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    /// There is no such function in this process.
    const SYSTEM_ERROR: Self = Self(2);
    /// The call goes on without its caller.
    const IN_PROGRESS: Self = Self(7);

    fn has_begun(self) -> bool {
        matches!(self, Self::SUCCESS | Self::IN_PROGRESS)
    }
}

/// The function of this name that would have been called without this library.
pub fn function(name: &CStr) -> Option<usize> {
    // SAFETY: C strings; NVIDIA's library is only looked for, not loaded.
    let found = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if next.is_null() {
            // Not among the libraries that all can see, but loaded by who calls.
            let library = libc::dlopen(c"libnccl.so.2".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() { next } else { libc::dlsym(library, name.as_ptr()) }
        } else {
            next
        }
    };
    (!found.is_null()).then_some(found as usize)
}

/// Calls the function of this name with these arguments.
macro_rules! nccl {
    ($name:ident($($value:expr => $kind:ty),*)) => {{
        static ADDRESS: ::std::sync::OnceLock<Option<usize>> = ::std::sync::OnceLock::new();
        let name = const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no zero byte"),
            }
        };
        match ADDRESS.get_or_init(|| function(name)) {
            None => Status::SYSTEM_ERROR,
            Some(address) => {
                // SAFETY: NCCL's function of this name has this signature.
                let function: unsafe extern "C" fn($($kind),*) -> Status =
                    unsafe { std::mem::transmute(*address) };
                // SAFETY: the arguments are those that our own caller gave for the same function, or places of ours.
                unsafe { function($($value),*) }
            }
        }
    }};
}

/// What a call asks for, to be recorded when it begins.
struct Asked {
    what: Collective,
    send: u64,
    receive: u64,
    bytes: u64,
    rank: Rank,
    /// As it was at the call: at the end of a group another device may be current.
    stream: Stream,
    place: CallPlace,
}

impl Asked {
    fn record(&self, recorder: &'static Recorder) {
        let touched = self.what.touches(self.send, self.receive, self.bytes, self.rank);
        let (handle, device) = (self.stream.handle, self.stream.device);
        let call = CollectiveCall { stream: handle, device, name: self.what.name(), touched: &touched };
        recorder.collective(&call, self.place);
    }
}

#[derive(Default)]
struct Group {
    depth: u32,
    waiting: Vec<Asked>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// What all operations have among their arguments.
struct Arguments {
    send: u64,
    receive: u64,
    count: usize,
    data_type: c_int,
    communicator: u64,
    stream: u64,
}

/// Which rank this process is. To be asked before an operation: one that does not hold its caller leaves the communicator
/// busy, and then NCCL refuses to say.
fn rank_in(communicator: u64) -> Option<Rank> {
    let (mut own, mut all) = (0, 0);
    let known = nccl!(ncclCommUserRank(communicator => u64, &raw mut own => *mut c_int)) == Status::SUCCESS
        && nccl!(ncclCommCount(communicator => u64, &raw mut all => *mut c_int)) == Status::SUCCESS;
    known.then(|| Rank { own: own.cast_unsigned(), all: all.cast_unsigned() })
}

/// Records an operation that was asked for, now or at the end of the thread's group. One that is in progress counts as
/// asked for: it is given to its stream before the communicator is ready again, for which the program has to wait.
fn asked(status: Status, what: Collective, rank: Option<Rank>, arguments: &Arguments) -> Status {
    let Arguments { send, receive, count, data_type, stream, .. } = *arguments;
    let (Some(element), Some(rank), true) = (element_bytes(data_type), rank, status.has_begun()) else {
        if status.has_begun() {
            report(|recorder| recorder.unsupported(what.name()));
        }
        return status;
    };
    let bytes = (count as u64).saturating_mul(element);
    report(|recorder| {
        let stream = resolved(recorder, stream);
        let asked = Asked { what, send, receive, bytes, rank, stream, place: recorder.call_place() };
        // A thread that ends, and destroys its communicators, has no group any more.
        let in_group = GROUP.try_with(|group| group.borrow().depth > 0).unwrap_or(false);
        if in_group {
            GROUP.with_borrow_mut(|group| group.waiting.push(asked));
        } else {
            asked.record(recorder);
        }
    });
    status
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> Status {
    let status = nccl!(ncclGroupStart());
    if status == Status::SUCCESS {
        let _ended = GROUP.try_with(|group| group.borrow_mut().depth += 1);
    }
    status
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> Status {
    let status = nccl!(ncclGroupEnd());
    let waiting = GROUP.try_with(|group| {
        let mut group = group.borrow_mut();
        group.depth = group.depth.saturating_sub(1);
        if group.depth == 0 { std::mem::take(&mut group.waiting) } else { Vec::new() }
    });
    let waiting = waiting.unwrap_or_default();
    if status.has_begun() && !waiting.is_empty() {
        report(|recorder| waiting.iter().for_each(|asked| asked.record(recorder)));
    }
    status
}

/// Exports an operation: its arguments in NCCL's order, what it is, and which of them are which.
macro_rules! operation {
    ($name:ident($($value:ident: $kind:ty),*), $what:expr, $arguments:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($value: $kind),*) -> Status {
            begin();
            let arguments = $arguments;
            let rank = rank_in(arguments.communicator);
            let status = nccl!($name($($value => $kind),*));
            asked(status, $what, rank, &arguments)
        }
    };
}

operation!(
    ncclAllReduce(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        operator: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::AllReduce,
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclReduceScatter(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        operator: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::ReduceScatter,
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclReduce(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        operator: c_int,
        root: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Reduce { root: root.cast_unsigned() },
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclBroadcast(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        root: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Broadcast { root: root.cast_unsigned() },
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclBcast(
        buffer: u64,
        count: usize,
        data_type: c_int,
        root: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Broadcast { root: root.cast_unsigned() },
    Arguments { send: buffer, receive: buffer, count, data_type, communicator, stream }
);
operation!(
    ncclAllGather(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::AllGather,
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclAlltoAll(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::AllToAll,
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclGather(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        root: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Gather { root: root.cast_unsigned() },
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclScatter(
        send: u64,
        receive: u64,
        count: usize,
        data_type: c_int,
        root: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Scatter { root: root.cast_unsigned() },
    Arguments { send, receive, count, data_type, communicator, stream }
);
operation!(
    ncclSend(
        buffer: u64,
        count: usize,
        data_type: c_int,
        peer: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Send,
    Arguments { send: buffer, receive: 0, count, data_type, communicator, stream }
);
operation!(
    ncclRecv(
        buffer: u64,
        count: usize,
        data_type: c_int,
        peer: c_int,
        communicator: u64,
        stream: u64
    ),
    Collective::Receive,
    Arguments { send: 0, receive: buffer, count, data_type, communicator, stream }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_a_call_fails_and_no_group_is_open() {
        assert_eq!(ncclGroupStart(), Status::SYSTEM_ERROR);
        assert_eq!(GROUP.with_borrow(|group| group.depth), 0);
        assert_eq!(ncclAllGather(0, 0, 1, 7, 0, 0), Status::SYSTEM_ERROR);
        assert_eq!(ncclGroupEnd(), Status::SYSTEM_ERROR);
    }
}
