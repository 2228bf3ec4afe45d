//! What the small language cannot say of graphs: several executables, updates, graphs that were not captured, and memory
//! that is allocated in a capture.

use streamsan_check::{Config, Finding, LiveCheck, Region, Report, Rule, check};
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, ExecutableId, GapReason,
    GraphId, MemorySpace, OpKind, OpNumber, Shape, ShapeId, SiteId, StreamId, StringId, ThreadId, Trace,
};

const ONE: StreamId = StreamId(0);
const TWO: StreamId = StreamId(1);
const GRAPH: GraphId = GraphId(1);
const FIRST: ExecutableId = ExecutableId(1);
const SECOND: ExecutableId = ExecutableId(2);
const X: BlockId = BlockId(1);
const Y: BlockId = BlockId(2);

/// A trace with two streams and two plain device blocks, `X` and `Y`.
struct Log(Trace);

impl Log {
    fn new() -> Self {
        let mut log = Self(Trace::default());
        for stream in [ONE, TWO] {
            log.push(EventKind::StreamCreate {
                stream,
                device: DeviceId(0),
                blocking: false,
                legacy_default: false,
                priority: 0,
            });
        }
        for block in [X, Y] {
            let space = MemorySpace::Device(DeviceId(0));
            let address = u64::from(block.0) << 20;
            log.push(EventKind::Alloc { block, stream: ONE, space, address, size: 4096 });
        }
        log
    }

    fn push(&mut self, kind: EventKind) -> OpNumber {
        let number = OpNumber(self.0.events.len() as u64 + 1);
        // Each event has a line of its own.
        let site = SiteId(number.0 as u32);
        self.0.tables.sites.resize(site.index() + 1, Vec::new());
        self.0.events.push(Event { number, thread: ThreadId(0), site, kind });
        number
    }

    fn operation(&mut self, stream: StreamId, kind: OpKind, touched: &[(BlockId, AccessMode)]) -> OpNumber {
        let start = self.0.accesses.len() as u32;
        self.0.accesses.extend(touched.iter().map(|&(block, mode)| Access {
            block,
            mode,
            offset: 0,
            length: 4096,
            shape: ShapeId(0),
            argument: StringId(0),
        }));
        let accesses = AccessRange { start, count: touched.len() as u32 };
        let (label, forward_site) = (StringId(0), SiteId(0));
        self.push(EventKind::Op { stream, label, kind, forward_site, accesses })
    }

    fn read(&mut self, stream: StreamId, block: BlockId) -> OpNumber {
        self.operation(stream, OpKind::Kernel, &[(block, AccessMode::Read)])
    }

    fn write(&mut self, stream: StreamId, block: BlockId) -> OpNumber {
        self.operation(stream, OpKind::Kernel, &[(block, AccessMode::Write)])
    }

    /// Captures a graph on stream `ONE`.
    fn capture<T>(&mut self, graph: GraphId, body: impl FnOnce(&mut Self) -> T) -> T {
        self.push(EventKind::CaptureBegin { graph, stream: ONE });
        let result = body(self);
        self.push(EventKind::CaptureEnd { graph, stream: ONE, valid: true });
        result
    }

    fn instantiate(&mut self, graph: GraphId, executable: ExecutableId) {
        self.push(EventKind::GraphInstantiate { graph, executable });
    }

    fn launch(&mut self, stream: StreamId, executable: ExecutableId) -> OpNumber {
        self.push(EventKind::GraphLaunch { executable, stream, label: StringId(0) })
    }

    fn wait(&mut self, stream: StreamId, other: StreamId) {
        let event = EventId(self.0.events.len() as u32);
        self.push(EventKind::EventRecord { event, stream: other });
        self.push(EventKind::EventWait { event, stream });
    }

    fn allocate(&mut self, block: BlockId, address: u64) {
        let space = MemorySpace::Cached(DeviceId(0));
        self.push(EventKind::Alloc { block, stream: ONE, space, address, size: 4096 });
    }

    fn report(&self) -> Report {
        check(&self.0, &Config::default())
    }

    /// Rule and the numbers of both operations.
    fn pairs(&self) -> Vec<(Rule, OpNumber, OpNumber)> {
        let pair = |finding: &Finding| {
            let first = finding.first.or(finding.free).expect("two places");
            (finding.rule, first.number, finding.second.number)
        };
        self.report().findings.iter().map(pair).collect()
    }
}

