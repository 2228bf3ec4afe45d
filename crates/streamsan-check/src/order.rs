//! Happens-before: which events of the log are ordered, by stream order, record and wait, host waits, and
//! the legacy default stream.
//!
//! The edges are those of CUDA's documents ("Stream synchronization behavior", "API synchronization
//! behavior", and the event management pages): work of one stream runs in issue order; a wait is after the
//! last record at the time of the call; work enqueued by the host starts after everything the host had seen
//! finish; the legacy default stream is ordered both ways with every blocking stream of its device.
//! The host is one chain: what one thread has waited for counts for all.
//!
//! Where the clocks would take too much memory ([`HappensBefore::forget`]) all that is past is taken for ordered.
//!
//! It can miss order that exists elsewhere: a flag in memory, another process.

mod host;
mod streams;

use crate::clock::{Chain, ChainId, ClockBytes, ClockPool, Epoch, Snapshot};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use streamsan_trace::{DeviceId, EventId, OpNumber, StreamId, ThreadId};

/// How a stream stands to the legacy default stream of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It is that stream.
    LegacyDefault,
    /// Ordered with it both ways.
    Blocking,
    /// Not ordered with it.
    NonBlocking,
}

/// A stream's part in the order.
#[derive(Debug)]
struct StreamState {
    device: DeviceId,
    role: Role,
    /// Given at the stream's first call.
    chain: Option<ChainId>,
    /// The host's version that the chain has joined last.
    host_version: u64,
}

impl StreamState {
    fn new(device: DeviceId, role: Role) -> Self {
        Self { device, role, chain: None, host_version: 0 }
    }
}

/// The last record of an event.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) stream: StreamId,
    /// What it stands for; `None` if the host knows all of it, and so whatever is enqueued from now on.
    snapshot: Option<Snapshot>,
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
    /// Rises whenever the host learns or does something.
    host_version: u64,
    /// The first is the host's.
    chains: Vec<Chain>,
    stream_of_chain: Vec<StreamId>,
    /// Chains of destroyed streams, to be continued by later streams.
    left_chains: Vec<ChainId>,
    active_streams: usize,
    streams: FxHashMap<StreamId, StreamState>,
    devices: BTreeMap<DeviceId, DeviceState>,
    records: FxHashMap<EventId, Record>,
    /// How many records there may be before those that the host has passed are looked for.
    records_limit: usize,
    /// What a host wait that has begun will cover, per thread.
    begun: FxHashMap<ThreadId, Vec<Snapshot>>,
    /// The last stream that brings nothing but what the host knew at this version: calls come in runs.
    entered: Option<(StreamId, ChainId, u64)>,
    pool: ClockPool,
    /// Empty between calls.
    covered: Vec<ChainId>,
}

const RECORDS_LIMIT: usize = 1024;
/// With fewer records each one brings the search: small programs are to take the same ways as large ones.
const FEW_RECORDS: usize = 16;

impl HappensBefore {
    pub(crate) fn new() -> Self {
        Self {
            host_version: 1,
            chains: vec![Chain::new(ChainId::HOST)],
            stream_of_chain: vec![StreamId(u32::MAX)],
            left_chains: Vec::new(),
            active_streams: 0,
            streams: FxHashMap::default(),
            devices: BTreeMap::new(),
            records: FxHashMap::default(),
            records_limit: 0,
            begun: FxHashMap::default(),
            entered: None,
            pool: ClockPool::default(),
            covered: Vec::new(),
        }
    }

    /// One chain learns what another one knows now.
    fn learn(&mut self, learner: ChainId, teacher: ChainId, number: OpNumber) -> bool {
        let both = [learner.index(), teacher.index()];
        let Ok([learner, teacher]) = self.chains.get_disjoint_mut(both) else { return false };
        learner.learn(teacher.now(), number, &mut self.pool)
    }

    fn host(&self) -> &Chain {
        &self.chains[ChainId::HOST.index()]
    }

    fn host_learns(&mut self, teacher: ChainId, number: OpNumber) {
        if self.learn(ChainId::HOST, teacher, number) {
            self.host_version += 1;
        }
    }

    /// The edges that any call on a stream brings: from the host, and to or from the legacy default stream.
    #[inline]
    fn enter(&mut self, stream: StreamId, number: OpNumber) -> ChainId {
        match self.entered {
            Some((last, chain, version)) if last == stream && version == self.host_version => chain,
            _ => self.enter_anew(stream, number),
        }
    }

