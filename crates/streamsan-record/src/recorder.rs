//! The recorder: one trace file, the handles and memory it knows, and the threads that write into it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use streamsan_trace::{CaptureKind, EventKind, GapReason, StreamId, StringId, ThreadId};

use crate::blocks::Blocks;
use crate::graphs::Graphs;
use crate::handles::{Events, NewStream, Streams};
use crate::intern::{Counts, Interner};
use crate::table::Locator;
use crate::thread::Thread;
use crate::writer::TraceFile;
use crate::{RecordError, StartOptions};

/// How long the torch layer may wait for the interpreter to say where the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Never = 0,
    Unlimited = 1,
    /// Some time: the holder of the interpreter may wait for the caller.
    Limited = 2,
}

/// Records what a process does with CUDA into one trace file.
///
/// Handles are CUDA's own, as `u64`; stream handle 0 is the legacy default stream of `device`. Calls are made
/// after the runtime call has succeeded, on the thread that made it, except where a method says otherwise.
#[derive(Debug)]
pub struct Recorder {
    /// Tells recorders of one process apart (tests have several).
    id: u64,
    pub(crate) file: TraceFile,
    /// Whether kernels are not run here.
    pub(crate) is_virtual: bool,
    known: Mutex<Known>,
    interner: Mutex<Interner>,
    /// How much is interned.
    pub(crate) counts: Arc<Counts>,
    /// By [`thread_key`]. Boxed and never removed, so that a thread can keep a pointer to its own.
    threads: Mutex<HashMap<u64, Box<Mutex<Thread>>>>,
    pub(crate) operations: AtomicU64,
    /// Whether a torch layer talks to the recorder: then calls without a callback are not the program's.
    pub(crate) layer: AtomicBool,
    /// How many page-locked allocations there are.
    pub(crate) page_locked: AtomicU64,
    /// While it is not 0, accesses seen as faults are not recorded.
    pub(crate) faults_ignored: AtomicU64,
    /// Sets the calling thread's context to where its program is.
    pub(crate) locator: OnceLock<Locator>,
    /// The calling thread's current device.
    current_device: OnceLock<fn() -> u32>,
}

/// Handles and memory. Ids are given while this is locked and numbers are taken after, so an event never has a
/// smaller number than the one that introduced its ids.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub streams: Streams,
    pub events: Events,
    pub blocks: Blocks,
    pub graphs: Graphs,
}

static RECORDERS: AtomicU64 = AtomicU64::new(1);
static THREAD_KEYS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    // Neither has a destructor, so both can be used while a thread ends.
    static THREAD_KEY: Cell<u64> = const { Cell::new(0) };
    /// The recorder used last by this thread, and the thread's state in it.
    static STATE: Cell<(u64, *const Mutex<Thread>)> = const { Cell::new((0, std::ptr::null())) };
}

/// Tells the process's recorder when its thread ends.
struct AtThreadEnd;

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        crate::process::thread_ends();
    }
}

thread_local! {
    static AT_THREAD_END: AtThreadEnd = const { AtThreadEnd };
}

