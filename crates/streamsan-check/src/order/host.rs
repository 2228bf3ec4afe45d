//! What the host learns by waiting.

use super::{HappensBefore, Record, Role};
use crate::clock::{ChainId, Snapshot};
use streamsan_trace::{OpNumber, StreamId, ThreadId, WaitTarget};

impl HappensBefore {
    /// An edge as if the host had just waited for all work issued to `awaited`: a proposed fix.
    pub(crate) fn host_wait_for_stream(&mut self, awaited: StreamId, number: OpNumber) {
        let awaited = self.enter(awaited, number);
        self.host_learns(awaited, number);
    }

    /// An edge as if the host had just waited for all work issued to all streams of all devices.
    pub(crate) fn host_wait_for_everything(&mut self, number: OpNumber) {
        for chain in 1..self.stream_of_chain.len() {
            self.host_wait_for_stream(self.stream_of_chain[chain], number);
        }
    }

    /// The chains that a host wait for a stream or a device covers.
    fn covered(&mut self, target: WaitTarget) -> Vec<ChainId> {
        let mut chains = std::mem::take(&mut self.covered);
        chains.clear();
        match target {
            WaitTarget::Event(_) => {}
            WaitTarget::Stream(stream) => {
                let streams = std::iter::once(stream).chain(self.held_back_by(stream));
                chains.extend(streams.filter_map(|stream| self.chain_of(stream)));
            }
            WaitTarget::Device(device) => {
                let streams = self.devices.get(&device).map_or(&[][..], |state| &state.streams);
                chains.extend(streams.iter().filter_map(|&stream| self.chain_of(stream)));
            }
        }
        chains
    }

    /// What a wait for an event stands for, if the host does not know it yet.
    fn recorded(&self, target: WaitTarget) -> Option<&Snapshot> {
        let WaitTarget::Event(event) = target else { return None };
        self.records.get(&event)?.snapshot.as_ref()
    }

    /// The streams whose work the legacy default stream waits for: to synchronize it covers them too (seen on
    /// an H200 with CUDA 13). For any other stream: none.
    pub(super) fn held_back_by(&self, stream: StreamId) -> impl Iterator<Item = StreamId> {
        let state = self.streams.get(&stream).filter(|state| state.role == Role::LegacyDefault);
        let device = state.and_then(|state| self.devices.get(&state.device));
        device.map_or(&[][..], |device| &device.blocking).iter().copied()
    }

    /// A host wait has begun; it will cover what has been issued by now.
    pub(crate) fn begin_host_wait(&mut self, thread: ThreadId, target: WaitTarget) {
        let chains = self.covered(target);
        let now = chains.iter().map(|chain| self.chains[chain.index()].now());
        let covered = now.chain(self.recorded(target)).cloned().collect();
        self.covered = chains;
        self.begun.insert(thread, covered);
    }

    /// A host wait has ended from which the program learns nothing.
    pub(crate) fn end_host_wait(&mut self, thread: ThreadId) {
        self.begun.remove(&thread);
    }

    /// The host, as the program, learns that the target has finished. Says whether it did not know all of it.
    pub(crate) fn host_wait(&mut self, thread: ThreadId, target: WaitTarget, number: OpNumber) -> bool {
        let before = self.host_version;
        if let Some(covered) = self.begun.remove(&thread) {
            for snapshot in covered {
                let host = &mut self.chains[ChainId::HOST.index()];
                self.host_version += u64::from(host.learn(&snapshot, number, &mut self.pool));
                self.pool.take_back(snapshot);
            }
            return self.host_version != before;
        }
        if let WaitTarget::Event(event) = target
            && let Some(Record { snapshot: Some(snapshot), .. }) = self.records.get(&event)
        {
            let host = &mut self.chains[ChainId::HOST.index()];
            self.host_version += u64::from(host.learn(snapshot, number, &mut self.pool));
        }
        let chains = self.covered(target);
        for &chain in &chains {
            self.host_learns(chain, number);
        }
        self.covered = chains;
        self.host_version != before
    }
}