#[test]
fn a_place_has_the_line_of_the_launch_and_of_the_node() {
    let mut log = Log::new();
    let node = log.capture(GRAPH, |log| log.read(ONE, X));
    log.instantiate(GRAPH, FIRST);
    let write = log.write(TWO, X);
    let launch = log.launch(ONE, FIRST);
    let report = log.report();
    let [finding] = &*report.findings else { panic!("{:?}", report.findings) };
    assert_eq!((finding.rule, finding.first.unwrap().number), (Rule::Ss501, write));
    let second = finding.second;
    assert_eq!((second.number, second.kind), (launch, Some(OpKind::GraphLaunch)));
    assert_eq!((second.site, second.forward_site), (SiteId(launch.0 as u32), SiteId(node.0 as u32)));
    assert!(finding.fix.as_ref().is_some_and(|fix| fix.verified), "a wait before the launch is enough");
}

#[test]
fn launches_of_two_executables_do_not_follow_each_other() {
    let mut log = Log::new();
    log.capture(GRAPH, |log| log.write(ONE, X));
    log.instantiate(GRAPH, FIRST);
    log.instantiate(GRAPH, SECOND);
    let first = log.launch(ONE, FIRST);
    let second = log.launch(TWO, SECOND);
    log.launch(ONE, SECOND);
    assert_eq!(log.pairs(), [(Rule::Ss502, first, second)]);
}

#[test]
fn an_update_replaces_the_nodes() {
    let mut log = Log::new();
    log.capture(GRAPH, |log| log.write(ONE, X));
    log.instantiate(GRAPH, FIRST);
    log.capture(GraphId(2), |log| log.write(ONE, Y));
    log.instantiate(GraphId(2), FIRST);
    log.launch(ONE, FIRST);
    log.read(TWO, X);
    assert_eq!(log.pairs(), []);
}

#[test]
fn a_graph_that_was_not_captured_is_a_gap_and_its_launches_are_ordered() {
    let mut log = Log::new();
    log.instantiate(GraphId(0), FIRST);
    log.write(ONE, X);
    log.launch(ONE, FIRST);
    log.launch(TWO, FIRST);
    log.read(TWO, X);
    let report = log.report();
    assert_eq!(report.findings, []);
    let gaps: Vec<_> = report.gaps.iter().map(|gap| (gap.reason, gap.count)).collect();
    assert_eq!(gaps, [(GapReason::UnseenGraph, 2)]);
    assert_eq!(report.coverage.operations, 4);
}

#[test]
fn a_graph_launched_in_a_capture_is_one_of_its_nodes() {
    let mut log = Log::new();
    log.capture(GRAPH, |log| log.write(ONE, X));
    log.instantiate(GRAPH, FIRST);
    log.capture(GraphId(2), |log| log.launch(ONE, FIRST));
    log.instantiate(GraphId(2), SECOND);
    let read = log.read(TWO, X);
    assert_eq!(log.pairs(), [], "nothing ran yet");
    let launch = log.launch(ONE, SECOND);
    assert_eq!(log.pairs(), [(Rule::Ss502, read, launch)]);
}

#[test]
fn an_invalid_capture_leaves_nothing() {
    let mut log = Log::new();
    log.push(EventKind::CaptureBegin { graph: GRAPH, stream: ONE });
    log.write(ONE, X);
    log.push(EventKind::CaptureEnd { graph: GRAPH, stream: ONE, valid: false });
    log.read(TWO, X);
    log.write(ONE, X);
    log.wait(TWO, ONE);
    log.read(TWO, X);
    assert_eq!(log.pairs().len(), 1, "the write after the capture overtakes the read before it");
}

#[test]
fn freed_memory_of_a_graph_is_there_for_the_next_launch() {
    let mut log = Log::new();
    let block = BlockId(10);
    log.capture(GRAPH, |log| {
        log.allocate(block, 0x7000_0000);
        log.write(ONE, block);
        log.read(ONE, block);
        log.push(EventKind::FreeRequest { block });
    });
    log.instantiate(GRAPH, FIRST);
    log.push(EventKind::GraphDestroy { graph: GRAPH });
    log.launch(ONE, FIRST);
    log.launch(ONE, FIRST);
    assert_eq!(log.pairs(), []);
}

