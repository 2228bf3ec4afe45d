//! Lanes: the host, and each stream that was used, in order of first use.

use std::collections::HashMap;
use streamsan_trace::{BlockId, DeviceId, Event, EventKind, MemorySpace, StreamId, WaitTarget};

/// Index of the host's lane.
pub(crate) const HOST: usize = 0;

/// The host or one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// `None`: the host.
    pub(crate) stream: Option<StreamId>,
    /// Its device.
    pub(crate) device: DeviceId,
    /// Operations issued to it, or accesses by the host.
    pub(crate) operations: u64,
    /// Whether it synchronizes with the legacy default stream by itself.
    pub(crate) blocking: bool,
    /// Whether it is the legacy default stream of its device.
    pub(crate) legacy_default: bool,
}

/// All lanes, with what is known of streams that have done nothing yet.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// The host first.
    pub(crate) list: Vec<Lane>,
    of_stream: HashMap<StreamId, usize>,
    /// The stream that was used last, and its lane: what comes next is often of the same one.
    latest: Option<(StreamId, usize)>,
    created: HashMap<StreamId, Lane>,
}

impl Default for Lanes {
    fn default() -> Self {
        let host =
            Lane { stream: None, device: DeviceId(0), operations: 0, blocking: false, legacy_default: false };
        Self { list: vec![host], of_stream: HashMap::new(), latest: None, created: HashMap::new() }
    }
}

impl Lanes {
    /// The lane of a stream that was used.
    pub(crate) fn of(&self, stream: StreamId) -> Option<usize> {
        self.of_stream.get(&stream).copied()
    }

    /// Takes an event; gives its lane if it is one that is drawn. `owner`: of a block, if it has one.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        owner: impl Fn(BlockId) -> Option<StreamId>,
    ) -> Option<usize> {
        Some(match event.kind {
            EventKind::StreamCreate { stream, device, blocking, legacy_default, .. } => {
                let lane = Lane { stream: Some(stream), device, operations: 0, blocking, legacy_default };
                self.created.insert(stream, lane);
                return None;
            }
            EventKind::Op { stream, .. } | EventKind::GraphLaunch { stream, .. } => {
                let lane = self.used(stream);
                self.list[lane].operations += 1;
                lane
            }
            EventKind::HostAccess { .. } => {
                self.list[HOST].operations += 1;
                HOST
            }
            EventKind::HostWait { target, .. } => {
                if let WaitTarget::Stream(stream) = target {
                    self.used(stream);
                }
                HOST
            }
            EventKind::EventRecord { stream, .. }
            | EventKind::EventWait { stream, .. }
            | EventKind::Alloc { stream, space: MemorySpace::Cached(_), .. }
            | EventKind::RecordStream { stream, .. }
            | EventKind::FreeGuard { stream, .. } => self.used(stream),
            EventKind::Alloc { .. } => HOST,
            EventKind::FreeRequest { block } => owner(block).map_or(HOST, |stream| self.used(stream)),
            _ => return None,
        })
    }

    fn used(&mut self, stream: StreamId) -> usize {
        if let Some((_, lane)) = self.latest.filter(|(latest, _)| *latest == stream) {
            return lane;
        }
        let lane = self.lane_of(stream);
        self.latest = Some((stream, lane));
        lane
    }

    fn lane_of(&mut self, stream: StreamId) -> usize {
        if let Some(&lane) = self.of_stream.get(&stream) {
            return lane;
        }
        let unknown = Lane {
            stream: Some(stream),
            device: DeviceId(0),
            operations: 0,
            blocking: false,
            legacy_default: false,
        };
        self.list.push(self.created.get(&stream).cloned().unwrap_or(unknown));
        self.of_stream.insert(stream, self.list.len() - 1);
        self.list.len() - 1
    }
}
