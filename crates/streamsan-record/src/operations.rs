//! Work in streams, accesses by the host, and memory.

use std::sync::atomic::Ordering;

use streamsan_trace::{
    Access, AccessMode, AccessRange, EventKind, GapReason, HostWaitHow, MemorySpace, Observer, OpKind, Shape,
    ShapeId, StreamId, StringId, ThreadId, WaitTarget,
};

use crate::handles::{PER_THREAD, Streams};
use crate::recorder::Known;
use crate::thread::Thread;
use crate::{CopyCall, CopyLayout, MemsetCall, Recorder};

/// Part of the mangled name of each of torch's own kernels, which are in the namespace `at::native`.
const MANGLED_TORCH_KERNELS: &str = "2at6native";

/// Starts the detail of the gap of such a kernel that no operator launched. On the virtual device it has
/// computed nothing, so a reader of the trace takes the recording as failed.
const OUTSIDE_THE_LAYER: &str = "torch kernel outside the torch layer: ";

/// Bytes touched by a runtime call: `height` rows of `width` bytes, `pitch` apart.
#[derive(Clone, Copy)]
struct Rows {
    address: u64,
    width: u64,
    height: u64,
    pitch: u64,
}

/// Room for a blocking copy: itself, its accesses, its wait.
const BLOCKING_RECORDS: usize = 8;

/// So many operations later what a thread holds back is written for it.
const SETTLE_EVERY: u64 = 1024;

impl Recorder {
    /// A stream was created. `blocking`: without the non-blocking flag.
    pub fn stream_created(&self, handle: u64, device: u32, blocking: bool, priority: i32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let new = known.streams.create(handle, device, blocking, priority);
        // Under the lock: no other thread uses it before.
        self.announce(&mut thread, new);
    }