#[test]
fn graphs_that_share_memory_are_compared_by_address() {
    let mut log = Log::new();
    let (temporary, output) = (BlockId(10), BlockId(11));
    log.capture(GRAPH, |log| {
        log.allocate(temporary, 0x7000_0000);
        log.write(ONE, temporary);
        log.push(EventKind::FreeRequest { block: temporary });
    });
    log.instantiate(GRAPH, FIRST);
    log.capture(GraphId(2), |log| {
        log.allocate(output, 0x7000_0000);
        log.write(ONE, output);
    });
    log.instantiate(GraphId(2), SECOND);
    log.launch(ONE, SECOND);
    let reader = log.read(ONE, output);
    let launch = log.launch(TWO, FIRST);
    let report = log.report();
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.rule, finding.first.unwrap().number, finding.second.number))
        .collect();
    assert!(found.contains(&(Rule::Ss502, reader, launch)), "{found:?}");
    let named = report.findings.iter().all(|finding| finding.memory.unwrap().block == output);
    assert!(named, "the block that the program knows: {:?}", report.findings);
}

#[test]
fn an_output_that_outlives_its_graph_is_freed_like_any_block() {
    let mut log = Log::new();
    let output = BlockId(10);
    log.capture(GRAPH, |log| {
        log.allocate(output, 0x7000_0000);
        log.write(ONE, output);
    });
    log.instantiate(GRAPH, FIRST);
    log.launch(ONE, FIRST);
    log.push(EventKind::GraphDestroy { graph: GRAPH });
    log.push(EventKind::ExecutableDestroy { executable: FIRST });
    log.read(ONE, output);
    log.push(EventKind::FreeRequest { block: output });
    log.allocate(BlockId(11), 0x7000_0000);
    log.write(ONE, BlockId(11));
    assert_eq!(log.pairs(), []);
}

#[test]
fn memory_reused_in_a_graph_is_ordered_by_its_nodes() {
    let mut log = Log::new();
    let (old, new) = (BlockId(10), BlockId(11));
    let mut nodes = Vec::new();
    log.capture(GRAPH, |log| {
        log.allocate(old, 0x7000_0000);
        log.write(ONE, old);
        log.wait(TWO, ONE);
        nodes.push(log.read(TWO, old));
        log.push(EventKind::FreeRequest { block: old });
        log.allocate(new, 0x7000_0000);
        nodes.push(log.write(ONE, new));
        log.wait(ONE, TWO);
    });
    log.instantiate(GRAPH, FIRST);
    log.launch(ONE, FIRST);
    log.launch(ONE, FIRST);
    assert_eq!(log.pairs(), [(Rule::Ss202, nodes[0], nodes[1])]);
}

#[test]
fn nodes_without_order_are_in_the_region_of_the_launch() {
    let mut log = Log::new();
    log.capture(GRAPH, |log| {
        log.wait(TWO, ONE);
        log.write(ONE, X);
        log.read(TWO, X);
        log.wait(ONE, TWO);
    });
    log.instantiate(GRAPH, FIRST);
    let first = log.launch(ONE, FIRST);
    let region = Region { first, last: OpNumber(u64::MAX) };
    let config = Config { region: Some(region), ..Config::default() };
    assert_eq!(check(&log.0, &config).findings.len(), 1);
}

#[test]
fn a_freed_input_is_found_long_after() {
    let mut log = Log::new();
    let block = BlockId(10);
    log.allocate(block, 0x7000_0000);
    log.capture(GRAPH, |log| log.read(ONE, block));
    log.instantiate(GRAPH, FIRST);
    let free = log.push(EventKind::FreeRequest { block });
    // So many that nothing else is known of the block any more.
    for index in 0..40_000 {
        let block = BlockId(100 + index);
        log.allocate(block, 0x8000_0000);
        log.push(EventKind::FreeRequest { block });
    }
    let launch = log.launch(ONE, FIRST);
    assert_eq!(log.pairs(), [(Rule::Ss204, free, launch)]);
}

#[test]
fn many_captures_and_launches_leave_little_behind() {
    let mut log = Log::new();
    let mut live = LiveCheck::new(Config::default());
    for round in 0..50 {
        let (graph, executable) = (GraphId(round + 1), ExecutableId(round + 1));
        log.capture(graph, |log| {
            let block = BlockId(10 + round);
            log.allocate(block, 0x7000_0000);
            log.write(ONE, block);
            log.push(EventKind::FreeRequest { block });
        });
        log.instantiate(graph, executable);
        log.push(EventKind::GraphDestroy { graph });
        log.launch(ONE, executable);
        log.push(EventKind::ExecutableDestroy { executable });
    }
    for event in &log.0.events {
        let accesses = match event.kind {
            EventKind::Op { accesses, .. } => log.0.accesses(accesses),
            _ => &[],
        };
        live.event(event, accesses, &log.0.tables);
    }
    assert_eq!(live.report(&log.0.tables).findings, []);
}