fn thread_key() -> u64 {
    THREAD_KEY.with(|key| {
        if key.get() == 0 {
            key.set(THREAD_KEYS.fetch_add(1, Ordering::Relaxed));
        }
        key.get()
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Makes the trace file and a recorder that writes into it. The calling thread becomes thread 0.
    ///
    /// The one recorder of a process is made by [`crate::start`].
    ///
    /// # Errors
    ///
    /// If the file is there already or cannot be made.
    pub fn create(options: &StartOptions) -> Result<Self, RecordError> {
        let file = TraceFile::create(&options.path, options.capture, options.devices)
            .map_err(|source| RecordError::File { path: options.path.clone(), source })?;
        let interner = Interner::default();
        let recorder = Self {
            counts: Arc::clone(&interner.counts),
            id: RECORDERS.fetch_add(1, Ordering::Relaxed),
            file,
            is_virtual: options.capture == CaptureKind::Virtual,
            known: Mutex::default(),
            interner: Mutex::new(interner),
            threads: Mutex::default(),
            operations: AtomicU64::new(0),
            layer: AtomicBool::new(false),
            page_locked: AtomicU64::new(0),
            faults_ignored: AtomicU64::new(0),
            locator: OnceLock::new(),
            current_device: OnceLock::new(),
        };
        drop(recorder.thread());
        Ok(recorder)
    }

    /// Whether events are still written: not closed, not out of disk, not a forked child.
    pub fn is_recording(&self) -> bool {
        !self.file.is_stopped()
    }

    /// Writes what is held back and marks the trace as closed. Nothing is recorded after.
    pub fn close(&self) {
        // Stopped first: whoever is inside a call finishes it before its thread's lock is had here.
        if self.file.begin_close() {
            self.flush();
            self.file.mark_closed();
        }
    }

    /// Writes what threads hold back.
    fn flush(&self) {
        for thread in lock(&self.threads).values() {
            let mut thread = lock(thread);
            self.settle(&mut thread);
            thread.give_up_wait();
        }
    }

    /// Calls `each` for the threads that are in no call now.
    pub(crate) fn each_idle_thread(&self, mut each: impl FnMut(&mut Thread)) {
        // Whoever closes the trace has all of them and comes to the end.
        let Ok(threads) = self.threads.try_lock() else { return };
        for thread in threads.values() {
            if let Ok(mut thread) = thread.try_lock() {
                each(&mut thread);
            }
        }
    }

    /// Writes what the calling thread holds back and lets go of its chunk.
    pub(crate) fn end_thread(&self) {
        let mut thread = self.thread();
        self.settle(&mut thread);
        thread.give_up_wait();
        thread.leave_chunk();
    }

    /// Notes that the process forked, once a thread and site: called in the parent.
    pub(crate) fn forked(&self) {
        if self.is_recording() {
            let mut thread = self.begin();
            self.put_gap_once(&mut thread, GapReason::Forked, "fork");
        }
    }

    /// Has `ask` called for the calling thread's current device, where nothing else says on which device memory is: torch
    /// allocates on the current one. It may be called with locks of the recorder held.
    pub fn ask_for_device(&self, ask: fn() -> u32) {
        let _first = self.current_device.set(ask);
    }

    /// The device of memory that torch's allocator has just handed out, and that no runtime call allocated: the driver
    /// maps it (expandable segments).
    pub(crate) fn device_of_mapped(&self) -> u32 {
        self.current_device.get().map_or(0, |ask| ask())
    }

    /// Says in the trace that streamsan itself has failed.
    pub(crate) fn name_fault(&self) {
        if self.is_recording() {
            let mut thread = self.thread();
            self.put_gap(&mut thread, GapReason::Lost, "a fault of streamsan's own ended the recording");
        }
    }

    /// How many operations were recorded.
    pub fn operations_recorded(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// The state of the calling thread.
    pub(crate) fn thread(&self) -> MutexGuard<'_, Thread> {
        let (recorder, state) = STATE.get();
        if recorder == self.id {
            // SAFETY: the pointer was taken from this recorder's map, whose boxes live as long as it does.
            return lock(unsafe { &*state });
        }
        let mut threads = lock(&self.threads);
        let id = ThreadId(threads.len() as u32);
        let state: &Mutex<Thread> =
            threads.entry(thread_key()).or_insert_with(|| Box::new(Mutex::new(Thread::new(id))));
        let state: *const Mutex<Thread> = state;
        drop(threads);
        // Not to be had while the thread ends: then its chunk stays mapped.
        let _ = AT_THREAD_END.try_with(|_| ());
        STATE.set((self.id, state));
        // SAFETY: as above.
        lock(unsafe { &*state })
    }

    /// The state of the calling thread at the start of a call that is an event: what was held is settled, and event
    /// records that follow are not guards of a free before.
    pub(crate) fn begin(&self) -> MutexGuard<'_, Thread> {
        let mut thread = self.thread();
        self.settle(&mut thread);
        thread.freed = None;
        thread.give_up_wait();
        thread
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    pub(crate) fn interner(&self) -> MutexGuard<'_, Interner> {
        lock(&self.interner)
    }

    pub(crate) fn string(&self, text: &str) -> StringId {
        self.interner().string(&self.file, text)
    }

    /// The id of a stream, announced if it is new.
    pub(crate) fn stream(
        &self,
        thread: &mut Thread,
        known: &mut Known,
        handle: u64,
        device: u32,
    ) -> StreamId {
        let (id, new) = known.streams.resolve(handle, device, thread.id);
        if let Some(new) = new {
            self.announce(thread, new);
        }
        id
    }

    pub(crate) fn announce(&self, thread: &mut Thread, new: NewStream) {
        let NewStream { id, device, blocking, legacy_default, priority } = new;
        let kind = EventKind::StreamCreate { stream: id, device, blocking, legacy_default, priority };
        thread.emit(&self.file, &kind, &[]);
    }

    /// Has the torch layer say where the program is, if nothing on this thread has a context. To be called with no
    /// lock held; `may_wait`: for the interpreter too.
    pub fn locate(&self, may_wait: bool) {
        self.locate_while(if may_wait { Waiting::Unlimited } else { Waiting::Never });
    }

    /// The same.
    pub(crate) fn locate_while(&self, waiting: Waiting) {
        if let Some(locate) = self.locator.get()
            && self.thread().context.label == StringId(0)
        {
            // SAFETY: the torch layer's function may be called from any thread.
            unsafe { locate(waiting as u32) }
        }
    }

    pub(crate) fn put_gap(&self, thread: &mut Thread, reason: GapReason, detail: &str) {
        let detail = self.string(detail);
        thread.emit(&self.file, &EventKind::Gap { reason, detail }, &[]);
    }

    /// The same gap, once a thread, site and detail.
    pub(crate) fn put_gap_once(&self, thread: &mut Thread, reason: GapReason, detail: &str) {
        let seen = thread.reported.entry(thread.context.site).or_default();
        if !seen.contains(detail) {
            seen.insert(detail.to_owned());
            self.put_gap(thread, reason, detail);
        }
    }
}