    fn enter_anew(&mut self, stream: StreamId, number: OpNumber) -> ChainId {
        let state =
            self.streams.entry(stream).or_insert_with(|| StreamState::new(DeviceId(0), Role::NonBlocking));
        let (device, role) = (state.device, state.role);
        let outdated = std::mem::replace(&mut state.host_version, self.host_version) != self.host_version;
        let chain = state.chain.unwrap_or_else(|| {
            let chain = self.new_chain(stream);
            self.streams.entry(stream).and_modify(|state| state.chain = Some(chain));
            chain
        });
        if outdated {
            self.learn(chain, ChainId::HOST, number);
        }
        match role {
            Role::NonBlocking => self.entered = Some((stream, chain, self.host_version)),
            Role::Blocking => {
                let legacy = self.devices.get(&device).and_then(|device| device.legacy_default);
                if let Some(legacy) = legacy.and_then(|legacy| self.chain_of(legacy)) {
                    self.learn(chain, legacy, number);
                }
            }
            Role::LegacyDefault => {
                let count = self.devices.get(&device).map_or(0, |device| device.blocking.len());
                for index in 0..count {
                    let other = self.devices[&device].blocking[index];
                    if let Some(other) = self.chain_of(other) {
                        self.learn(chain, other, number);
                    }
                }
            }
        }
        chain
    }

    /// The chain of a stream that has had a call.
    pub(crate) fn chain_of(&self, stream: StreamId) -> Option<ChainId> {
        if let Some((_, chain, _)) = self.entered.filter(|&(last, ..)| last == stream) {
            return Some(chain);
        }
        self.streams.get(&stream)?.chain
    }

    /// An operation is enqueued in a stream: its epoch, after which the stream's chain stands at it.
    pub(crate) fn operation(&mut self, stream: StreamId, number: OpNumber) -> Epoch {
        let chain = self.enter(stream, number);
        self.chains[chain.index()].advance(number);
        Epoch { chain, number }
    }

    /// A graph is launched in a stream, after the launch before of the same executable: its epoch, and what whoever
    /// comes after it is ordered after.
    pub(crate) fn launch(
        &mut self,
        stream: StreamId,
        number: OpNumber,
        before: Option<&Snapshot>,
    ) -> (Epoch, Snapshot) {
        let chain = self.enter(stream, number);
        let state = &mut self.chains[chain.index()];
        if let Some(before) = before {
            state.learn(before, number, &mut self.pool);
        }
        state.advance(number);
        (Epoch { chain, number }, state.now().clone())
    }

    /// The host touches memory: its epoch.
    pub(crate) fn host_access(&mut self, number: OpNumber) -> Epoch {
        self.chains[ChainId::HOST.index()].advance(number);
        self.host_version += 1;
        Epoch { chain: ChainId::HOST, number }
    }

    pub(crate) fn record(&mut self, event: EventId, stream: StreamId, number: OpNumber) {
        let chain = self.enter(stream, number);
        let snapshot = Some(self.chains[chain.index()].now().clone());
        let earlier = self.records.insert(event, Record { stream, snapshot });
        if earlier.is_none() && self.records.len() > self.records_limit {
            self.tidy_records();
        }
        if let Some(snapshot) = earlier.and_then(|earlier| earlier.snapshot) {
            self.pool.take_back(snapshot);
        }
    }

    /// The event gets no more calls; a host wait for it that has begun has noted what it covers.
    pub(crate) fn destroy_event(&mut self, event: EventId) {
        if let Some(snapshot) = self.records.remove(&event).and_then(|record| record.snapshot) {
            self.pool.take_back(snapshot);
        }
    }

    /// Whether so many clocks were made that those in use should be counted.
    #[inline]
    pub(crate) fn should_count_clocks(&self) -> bool {
        self.pool.should_count()
    }