/// A block from the pool of a graph, though nothing is captured.
fn allocate_for_graphs(log: &mut Log, block: BlockId, address: u64) {
    log.allocate(block, address);
    log.push(EventKind::GraphMemory { block });
}

#[test]
fn an_input_from_a_graphs_pool_may_be_freed_in_the_capture() {
    let input = BlockId(10);
    for of_graph in [true, false] {
        let mut log = Log::new();
        if of_graph {
            allocate_for_graphs(&mut log, input, 0x7000_0000);
        } else {
            log.allocate(input, 0x7000_0000);
        }
        log.write(ONE, input);
        let free = log.capture(GRAPH, |log| {
            log.read(ONE, input);
            log.push(EventKind::FreeRequest { block: input })
        });
        log.instantiate(GRAPH, FIRST);
        let write = log.write(ONE, input);
        let launch = log.launch(ONE, FIRST);
        let expected = [(Rule::Ss204, free, write), (Rule::Ss204, free, launch)];
        assert_eq!(log.pairs(), if of_graph { &[] } else { &expected[..] });
    }
}

#[test]
fn an_input_from_a_graphs_pool_is_still_ordered_by_waits_only() {
    let mut log = Log::new();
    let input = BlockId(10);
    allocate_for_graphs(&mut log, input, 0x7000_0000);
    let first = log.write(ONE, input);
    log.capture(GRAPH, |log| {
        log.read(ONE, input);
        log.push(EventKind::FreeRequest { block: input });
    });
    log.instantiate(GRAPH, FIRST);
    let write = log.write(TWO, input);
    let launch = log.launch(ONE, FIRST);
    assert_eq!(log.pairs(), [(Rule::Ss103, first, write), (Rule::Ss501, write, launch)]);
}

#[test]
fn a_graph_hands_the_memory_of_its_input_on() {
    let (input, temporary) = (BlockId(10), BlockId(11));
    for joined in [true, false] {
        let mut log = Log::new();
        allocate_for_graphs(&mut log, input, 0x7000_0000);
        let (read, write) = log.capture(GRAPH, |log| {
            log.wait(TWO, ONE);
            let read = log.read(TWO, input);
            log.push(EventKind::FreeRequest { block: input });
            if joined {
                log.wait(ONE, TWO);
            }
            log.allocate(temporary, 0x7000_0000);
            let write = log.write(ONE, temporary);
            log.wait(ONE, TWO);
            (read, write)
        });
        log.instantiate(GRAPH, FIRST);
        log.write(ONE, input);
        log.launch(ONE, FIRST);
        log.launch(ONE, FIRST);
        let expected = [(Rule::Ss202, read, write)];
        assert_eq!(log.pairs(), if joined { &[] } else { &expected[..] });
    }
}

#[test]
fn a_guard_orders_the_next_owner_of_memory_from_a_graphs_pool() {
    let (old, new) = (BlockId(10), BlockId(11));
    for guarded in [true, false] {
        let mut log = Log::new();
        allocate_for_graphs(&mut log, old, 0x7000_0000);
        log.write(ONE, old);
        log.wait(TWO, ONE);
        let read = log.read(TWO, old);
        log.push(EventKind::FreeRequest { block: old });
        if guarded {
            log.push(EventKind::FreeGuard { block: old, stream: TWO });
        }
        allocate_for_graphs(&mut log, new, 0x7000_0000);
        let write = log.write(ONE, new);
        let expected = [(Rule::Ss102, read, write)];
        assert_eq!(log.pairs(), if guarded { &[] } else { &expected[..] });
    }
}

#[test]
fn memory_that_goes_back_to_the_device_ends_what_a_graph_kept() {
    let mut log = Log::new();
    let (region, old, new) = (BlockId(9), BlockId(10), BlockId(11));
    let space = MemorySpace::Device(DeviceId(0));
    for (block, region) in [(old, region), (new, BlockId(8))] {
        log.push(EventKind::Alloc { block: region, stream: ONE, space, address: 0x7000_0000, size: 1 << 21 });
        allocate_for_graphs(&mut log, block, 0x7000_0000);
        log.write(if block == old { TWO } else { ONE }, block);
        log.push(EventKind::FreeRequest { block });
        log.push(EventKind::FreeRequest { block: region });
    }
    assert_eq!(log.pairs(), []);
}

