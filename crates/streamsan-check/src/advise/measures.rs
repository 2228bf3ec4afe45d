//! What bounds a program, as far as order tells: per stream its work, and how long the longest chain of operations is of
//! which each has to wait for the one before.
//!
//! Depth: an operation comes one after the deepest of what it has to wait for: its stream, what its stream has waited for,
//! what the host had waited for when it enqueued it. The depth of the whole is the number of operations in the longest such
//! chain. If it is that of all operations, nothing can overlap, whatever the device does.
//!
//! A copy may run beside other work if the clocks leave it unordered with an operation of another stream that is no copy in
//! the same direction.

use super::Seen;
use super::copies::Transfer;
use super::orders::{Orders, Step};
use crate::clock::ChainId;
use crate::measures::{Measures, StreamMeasures};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use streamsan_trace::{DeviceId, EventId, EventKind, OpNumber, StreamId, WaitTarget};

/// How a stream was made.
#[derive(Clone, Copy, Debug)]
struct Role {
    device: DeviceId,
    blocking: bool,
    legacy_default: bool,
}

/// A copy that is not known to run beside anything yet.
#[derive(Debug)]
struct Copy {
    number: OpNumber,
    bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Depths {
    streams: BTreeMap<StreamId, StreamMeasures>,
    depth: FxHashMap<StreamId, u64>,
    /// Of each event, at its last record.
    events: FxHashMap<EventId, u64>,
    host: u64,
    deepest: u64,
    roles: FxHashMap<StreamId, Role>,
    /// The last operation of each stream that is no copy between host and device.
    work: FxHashMap<StreamId, OpNumber>,
    /// Copies of each stream that may turn out to run beside later work.
    alone: FxHashMap<StreamId, Vec<Copy>>,
    beside: (u64, u64),
    copies: (u64, u64),
}

impl Depths {
    pub(super) fn event(&mut self, seen: &Seen<'_>, step: Step, orders: &Orders, transfer: Option<Transfer>) {
        let number = seen.event.number;
        match (step, seen.event.kind) {
            (_, EventKind::StreamCreate { stream, device, blocking, legacy_default, .. }) => {
                self.roles.insert(stream, Role { device, blocking, legacy_default });
            }
            (Step::Operation, EventKind::Op { stream, .. }) => {
                self.operation(stream, seen.counts);
                if seen.counts {
                    self.count(stream, transfer);
                }
                match transfer {
                    Some(transfer) if seen.counts => self.copy(stream, number, transfer.bytes, orders),
                    Some(_) => {}
                    None => self.work(stream, number, orders),
                }
            }
            (Step::Operation, EventKind::GraphLaunch { stream, .. }) => {
                self.operation(stream, seen.counts);
                if seen.counts {
                    self.count(stream, None);
                }
                self.work(stream, number, orders);
            }
            (_, EventKind::EventRecord { event, stream }) if !orders.is_capturing(stream) => {
                let depth = self.of(stream);
                self.events.insert(event, depth);
            }
            (Step::Wait(_), EventKind::EventWait { event, stream }) => {
                let awaited = self.events.get(&event).copied().unwrap_or(0);
                let depth = self.depth.entry(stream).or_default();
                *depth = awaited.max(*depth);
            }
            (Step::HostWait(_), EventKind::HostWait { target, .. }) => {
                let depth = match target {
                    WaitTarget::Event(event) => self.events.get(&event).copied().unwrap_or(0),
                    WaitTarget::Stream(stream) => self.of(stream),
                    WaitTarget::Device(device) => {
                        let on_device = |stream: &&StreamId| {
                            self.roles.get(*stream).is_none_or(|role| role.device == device)
                        };
                        self.depth.keys().filter(on_device).map(|&stream| self.of(stream)).max().unwrap_or(0)
                    }
                };
                self.host = self.host.max(depth);
                self.forget_known(orders);
            }
            (_, EventKind::EventDestroy { event }) => {
                self.events.remove(&event);
            }
            _ => {}
        }
    }

    /// How deep whatever comes in the stream lies. The legacy default stream comes after all blocking ones, and they after it.
    fn of(&self, stream: StreamId) -> u64 {
        let own = self.depth.get(&stream).copied().unwrap_or(0);
        let Some(role) = self.roles.get(&stream).filter(|role| role.blocking || role.legacy_default) else {
            return own;
        };
        let orders = |other: &&StreamId| {
            self.roles.get(*other).is_some_and(|other| {
                other.device == role.device
                    && if role.legacy_default { other.blocking } else { other.legacy_default }
            })
        };
        let others = self.depth.keys().filter(orders);
        others.filter_map(|other| self.depth.get(other)).copied().max().unwrap_or(0).max(own)
    }

    fn operation(&mut self, stream: StreamId, counts: bool) {
        let depth = self.of(stream).max(self.host) + u64::from(counts);
        self.depth.insert(stream, depth);
        self.deepest = self.deepest.max(depth);
    }

    fn count(&mut self, stream: StreamId, transfer: Option<Transfer>) {
        let measures = self.streams.entry(stream).or_insert_with(|| StreamMeasures::new(stream));
        measures.operations += 1;
        if let Some(Transfer { up, pinned, bytes, .. }) = transfer {
            let direction = if up { &mut measures.uploaded } else { &mut measures.downloaded };
            *direction += bytes;
            if !pinned {
                let pageable =
                    if up { &mut measures.uploaded_pageable } else { &mut measures.downloaded_pageable };
                *pageable += bytes;
            }
        }
    }

    /// A copy is beside work that was enqueued before it in another stream, or may be beside what comes.
    fn copy(&mut self, stream: StreamId, number: OpNumber, bytes: u64, orders: &Orders) {
        self.copies = (self.copies.0 + 1, self.copies.1 + bytes);
        let Some(own) = orders.whole.chain_of(stream) else { return };
        let beside = self.work.iter().any(|(&other, &last)| {
            let chain = orders.whole.chain_of(other);
            other != stream && chain.is_some_and(|chain| orders.whole.ordered_up_to(chain, own) < last)
        });
        if beside {
            self.beside = (self.beside.0 + 1, self.beside.1 + bytes);
        } else {
            self.alone.entry(stream).or_default().push(Copy { number, bytes });
        }
    }

    /// Work is beside the copies in other streams that it is not ordered after.
    fn work(&mut self, stream: StreamId, number: OpNumber, orders: &Orders) {
        self.work.insert(stream, number);
        let Some(own) = orders.whole.chain_of(stream) else { return };
        for (&other, copies) in &mut self.alone {
            let Some(chain) = orders.whole.chain_of(other).filter(|_| other != stream) else { continue };
            let known = orders.whole.ordered_up_to(chain, own);
            while let Some(copy) = copies.pop_if(|copy| copy.number > known) {
                self.beside = (self.beside.0 + 1, self.beside.1 + copy.bytes);
            }
        }
    }

    /// All that comes is ordered after what the host knows.
    fn forget_known(&mut self, orders: &Orders) {
        for (&stream, copies) in &mut self.alone {
            let Some(chain) = orders.whole.chain_of(stream) else { continue };
            let known = orders.whole.ordered_up_to(chain, ChainId::HOST);
            copies.retain(|copy| copy.number > known);
        }
    }

    pub(super) fn finish(self) -> Measures {
        Measures {
            operations: self.streams.values().map(|measures| measures.operations).sum(),
            streams: self.streams.into_values().collect(),
            longest: self.deepest,
            copies: self.copies.0,
            copied: self.copies.1,
            beside: self.beside.0,
            beside_bytes: self.beside.1,
            ..Measures::default()
        }
    }
}
