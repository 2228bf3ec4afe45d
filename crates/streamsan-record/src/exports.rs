//! The functions of the C table. Each checks what it is given, and none unwinds.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use streamsan_trace::file::record::{gap_reason, op_kind};
use streamsan_trace::{
    Access, AccessMode, AccessRange, Binding, EventKind, Frame, FrameId, FrameOrigin, MemorySpace, Placement,
    Reach, Shape, ShapeDimension, ShapeId, SiteId, StreamId, StringId, Subject, VisibleStream,
};

use crate::Recorder;
use crate::intern::Counts;
use crate::operations::sound;
use crate::process::{ask, recorder, without_unwinding};
use crate::questions::{question, settle_others};
use crate::ranges::{annotate, range_begin, range_end, settle, trace_path};
use crate::recorder::Known;
use crate::recorder::Waiting;
use crate::table::{Locator, RawAccess, RawFrame, RecorderTable, TABLE_VERSION, TorchCallback};
use crate::works::{collective_end, work_begin, work_end};

static TABLE: RecorderTable = RecorderTable {
    version: TABLE_VERSION,
    size: size_of::<RecorderTable>() as u32,
    recording,
    intern_string,
    intern_frame,
    intern_site,
    intern_shape,
    set_context,
    operation,
    host_access,
    torch_callback,
    block_size,
    name_stream,
    name_block,
    visible_stream,
    placement,
    unrecorded_wait,
    gap,
    device_of,
    memory_kind,
    set_header_text,
    host_block,
    handing_out,
    escape,
    record_stream,
    stream_object,
    has_page_locked,
    set_locator,
    operations_recorded,
    close,
    range_begin,
    range_end,
    annotate,
    settle,
    trace_path,
    settle_others,
    question,
    set_operator,
    graph_memory,
    current_device,
    collective_end,
    work_begin,
    work_end,
    reserved: [std::ptr::null::<c_void>(); 2],
};

/// The C table. It is there whether or not this process is recorded.
pub fn table() -> &'static RecorderTable {
    &TABLE
}

/// Calls `body` with the recorder, if this process is recorded.
pub(crate) fn with<T: Default>(body: impl FnOnce(&Recorder) -> T) -> T {
    ask(body).unwrap_or_default()
}

/// # Safety
///
/// `start` points to `count` values that stay unchanged while the result lives, or `count` is 0.
pub(crate) unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if count == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(start, count) }
}

unsafe extern "C" fn recording() -> u32 {
    u32::from(recorder().is_some())
}

unsafe extern "C" fn intern_string(text: *const u8, length: usize) -> u32 {
    // SAFETY: the table's contract.
    let bytes = unsafe { slice(text, length) };
    with(|recorder| recorder.string(&String::from_utf8_lossy(bytes)).0)
}

unsafe extern "C" fn intern_frame(frame: *const RawFrame) -> u32 {
    // SAFETY: the table's contract.
    let Some(raw) = (unsafe { frame.as_ref() }) else { return 0 };
    let frame = Frame {
        file: StringId(raw.file),
        function: StringId(raw.function),
        line: raw.line,
        end_line: raw.end_line,
        column: raw.column,
        end_column: raw.end_column,
        origin: if raw.origin == 0 { FrameOrigin::User } else { FrameOrigin::Library },
    };
    with(|recorder| recorder.interner().frame(&recorder.file, frame).map_or(0, |id| id.0))
}

unsafe extern "C" fn intern_site(frames: *const u32, count: usize) -> u32 {
    // SAFETY: the table's contract.
    let frames = unsafe { slice(frames, count) };
    with(|recorder| {
        let frames: Vec<FrameId> = frames.iter().copied().map(FrameId).collect();
        recorder.interner().site(&recorder.file, &frames).0
    })
}

unsafe extern "C" fn intern_shape(run: u64, pairs: *const u64, count: usize) -> u32 {
    // SAFETY: the table's contract.
    let pairs = unsafe { slice(pairs, count.saturating_mul(2)) };
    with(|recorder| {
        let dimensions =
            pairs.chunks_exact(2).map(|pair| ShapeDimension { size: pair[0], stride: pair[1] }).collect();
        recorder.interner().shape(&recorder.file, Shape { run, dimensions }).0
    })
}

unsafe extern "C" fn set_context(site: u32, forward_site: u32, label: u32) {
    with(|recorder| recorder.set_context(site, forward_site, label));
}

unsafe extern "C" fn set_operator(site: u32, forward_site: u32, label: u32) {
    with(|recorder| recorder.set_operator(site, forward_site, label));
}

