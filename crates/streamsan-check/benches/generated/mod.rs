//! A training-like program on any number of streams, made on the fly from a seed.
//!
//! The host enqueues bursts of twelve operations, each burst on one stream. A burst first waits for another
//! stream and reads what that one published, works on its own temporary blocks (allocated and freed as torch's
//! caching allocator does, with reuse), reads weights that all streams share, publishes a buffer, and records
//! an event. Before a published buffer is overwritten the writer waits for its readers. Some temporaries are lent to
//! another stream and freed with a guard (`record_stream`). The host now and then waits for an event or for
//! the device. Everything is ordered.

use fastrand::Rng;
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, Header, HostWaitHow, Log,
    MemorySpace, Observer, OpKind, OpNumber, Shape, ShapeId, SiteId, StreamId, StringId, Tables, ThreadId,
    Trace, WaitTarget,
};

const DEVICE: DeviceId = DeviceId(0);
const BURST: usize = 12;
const WEIGHTS: usize = 64;
const PUBLISHED: usize = 4;
const TEMPORARIES: usize = 8;
const SIZES: [u64; 3] = [4 << 10, 64 << 10, 2 << 20];
/// Bursts between two synchronizations of the device.
const EPOCH: u64 = 2000;

/// A log of `operations` operations on `streams` streams, made anew each time it is read.
#[derive(Debug)]
pub struct Generated {
    streams: usize,
    operations: u64,
    seed: u64,
    header: Header,
    tables: Tables,
}

impl Generated {
    pub fn new(streams: usize, operations: u64, seed: u64) -> Self {
        let mut tables = Tables::default();
        for rows in [2, 4, 8, 16] {
            // Every second row of 64 bytes.
            let (shape, _) = Shape::from_tensor(&[rows, 64], &[128, 1], 1).expect("it has elements");
            tables.intern_shape(shape);
        }
        Self { streams, operations, seed, header: Header::default(), tables }
    }

    /// The same log as a trace.
    #[allow(dead_code, reason = "not all that share this file need it")]
    pub fn in_memory(&self) -> Trace {
        let mut trace = Trace { tables: self.tables.clone(), ..Trace::default() };
        self.read(&mut |event, accesses| {
            let mut event = *event;
            if let EventKind::Op { accesses: range, .. } = &mut event.kind {
                *range = trace.push_accesses(accesses);
            }
            trace.events.push(event);
        });
        trace
    }
}

impl Log for Generated {
    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn read(&self, each: &mut dyn FnMut(&Event, &[Access])) {
        let mut host = Host::new(self.streams, self.seed, each);
        host.begin();
        while host.operations < self.operations {
            host.burst();
        }
    }
}

/// Memory that is there.
#[derive(Clone, Copy)]
struct Memory {
    block: BlockId,
    address: u64,
    class: usize,
    lent_to: Option<StreamId>,
}

#[derive(Default)]
struct Stream {
    /// Oldest first.
    temporaries: Vec<Memory>,
    /// Freed addresses per class of size, last freed last.
    free: [Vec<u64>; SIZES.len()],
    fresh: u64,
    published: Vec<Published>,
    bursts: usize,
}

struct Published {
    memory: Memory,
    readers: Vec<usize>,
}

/// The host program that makes the calls.
struct Host<'a> {
    each: &'a mut dyn FnMut(&Event, &[Access]),
    random: Rng,
    number: u64,
    operations: u64,
    bursts: u64,
    next_block: u32,
    streams: Vec<Stream>,
    weights: Vec<Memory>,
}

impl<'a> Host<'a> {
    fn new(streams: usize, seed: u64, each: &'a mut dyn FnMut(&Event, &[Access])) -> Self {
        let make = |index: usize| Stream { fresh: (index as u64 + 1) << 40, ..Stream::default() };
        Self {
            each,
            random: Rng::with_seed(seed),
            number: 0,
            operations: 0,
            bursts: 0,
            next_block: 1,
            streams: (0..streams).map(make).collect(),
            weights: Vec::new(),
        }
    }

    fn emit(&mut self, kind: EventKind, accesses: &[Access]) {
        self.number += 1;
        let site = SiteId(1 + (self.number % 16) as u32);
        let event = Event { number: OpNumber(self.number), thread: ThreadId(0), site, kind };
        (self.each)(&event, accesses);
    }

    fn operation(&mut self, stream: usize, accesses: &[Access]) {
        self.operations += 1;
        let kind = EventKind::Op {
            stream: StreamId(stream as u32),
            label: StringId(0),
            kind: OpKind::Kernel,
            forward_site: SiteId(0),
            accesses: AccessRange::default(),
        };
        self.emit(kind, accesses);
    }

    fn begin(&mut self) {
        for stream in 0..self.streams.len() {
            let kind = EventKind::StreamCreate {
                stream: StreamId(stream as u32),
                device: DEVICE,
                blocking: stream == 0,
                legacy_default: stream == 0,
                priority: 0,
            };
            self.emit(kind, &[]);
        }
        for _ in 0..WEIGHTS {
            let weight = self.allocate(0, 2);
            self.weights.push(weight);
        }
        for stream in 0..self.streams.len() {
            for _ in 0..PUBLISHED {
                let memory = self.allocate(stream, 1);
                self.streams[stream].published.push(Published { memory, readers: Vec::new() });
            }
        }
        self.update_weights();
    }

    /// The weights are written by stream 0 while nothing else runs.
    fn update_weights(&mut self) {
        self.wait_for(WaitTarget::Device(DEVICE));
        for index in 0..WEIGHTS {
            let weight = whole(&self.weights[index], AccessMode::Write);
            self.operation(0, &[weight]);
        }
        self.wait_for(WaitTarget::Device(DEVICE));
    }

