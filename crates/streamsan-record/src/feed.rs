//! Whose an event record, a wait or a query is: runtime calls and torch's callbacks of one thread, put together.
//! `docs/design/0001-event-feed.md` has the sequences and the reasons.

use std::sync::atomic::Ordering;

use streamsan_trace::{
    DeviceId, EventKind, HostWaitHow, MemorySpace, Observer, SiteId, StreamId, WaitTarget,
};

use crate::blocks::Freed;
use crate::handles::{EventState, LEGACY, Maker, Streams};
use crate::table::TorchCallback;
use crate::thread::{Held, HeldCall, Thread};
use crate::{Library, Recorder, WaitOn};

impl Recorder {
    /// An event was recorded in a stream.
    pub fn event_recorded(&self, event: u64, stream: u64, device: u32, caller: Library) {
        let mut thread = self.thread();
        // A free is followed by one record for each guard: the block stays.
        self.settle(&mut thread);
        let layer = self.layer.load(Ordering::Relaxed);
        let perhaps_allocator = layer && caller == Library::C10Cuda;
        if !perhaps_allocator {
            thread.freed = None;
        }
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        // Bound at once: another thread may see it finished before this one settles it.
        let guarded = thread.freed.filter(|_| perhaps_allocator);
        let guards = guarded.iter().map(|freed| freed.block).collect();
        let maker = match caller {
            Library::C10Cuda if layer => Maker::DeviceAllocator,
            // The end of a collective: its work object asks for it, on behalf of the program or of a watchdog.
            Library::TorchCuda if thread.collective.take_if(|last| *last == stream).is_some() => {
                thread.collective_end = event;
                Maker::Collective
            }
            Library::TorchCuda => Maker::PinnedAllocator,
            _ => Maker::Program,
        };
        known.events.record(event, stream, maker, guards);
        if let Some(freed) = guarded {
            known.blocks.add_guard(freed);
        }
        drop(known);
        let call = HeldCall::Record { handle: event, stream, perhaps_allocator, guarded };
        self.hold(&mut thread, call, layer.then_some(caller));
    }

    /// A stream was made to wait for an event.
    pub fn event_waited(&self, stream: u64, device: u32, event: u64, caller: Library) {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let id = known.events.id(event);
        drop(known);
        if let Some(call) = &mut thread.work {
            call.stream_waited = true;
        }
        let layer = self.layer.load(Ordering::Relaxed);
        let call = HeldCall::Wait { handle: event, event: id, stream };
        self.hold(&mut thread, call, layer.then_some(caller));
    }

    /// Takes a call's number; writes it at once unless a callback may follow: where the torch layer is, after calls of
    /// torch's libraries.
    fn hold(&self, thread: &mut Thread, call: HeldCall, caller: Option<Library>) {
        if thread.make_room(&self.file, 1).is_err() {
            return;
        }
        let (site, version) = (thread.context.site, thread.context.version);
        let certain = caller == Some(Library::TorchPython);
        thread.held = Some(Held { number: self.file.next_number(), site, version, certain, call });
        if matches!(caller, None | Some(Library::Other)) {
            self.settle(thread);
        }
    }

    /// Writes what is held, for which no callback came.
    pub(crate) fn settle(&self, thread: &mut Thread) {
        thread.late = None;
        let Some(held) = thread.held.take() else { return };
        if let HeldCall::Record { handle, stream, perhaps_allocator: true, guarded } = held.call {
            // A record that neither torch nor a free accounts for orders nothing that the program can rely on.
            if let Some(Freed { block, .. }) = guarded {
                thread.put(held.number, held.site, &EventKind::FreeGuard { block, stream }, &[]);
            } else {
                thread.skip(held.number);
                self.guard_late(thread, handle, stream);
            }
        } else {
            self.write_held(thread, &held, held.site);
        }
    }