unsafe extern "C" fn operation(
    stream: u64,
    device: u32,
    kind: u32,
    flags: u32,
    accesses: *const RawAccess,
    count: usize,
) {
    // SAFETY: the table's contract.
    let accesses = unsafe { slice(accesses, count) };
    with(|recorder| recorder.operation(stream, device, kind, flags, accesses));
}

unsafe extern "C" fn host_access(accesses: *const RawAccess, count: usize) {
    // SAFETY: the table's contract.
    let accesses = unsafe { slice(accesses, count) };
    with(|recorder| recorder.host_access(accesses));
}

unsafe extern "C" fn torch_callback(callback: u32, a: u64, b: u64) {
    with(|recorder| {
        let callback = match callback {
            0 => TorchCallback::MemoryAllocation,
            1 => TorchCallback::MemoryDeallocation,
            2 => TorchCallback::EventRecord,
            3 => TorchCallback::EventWait,
            4 => TorchCallback::EventSynchronization,
            5 => TorchCallback::StreamSynchronization,
            6 => TorchCallback::DeviceSynchronization,
            _ => return,
        };
        recorder.torch_callback(callback, a, b);
    });
}

unsafe extern "C" fn block_size(address: u64, size: u64) {
    with(|recorder| recorder.block_size(address, size));
}

unsafe extern "C" fn name_stream(stream: u64, device: u32, name: u32, by_user: u32) {
    with(|recorder| recorder.name_stream(stream, device, name, by_user != 0));
}

unsafe extern "C" fn name_block(address: u64, name: u32, by_user: u32) {
    with(|recorder| recorder.name_block(address, name, by_user != 0));
}

unsafe extern "C" fn visible_stream(frame: u32, stream: u64, device: u32, expression: u32, binding: u32) {
    with(|recorder| recorder.visible_stream(frame, (stream, device), expression, binding));
}

unsafe extern "C" fn placement(frame: u32, line: u32, reach: u32) {
    with(|recorder| recorder.placement(FrameId(frame), line, reach));
}

unsafe extern "C" fn unrecorded_wait(object: u64, stream: u64, device: u32) {
    with(|recorder| recorder.unrecorded_wait(object, stream, device));
}

unsafe extern "C" fn gap(reason: u32, detail: u32) {
    with(|recorder| {
        let Some(reason) = u8::try_from(reason).ok().and_then(gap_reason) else { return };
        let mut thread = recorder.begin();
        let detail = recorder.counts.checked_string(detail);
        thread.emit(&recorder.file, &EventKind::Gap { reason, detail }, &[]);
    });
}

unsafe extern "C" fn device_of(address: u64) -> u32 {
    ask(|recorder| recorder.device_of(address)).flatten().unwrap_or(u32::MAX)
}

unsafe extern "C" fn current_device() -> u32 {
    with(Recorder::device_of_mapped)
}

unsafe extern "C" fn memory_kind(address: u64) -> u32 {
    with(|recorder| match recorder.memory_space(address) {
        Some(MemorySpace::Cached(_) | MemorySpace::Device(_)) => 1,
        Some(MemorySpace::Pinned) => 2,
        Some(MemorySpace::Pageable) | None => 0,
    })
}

unsafe extern "C" fn set_header_text(which: u32, text: *const u8, length: usize) {
    // SAFETY: the table's contract.
    let bytes = unsafe { slice(text, length) };
    with(|recorder| recorder.interner().header_text(&recorder.file, which, &String::from_utf8_lossy(bytes)));
}

unsafe extern "C" fn host_block(address: u64, size: u64) {
    with(|recorder| recorder.host_block(address, size));
}

unsafe extern "C" fn graph_memory(begin: u32) {
    with(|recorder| recorder.graph_memory(begin != 0));
}

unsafe extern "C" fn handing_out(begin: u32) {
    with(|recorder| recorder.ignore_faults(begin != 0));
}

unsafe extern "C" fn escape(address: u64, label: u32) {
    with(|recorder| recorder.escape(address, label));
}

unsafe extern "C" fn record_stream(address: u64, stream: u64, device: u32) {
    with(|recorder| recorder.record_stream(address, stream, device));
}

unsafe extern "C" fn stream_object(stream: u64, device: u32, object: u32, sharers: u32) {
    with(|recorder| recorder.stream_object(stream, device, object, sharers));
}

unsafe extern "C" fn has_page_locked() -> u32 {
    with(|recorder| u32::from(recorder.has_page_locked()))
}

