//! What a long run costs: no memory that grows with its length, and no allocation per operation.
//!
//! Counts are exact and the same everywhere; time is measured in `benches`.

#[path = "../benches/generated/mod.rs"]
mod generated;

use generated::Generated;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use streamsan_check::{Config, LiveCheck};
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, GapReason, GraphId,
    HostWaitHow, Log, MemorySpace, Observer, OpKind, OpNumber, Shape, ShapeId, SiteId, StreamId, StringId,
    Tables, ThreadId, WaitTarget,
};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, with counts of what this thread does.
struct Counting;

fn count(bytes: i64) {
    // Threads that end may allocate after these are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + u64::from(bytes > 0)));
}

fn bytes(layout: Layout) -> i64 {
    i64::try_from(layout.size()).unwrap_or(i64::MAX)
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(bytes(layout));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-bytes(layout));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls() -> u64 {
    CALLS.with(Cell::get)
}

fn live() -> i64 {
    LIVE.with(Cell::get)
}

/// Allocations per thousand operations after a warm-up, and by how much the memory in use grows.
fn steady(streams: usize, warm_up: u64, operations: u64) -> (f64, i64) {
    let log = Generated::new(streams, warm_up + operations, 3);
    let mut check = LiveCheck::new(Config::default());
    let (mut seen, mut before) = (0, None);
    log.read(&mut |event, accesses| {
        seen += u64::from(matches!(event.kind, EventKind::Op { .. }));
        if seen == warm_up {
            before.get_or_insert((calls(), live()));
        }
        check.event(event, accesses, log.tables());
    });
    let (calls_before, live_before) = before.expect("the warm-up ends");
    let (calls, growth) = (calls() - calls_before, live() - live_before);
    assert!(check.new_findings().is_empty());
    let own = calls.saturating_sub(generated_alone(streams, warm_up, operations));
    (own as f64 * 1000.0 / operations as f64, growth)
}

/// Allocations of the generator after the warm-up.
fn generated_alone(streams: usize, warm_up: u64, operations: u64) -> u64 {
    let log = Generated::new(streams, warm_up + operations, 3);
    let (mut seen, mut before) = (0, None);
    log.read(&mut |event, _| {
        seen += u64::from(matches!(event.kind, EventKind::Op { .. }));
        if seen == warm_up {
            before.get_or_insert(calls());
        }
    });
    calls() - before.expect("the warm-up ends")
}

#[test]
fn the_steady_state_allocates_next_to_nothing() {
    for streams in [2, 8] {
        let (per_thousand, growth) = steady(streams, 800_000, 200_000);
        println!(
            "{streams} streams: {per_thousand:.2} allocations per 1,000 operations, {growth} bytes more"
        );
        assert!(per_thousand < 2.0, "{streams} streams: {per_thousand} allocations per 1,000 operations");
        assert!(growth < 1 << 20, "{streams} streams: {growth} bytes more after 200,000 operations");
    }
}

/// One operation on a stream, with one access to a block.
struct Program {
    check: LiveCheck,
    tables: Tables,
    number: u64,
}

const CACHE: BlockId = BlockId(1);

impl Program {
    fn new(size: u64) -> Self {
        let mut program =
            Self { check: LiveCheck::new(Config::default()), tables: Tables::default(), number: 0 };
        for stream in [0, 1] {
            let (device, priority) = (DeviceId(0), 0);
            program.event(
                EventKind::StreamCreate {
                    stream: StreamId(stream),
                    device,
                    blocking: false,
                    legacy_default: false,
                    priority,
                },
                &[],
            );
        }
        let space = MemorySpace::Cached(DeviceId(0));
        let address = 1 << 30;
        program.event(EventKind::Alloc { block: CACHE, stream: StreamId(0), space, address, size }, &[]);
        program
    }

    fn event(&mut self, kind: EventKind, accesses: &[Access]) {
        self.number += 1;
        let event = Event { number: OpNumber(self.number), thread: ThreadId(0), site: SiteId(0), kind };
        self.check.event(&event, accesses, &self.tables);
    }

    fn operation(&mut self, stream: u32, mode: AccessMode, (offset, shape): (u64, ShapeId), length: u64) {
        let kind = EventKind::Op {
            stream: StreamId(stream),
            label: StringId(0),
            kind: OpKind::Kernel,
            forward_site: SiteId(0),
            accesses: AccessRange::default(),
        };
        let argument = StringId(0);
        self.event(kind, &[Access { block: CACHE, mode, offset, length, shape, argument }]);
    }
}

