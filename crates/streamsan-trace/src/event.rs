//! Events: one entry of the log each.

use crate::{
    BlockId, DeviceId, EventId, ExecutableId, GraphId, LabelId, OpNumber, SiteId, StreamId, StringId,
    ThreadId,
};

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the log.
    pub number: OpNumber,
    /// The host thread that made the call.
    pub thread: ThreadId,
    /// The call stack at the call.
    pub site: SiteId,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A stream came into being. A legacy default stream is announced before its first use.
    StreamCreate {
        /// The new stream.
        stream: StreamId,
        /// Its device.
        device: DeviceId,
        /// Whether it synchronizes with the legacy default stream (created without the non-blocking flag).
        blocking: bool,
        /// Whether it is the legacy default stream of its device (handle 0).
        legacy_default: bool,
        /// CUDA's priority; lower is more urgent.
        priority: i32,
    },
    /// A stream was destroyed. Work that it holds still completes.
    StreamDestroy {
        /// The stream.
        stream: StreamId,
    },
    /// An event was recorded in a stream: it now stands for all work issued to the stream before.
    EventRecord {
        /// The event.
        event: EventId,
        /// The stream.
        stream: StreamId,
    },
    /// A stream was made to wait for the last record of an event; without a record the call does nothing.
    EventWait {
        /// The event.
        event: EventId,
        /// The stream that waits.
        stream: StreamId,
    },
    /// An event was destroyed. Waits for it that were issued before keep their meaning; nothing names it any more.
    EventDestroy {
        /// The event.
        event: EventId,
    },
    /// The host began to wait. Present only if other events may lie between the call and its return; the
    /// next [`EventKind::HostWait`] of the same thread covers what was issued before this event.
    HostWaitBegin {
        /// What it waits for.
        target: WaitTarget,
    },
    /// The host learned that work has finished.
    HostWait {
        /// What has finished.
        target: WaitTarget,
        /// On whose behalf the call was made.
        observer: Observer,
        /// How it learned it.
        how: HostWaitHow,
    },
    /// Work was enqueued in a stream.
    Op {
        /// The stream.
        stream: StreamId,
        /// Its name.
        label: LabelId,
        /// What sort of work.
        kind: OpKind,
        /// The stack of the forward operation if this is one of backward; else the empty stack.
        forward_site: SiteId,
        /// The bytes it touches.
        accesses: AccessRange,
    },
    /// A block was handed out. Its bytes are those of `address .. address + size` in `space`.
    Alloc {
        /// The new generation.
        block: BlockId,
        /// The owner stream; for host memory and raw allocations the stream is unused.
        stream: StreamId,
        /// Where the bytes lie.
        space: MemorySpace,
        /// First byte.
        address: u64,
        /// Bytes asked for, or 0 if not known yet (a later [`EventKind::BlockSize`] says).
        size: u64,
    },
    /// The size of a block became known.
    BlockSize {
        /// The block.
        block: BlockId,
        /// Bytes.
        size: u64,
    },
    /// The last reference to a block went: it was given back to its allocator.
    FreeRequest {
        /// The block.
        block: BlockId,
    },
    /// The allocator recorded an event at the free: the block may be handed out again only after the work
    /// issued to `stream` so far.
    FreeGuard {
        /// The block.
        block: BlockId,
        /// The stream whose work guards the block.
        stream: StreamId,
    },
    /// The allocator saw all guards of the block finished.
    FreeDone {
        /// The block.
        block: BlockId,
    },
    /// The host touched bytes itself.
    HostAccess {
        /// What did it: an operation's name, or "memory access".
        label: LabelId,
        /// The bytes.
        accesses: AccessRange,
    },
    /// A raw pointer to a block was given away; accesses through it are not seen.
    Escape {
        /// The block.
        block: BlockId,
        /// To what: `.numpy()`, `data_ptr()`, …
        label: LabelId,
    },
    /// `record_stream` was called: the stream's work guards the block when it is freed.
    RecordStream {
        /// The block; 0 if the memory is not the caching allocator's, such as a CPU tensor's.
        block: BlockId,
        /// The stream.
        stream: StreamId,
    },
    /// The program made a stream object. Objects can share a stream: torch has 32 for each priority.
    StreamObject {
        /// The stream that the object stands for.
        stream: StreamId,
        /// Counts the objects of the process, from 1.
        object: u32,
        /// How many earlier objects of the same stream are still alive.
        sharers: u32,
    },
    /// A name for a stream or block.
    Name {
        /// What is named.
        subject: Subject,
        /// The name.
        name: StringId,
        /// Whether the user gave it (`streamsan.name`) rather than its place in the code.
        by_user: bool,
    },
    /// A range of the program began in this thread. Ranges of one thread are nested.
    RangeBegin {
        /// What sort of range.
        kind: RangeKind,
        /// What it says: a name, or the rules to ignore and why.
        label: StringId,
    },
    /// The last range of this kind that the thread began has ended.
    RangeEnd {
        /// What sort of range.
        kind: RangeKind,
    },
    /// A stream began to capture: until the end of the capture, what is enqueued in it becomes nodes of a graph and
    /// does not run. Another stream joins when it waits for an event that was recorded in a capturing stream.
    CaptureBegin {
        /// The graph that is made.
        graph: GraphId,
        /// The stream.
        stream: StreamId,
    },
    /// The capture ended, for all streams that had joined it.
    CaptureEnd {
        /// The graph.
        graph: GraphId,
        /// The stream in which the capture began.
        stream: StreamId,
        /// Whether there is a graph. Not if the capture was made invalid, such as by a synchronize call, or given up.
        valid: bool,
    },
    /// An executable has the nodes of a graph: it was instantiated, or updated (the same executable again).
    GraphInstantiate {
        /// The graph; 0 if it was not seen being captured.
        graph: GraphId,
        /// The executable.
        executable: ExecutableId,
    },
    /// An executable was launched in a stream: one operation of it, which does what the nodes do.
    GraphLaunch {
        /// The executable.
        executable: ExecutableId,
        /// The stream.
        stream: StreamId,
        /// Its name.
        label: LabelId,
    },
    /// A graph was destroyed. Executables made of it stay.
    GraphDestroy {
        /// The graph.
        graph: GraphId,
    },
    /// An executable was destroyed. Launches that were made still complete.
    ExecutableDestroy {
        /// The executable.
        executable: ExecutableId,
    },
    /// A block came from the memory that graphs keep, though nothing was captured when it was handed out: torch was told
    /// to take it from the pool of a graph. Follows its allocation.
    GraphMemory {
        /// The block.
        block: BlockId,
    },
    /// Something could not be seen.
    Gap {
        /// Why.
        reason: GapReason,
        /// What, for people: a kernel's name, a call's name.
        detail: StringId,
    },
}