unsafe extern "C" fn set_locator(locate: Locator) {
    with(|recorder| {
        let _first_wins = recorder.locator.set(locate);
    });
}

unsafe extern "C" fn operations_recorded() -> u64 {
    // Asked after closing too.
    without_unwinding(crate::process::operations_recorded)
}

unsafe extern "C" fn close() {
    with(Recorder::close);
}

/// What the torch layer says, with ids as it gives them.
impl Recorder {
    pub(crate) fn set_context(&self, site: u32, forward_site: u32, label: u32) {
        self.set(site, forward_site, label, false);
    }

    pub(crate) fn set_operator(&self, site: u32, forward_site: u32, label: u32) {
        self.set(site, forward_site, label, true);
    }

    fn set(&self, site: u32, forward_site: u32, label: u32, whole: bool) {
        let (site, forward_site) = (self.counts.checked_site(site), self.counts.checked_site(forward_site));
        let label = self.counts.checked_string(label);
        self.layer.store(true, Ordering::Relaxed);
        let mut thread = self.thread();
        // A thread without a line of Python, such as a watchdog that drops a tensor, runs no program.
        thread.runs_python |= site != SiteId(0);
        // The guards of a free are recorded inside it, where no Python runs.
        thread.freed = None;
        let context = &mut thread.context;
        (context.site, context.forward_site, context.label) = (site, forward_site, label);
        context.whole = whole;
        context.version += 1;
    }

    pub(crate) fn operation(&self, stream: u64, device: u32, kind: u32, flags: u32, raw: &[RawAccess]) {
        let mut thread = self.begin();
        let kind = u8::try_from(kind).ok().and_then(op_kind).unwrap_or(streamsan_trace::OpKind::Kernel);
        let mut accesses = std::mem::take(&mut thread.accesses);
        accesses.clear();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        resolve(&known, &self.counts, raw, &mut accesses);
        drop(known);
        let label = thread.context.label;
        self.put_operation(&mut thread, stream, label, kind, flags & 1 != 0, &accesses);
        thread.accesses = accesses;
    }