    /// Writes what other threads hold back with numbers up to `before`, so that whoever reads along is not kept waiting
    /// by a thread that makes no further call. To be called when these numbers are some milliseconds old.
    ///
    /// A thread can be stopped between a call and its callback for longer than that. A callback that comes later still
    /// counts: if it says that a record is the program's, the record is written then. Nobody waits for the event
    /// before, as the program has not got back from the call. What a callback follows for certain is left alone.
    pub fn settle_others(&self, before: u64) {
        // A thread that is inside a call writes by itself what it holds.
        self.each_idle_thread(|thread| {
            let Some(held) = thread.held.filter(|held| held.number <= before && !held.certain) else {
                return;
            };
            self.settle(thread);
            if let HeldCall::Record { perhaps_allocator: true, .. } = held.call {
                thread.late = Some(held);
            }
        });
    }

    /// A guard that is recorded outside a free: the free was deferred (graph capture, a memory pool in use), and
    /// the allocator makes up for it at a later allocation. Which block it is for is not visible, so every block that
    /// it can be for gets it: that may hide an early reuse, and never reports one that cannot happen.
    fn guard_late(&self, thread: &mut Thread, handle: u64, stream: StreamId) {
        let mut known = self.known();
        let device = |streams: &Streams, stream| streams.place(stream).map(|(_, device)| device);
        let on = device(&known.streams, stream);
        let late = known.blocks.unguarded(stream, |owner| device(&known.streams, owner) == on);
        for &freed in &late {
            known.blocks.add_guard(freed);
            known.events.entry(handle).guards.push(freed.block);
        }
        drop(known);
        for Freed { block, .. } in late {
            thread.emit(&self.file, &EventKind::FreeGuard { block, stream }, &[]);
        }
    }

    /// Writes what is held as the program's.
    fn write_held(&self, thread: &mut Thread, held: &Held, site: SiteId) {
        let kind = match held.call {
            HeldCall::Record { handle, stream, .. } => {
                EventKind::EventRecord { event: self.known().events.id(handle), stream }
            }
            HeldCall::Wait { event, stream, .. } => EventKind::EventWait { event, stream },
        };
        thread.put(held.number, site, &kind, &[]);
    }

    /// A callback that follows a record or wait: what is held is the program's, at the line known now.
    fn confirm(&self, thread: &mut Thread, is_record: bool, event: u64) {
        let (late, held) = (thread.late.take(), thread.held);
        let Some(held) = held.or(late) else { return };
        let matches = match held.call {
            HeldCall::Record { handle, .. } => is_record && handle == event,
            HeldCall::Wait { handle, .. } => !is_record && handle == event,
        };
        if !matches {
            self.settle(thread);
            return;
        }
        if let HeldCall::Record { perhaps_allocator: true, guarded, .. } = held.call {
            let mut known = self.known();
            let state = known.events.entry(event);
            state.maker = Maker::Program;
            let guards = std::mem::take(&mut state.guards);
            // Of a record that was settled as a guard: perhaps of several blocks.
            let guards = if thread.held.is_some() {
                guarded.map(|freed| freed.block).into_iter().collect()
            } else {
                guards
            };
            for block in guards {
                known.blocks.finish_guard(block);
            }
        }
        let in_time = thread.held.take().is_some();
        thread.freed = None;
        let fresh = thread.context.version != held.version;
        let site = if fresh { thread.context.site } else { held.site };
        if in_time {
            self.write_held(thread, &held, site);
        } else if thread.make_room(&self.file, 1).is_ok() {
            self.write_held(thread, &Held { number: self.file.next_number(), ..held }, site);
        }
    }

