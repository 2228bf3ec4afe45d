//! Streams begin and end, and get chains.

use super::{DeviceState, HappensBefore, Role, StreamState};
use crate::clock::{Chain, ChainId};
use streamsan_trace::{DeviceId, StreamId};

impl HappensBefore {
    pub(crate) fn create_stream(
        &mut self,
        stream: StreamId,
        device: DeviceId,
        blocking: bool,
        legacy_default: bool,
    ) {
        let role = match (legacy_default, blocking) {
            (true, _) => Role::LegacyDefault,
            (false, true) => Role::Blocking,
            (false, false) => Role::NonBlocking,
        };
        self.entered = None;
        self.streams.insert(stream, StreamState::new(device, role));
        let device_state = self.devices.entry(device).or_default();
        device_state.streams.push(stream);
        match role {
            Role::LegacyDefault => device_state.legacy_default = Some(stream),
            Role::Blocking => device_state.blocking.push(stream),
            Role::NonBlocking => {}
        }
    }

    /// The stream gets no more calls; what it holds still completes.
    pub(crate) fn destroy_stream(&mut self, stream: StreamId) {
        match self.streams.get(&stream).map(|state| state.chain) {
            Some(Some(chain)) if self.left_chains.contains(&chain) => {}
            Some(Some(chain)) => self.left_chains.push(chain),
            Some(None) => self.forget_stream(stream),
            None => {}
        }
    }

    fn forget_stream(&mut self, stream: StreamId) {
        self.entered = None;
        let Some(state) = self.streams.remove(&stream) else { return };
        let Some(device) = self.devices.get_mut(&state.device) else { return };
        device.streams.retain(|&other| other != stream);
        device.blocking.retain(|&other| other != stream);
        device.legacy_default = device.legacy_default.filter(|&other| other != stream);
    }

    /// Whether anything is known of the stream: not if it was destroyed and all of its work was waited for.
    pub(crate) fn is_known(&self, stream: StreamId) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Whether the stream is the legacy default stream of its device.
    pub(crate) fn is_legacy_default(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|state| state.role == Role::LegacyDefault)
    }

    /// Whether the legacy default stream and this one wait for each other: it is blocking, or that stream itself.
    pub(crate) fn is_synchronizing(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|state| state.role != Role::NonBlocking)
    }

    /// The stream of a chain; `None` for the host.
    pub(crate) fn stream(&self, chain: ChainId) -> Option<StreamId> {
        if chain == ChainId::HOST { None } else { self.stream_of_chain.get(chain.index()).copied() }
    }

    /// How many streams have done something.
    pub(crate) fn active_streams(&self) -> usize {
        self.active_streams
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

    /// A chain for a stream's first call.
    ///
    /// The chain of a destroyed stream can be continued when the host knows all of it: then each of its events
    /// is ordered before whatever is still to come, on any chain.
    pub(super) fn new_chain(&mut self, stream: StreamId) -> ChainId {
        self.active_streams += 1;
        let host = self.host().now();
        let left = |&chain: &ChainId| host.includes(self.chains[chain.index()].now());
        if let Some(index) = self.left_chains.iter().position(left) {
            let chain = self.left_chains.swap_remove(index);
            let earlier = std::mem::replace(&mut self.stream_of_chain[chain.index()], stream);
            self.forget_stream(earlier);
            return chain;
        }
        let chain = ChainId(self.chains.len() as u32);
        self.chains.push(Chain::new(chain));
        self.stream_of_chain.push(stream);
        chain
    }
}