#[test]
fn what_is_handed_out_of_graphs_pools_leaves_little_behind() {
    let mut log = Log::new();
    let mut live = LiveCheck::new(Config::default());
    let input = BlockId(9);
    allocate_for_graphs(&mut log, input, 0x7000_0000);
    log.capture(GRAPH, |log| {
        log.read(ONE, input);
        log.push(EventKind::FreeRequest { block: input });
    });
    log.instantiate(GRAPH, FIRST);
    for round in 0..10_000 {
        let block = BlockId(10 + round);
        allocate_for_graphs(&mut log, block, 0x7000_0000);
        log.write(ONE, block);
        log.push(EventKind::FreeRequest { block });
    }
    // The input is known as long as its graph.
    let write = log.write(TWO, input);
    let launch = log.launch(ONE, FIRST);
    for event in &log.0.events {
        let accesses = match event.kind {
            EventKind::Op { accesses, .. } => log.0.accesses(accesses),
            _ => &[],
        };
        live.event(event, accesses, &log.0.tables);
    }
    let found = live.report(&log.0.tables).findings;
    let pairs: Vec<_> = found.iter().map(|finding| (finding.rule, finding.second.number)).collect();
    assert_eq!(pairs, [(Rule::Ss103, write), (Rule::Ss501, launch)]);
}

/// A trace of many captures, each made an executable.
fn captures(count: u32, body: impl Fn(&mut Log, u32)) -> Log {
    let mut log = Log::new();
    for graph in 1..=count {
        log.capture(GraphId(graph), |log| body(log, graph));
        log.instantiate(GraphId(graph), ExecutableId(graph));
    }
    log
}

fn gaps(report: &Report, reason: GapReason) -> u64 {
    report.gaps.iter().filter(|gap| gap.reason == reason).map(|gap| gap.count).sum()
}

#[test]
fn all_captures_share_the_effort_for_intricate_pairs() {
    let intricate = |strides: [i64; 4]| Shape::from_tensor(&[40; 4], &strides, 1).expect("it has elements").0;
    let shapes = [intricate([3001, 2003, 1009, 500]), intricate([2999, 2010, 1013, 506])];
    let undecided = |count: u32| {
        let mut log = captures(count, |log, _| {
            log.wait(TWO, ONE);
            for round in 0..20_u64 {
                let (stream, shape) = if round % 2 == 0 { (ONE, 1) } else { (TWO, 2) };
                log.operation(stream, OpKind::Kernel, &[(X, AccessMode::Write)]);
                let access = log.0.accesses.last_mut().expect("it was just made");
                (access.shape, access.offset) = (ShapeId(shape), round);
                access.length = shapes[shape as usize - 1].length();
            }
        });
        for shape in &shapes {
            log.0.tables.intern_shape(shape.clone());
        }
        gaps(&log.report(), GapReason::Undecided)
    };
    // 100 pairs in each capture, up to 200,000 steps for a pair, 40 million steps for all.
    let (one, many) = (undecided(1), undecided(64));
    println!("of 1 capture {one}, of 64 {many}");
    assert!(many > 64 * one + 1_000, "the effort is used up: {one}, {many}");
}

#[test]
fn pairs_without_order_are_kept_for_all_graphs_together() {
    let undecided = |count: u32| {
        let log = captures(count, |log, _| {
            log.wait(TWO, ONE);
            for _ in 0..100 {
                log.read(ONE, X);
                for _ in 0..10 {
                    log.write(TWO, Y);
                }
            }
            for _ in 0..1_000 {
                log.write(ONE, Y);
            }
        });
        gaps(&log.report(), GapReason::Undecided)
    };
    assert_eq!(undecided(10), 0);
    assert!(undecided(100) > 30_000);
}

#[test]
fn graphs_that_hold_graphs_are_limited_together() {
    let mut log = Log::new();
    log.capture(GraphId(1), |log| {
        for _ in 0..1_000 {
            log.read(ONE, X);
        }
    });
    log.instantiate(GraphId(1), ExecutableId(1));
    // 600,000 nodes in each of three graphs.
    for graph in 2..=4 {
        log.capture(GraphId(graph), |log| {
            for _ in 0..600 {
                log.launch(ONE, ExecutableId(1));
            }
        });
    }
    let million = 1 << 20;
    assert_eq!(gaps(&log.report(), GapReason::UnseenGraph), 1_800 - million / 1_000);
    // With a graph its nodes go.
    log.push(EventKind::GraphDestroy { graph: GraphId(2) });
    log.capture(GraphId(5), |log| {
        for _ in 0..600 {
            log.launch(ONE, ExecutableId(1));
        }
    });
    assert_eq!(gaps(&log.report(), GapReason::UnseenGraph), 1_800 - million / 1_000);
}
