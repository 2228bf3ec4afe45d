//! Happens-before: which events of the log are ordered, by stream order, record and wait, host waits, and
//! the legacy default stream.
//!
//! The edges are those of CUDA's documents ("Stream synchronization behavior", "API synchronization
//! behavior", and the event management pages): work of one stream runs in issue order; a wait is after the
//! last record at the time of the call; work enqueued by the host starts after everything the host had seen
//! finish; the legacy default stream is ordered both ways with every blocking stream of its device.
//! The host is one chain: what one thread has waited for counts for all.
//!
//! It can miss order that exists elsewhere: a flag in memory, another process.

use crate::clock::{Chain, ChainId, Epoch, Snapshot};
use std::collections::{BTreeMap, HashMap};
use streamsan_trace::{DeviceId, EventId, OpNumber, StreamId, ThreadId, WaitTarget};

/// A stream's part in the order.
#[derive(Debug)]
struct StreamState {
    device: DeviceId,
    blocking: bool,
    chain: Option<ChainId>,
    /// The host's version that the chain has joined last.
    host_version: u64,
}

/// The last record of an event.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) stream: StreamId,
    snapshot: Snapshot,
}

/// Legacy default stream of a device and the blocking streams it synchronizes with.
#[derive(Debug, Default)]
struct DeviceState {
    legacy_default: Option<StreamId>,
    blocking: Vec<StreamId>,
    streams: Vec<StreamId>,
}

/// What a stream wait did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// The event had never been recorded: no edge.
    Unrecorded,
    /// The event was recorded in the waiting stream itself: no new edge.
    SelfWait,
    /// An edge from this stream; `new` says whether it ordered anything that was not ordered before.
    Edge { from: StreamId, new: bool },
}

/// The order of a trace, as far as it has been read.
#[derive(Debug)]
pub(crate) struct HappensBefore {
    host: Chain,
    host_version: u64,
    chains: Vec<Chain>,
    stream_of_chain: Vec<StreamId>,
    streams: BTreeMap<StreamId, StreamState>,
    devices: BTreeMap<DeviceId, DeviceState>,
    records: HashMap<EventId, Record>,
    /// What a host wait that has begun will cover, per thread.
    begun: HashMap<ThreadId, Vec<Snapshot>>,
}

impl HappensBefore {
    pub(crate) fn new() -> Self {
        Self {
            host: Chain::new(ChainId::HOST),
            host_version: 1,
            chains: vec![Chain::new(ChainId::HOST)],
            stream_of_chain: vec![StreamId(u32::MAX)],
            streams: BTreeMap::new(),
            devices: BTreeMap::new(),
            records: HashMap::new(),
            begun: HashMap::new(),
        }
    }

    pub(crate) fn create_stream(
        &mut self,
        stream: StreamId,
        device: DeviceId,
        blocking: bool,
        legacy_default: bool,
    ) {
        self.streams.insert(stream, StreamState { device, blocking, chain: None, host_version: 0 });
        let device_state = self.devices.entry(device).or_default();
        device_state.streams.push(stream);
        if legacy_default {
            device_state.legacy_default = Some(stream);
        } else if blocking {
            device_state.blocking.push(stream);
        }
    }

    /// Whether the stream is the legacy default stream of its device.
    pub(crate) fn is_legacy_default(&self, stream: StreamId) -> bool {
        let device = self.streams.get(&stream).and_then(|state| self.devices.get(&state.device));
        device.is_some_and(|device| device.legacy_default == Some(stream))
    }

    /// The stream of a chain; `None` for the host.
    pub(crate) fn stream(&self, chain: ChainId) -> Option<StreamId> {
        if chain == ChainId::HOST { None } else { self.stream_of_chain.get(chain.index()).copied() }
    }

    /// How many streams have done something.
    pub(crate) fn active_streams(&self) -> usize {
        self.chains.len() - 1
    }

    /// How many devices have had something to do.
    pub(crate) fn active_devices(&self) -> usize {
        let active = |state: &&DeviceState| {
            state
                .streams
                .iter()
                .any(|stream| self.streams.get(stream).is_some_and(|state| state.chain.is_some()))
        };
        self.devices.values().filter(active).count()
    }

