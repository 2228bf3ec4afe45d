//! The C table: how the Python module, or anything else in the process, talks to the one recorder.
//!
//! The preloaded device library exports `streamsan_table`, which returns a pointer to this table. The
//! Python module finds that symbol with `dlsym` and refuses a table of another version.
//! All functions may be called from any thread and never unwind. Ids are those of `streamsan-trace`.

use std::ffi::c_void;

/// Version of [`RecorderTable`]. Raised with any change to it.
pub const TABLE_VERSION: u32 = 11;

/// Name of the exported function `extern "C" fn() -> *const RecorderTable`.
pub const TABLE_SYMBOL: &std::ffi::CStr = c"streamsan_table";

/// One access as the torch layer gives it: an address, not yet a block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawAccess {
    /// Lowest address touched.
    pub address: u64,
    /// Length of the bounding interval in bytes.
    pub length: u64,
    /// Interned shape; 0 is contiguous.
    pub shape: u32,
    /// `AccessMode` as a number.
    pub mode: u32,
    /// Interned argument name.
    pub argument: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Where an access lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawPlace {
    /// The block.
    pub block: u32,
    /// 1 if there is one: ordinary host memory has none.
    pub known: u32,
    /// How far into the block the access begins, in bytes.
    pub offset: u64,
}

/// Who asks, and when.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawAsker {
    /// The stream.
    pub stream: u32,
    /// The host thread.
    pub thread: u32,
    /// The last event number given out; 0 if nothing is recorded.
    pub last: u64,
}

/// The end of a collective.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawEnd {
    /// Raw handle of the event that was recorded after it.
    pub event: u64,
    /// Which end it is, counted from 1; 0 if there is none.
    pub number: u64,
    /// The device of the stream in which it ran.
    pub device: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// One source position, with interned strings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawFrame {
    /// Interned path.
    pub file: u32,
    /// Interned function name.
    pub function: u32,
    /// As in `streamsan_trace::Frame`.
    pub line: u32,
    /// As in `streamsan_trace::Frame`.
    pub end_line: u32,
    /// As in `streamsan_trace::Frame`.
    pub column: u32,
    /// As in `streamsan_trace::Frame`.
    pub end_column: u32,
    /// `FrameOrigin` as a number.
    pub origin: u32,
}

/// A torch callback that the recorder combines with the runtime calls around it (see
/// `docs/design/0001-event-feed.md`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorchCallback {
    /// `memory_allocation(pointer)`: `a` = pointer, `b` = raw handle of the owner stream.
    MemoryAllocation = 0,
    /// `memory_deallocation(pointer)`: `a` = pointer.
    MemoryDeallocation = 1,
    /// `event_record(event, stream)`: fired after the call.
    EventRecord = 2,
    /// `event_wait(event, stream)`: fired after the call.
    EventWait = 3,
    /// `event_synchronization(event)`: fired before the call.
    EventSynchronization = 4,
    /// `stream_synchronization(stream)`: fired before the call.
    StreamSynchronization = 5,
    /// `device_synchronization()`: fired before the call.
    DeviceSynchronization = 6,
}

/// Sets the context of the calling thread to where its program is. With 0 it waits for no other thread.
pub type Locator = unsafe extern "C" fn(may_wait: u32);