    fn wait_for(&mut self, target: WaitTarget) {
        let how = HostWaitHow::Synchronize;
        self.emit(EventKind::HostWait { target, observer: Observer::Program, how }, &[]);
    }

    fn allocate(&mut self, stream: usize, class: usize) -> Memory {
        let state = &mut self.streams[stream];
        let address = state.free[class].pop().unwrap_or_else(|| {
            let address = state.fresh;
            state.fresh += SIZES[class];
            address
        });
        let block = BlockId(self.next_block);
        self.next_block += 1;
        let kind = EventKind::Alloc {
            block,
            stream: StreamId(stream as u32),
            space: MemorySpace::Cached(DEVICE),
            address,
            size: SIZES[class],
        };
        self.emit(kind, &[]);
        Memory { block, address, class, lent_to: None }
    }

    fn free(&mut self, stream: usize, memory: Memory) {
        self.emit(EventKind::FreeRequest { block: memory.block }, &[]);
        if let Some(reader) = memory.lent_to {
            self.emit(EventKind::FreeGuard { block: memory.block, stream: reader }, &[]);
            self.emit(EventKind::FreeDone { block: memory.block }, &[]);
        }
        self.streams[stream].free[memory.class].push(memory.address);
    }

    fn wait(&mut self, waiter: usize, awaited: usize) {
        // The event of a stream stands for the end of its last burst.
        let event = EventId(awaited as u32);
        self.emit(EventKind::EventWait { event, stream: StreamId(waiter as u32) }, &[]);
    }

    fn burst(&mut self) {
        self.bursts += 1;
        let stream = self.random.usize(..self.streams.len());
        let partner = self.random.usize(..self.streams.len());
        let received = self.receive(stream, partner);
        let mine = self.streams[stream].bursts % PUBLISHED;
        self.streams[stream].bursts += 1;
        for reader in std::mem::take(&mut self.streams[stream].published[mine].readers) {
            self.wait(stream, reader);
        }
        for step in 0..BURST {
            let first = match received {
                Some(received) if step == 0 => received,
                _ => self.input(stream),
            };
            let second = if step % 3 == 0 {
                let index = self.random.usize(..WEIGHTS);
                whole(&self.weights[index], AccessMode::Read)
            } else {
                self.input(stream)
            };
            let output = if step + 1 == BURST {
                whole(&self.streams[stream].published[mine].memory, AccessMode::Write)
            } else {
                self.output(stream)
            };
            self.operation(stream, &[first, second, output]);
            if self.streams[stream].temporaries.len() > TEMPORARIES {
                let oldest = self.streams[stream].temporaries.remove(0);
                self.free(stream, oldest);
            }
        }
        self.emit(
            EventKind::EventRecord { event: EventId(stream as u32), stream: StreamId(stream as u32) },
            &[],
        );
        if self.bursts.is_multiple_of(EPOCH) {
            self.update_weights();
        } else if self.bursts.is_multiple_of(64) {
            self.wait_for(WaitTarget::Event(EventId(stream as u32)));
        }
    }

    /// Waits for the partner; what to read of it.
    fn receive(&mut self, stream: usize, partner: usize) -> Option<Access> {
        let bursts = self.streams[partner].bursts;
        if partner == stream || bursts == 0 {
            return None;
        }
        self.wait(stream, partner);
        if self.random.u8(..8) == 0
            && let Some(lent) = self.streams[partner].temporaries.last_mut()
            && lent.lent_to.is_none_or(|reader| reader.0 as usize == stream)
        {
            lent.lent_to = Some(StreamId(stream as u32));
            let lent = *lent;
            self.emit(EventKind::RecordStream { block: lent.block, stream: StreamId(stream as u32) }, &[]);
            return Some(whole(&lent, AccessMode::Read));
        }
        let published = &mut self.streams[partner].published[(bursts - 1) % PUBLISHED];
        if !published.readers.contains(&stream) {
            published.readers.push(stream);
        }
        Some(whole(&published.memory, AccessMode::Read))
    }

    /// A temporary of the stream, all of it or a view; before there is one, a weight.
    fn input(&mut self, stream: usize) -> Access {
        let temporaries = &self.streams[stream].temporaries;
        if temporaries.is_empty() {
            return whole(&self.weights[0], AccessMode::Read);
        }
        let memory = &temporaries[self.random.usize(..temporaries.len())];
        let access = whole(memory, AccessMode::Read);
        match self.random.u8(..50) {
            0..5 => Access { length: access.length / 2, offset: access.length / 2, ..access },
            5 => {
                let shape = self.random.u32(1..5);
                Access { shape: ShapeId(shape), length: ((1 << shape) - 1) * 128 + 64, ..access }
            }
            _ => access,
        }
    }

    /// A new temporary, or one of the stream in place.
    fn output(&mut self, stream: usize) -> Access {
        let temporaries = &self.streams[stream].temporaries;
        if temporaries.len() >= 2 && self.random.u8(..5) < 2 {
            let memory = temporaries[self.random.usize(..temporaries.len())];
            if memory.lent_to.is_none() {
                return whole(&memory, AccessMode::Update);
            }
        }
        let class = self.random.usize(..SIZES.len());
        let memory = self.allocate(stream, class);
        self.streams[stream].temporaries.push(memory);
        whole(&memory, AccessMode::Write)
    }
}

fn whole(memory: &Memory, mode: AccessMode) -> Access {
    Access {
        block: memory.block,
        mode,
        offset: 0,
        length: SIZES[memory.class],
        shape: ShapeId(0),
        argument: StringId(0),
    }
}
