//! Streams and events by raw handle. CUDA reuses handles; each generation gets an id of its own.

use rustc_hash::FxHashMap;
use streamsan_trace::{BlockId, DeviceId, EventId, StreamId, ThreadId};

/// `cudaStreamLegacy`: the legacy default stream by another name.
pub const LEGACY: u64 = 1;
/// `cudaStreamPerThread`: a default stream for each host thread.
pub const PER_THREAD: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum StreamKey {
    Legacy(u32),
    PerThread(u32, ThreadId),
    Handle(u64),
}

fn key(handle: u64, device: u32, thread: ThreadId) -> StreamKey {
    match handle {
        0 | LEGACY => StreamKey::Legacy(device),
        PER_THREAD => StreamKey::PerThread(device, thread),
        handle => StreamKey::Handle(handle),
    }
}

/// A stream that the trace has not heard of yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewStream {
    pub id: StreamId,
    pub device: DeviceId,
    pub blocking: bool,
    pub legacy_default: bool,
    pub priority: i32,
}

/// All streams.
#[derive(Debug, Default)]
pub struct Streams {
    known: FxHashMap<StreamKey, StreamId>,
    /// By id: what the runtime calls it.
    places: Vec<(u64, u32)>,
}

impl Streams {
    /// Takes up a stream with this handle, in place of an older one.
    pub fn create(&mut self, handle: u64, device: u32, blocking: bool, priority: i32) -> NewStream {
        self.add(StreamKey::Handle(handle), handle, device, blocking, priority)
    }

    /// Takes up one more handle of a stream.
    pub fn alias(&mut self, handle: u64, stream: StreamId) {
        self.known.insert(StreamKey::Handle(handle), stream);
    }

    /// Forgets the handle.
    pub fn destroy(&mut self, handle: u64) -> Option<StreamId> {
        self.known.remove(&StreamKey::Handle(handle))
    }

    /// The stream's id, and what to announce if it is seen for the first time. A handle whose creation was not seen
    /// is taken for a non-blocking stream: that gives no order that may not exist.
    pub fn resolve(&mut self, handle: u64, device: u32, thread: ThreadId) -> (StreamId, Option<NewStream>) {
        let key = key(handle, device, thread);
        if let Some(&id) = self.known.get(&key) {
            return (id, None);
        }
        let blocking = !matches!(key, StreamKey::Handle(_));
        let handle = if matches!(key, StreamKey::Legacy(_)) { 0 } else { handle };
        let new = self.add(key, handle, device, blocking, 0);
        (new.id, Some(new))
    }

    /// Whether this is the handle of a default stream, which need not be created.
    pub fn is_default(handle: u64) -> bool {
        handle <= PER_THREAD
    }

    /// The stream's id if it was seen before.
    pub fn lookup(&self, handle: u64, device: u32, thread: ThreadId) -> Option<StreamId> {
        self.known.get(&key(handle, device, thread)).copied()
    }

    /// The raw handle and device of a stream.
    pub fn place(&self, id: StreamId) -> Option<(u64, u32)> {
        self.places.get(id.index()).copied()
    }

    fn add(&mut self, key: StreamKey, handle: u64, device: u32, blocking: bool, priority: i32) -> NewStream {
        let id = StreamId(self.places.len() as u32);
        self.places.push((handle, device));
        self.known.insert(key, id);
        let legacy_default = matches!(key, StreamKey::Legacy(_));
        NewStream { id, device: DeviceId(device), blocking, legacy_default, priority }
    }
}

/// Who made an event's last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// Never recorded.
    #[default]
    Nobody,
    Program,
    /// The device allocator, as far as is known yet.
    DeviceAllocator,
    PinnedAllocator,
    /// A process group, at the end of a collective.
    Collective,
}

/// One event handle.
#[derive(Clone, Debug, Default)]
pub struct EventState {
    /// Given at its first appearance in the trace; the device allocator's events never get one.
    id: Option<EventId>,
    pub maker: Maker,
    /// The stream of its last record.
    pub stream: Option<StreamId>,
    /// The freed blocks that its last record guards: one, unless it came late.
    pub guards: Vec<BlockId>,
    /// Which end of a collective its last record is, counted from 1; else 0.
    pub end: u64,
}

/// All events.
#[derive(Debug, Default)]
pub struct Events {
    known: FxHashMap<u64, EventState>,
    /// Program events without a handle, by object.
    objects: FxHashMap<u64, EventId>,
    ids: u32,
    /// How many ends of collectives were recorded.
    ends: u64,
}

impl Events {
    /// Takes up a handle, as a new generation.
    pub fn create(&mut self, handle: u64) {
        self.known.insert(handle, EventState::default());
    }

    /// Forgets a handle; gives the event's id if the trace has one.
    pub fn destroy(&mut self, handle: u64) -> Option<EventId> {
        self.known.remove(&handle)?.id
    }

    /// What is known of a handle.
    pub fn get(&self, handle: u64) -> EventState {
        self.known.get(&handle).cloned().unwrap_or_default()
    }

    /// The same, to be changed. A handle whose creation was not seen is taken up.
    pub fn entry(&mut self, handle: u64) -> &mut EventState {
        self.known.entry(handle).or_default()
    }

    /// The event's id in the trace.
    pub fn id(&mut self, handle: u64) -> EventId {
        let state = self.known.entry(handle).or_default();
        *state.id.get_or_insert_with(|| next(&mut self.ids))
    }

    /// The event was recorded by `maker` in `stream`, to guard these blocks.
    pub fn record(&mut self, handle: u64, stream: StreamId, maker: Maker, guards: Vec<BlockId>) {
        let is_end = maker == Maker::Collective;
        self.ends += u64::from(is_end);
        let end = if is_end { self.ends } else { 0 };
        let state = self.known.entry(handle).or_default();
        *state = EventState { id: state.id, maker, stream: Some(stream), guards, end };
    }

    /// The id of a program's event that has no handle yet.
    pub fn object(&mut self, object: u64) -> EventId {
        *self.objects.entry(object).or_insert_with(|| next(&mut self.ids))
    }
}

fn next(ids: &mut u32) -> EventId {
    *ids += 1;
    EventId(*ids - 1)
}