    fn chain_of(&mut self, stream: StreamId) -> ChainId {
        let state = self.streams.entry(stream).or_insert(StreamState {
            device: DeviceId(0),
            blocking: false,
            chain: None,
            host_version: 0,
        });
        *state.chain.get_or_insert_with(|| {
            let id = ChainId(self.chains.len() as u32);
            self.chains.push(Chain::new(id));
            self.stream_of_chain.push(stream);
            id
        })
    }

    /// The edges that any call on a stream brings: from the host, and to or from the legacy default stream.
    fn enter(&mut self, stream: StreamId, number: OpNumber) -> ChainId {
        let chain = self.chain_of(stream);
        let state = self.streams.get_mut(&stream).expect("chain_of has made it");
        let (device, blocking) = (state.device, state.blocking);
        if state.host_version != self.host_version {
            state.host_version = self.host_version;
            let host = self.host.snapshot();
            self.chains[chain.index()].learn(&host, number);
        }
        let Some(device_state) = self.devices.get(&device) else { return chain };
        if device_state.legacy_default == Some(stream) {
            for other in device_state.blocking.clone() {
                if let Some(snapshot) = self.snapshot_of(other) {
                    self.chains[chain.index()].learn(&snapshot, number);
                }
            }
        } else if blocking
            && let Some(legacy) = device_state.legacy_default
            && let Some(snapshot) = self.snapshot_of(legacy)
        {
            self.chains[chain.index()].learn(&snapshot, number);
        }
        chain
    }

    fn snapshot_of(&self, stream: StreamId) -> Option<Snapshot> {
        let chain = self.streams.get(&stream)?.chain?;
        Some(self.chains[chain.index()].snapshot())
    }

    /// An operation is enqueued in a stream: its epoch, after which the stream's chain stands at it.
    pub(crate) fn operation(&mut self, stream: StreamId, number: OpNumber) -> Epoch {
        let chain = self.enter(stream, number);
        self.chains[chain.index()].advance(number);
        Epoch { chain, number }
    }

    /// The host touches memory: its epoch.
    pub(crate) fn host_access(&mut self, number: OpNumber) -> Epoch {
        self.host.advance(number);
        self.host_version += 1;
        Epoch { chain: ChainId::HOST, number }
    }

    pub(crate) fn record(&mut self, event: EventId, stream: StreamId, number: OpNumber) {
        let chain = self.enter(stream, number);
        let snapshot = self.chains[chain.index()].snapshot();
        self.records.insert(event, Record { stream, snapshot });
    }

    pub(crate) fn last_record(&self, event: EventId) -> Option<&Record> {
        self.records.get(&event)
    }

    pub(crate) fn wait(&mut self, event: EventId, stream: StreamId, number: OpNumber) -> WaitOutcome {
        if !self.records.contains_key(&event) {
            return WaitOutcome::Unrecorded; // Nothing is enqueued.
        }
        let chain = self.enter(stream, number);
        let record = &self.records[&event];
        if record.stream == stream {
            return WaitOutcome::SelfWait;
        }
        let new = self.chains[chain.index()].learn(&record.snapshot, number);
        WaitOutcome::Edge { from: record.stream, new }
    }

    /// The allocator records a guard in a stream: what it is ordered after. Like any record it holds back what
    /// the legacy default stream synchronizes with.
    pub(crate) fn guard(&mut self, stream: StreamId, number: OpNumber) -> Snapshot {
        let chain = self.enter(stream, number);
        self.chains[chain.index()].snapshot()
    }

    /// What everything issued to the stream from now on is ordered after. Nothing is enqueued, so no other
    /// stream learns of it.
    pub(crate) fn knowledge(&self, stream: StreamId, number: OpNumber) -> Snapshot {
        let state = self.streams.get(&stream);
        let chain = state.and_then(|state| state.chain);
        let mut chain =
            chain.map_or_else(|| Chain::new(ChainId(u32::MAX)), |chain| self.chains[chain.index()].clone());
        chain.learn(&self.host.snapshot(), number);
        let Some(device) = state.and_then(|state| self.devices.get(&state.device)) else {
            return chain.snapshot();
        };
        let legacy = device.legacy_default.filter(|_| state.is_some_and(|state| state.blocking));
        for other in self.held_back_by(stream).chain(legacy).filter(|&other| other != stream) {
            let Some(snapshot) = self.snapshot_of(other) else { continue };
            chain.learn(&snapshot, number);
        }
        chain.snapshot()
    }