/// A cache `[heads, tokens, 64]` that is written at one token after the other and read up to it each time, the host
/// never waiting: bytes in use at the end, and findings.
fn fill_cache(tokens: u64, reader: u32) -> (i64, usize) {
    let (heads, row) = (8, 128);
    let mut program = Program::new(heads * tokens * row);
    let stride = (tokens * row).cast_signed();
    let shape =
        |count: u64| Shape::from_tensor(&[heads, count * row], &[stride, 1], 1).expect("it has elements").0;
    let slot = shape(1);
    let mut reads: Vec<(ShapeId, u64)> = Vec::new();
    let slot_id = program.tables.intern_shape(slot.clone());
    for token in 0..tokens {
        // Without the search of `intern_shape`, which is for small tables.
        program.tables.shapes.push(shape(token + 1));
        let id = ShapeId(program.tables.shapes.len() as u32 - 1);
        reads.push((id, program.tables.shapes[id.index()].length()));
    }
    let before = live();
    for token in 0..tokens {
        program.operation(0, AccessMode::Write, (token * row, slot_id), slot.length());
        let (id, length) = reads[token as usize];
        program.operation(reader, AccessMode::Read, (0, id), length);
    }
    (live() - before, program.check.new_findings().len())
}

#[test]
fn a_cache_written_slot_by_slot_takes_memory_in_proportion() {
    let (small, findings) = fill_cache(512, 0);
    assert_eq!(findings, 0, "one stream is ordered");
    let (large, findings) = fill_cache(4096, 0);
    assert_eq!(findings, 0, "one stream is ordered");
    println!("512 tokens: {small} bytes, 4,096 tokens: {large} bytes");
    assert!(large < 4 << 20, "{large} bytes for 8,192 accesses");
    assert!(large < 16 * small.max(1024), "from {small} to {large} bytes for 8 times as many tokens");
    let (_, findings) = fill_cache(64, 1);
    assert_eq!(findings, 1, "a reader on another stream that never waits is found");
}

/// Streams of a log that nobody would write, each made and then given an operation.
fn stream_program() -> Program {
    let mut program = Program::new(1 << 20);
    program.tables.intern_string("k");
    program
}

impl Program {
    fn stream(&mut self, stream: u32) {
        let (device, priority) = (DeviceId(0), 0);
        self.event(
            EventKind::StreamCreate {
                stream: StreamId(stream),
                device,
                blocking: false,
                legacy_default: false,
                priority,
            },
            &[],
        );
    }

    fn wait(&mut self, event: u32, from: u32, to: u32) {
        let event = EventId(event);
        self.event(EventKind::EventRecord { event, stream: StreamId(from) }, &[]);
        self.event(EventKind::EventWait { event, stream: StreamId(to) }, &[]);
    }
}

#[test]
fn events_that_end_leave_nothing() {
    let growth = |events: u32| {
        let mut program = stream_program();
        let before = live();
        for event in 0..events {
            // As `wait_stream` does it: an event of its own each time, and the host never waits.
            program.operation(0, AccessMode::Read, (0, ShapeId(0)), 64);
            program.wait(event, 0, 1);
            program.event(EventKind::EventDestroy { event: EventId(event) }, &[]);
        }
        live() - before
    };
    let (few, many) = (growth(1_000), growth(200_000));
    println!("1,000 events: {few} bytes, 200,000: {many} bytes");
    assert!(many < few + 4096, "from {few} to {many} bytes");
}

#[test]
fn clocks_of_any_number_of_streams_fit_into_memory() {
    let streams = 12_000;
    let mut program = stream_program();
    let before = live();
    PEAK.with(|peak| peak.set(before));
    for stream in 2..streams {
        program.stream(stream);
        program.operation(stream, AccessMode::Read, (0, ShapeId(0)), 64);
        // Each knows all before it, and a record of each is kept.
        program.wait(stream, stream - 1, stream);
    }
    let peak = PEAK.with(Cell::get) - before;
    println!("{streams} streams: {} MiB at most", peak >> 20);
    assert!(peak < 260 << 20, "{peak} bytes");
    let report = program.check.report(&program.tables);
    let forgotten = report.gaps.iter().find(|gap| gap.reason == GapReason::Forgotten);
    let times = forgotten.expect("the report says so").count;
    assert!((1..20).contains(&times), "{times} times");
    // What comes after is looked at as ever.
    program.operation(0, AccessMode::Write, (4096, ShapeId(0)), 64);
    program.operation(streams - 1, AccessMode::Write, (4096, ShapeId(0)), 64);
    assert_eq!(program.check.new_findings().len(), 1);
}