/// A run of accesses in a trace's access list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessRange {
    /// Index of the first.
    pub start: u32,
    /// How many.
    pub count: u32,
}

/// What a host wait covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitTarget {
    /// The last record of an event.
    Event(EventId),
    /// All work issued to a stream.
    Stream(StreamId),
    /// All work issued to all streams of a device.
    Device(DeviceId),
}

/// On whose behalf the host learned that work has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Observer {
    /// The program: what it does next is ordered after the work.
    Program = 0,
    /// torch's device allocator, which may now hand a block out again. Orders nothing else.
    DeviceAllocator = 1,
    /// torch's pinned allocator, likewise.
    PinnedAllocator = 2,
    /// A library's own thread, such as a watchdog. Orders nothing.
    Library = 3,
}

/// How the host learned that work has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HostWaitHow {
    /// A synchronize call.
    Synchronize = 0,
    /// A query that answered "finished".
    Query = 1,
    /// `elapsed_time`, which answers only when both events have finished.
    Elapsed = 2,
    /// A call that waits inside: a blocking copy, or an operation that reads its result back.
    Blocking = 3,
}

/// What sort of work an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// A kernel, or an operator that launches kernels.
    Kernel = 0,
    /// A copy from host to device.
    CopyHostToDevice = 1,
    /// A copy from device to host.
    CopyDeviceToHost = 2,
    /// A copy on or between devices.
    CopyDeviceToDevice = 3,
    /// A copy within host memory, enqueued in a stream.
    CopyHostToHost = 4,
    /// A memset.
    Memset = 5,
    /// A function run on the host in stream order.
    HostFunction = 6,
    /// A collective.
    Collective = 7,
    /// A graph launch. The log has [`EventKind::GraphLaunch`] for it; reports use this for a node of a launch.
    GraphLaunch = 8,
}

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemorySpace {
    /// Device memory handed out by torch's caching allocator.
    Cached(DeviceId),
    /// Device memory of a plain CUDA allocation.
    Device(DeviceId),
    /// Page-locked host memory.
    Pinned,
    /// Ordinary host memory.
    Pageable,
}

/// What a name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A stream.
    Stream(StreamId),
    /// A block.
    Block(BlockId),
}

/// What a range of the program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RangeKind {
    /// A part of the program that a check is limited to: `streamsan.sanitize`, a test.
    Region = 0,
    /// Findings of some rules are not wanted in it. The label holds the rules, separated by commas, a space,
    /// and the reason.
    Ignore = 1,
}

/// Why something could not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum GapReason {
    /// A kernel was launched that no operator accounts for; what it touches is not known (SS902).
    OpaqueKernel = 0,
    /// A CUDA call that is not implemented or not modelled (SS901).
    UnsupportedCall = 1,
    /// Events were lost: the disk was full, or a buffer could not be had (SS901).
    Lost = 2,
    /// An operator whose accesses could not be read from its schema (SS902).
    UnknownOperator = 3,
    /// A process forked; what the child did is not in this trace (SS901).
    Forked = 4,
    /// The trace was not closed: the process was killed or left by `_exit` (SS901).
    NotClosed = 5,
    /// The file is cut off or damaged after the events that were read (SS901).
    Damaged = 6,
    /// An access whose overlap could not be decided within the effort allowed (SS902).
    Undecided = 7,
    /// A raw pointer to page-locked memory was given away while copies use the memory (SS902).
    Escaped = 8,
    /// A graph was launched that was not seen being captured; what its nodes touch is not known (SS902).
    UnseenGraph = 9,
    /// There were so many streams that know of each other that what came before was taken for ordered (SS901).
    Forgotten = 10,
    /// A kernel was launched that the virtual device does not run: what it touches is known, what it would have computed
    /// is missing from the results (SS902).
    NotComputed = 11,
}