    /// A callback of torch, with its arguments as in [`TorchCallback`].
    pub(crate) fn torch_callback(&self, callback: TorchCallback, a: u64, b: u64) {
        self.layer.store(true, Ordering::Relaxed);
        let mut thread = self.thread();
        // Threads of libraries drop tensors too, so memory callbacks say nothing about the thread.
        if !matches!(callback, TorchCallback::MemoryAllocation | TorchCallback::MemoryDeallocation) {
            thread.runs_python = true;
        }
        match callback {
            TorchCallback::EventRecord => self.confirm(&mut thread, true, a),
            TorchCallback::EventWait => self.confirm(&mut thread, false, a),
            TorchCallback::MemoryAllocation => {
                self.settle(&mut thread);
                thread.freed = None;
                let mut known = self.known();
                let device = match known.blocks.region(a).map(|(_, region)| region.space) {
                    Some(MemorySpace::Device(device)) => device,
                    _ => DeviceId(self.device_of_mapped()),
                };
                let stream = self.stream(&mut thread, &mut known, b, device.0);
                let block = known.blocks.add_cached(a, stream);
                let space = MemorySpace::Cached(device);
                let kind = EventKind::Alloc { block, stream, space, address: a, size: 0 };
                thread.emit(&self.file, &kind, &[]);
                if thread.graph_memory > 0 {
                    thread.emit(&self.file, &EventKind::GraphMemory { block }, &[]);
                }
            }
            TorchCallback::MemoryDeallocation => {
                self.settle(&mut thread);
                thread.freed = self.known().blocks.free_cached(a);
                if let Some(Freed { block, .. }) = thread.freed {
                    thread.emit(&self.file, &EventKind::FreeRequest { block }, &[]);
                }
            }
            TorchCallback::EventSynchronization => self.expect_wait(&mut thread, WaitOn::Event(a)),
            TorchCallback::StreamSynchronization => self.expect_wait(&mut thread, WaitOn::Stream(a, 0)),
            TorchCallback::DeviceSynchronization => self.expect_wait(&mut thread, WaitOn::Device(0)),
        }
    }

    fn expect_wait(&self, thread: &mut Thread, target: WaitOn) {
        self.settle(thread);
        thread.freed = None;
        thread.announced = Some(target);
    }

    /// The host is about to wait. Followed by [`Recorder::host_waited`] on the same thread if the call succeeds.
    /// Not needed for queries.
    pub fn host_wait_begin(&self, target: WaitOn) {
        let mut thread = self.begin();
        if let WaitOn::Stream(handle, device) = target {
            self.stream(&mut thread, &mut self.known(), handle, device);
        }
        // Two records: this and its end.
        thread.begun = match thread.make_room(&self.file, 2) {
            Ok(()) => Some((self.file.next_number(), target)),
            Err(_) => None,
        };
    }

    /// The host has learned that work has finished: a wait returned, or a query said "finished".
    pub fn host_waited(&self, target: WaitOn, how: HostWaitHow, caller: Library) {
        let mut begun = self.thread().begun.take();
        let mut thread = self.begin();
        if let Some((number, _)) = begun.take_if(|&mut (_, of)| of != target) {
            thread.skip(number);
        }
        let announced = thread.announced.take().is_some_and(|of| same_target(of, target));
        let mut known = self.known();
        let state = match target {
            WaitOn::Event(event) => known.events.get(event),
            _ => EventState::default(),
        };
        let observer = self.observer(&thread, target, how, caller, announced, state.maker);
        if let Some(call) = &mut thread.work {
            call.host_waited |= observer == Observer::Program;
        }
        let target = match target {
            WaitOn::Event(event) => {
                if observer == Observer::DeviceAllocator {
                    // It frees its block and orders nothing else. Its events are not in the trace.
                    if let Some((number, _)) = begun {
                        thread.skip(number);
                    }
                    known.events.entry(event).guards.clear();
                    for block in state.guards {
                        if known.blocks.finish_guard(block) {
                            thread.emit(&self.file, &EventKind::FreeDone { block }, &[]);
                        }
                    }
                    return;
                }
                WaitTarget::Event(known.events.id(event))
            }
            WaitOn::Stream(handle, device) => {
                // Announcing the stream again, which was destroyed meanwhile, takes a greater number.
                if known.streams.lookup(handle, device, thread.id).is_none()
                    && let Some((number, _)) = begun.take()
                {
                    thread.skip(number);
                }
                WaitTarget::Stream(self.stream(&mut thread, &mut known, handle, device))
            }
            WaitOn::Device(device) => WaitTarget::Device(DeviceId(device)),
        };
        drop(known);
        let kind = EventKind::HostWait { target, observer, how };
        self.put_wait(&mut thread, begun.map(|(number, _)| number), &kind, target);
    }