    /// The calling thread's own default stream has this handle, too, which the device library gave it.
    pub fn per_thread_stream(&self, handle: u64, device: u32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, PER_THREAD, device);
        known.streams.alias(handle, stream);
    }

    /// Whether the trace has heard of this stream, or will announce it rightly without being told how it was made: a
    /// default stream.
    pub fn knows_stream(&self, handle: u64) -> bool {
        Streams::is_default(handle) || self.known().streams.lookup(handle, 0, ThreadId(0)).is_some()
    }

    /// A stream was seen whose creation was not. What is held is settled, but the guards of a free go on.
    pub fn stream_seen(&self, handle: u64, device: u32, blocking: bool, priority: i32) {
        let mut thread = self.thread();
        self.settle(&mut thread);
        let mut known = self.known();
        if known.streams.lookup(handle, device, thread.id).is_none() {
            let new = known.streams.create(handle, device, blocking, priority);
            self.announce(&mut thread, new);
        }
    }

    /// A stream is about to be destroyed: called before the runtime call, so that its handle is not reused yet.
    pub fn stream_destroyed(&self, handle: u64) {
        let mut thread = self.begin();
        let mut known = self.known();
        if let Some(stream) = known.streams.destroy(handle) {
            thread.emit(&self.file, &EventKind::StreamDestroy { stream }, &[]);
        }
    }

    /// An event was created.
    pub fn event_created(&self, handle: u64) {
        // No event of the trace: the device allocator makes its events between a free and its guards.
        self.settle(&mut self.thread());
        self.known().events.create(handle);
    }

    /// An event is about to be destroyed: called before the runtime call.
    pub fn event_destroyed(&self, handle: u64) {
        let mut thread = self.thread();
        self.settle(&mut thread);
        let mut known = self.known();
        if let Some(event) = known.events.destroy(handle) {
            // Under the lock: no other thread uses the handle before, and a wait for it has a lower number.
            thread.emit(&self.file, &EventKind::EventDestroy { event }, &[]);
        }
    }

    /// A copy was enqueued.
    pub fn copy(&self, call: &CopyCall<'_>) {
        let (source, destination) = match call.layout {
            CopyLayout::Linear { bytes } => {
                let rows = |address| Rows { address, width: bytes, height: 1, pitch: bytes };
                (rows(call.source), rows(call.destination))
            }
            CopyLayout::Pitched { width, height, destination_pitch, source_pitch } => {
                let rows = |address, pitch| Rows { address, width, height, pitch };
                (rows(call.source, source_pitch), rows(call.destination, destination_pitch))
            }
        };
        if call.kind == OpKind::CopyDeviceToDevice
            && self.thread().context.whole
            && self.memory_space(call.source) == self.memory_space(call.destination)
        {
            self.give_up();
            return;
        }
        let touched = [(source, AccessMode::Read), (destination, AccessMode::Write)];
        self.runtime_operation(call.stream, call.device, call.kind, call.label, call.blocking, &touched);
    }

    /// An operation is about to be asked for that returns when it is done, as a copy to ordinary host memory does. Followed
    /// by [`Recorder::copy`] or [`Recorder::memset`] on the same thread, or by [`Recorder::give_up`] if the call fails.
    ///
    /// So the host knows afterwards what was issued before the call, and not what other threads issued meanwhile. Not
    /// needed where nothing is issued meanwhile.
    pub fn blocking_operation_begin(&self, stream: u64, device: u32) {
        self.locate(true);
        let mut thread = self.begin();
        self.stream(&mut thread, &mut self.known(), stream, device);
        // The operation with its accesses, and both ends of the wait.
        thread.entered = match thread.make_room(&self.file, BLOCKING_RECORDS) {
            Ok(()) => Some((self.file.next_number(), self.file.next_number())),
            Err(_) => None,
        };
    }

    /// The call that was begun on this thread has failed, or is part of another one: nothing came of it.
    pub fn give_up(&self) {
        self.thread().give_up_wait();
    }

    /// A memset was enqueued.
    pub fn memset(&self, call: &MemsetCall) {
        let rows = Rows { address: call.address, width: call.width, height: call.height, pitch: call.pitch };
        if self.thread().context.whole {
            self.give_up();
            return;
        }
        let touched = [(rows, AccessMode::Write)];
        self.runtime_operation(call.stream, call.device, OpKind::Memset, "memset", call.blocking, &touched);
    }

    /// A host function was enqueued.
    pub fn host_function(&self, stream: u64, device: u32) {
        self.runtime_operation(stream, device, OpKind::HostFunction, "host function", false, &[]);
    }

    /// A kernel was launched. Its name is asked for if no operator launched it. Says whether what it touches is known, from
    /// an operator or an annotation.
    pub fn launch<'name>(&self, stream: u64, device: u32, kernel_name: impl FnOnce() -> &'name str) -> bool {
        self.locate(true);
        let mut thread = self.begin();
        // Kernels of an operator are part of it.
        if thread.context.label != StringId(0) {
            return true;
        }
        self.stream(&mut thread, &mut self.known(), stream, device);
        let kernel_name = kernel_name();
        if self.is_virtual && kernel_name.contains(MANGLED_TORCH_KERNELS) {
            let detail = format!("{OUTSIDE_THE_LAYER}{kernel_name}");
            self.put_gap_once(&mut thread, GapReason::OpaqueKernel, &detail);
        } else if thread.annotation.is_some() {
            drop(thread);
            self.annotated_launch(stream, device, kernel_name);
            return true;
        } else {
            self.put_gap_once(&mut thread, GapReason::OpaqueKernel, kernel_name);
        }
        false
    }

    /// A call was made that is not implemented or not modelled. Each name is recorded once a thread and site.
    pub fn unsupported(&self, call: &str) {
        // An allocator may hold a lock here that a thread with the interpreter waits for.
        self.locate(false);
        let mut thread = self.begin();
        self.put_gap_once(&mut thread, GapReason::UnsupportedCall, call);
    }

    /// Memory was allocated by a runtime call (not by torch's caching allocator).
    pub fn memory_allocated(&self, space: MemorySpace, address: u64, size: u64) {
        let mut thread = self.begin();
        let mut known = self.known();
        let block = known.blocks.add_region(space, address, size);
        self.page_locked.fetch_add(u64::from(space == MemorySpace::Pinned), Ordering::Relaxed);
        let kind = EventKind::Alloc { block, stream: StreamId(0), space, address, size };
        thread.emit(&self.file, &kind, &[]);
    }

    /// Memory is about to be freed: called before the runtime call.
    pub fn memory_freed(&self, address: u64) {
        let mut thread = self.begin();
        let mut known = self.known();
        if let Some(region) = known.blocks.remove_region(address) {
            self.page_locked.fetch_sub(u64::from(region.space == MemorySpace::Pinned), Ordering::Relaxed);
            thread.emit(&self.file, &EventKind::FreeRequest { block: region.id }, &[]);
        }
    }

    fn runtime_operation(
        &self,
        stream: u64,
        device: u32,
        kind: OpKind,
        name: &str,
        blocking: bool,
        touched: &[(Rows, AccessMode)],
    ) {
        let entered = self.thread().entered.take();
        if entered.is_none() {
            self.locate(true);
        }
        let mut thread = self.begin();
        thread.entered = entered;
        let label =
            if thread.context.label == StringId(0) { self.string(name) } else { thread.context.label };
        let mut accesses = std::mem::take(&mut thread.accesses);
        accesses.clear();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let private = self.is_private(&thread, kind);
        for &(rows, mode) in touched {
            if !(private && known.blocks.is_page_locked(rows.address)) {
                accesses.extend(self.access_rows(&known, rows, mode));
            }
        }
        drop(known);
        self.put_operation(&mut thread, stream, label, kind, blocking, &accesses);
        thread.accesses = accesses;
    }

    /// An operation was written.
    pub(crate) fn count_operation(&self) {
        let count = self.operations.fetch_add(1, Ordering::Relaxed);
        if count % SETTLE_EVERY == SETTLE_EVERY - 1 {
            // For readers in other processes, which cannot ask for it.
            self.settle_others(self.file.last_number().saturating_sub(SETTLE_EVERY));
        }
    }

    /// Whether page-locked memory of this operation is torch's own: `item()` reads back through memory that nobody
    /// else sees, of which no hand-out is announced.
    fn is_private(&self, thread: &Thread, kind: OpKind) -> bool {
        let label = thread.context.label;
        kind == OpKind::CopyDeviceToHost
            && label != StringId(0)
            && label == self.string("aten::_local_scalar_dense")
    }

    fn access_rows(&self, known: &Known, rows: Rows, mode: AccessMode) -> Option<Access> {
        if rows.width == 0 || rows.height == 0 {
            return None;
        }
        let (block, offset) = known.blocks.resolve(rows.address)?;
        let (shape, length) = if rows.height == 1 {
            (ShapeId(0), rows.width)
        } else {
            let pitch = i64::try_from(rows.pitch).ok()?;
            let (shape, _) = Shape::from_tensor(&[rows.height, rows.width], &[pitch, 1], 1)?;
            let length = shape.length();
            (self.interner().shape(&self.file, shape), length)
        };
        sound(Access { block, mode, offset, length, shape, argument: StringId(0) })
    }

    /// Writes an operation with the thread's site, and what the host knows if the call returned after it.
    pub(crate) fn put_operation(
        &self,
        thread: &mut Thread,
        stream: StreamId,
        label: StringId,
        kind: OpKind,
        blocking: bool,
        accesses: &[Access],
    ) {
        let forward_site = thread.context.forward_site;
        let event = EventKind::Op { stream, label, kind, forward_site, accesses: AccessRange::default() };
        let entered = thread.entered.take();
        match entered {
            Some((number, _)) => thread.put(number, thread.context.site, &event, accesses),
            None => thread.emit(&self.file, &event, accesses),
        }
        self.count_operation();
        if blocking {
            self.put_blocking_wait(thread, stream, entered.map(|(_, wait)| wait));
        } else if let Some((_, wait)) = entered {
            thread.skip(wait);
        }
    }

    /// The host has waited in a call that blocked; `number` was taken when it was entered.
    fn put_blocking_wait(&self, thread: &mut Thread, stream: StreamId, number: Option<u64>) {
        let program = thread.runs_python || !self.layer.load(Ordering::Relaxed);
        let observer = if program { Observer::Program } else { Observer::Library };
        let target = WaitTarget::Stream(stream);
        let wait = EventKind::HostWait { target, observer, how: HostWaitHow::Blocking };
        self.put_wait(thread, number, &wait, target);
    }
}

/// The access, if the file can hold it.
pub(crate) fn sound(access: Access) -> Option<Access> {
    (access.length > 0 && access.offset.checked_add(access.length).is_some()).then_some(access)
}