/// The table. Functions return 0 ids when recording has stopped.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RecorderTable {
    /// [`TABLE_VERSION`].
    pub version: u32,
    /// Size of this struct in bytes.
    pub size: u32,
    /// 1 if this process is recorded (a trace file is open), else 0.
    pub recording: unsafe extern "C" fn() -> u32,
    /// Interns a string of `length` UTF-8 bytes.
    pub intern_string: unsafe extern "C" fn(text: *const u8, length: usize) -> u32,
    /// Interns a frame.
    pub intern_frame: unsafe extern "C" fn(frame: *const RawFrame) -> u32,
    /// Interns a stack of frame ids, innermost first.
    pub intern_site: unsafe extern "C" fn(frames: *const u32, count: usize) -> u32,
    /// Interns a shape in normal form: `run` bytes at steps `(size, stride)`, pairs of u64.
    pub intern_shape: unsafe extern "C" fn(run: u64, pairs: *const u64, count: usize) -> u32,
    /// Sets what runtime calls of this thread are attributed to until the next call: the call stack, the
    /// forward stack (0: none) and the label (0: the call's own name). While the label is not 0, kernel launches of
    /// this thread belong to that operation; otherwise each is a gap. Returns nothing.
    pub set_context: unsafe extern "C" fn(site: u32, forward_site: u32, label: u32),
    /// Records an operation on the stream with this raw handle (0: the legacy default stream of `device`).
    /// Uses the site and label of `set_context`. `flags` bit 0: it ends with a host wait on its stream.
    /// Accesses to memory that is not known (ordinary host memory) are dropped.
    pub operation: unsafe extern "C" fn(
        stream: u64,
        device: u32,
        kind: u32,
        flags: u32,
        accesses: *const RawAccess,
        count: usize,
    ),
    /// Records accesses made by the host itself, with the site and label of `set_context`. Accesses to memory
    /// that is neither page-locked nor known are dropped.
    pub host_access: unsafe extern "C" fn(accesses: *const RawAccess, count: usize),
    /// A torch callback; `a` and `b` as in [`TorchCallback`].
    pub torch_callback: unsafe extern "C" fn(callback: u32, a: u64, b: u64),
    /// Says that the storage at `address` has `size` bytes: gives a block its size if it has none.
    pub block_size: unsafe extern "C" fn(address: u64, size: u64),
    /// Names the stream with this raw handle on `device`.
    pub name_stream: unsafe extern "C" fn(stream: u64, device: u32, name: u32, by_user: u32),
    /// Names the block that holds `address`.
    pub name_block: unsafe extern "C" fn(address: u64, name: u32, by_user: u32),
    /// Says that `expression` gives this stream in `frame`.
    pub visible_stream:
        unsafe extern "C" fn(frame: u32, stream: u64, device: u32, expression: u32, binding: u32),
    /// Says before which line code goes that is to run before what `frame` does; `reach` is a number of `Reach`.
    pub placement: unsafe extern "C" fn(frame: u32, line: u32, reach: u32),
    /// A program's call on an event that has no handle yet (never recorded): a wait by `stream` that does
    /// nothing. `object` tells events without a handle apart.
    pub unrecorded_wait: unsafe extern "C" fn(object: u64, stream: u64, device: u32),
    /// A gap: `GapReason` as a number, and what.
    pub gap: unsafe extern "C" fn(reason: u32, detail: u32),
    /// The device that holds `address`, or `u32::MAX` if it is not device memory of this process.
    pub device_of: unsafe extern "C" fn(address: u64) -> u32,
    /// The kind of memory at `address`: 0 unknown, 1 device, 2 page-locked host.
    pub memory_kind: unsafe extern "C" fn(address: u64) -> u32,
    /// Sets texts of the header: 0 command, 1 directory, 2 versions.
    pub set_header_text: unsafe extern "C" fn(which: u32, text: *const u8, length: usize),
    /// Says that torch's pinned allocator handed out `size` bytes of page-locked memory at `address`: a new generation
    /// of these bytes, which torch hands out only after the copies that it issued on them. Does nothing if the
    /// memory is not page-locked.
    pub host_block: unsafe extern "C" fn(address: u64, size: u64),
    /// Between `begin` 1 and 0, on any threads: torch hands page-locked memory out and fills it, and `host_block`
    /// follows. Faults on such memory are no accesses of the program.
    pub handing_out: unsafe extern "C" fn(begin: u32),
    /// Says that a pointer to the page-locked memory at `address` was given away, to what `label` names. Does nothing
    /// for other memory.
    pub escape: unsafe extern "C" fn(address: u64, label: u32),
    /// Records that `record_stream` was called on the memory at `address` (0: unknown), with the site of
    /// `set_context`.
    pub record_stream: unsafe extern "C" fn(address: u64, stream: u64, device: u32),
    /// Records that the program made its stream object number `object`, counted from 1, while `sharers` earlier
    /// objects of the same stream are alive.
    pub stream_object: unsafe extern "C" fn(stream: u64, device: u32, object: u32, sharers: u32),
    /// 1 if the process has page-locked host memory, else 0.
    pub has_page_locked: unsafe extern "C" fn() -> u32,
    /// Gives a function that sets the context of the calling thread to where its program is. It is called before a
    /// kernel launch or an unsupported call that has no context, with no lock held; and, with 0, where it must not
    /// wait for another thread.
    pub set_locator: unsafe extern "C" fn(locate: Locator),
    /// How many operations were recorded so far.
    pub operations_recorded: unsafe extern "C" fn() -> u64,
    /// Closes the trace: nothing is recorded after.
    pub close: unsafe extern "C" fn(),
    /// A range began in this thread: `RangeKind` as a number, and its label. With the site of `set_context`.
    pub range_begin: unsafe extern "C" fn(kind: u32, label: u32),
    /// The last range of this kind that this thread began has ended.
    pub range_end: unsafe extern "C" fn(kind: u32),
    /// With `active` 1: launches of this thread that no operator accounts for touch these bytes, until the next call.
    /// Returns how many such launches there were since the last call.
    pub annotate: unsafe extern "C" fn(active: u32, accesses: *const RawAccess, count: usize) -> u64,
    /// Writes what the calling thread holds back. Returns the last event number given out.
    pub settle: unsafe extern "C" fn() -> u64,
    /// Writes the trace's absolute path to `target` if it fits into `capacity` bytes. Returns its length.
    pub trace_path: unsafe extern "C" fn(target: *mut u8, capacity: usize) -> usize,
    /// Writes what other threads hold back with numbers up to `before`, which are some milliseconds old. A callback that
    /// comes after still counts.
    pub settle_others: unsafe extern "C" fn(before: u64),
    /// Writes what the calling thread holds back, and finds the stream and the blocks of a question: `places` has room
    /// for one place for each access. The stream is announced if it is new.
    pub question: unsafe extern "C" fn(
        stream: u64,
        device: u32,
        accesses: *const RawAccess,
        count: usize,
        places: *mut RawPlace,
    ) -> RawAsker,
    /// As `set_context`, for an operator that is recorded with all that it touches on its device: copies within one
    /// device and memsets that it makes are part of it, like its kernels.
    pub set_operator: unsafe extern "C" fn(site: u32, forward_site: u32, label: u32),
    /// Between `begin` 1 and 0 (which nest): what torch's caching allocator hands out on this thread comes from the
    /// pool of a graph.
    pub graph_memory: unsafe extern "C" fn(begin: u32),
    /// The calling thread's current device on a GPU; 0 on the virtual device, which knows where all memory is.
    pub current_device: unsafe extern "C" fn() -> u32,
    /// The end of the collective that the calling thread enqueued last.
    pub collective_end: unsafe extern "C" fn() -> RawEnd,
    /// A method of a collective's work object begins on the calling thread. With `asks` 1 the program learns from it
    /// whether the collective has finished: a poll that says so is the program's.
    pub work_begin: unsafe extern "C" fn(asks: u32),
    /// It has returned, with `stream` current on the device of `end`, its collective's. What `holds` then: bit 0, the
    /// stream waits for the end; bit 1, the host knows it. Both are recorded if the runtime was not asked for
    /// them meanwhile; with number 0 nothing is.
    pub work_end: unsafe extern "C" fn(end: RawEnd, stream: u64, holds: u32),
    /// Reserved for the next version, null.
    pub reserved: [*const c_void; 2],
}

// SAFETY: the table holds function addresses and null pointers only, and is never written after it is made.
unsafe impl Sync for RecorderTable {}