    /// An edge as if `waiter` had just waited for all work issued to `awaited`: a proposed fix.
    pub(crate) fn wait_for_stream(&mut self, waiter: StreamId, awaited: StreamId, number: OpNumber) {
        if waiter == awaited {
            return;
        }
        self.enter(awaited, number);
        let chain = self.enter(waiter, number);
        if let Some(snapshot) = self.snapshot_of(awaited) {
            self.chains[chain.index()].learn(&snapshot, number);
        }
    }

    /// An edge as if the host had just waited for all work issued to `awaited`: a proposed fix.
    pub(crate) fn host_wait_for_stream(&mut self, awaited: StreamId, number: OpNumber) {
        self.enter(awaited, number);
        if let Some(snapshot) = self.snapshot_of(awaited)
            && self.host.learn(&snapshot, number)
        {
            self.host_version += 1;
        }
    }

    /// An edge as if the host had just waited for all work issued to all streams of all devices.
    pub(crate) fn host_wait_for_everything(&mut self, number: OpNumber) {
        let used = self.streams.iter().filter(|(_, state)| state.chain.is_some());
        for stream in used.map(|(&stream, _)| stream).collect::<Vec<_>>() {
            self.host_wait_for_stream(stream, number);
        }
    }

    fn covered(&self, target: WaitTarget) -> Vec<Snapshot> {
        match target {
            WaitTarget::Event(event) => {
                self.records.get(&event).map(|record| record.snapshot.clone()).into_iter().collect()
            }
            WaitTarget::Stream(stream) => {
                let own = self.snapshot_of(stream);
                own.into_iter()
                    .chain(self.held_back_by(stream).filter_map(|other| self.snapshot_of(other)))
                    .collect()
            }
            WaitTarget::Device(device) => {
                let streams = self.devices.get(&device).map_or(&[][..], |state| &state.streams);
                streams.iter().filter_map(|&stream| self.snapshot_of(stream)).collect()
            }
        }
    }

    /// The streams whose work the legacy default stream waits for: to synchronize it covers them too (seen on
    /// an H200 with CUDA 13). For any other stream: none.
    fn held_back_by(&self, stream: StreamId) -> impl Iterator<Item = StreamId> {
        let device = self.streams.get(&stream).and_then(|state| self.devices.get(&state.device));
        let device = device.filter(|device| device.legacy_default == Some(stream));
        device.map_or(&[][..], |device| &device.blocking).iter().copied()
    }

    /// A host wait has begun; it will cover what has been issued by now.
    pub(crate) fn begin_host_wait(&mut self, thread: ThreadId, target: WaitTarget) {
        let covered = self.covered(target);
        self.begun.insert(thread, covered);
    }

    /// The host, as the program, learns that the target has finished.
    pub(crate) fn host_wait(&mut self, thread: ThreadId, target: WaitTarget, number: OpNumber) {
        let covered = self.begun.remove(&thread).unwrap_or_else(|| self.covered(target));
        for snapshot in covered {
            if self.host.learn(&snapshot, number) {
                self.host_version += 1;
            }
        }
    }

    /// Whether `earlier` is ordered before what `chain` does now.
    pub(crate) fn ordered(&self, earlier: Epoch, chain: ChainId) -> bool {
        earlier.chain == chain || self.chain(chain).is_after(earlier)
    }

    /// How far `chain` knows `other`: the last event of `other` that is ordered before what `chain` does now.
    pub(crate) fn ordered_up_to(&self, other: ChainId, chain: ChainId) -> OpNumber {
        self.chain(chain).knows(other)
    }

    fn chain(&self, chain: ChainId) -> &Chain {
        if chain == ChainId::HOST { &self.host } else { &self.chains[chain.index()] }
    }
}