    /// Counts the clocks in use, with those that are kept elsewhere; says whether they take more memory than they may.
    pub(crate) fn clocks_are_too_many<'a>(&mut self, elsewhere: impl Iterator<Item = &'a Snapshot>) -> bool {
        let mut in_use = ClockBytes::default();
        self.snapshots().for_each(|snapshot| in_use.add(snapshot));
        elsewhere.for_each(|snapshot| in_use.add(snapshot));
        self.pool.counted(&in_use);
        in_use.too_many()
    }

    /// What chains know, and what is kept of it.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        let records = self.records.values().filter_map(|record| record.snapshot.as_ref());
        self.chains.iter().map(Chain::now).chain(records).chain(self.begun.values().flatten())
    }

    /// Exchanges the memory for clocks, and what is known of how much it is.
    pub(crate) fn swap_pool(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.pool, &mut other.pool);
    }

    /// Takes everything up to here for ordered before everything that comes, as if the host had waited for all of it.
    pub(crate) fn forget(&mut self, number: OpNumber) {
        self.records.values_mut().for_each(|record| record.snapshot = None);
        self.begun.values_mut().for_each(Vec::clear);
        self.chains = Chain::all_at(number, self.chains.len());
        self.host_version += 1;
        self.pool.forget();
    }

    /// Lets go of what records stand for where the host knows all of it: a wait on such a record orders nothing
    /// that is not ordered anyway.
    fn tidy_records(&mut self) {
        let host = self.chains[ChainId::HOST.index()].now();
        let mut kept = 0;
        for record in self.records.values_mut() {
            if let Some(snapshot) = record.snapshot.take_if(|snapshot| host.includes(snapshot)) {
                self.pool.take_back(snapshot);
            }
            kept += usize::from(record.snapshot.is_some());
        }
        let limit = self.records.len() + kept + RECORDS_LIMIT;
        self.records_limit = if self.records.len() < FEW_RECORDS { 0 } else { limit };
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
        let new = record
            .snapshot
            .as_ref()
            .is_some_and(|snapshot| self.chains[chain.index()].learn(snapshot, number, &mut self.pool));
        WaitOutcome::Edge { from: record.stream, new }
    }

    /// The allocator records a guard in a stream: what it is ordered after. Like any record it holds back what
    /// the legacy default stream synchronizes with.
    pub(crate) fn guard(&mut self, stream: StreamId, number: OpNumber) -> Snapshot {
        let chain = self.enter(stream, number);
        self.chains[chain.index()].now().clone()
    }

    /// A snapshot is no longer needed.
    pub(crate) fn take_back(&mut self, snapshot: Snapshot) {
        self.pool.take_back(snapshot);
    }

    /// What everything issued to the stream from now on is ordered after. Nothing is enqueued, so no other
    /// stream learns of it.
    ///
    /// The chain may learn from the host at once: whoever learns from the chain knows what the host knows.
    pub(crate) fn knowledge(&mut self, stream: StreamId, number: OpNumber) -> Snapshot {
        let Some(state) = self.streams.get_mut(&stream) else { return self.host().now().clone() };
        let (device, role, chain) = (state.device, state.role, state.chain);
        if let Some(chain) = chain
            && std::mem::replace(&mut state.host_version, self.host_version) != self.host_version
        {
            self.learn(chain, ChainId::HOST, number);
        }
        let now = self.chains[chain.unwrap_or(ChainId::HOST).index()].now().clone();
        let legacy = match role {
            Role::NonBlocking => return now,
            Role::LegacyDefault => None,
            Role::Blocking => self.devices.get(&device).and_then(|device| device.legacy_default),
        };
        let mut pool = std::mem::take(&mut self.pool);
        let mut chain = Chain::from(now);
        for other in self.held_back_by(stream).chain(legacy).filter(|&other| other != stream) {
            if let Some(other) = self.chain_of(other) {
                chain.learn(self.chains[other.index()].now(), number, &mut pool);
            }
        }
        self.pool = pool;
        chain.into_now()
    }

    /// An edge as if `waiter` had just waited for all work issued to `awaited`: a proposed fix.
    pub(crate) fn wait_for_stream(&mut self, waiter: StreamId, awaited: StreamId, number: OpNumber) {
        if waiter != awaited {
            let awaited = self.enter(awaited, number);
            let waiter = self.enter(waiter, number);
            self.learn(waiter, awaited, number);
        }
    }

    /// An edge as if `waiter` had just waited for an event that stands for this.
    pub(crate) fn wait_for(&mut self, waiter: StreamId, snapshot: &Snapshot, number: OpNumber) {
        let waiter = self.enter(waiter, number);
        self.chains[waiter.index()].learn(snapshot, number, &mut self.pool);
    }

    /// Whether the host knows the event, and so every chain before whatever it does next.
    pub(crate) fn passed(&self, earlier: Epoch) -> bool {
        self.host().is_after(earlier)
    }

    /// Whether an event of the past is ordered before all that the stream does next, as can be seen at once.
    pub(crate) fn before_all_of(&self, earlier: Epoch, stream: StreamId) -> bool {
        self.chain_of(stream).is_some_and(|chain| self.ordered(earlier, chain)) || self.passed(earlier)
    }

    /// What `chain` knows now.
    pub(crate) fn chain(&self, chain: ChainId) -> &Chain {
        &self.chains[chain.index()]
    }

    /// Whether `earlier` is ordered before what `chain` does now.
    pub(crate) fn ordered(&self, earlier: Epoch, chain: ChainId) -> bool {
        earlier.chain == chain || self.chains[chain.index()].is_after(earlier)
    }

    /// How far `chain` knows `other`: the last event of `other` that is ordered before what `chain` does now.
    pub(crate) fn ordered_up_to(&self, other: ChainId, chain: ChainId) -> OpNumber {
        self.chains[chain.index()].knows(other)
    }
}

#[cfg(test)]
mod tests;