    /// Until the call with false for each with true, accesses seen as faults are somebody else's: torch's, when it
    /// fills memory that it hands out, or those of a host function, which has its place in a stream.
    pub fn ignore_faults(&self, begin: bool) {
        if begin {
            self.faults_ignored.fetch_add(1, Ordering::Relaxed);
        } else {
            self.faults_ignored.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The host touches the byte at `address`, seen as a fault of the calling thread or as its call to the system.
    pub fn memory_access(&self, address: u64, mode: AccessMode) {
        if self.faults_ignored.load(Ordering::Relaxed) > 0 {
            return;
        }
        // NumPy, ctypes and calls that wait for a file let go of the interpreter while they touch memory: it is waited
        // for, to have the place in the program. Who holds it may wait for a lock of the code that faults.
        self.locate_while(Waiting::Limited);
        let mut thread = self.begin();
        let found = self.known().blocks.resolve(address);
        let Some((block, offset)) = found else { return };
        let label = self.string("memory access");
        let access = Access { block, mode, offset, length: 1, shape: ShapeId(0), argument: StringId(0) };
        let kind = EventKind::HostAccess { label, accesses: AccessRange::default() };
        thread.emit(&self.file, &kind, &[access]);
    }

    pub(crate) fn host_access(&self, raw: &[RawAccess]) {
        let mut thread = self.begin();
        let mut accesses = std::mem::take(&mut thread.accesses);
        accesses.clear();
        resolve(&self.known(), &self.counts, raw, &mut accesses);
        if !accesses.is_empty() {
            let kind =
                EventKind::HostAccess { label: thread.context.label, accesses: AccessRange::default() };
            thread.emit(&self.file, &kind, &accesses);
        }
        thread.accesses = accesses;
    }

    pub(crate) fn block_size(&self, address: u64, size: u64) {
        let mut thread = self.thread();
        let mut known = self.known();
        if let Some(block) = known.blocks.set_size(address, size) {
            drop(known);
            self.settle(&mut thread);
            thread.emit(&self.file, &EventKind::BlockSize { block, size }, &[]);
        }
    }

    fn name_stream(&self, stream: u64, device: u32, name: u32, by_user: bool) {
        let mut thread = self.begin();
        let name = self.counts.checked_string(name);
        let mut known = self.known();
        let subject = Subject::Stream(self.stream(&mut thread, &mut known, stream, device));
        thread.emit(&self.file, &EventKind::Name { subject, name, by_user }, &[]);
    }

    fn name_block(&self, address: u64, name: u32, by_user: bool) {
        let mut thread = self.begin();
        let name = self.counts.checked_string(name);
        let known = self.known();
        if let Some((block, _)) = known.blocks.resolve(address) {
            thread.emit(&self.file, &EventKind::Name { subject: Subject::Block(block), name, by_user }, &[]);
        }
    }

    fn visible_stream(&self, frame: u32, (stream, device): (u64, u32), expression: u32, binding: u32) {
        let mut thread = self.thread();
        let mut known = self.known();
        // A stream that was never used is announced, unless that would come between a call and its callback.
        let stream = match known.streams.lookup(stream, device, thread.id) {
            Some(stream) => stream,
            None if thread.held.is_none() => self.stream(&mut thread, &mut known, stream, device),
            None => return,
        };
        drop(known);
        let binding = Binding::from_number(binding);
        let visible =
            VisibleStream { frame: FrameId(frame), stream, expression: StringId(expression), binding };
        self.interner().visible_stream(&self.file, visible);
    }

    fn placement(&self, frame: FrameId, line: u32, reach: u32) {
        if let Some(reach) = Reach::from_number(reach) {
            self.interner().placement(&self.file, frame, Placement { line, reach });
        }
    }

    pub(crate) fn unrecorded_wait(&self, object: u64, stream: u64, device: u32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let event = known.events.object(object);
        thread.emit(&self.file, &EventKind::EventWait { event, stream }, &[]);
    }

    /// Until the end, which is told by `begin` false, torch's allocator uses the pool of a graph on this thread.
    pub(crate) fn graph_memory(&self, begin: bool) {
        let mut thread = self.thread();
        thread.graph_memory =
            if begin { thread.graph_memory.saturating_add(1) } else { thread.graph_memory.saturating_sub(1) };
    }

    /// torch's pinned allocator handed out these bytes.
    pub(crate) fn host_block(&self, address: u64, size: u64) {
        let mut thread = self.begin();
        let mut known = self.known();
        if let Some(block) = known.blocks.add_page_locked(address, size) {
            // Under the lock: no copy of another thread finds the block before it is announced.
            let kind =
                EventKind::Alloc { block, stream: StreamId(0), space: MemorySpace::Pinned, address, size };
            thread.emit(&self.file, &kind, &[]);
        }
    }

    pub(crate) fn escape(&self, address: u64, label: u32) {
        let mut thread = self.begin();
        let known = self.known();
        let block = known.blocks.resolve(address).filter(|_| known.blocks.is_page_locked(address));
        drop(known);
        if let Some((block, _)) = block {
            let label = self.counts.checked_string(label);
            thread.emit(&self.file, &EventKind::Escape { block, label }, &[]);
        }
    }

    pub(crate) fn record_stream(&self, address: u64, stream: u64, device: u32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let block = known.blocks.cached(address).unwrap_or_default();
        drop(known);
        thread.emit(&self.file, &EventKind::RecordStream { block, stream }, &[]);
    }

    pub(crate) fn stream_object(&self, stream: u64, device: u32, object: u32, sharers: u32) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        drop(known);
        thread.emit(&self.file, &EventKind::StreamObject { stream, object, sharers }, &[]);
    }

    pub(crate) fn has_page_locked(&self) -> bool {
        self.page_locked.load(Ordering::Relaxed) > 0
    }

    /// What sort of runtime allocation holds `address`.
    pub fn memory_space(&self, address: u64) -> Option<MemorySpace> {
        self.known().blocks.region(address).map(|(_, region)| region.space)
    }

    fn device_of(&self, address: u64) -> Option<u32> {
        match self.memory_space(address)? {
            MemorySpace::Cached(device) | MemorySpace::Device(device) => Some(device.0),
            MemorySpace::Pinned | MemorySpace::Pageable => None,
        }
    }
}

/// Appends the accesses to memory that is known; the rest is ordinary host memory.
pub(crate) fn resolve(known: &Known, counts: &Counts, raw: &[RawAccess], accesses: &mut Vec<Access>) {
    accesses.extend(raw.iter().filter_map(|raw| {
        let (block, offset) = known.blocks.resolve(raw.address)?;
        let mode = u8::try_from(raw.mode).ok().and_then(AccessMode::from_u8).unwrap_or(AccessMode::Unknown);
        let (shape, argument) = (counts.checked_shape(raw.shape), counts.checked_string(raw.argument));
        sound(Access { block, mode, offset, length: raw.length, shape, argument })
    }));
}