#[test]
fn captures_share_the_memory_for_clocks() {
    let streams = 3_000;
    let mut program = stream_program();
    let before = live();
    PEAK.with(|peak| peak.set(before));
    let mut event = 0;
    for graph in 0..8 {
        let graph = GraphId(1 + graph);
        program.event(EventKind::CaptureBegin { graph, stream: StreamId(0) }, &[]);
        for stream in 0..streams {
            program.operation(stream, AccessMode::Read, (0, ShapeId(0)), 64);
            // The next stream joins the capture, and knows all before it; the record stays.
            program.wait(event, stream, stream + 1);
            event += 1;
        }
        program.event(
            EventKind::CaptureEnd { graph, stream: StreamId(0), valid: graph.0.is_multiple_of(2) },
            &[],
        );
    }
    for graph in 0..8 {
        // Captures that never end.
        let (graph, first) = (GraphId(100 + graph), (1 + graph) * 10_000);
        program.event(EventKind::CaptureBegin { graph, stream: StreamId(first) }, &[]);
        for stream in first..first + streams {
            program.operation(stream, AccessMode::Read, (0, ShapeId(0)), 64);
            program.wait(event, stream, stream + 1);
            event += 1;
        }
    }
    let peak = PEAK.with(Cell::get) - before;
    println!("16 captures of {streams} streams: {} MiB at most", peak >> 20);
    assert!(peak < 300 << 20, "{peak} bytes");
    let report = program.check.report(&program.tables);
    assert!(report.gaps.iter().any(|gap| gap.reason == GapReason::Forgotten), "the report says so");
}

#[test]
fn strided_accesses_of_one_block_are_limited() {
    let mut program = Program::new(1 << 40);
    // Every second byte, two bytes of it, anywhere: no one stands for another.
    let shape = Shape::from_tensor(&[2, 1], &[64, 1], 1).expect("it has elements").0;
    let length = shape.length();
    let shape = program.tables.intern_shape(shape);
    let before = live();
    PEAK.with(|peak| peak.set(before));
    for access in 0..60_000 {
        program.operation(0, AccessMode::Write, (access * 128, shape), length);
    }
    let peak = PEAK.with(Cell::get) - before;
    println!("60,000 strided accesses: {} KiB at most", peak >> 10);
    assert!(peak < 2 << 20, "{peak} bytes");
    assert!(program.check.report(&program.tables).gaps.is_empty(), "nothing else touches the block");
    // What is kept is looked at as ever.
    program.operation(1, AccessMode::Write, (59_999 * 128, shape), length);
    assert_eq!(program.check.new_findings().len(), 1);
    assert!(program.check.report(&program.tables).gaps.is_empty(), "no older one is there");
    // Of the others it is not known which bytes they touch.
    program.operation(1, AccessMode::Write, (128, shape), length);
    assert!(program.check.new_findings().is_empty());
    let report = program.check.report(&program.tables);
    let undecided = report.gaps.iter().find(|gap| gap.reason == GapReason::Undecided);
    assert_eq!(undecided.expect("the report says so").count, 1);
    // One wait is enough for all.
    program.wait(1, 0, 2);
    program.operation(2, AccessMode::Write, (256, shape), length);
    let report = program.check.report(&program.tables);
    assert_eq!(report.gaps.iter().map(|gap| gap.count).sum::<u64>(), 1);
}

#[test]
fn strided_accesses_that_the_host_has_waited_for_make_no_gap() {
    let mut program = Program::new(1 << 40);
    let shape = Shape::from_tensor(&[2, 1], &[64, 1], 1).expect("it has elements").0;
    let length = shape.length();
    let shape = program.tables.intern_shape(shape);
    for access in 0..60_000 {
        program.operation(0, AccessMode::Write, (access * 128, shape), length);
        if access % 1_000 == 0 {
            let target = WaitTarget::Stream(StreamId(0));
            let (observer, how) = (Observer::Program, HostWaitHow::Synchronize);
            program.event(EventKind::HostWait { target, observer, how }, &[]);
        }
    }
    assert!(program.check.report(&program.tables).gaps.is_empty());
}

#[test]
fn pairs_that_cannot_be_decided_cost_a_limited_time() {
    let mut program = stream_program();
    let sizes = [40; 4];
    let mut shape = |strides: [i64; 4]| {
        let shape = Shape::from_tensor(&sizes, &strides, 1).expect("it has elements").0;
        let length = shape.length();
        (program.tables.intern_shape(shape), length)
    };
    let shapes = [shape([3001, 2003, 1009, 500]), shape([2999, 2010, 1013, 506])];
    for round in 0..2_000 {
        let (id, length) = shapes[round % 2];
        program.operation((round % 2) as u32, AccessMode::Write, (round as u64, id), length);
    }
    let report = program.check.report(&program.tables);
    let undecided = report.gaps.iter().find(|gap| gap.reason == GapReason::Undecided);
    let pairs = undecided.expect("the report says so").count;
    println!("{pairs} pairs");
    // Each of them cost up to 200,000 steps before there was a limit for all: hours.
    assert!(pairs > 100_000, "{pairs} pairs");
}
