//! What the recorder keeps for one host thread: its chunk, its context, and what it holds back.

use std::collections::{HashMap, HashSet};

use streamsan_trace::file::layout::{CHUNK, ChunkKind, FIRST_CHUNK, chunk_length};
use streamsan_trace::file::record::{RECORD, encode, record_count, unused};
use streamsan_trace::{Access, EventId, EventKind, LabelId, OpNumber, SiteId, StreamId, ThreadId};

use crate::WaitOn;
use crate::blocks::Freed;
use crate::table::RawAccess;
use crate::works::WorkCall;
use crate::writer::{Chunk, Stopped, TraceFile};

/// What the thread's calls are attributed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    pub site: SiteId,
    pub forward_site: SiteId,
    /// 0: the call's own name.
    pub label: LabelId,
    /// Whether an operator is around that is recorded with all that it touches on its device.
    pub whole: bool,
    /// Counts the calls that set it.
    pub version: u64,
}

/// A record or wait that is written when it is known whose it is and where in the program it was made: the
/// callback that tells comes after the runtime call.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Its number, taken at the call.
    pub number: u64,
    /// The site at the call.
    pub site: SiteId,
    /// [`Context::version`] at the call.
    pub version: u64,
    /// Whether a callback follows for certain.
    pub certain: bool,
    pub call: HeldCall,
}

/// The call that is held.
#[derive(Clone, Copy, Debug)]
pub enum HeldCall {
    /// An event record.
    Record {
        handle: u64,
        stream: StreamId,
        /// Whether it can be the device allocator's.
        perhaps_allocator: bool,
        /// The freed block that it guards if it is.
        guarded: Option<Freed>,
    },
    /// A wait by a stream.
    Wait { handle: u64, event: EventId, stream: StreamId },
}

/// The state of one host thread. Only that thread fills it; others write what it holds back for too long.
#[derive(Debug)]
pub struct Thread {
    pub id: ThreadId,
    pub context: Context,
    /// Whether Python or autograd ran here: its waits are the program's.
    pub runs_python: bool,
    pub held: Option<Held>,
    /// A record that another thread has settled as the allocator's: a callback may still say that it is the program's.
    pub late: Option<Held>,
    /// The block freed last, while the event records of the allocator that follow are its guards.
    pub freed: Option<Freed>,
    /// The stream of the collective enqueued last, until its end is recorded.
    pub collective: Option<StreamId>,
    /// The event recorded at the end of a collective last; 0 if there was none.
    pub collective_end: u64,
    /// The method of a collective's work object that it is in.
    pub work: Option<WorkCall>,
    /// What torch said it is about to wait for.
    pub announced: Option<WaitOn>,
    /// A host wait that was entered, with the number taken then.
    pub begun: Option<(u64, WaitOn)>,
    /// A blocking operation that was entered, with the numbers taken then for it and for its wait.
    pub entered: Option<(u64, u64)>,
    /// How often torch's allocator was told to use the pool of a graph here, and not yet to stop it.
    pub graph_memory: u32,
    /// Unsupported calls and kernels that were reported from here, by site.
    pub reported: HashMap<SiteId, HashSet<String>>,
    /// What kernels that are launched now touch, as the program says.
    pub annotation: Option<Vec<RawAccess>>,
    /// How many were launched since that was said.
    pub annotated: u64,
    /// Kept for its capacity.
    pub accesses: Vec<Access>,
    chunk: Option<Chunk>,
    /// The last number written here: numbers rise within a thread.
    last_number: u64,
}

impl Thread {
    pub fn new(id: ThreadId) -> Self {
        Self {
            id,
            context: Context::default(),
            runs_python: false,
            held: None,
            late: None,
            freed: None,
            collective: None,
            collective_end: 0,
            work: None,
            announced: None,
            begun: None,
            entered: None,
            graph_memory: 0,
            reported: HashMap::new(),
            annotation: None,
            annotated: 0,
            accesses: Vec::new(),
            chunk: None,
            last_number: 0,
        }
    }

    /// Unmaps the chunk. A later event starts a small one.
    pub fn leave_chunk(&mut self) {
        self.chunk = None;
    }

    /// Makes room for `records` records. Numbers are taken after this, so that no chunk holds a number that is
    /// smaller than the counter was when it was made.
    pub fn make_room(&mut self, file: &TraceFile, records: usize) -> Result<(), Stopped> {
        self.give_up_wait();
        let bytes = records * RECORD;
        match &self.chunk {
            Some(chunk) if chunk.has_room_for(bytes) && !file.is_stopped() => Ok(()),
            chunk => {
                let usual = if chunk.is_some() { CHUNK } else { FIRST_CHUNK };
                let length = chunk_length(bytes, usual);
                self.chunk = Some(file.allocate(ChunkKind::Records, self.id.0, length)?);
                Ok(())
            }
        }
    }

    /// Writes an event for which there is room, with a number that was taken for it.
    pub fn put(&mut self, number: u64, site: SiteId, kind: &EventKind, accesses: &[Access]) {
        let count = record_count(kind, accesses.len());
        let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.has_room_for(count * RECORD)) else {
            return;
        };
        if number <= self.last_number {
            return;
        }
        self.last_number = number;
        encode(OpNumber(number), site, kind, accesses, chunk.records(count));
        chunk.commit(count * RECORD);
    }

    /// Writes that nothing came of a number that was taken and has room: whoever reads along would wait for it.
    pub fn skip(&mut self, number: u64) {
        let chunk = self.chunk.as_mut().filter(|chunk| chunk.has_room_for(RECORD));
        if let Some(chunk) = chunk.filter(|_| number > self.last_number) {
            self.last_number = number;
            chunk.records(1)[0] = unused(OpNumber(number));
            chunk.commit(RECORD);
        }
    }

    /// A host wait or a blocking operation that was entered did not succeed.
    pub fn give_up_wait(&mut self) {
        if let Some((number, _)) = self.begun.take() {
            self.skip(number);
        }
        if let Some((number, wait)) = self.entered.take() {
            self.skip(number);
            self.skip(wait);
        }
    }

    /// Takes the next number for an event and writes it, if recording goes on.
    pub fn emit(&mut self, file: &TraceFile, kind: &EventKind, accesses: &[Access]) {
        if self.make_room(file, record_count(kind, accesses.len())).is_ok() {
            let number = file.next_number();
            self.put(number, self.context.site, kind, accesses);
        }
    }
}