    /// Writes that the host has waited for `target`; `begun` is the number that was taken when it began to.
    pub(crate) fn put_wait(
        &self,
        thread: &mut Thread,
        begun: Option<u64>,
        wait: &EventKind,
        target: WaitTarget,
    ) {
        let site = thread.context.site;
        match begun {
            // Nothing happened in between: one event says it all.
            Some(number) if self.file.last_number() == number => thread.put(number, site, wait, &[]),
            Some(number) => {
                thread.put(number, site, &EventKind::HostWaitBegin { target }, &[]);
                thread.emit(&self.file, wait, &[]);
            }
            None => thread.emit(&self.file, wait, &[]),
        }
    }

    /// On whose behalf the host learned that work has finished.
    fn observer(
        &self,
        thread: &Thread,
        target: WaitOn,
        how: HostWaitHow,
        caller: Library,
        announced: bool,
        maker: Maker,
    ) -> Observer {
        let layer = self.layer.load(Ordering::Relaxed);
        let by_thread = if thread.runs_python || !layer { Observer::Program } else { Observer::Library };
        let of_event = matches!(target, WaitOn::Event(_));
        let polled = matches!(how, HostWaitHow::Query | HostWaitHow::Elapsed);
        match (caller, of_event, polled) {
            (Library::TorchPython, true, _) => Observer::Program,
            // Work objects and their group poll all the time, whether or not somebody wants to know.
            (Library::C10Cuda | Library::TorchCuda, true, true) if maker == Maker::Collective => {
                if !layer || thread.asks_for_work() { by_thread } else { Observer::Library }
            }
            (Library::C10Cuda, true, true) => match maker {
                Maker::DeviceAllocator => Observer::DeviceAllocator,
                Maker::PinnedAllocator => Observer::PinnedAllocator,
                Maker::Program | Maker::Collective | Maker::Nobody => by_thread,
            },
            (Library::C10Cuda, _, false) if announced || !layer => Observer::Program,
            (Library::C10Cuda, _, false) => Observer::DeviceAllocator,
            (Library::TorchCuda, true, true) if maker == Maker::Program => by_thread,
            // A wait that torch announced blocks each time, so it orders; the pinned allocator's own do not.
            (Library::TorchCuda, true, false) if announced => by_thread,
            (Library::TorchCuda, true, _) => Observer::PinnedAllocator,
            (Library::C10Cuda, false, true)
            | (Library::TorchPython | Library::TorchCuda, false, _)
            | (Library::Other, _, _) => by_thread,
        }
    }

    /// Whether the event's last record was made by one of torch's allocators, or a thread of a library asks for it,
    /// such as a watchdog. A query should then succeed at once on the virtual device: it orders nothing, and memory
    /// that it sets free is reused as early as can be.
    pub fn event_is_allocators(&self, event: u64) -> bool {
        let mut thread = self.thread();
        self.settle(&mut thread);
        if self.layer.load(Ordering::Relaxed) && !thread.runs_python {
            return true;
        }
        matches!(self.known().events.get(event).maker, Maker::DeviceAllocator | Maker::PinnedAllocator)
    }

    /// Whether a thread of a library asks for the end of a collective.
    pub fn is_watched_end(&self, event: u64) -> bool {
        let thread = self.thread();
        self.layer.load(Ordering::Relaxed)
            && !thread.runs_python
            && self.known().events.get(event).maker == Maker::Collective
    }

    /// The stream, as (raw handle, device), of the event's last record.
    pub fn event_target(&self, event: u64) -> Option<(u64, u32)> {
        let known = self.known();
        known.streams.place(known.events.get(event).stream?)
    }
}

fn same_target(announced: WaitOn, target: WaitOn) -> bool {
    match (announced, target) {
        (WaitOn::Event(a), WaitOn::Event(b)) => a == b,
        // The legacy default stream has two numbers.
        (WaitOn::Stream(a, _), WaitOn::Stream(b, _)) => a == b || (a <= LEGACY && b <= LEGACY),
        // The callback does not say which device.
        (WaitOn::Device(_), WaitOn::Device(_)) => true,
        _ => false,
    }
}
