//! What becomes of calls while streams capture, and what a launch does.

#[path = "conformance/probe.rs"]
mod probe;

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use probe::{Probe, at};

const GLOBAL: usize = 0;
const THREAD_LOCAL: usize = 1;
const RELAXED: usize = 2;
const NON_BLOCKING: usize = 1;

/// A capture forbids calls of other threads, so the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Calls with their answers.
struct Device {
    probe: Probe,
    _turn: MutexGuard<'static, ()>,
}

impl Device {
    fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { probe: Probe::open(), _turn: turn }
    }

    fn call(&self, function: &str, arguments: &[usize]) -> i32 {
        let code = self.probe.call(function, arguments);
        self.probe.call("cudaGetLastError", &[]);
        code
    }

    #[track_caller]
    fn ok(&self, function: &str, arguments: &[usize]) {
        assert_eq!(self.call(function, arguments), 0, "{function}");
    }

    #[track_caller]
    fn fails(&self, code: i32, function: &str, arguments: &[usize]) {
        assert_eq!(self.call(function, arguments), code, "{function}");
    }

    fn stream(&self, flags: usize) -> usize {
        let mut stream = 0_usize;
        self.ok("cudaStreamCreateWithFlags", &[at(&mut stream), flags]);
        stream
    }

    fn event(&self) -> usize {
        let mut event = 0_usize;
        self.ok("cudaEventCreateWithFlags", &[at(&mut event), 2]);
        event
    }

    fn memory(&self) -> &'static mut [u8] {
        let mut pointer = 0_usize;
        self.ok("cudaMalloc", &[at(&mut pointer), 64]);
        // SAFETY: 64 zeroed bytes that are never freed, at an address of this process.
        unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(pointer), 64) }
    }

    fn begin(&self, stream: usize, mode: usize) {
        self.ok("cudaStreamBeginCapture", &[stream, mode]);
    }

    fn end(&self, stream: usize) -> usize {
        let mut graph = 0_usize;
        self.ok("cudaStreamEndCapture", &[stream, at(&mut graph)]);
        assert_ne!(graph, 0);
        graph
    }

    #[track_caller]
    fn end_fails(&self, code: i32, stream: usize) {
        let mut graph = 5_usize;
        self.fails(code, "cudaStreamEndCapture", &[stream, at(&mut graph)]);
        assert_eq!(graph, 0);
        assert_eq!(self.status(stream), 0, "the stream is out of the capture");
    }

    fn instantiate(&self, graph: usize) -> usize {
        let mut executable = 0_usize;
        self.ok("cudaGraphInstantiateWithFlags", &[at(&mut executable), graph, 0]);
        executable
    }

    fn status(&self, stream: usize) -> i32 {
        let mut status = 9;
        self.ok("cudaStreamIsCapturing", &[stream, at(&mut status)]);
        status
    }

    fn fill(&self, memory: &mut [u8], value: usize, stream: usize) -> i32 {
        self.call("cudaMemsetAsync", &[memory.as_ptr() as usize, value, memory.len(), stream])
    }

    fn count(&self, graph: usize) -> usize {
        let mut count = 0_usize;
        self.ok("cudaGraphGetNodes", &[graph, 0, at(&mut count)]);
        count
    }
}

#[test]
fn work_in_a_capture_is_done_at_each_launch_and_not_before() {
    let device = Device::new();
    let (stream, first, second) = (device.stream(NON_BLOCKING), device.memory(), device.memory());
    device.begin(stream, GLOBAL);
    assert_eq!(device.fill(first, 7, stream), 0);
    let copy = [second.as_ptr() as usize, first.as_ptr() as usize, 64, 3, stream];
    device.ok("cudaMemcpyAsync", &copy);
    let graph = device.end(stream);
    assert_eq!((device.count(graph), first[0], second[0]), (2, 0, 0));
    let executable = device.instantiate(graph);
    device.ok("cudaGraphDestroy", &[graph]);
    for _ in 0..2 {
        (first[3], second[3]) = (1, 1);
        device.ok("cudaGraphLaunch", &[executable, stream]);
        assert_eq!((first[3], second[3]), (7, 7));
    }
    device.ok("cudaGraphExecDestroy", &[executable]);
    device.fails(1, "cudaGraphLaunch", &[executable, stream]);
}

#[test]
fn a_launch_is_work_of_its_stream() {
    let device = Device::new();
    let (stream, memory) = (device.stream(NON_BLOCKING), device.memory());
    device.begin(stream, GLOBAL);
    device.fill(memory, 1, stream);
    let executable = device.instantiate(device.end(stream));
    device.ok("cudaStreamSynchronize", &[stream]);
    device.ok("cudaStreamQuery", &[stream]);
    device.ok("cudaGraphLaunch", &[executable, stream]);
    device.fails(600, "cudaStreamQuery", &[stream]);
}

#[test]
fn events_fork_and_join_a_capture() {
    let device = Device::new();
    let (main, side) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING));
    let (fork, join, memory) = (device.event(), device.event(), device.memory());
    device.begin(main, GLOBAL);
    device.fill(memory, 1, main);
    device.ok("cudaEventRecord", &[fork, main]);
    assert_eq!(device.status(side), 0);
    device.ok("cudaStreamWaitEvent", &[side, fork, 0]);
    assert_eq!(device.status(side), 1);
    device.fill(memory, 2, side);
    device.fill(memory, 3, main);
    device.ok("cudaEventRecord", &[join, side]);
    device.ok("cudaStreamWaitEvent", &[main, join, 0]);
    device.fill(memory, 4, main);
    let graph = device.end(main);
    assert_eq!((device.status(main), device.status(side)), (0, 0));
    let (mut nodes, mut count) = ([0_usize; 8], 8_usize);
    device.ok("cudaGraphGetNodes", &[graph, at(&mut nodes), at(&mut count)]);
    assert_eq!((count, nodes[4]), (4, 0));
    let (mut from, mut to, mut edges) = ([0_usize; 8], [0_usize; 8], 8_usize);
    device.ok("cudaGraphGetEdges", &[graph, at(&mut from), at(&mut to), 0, at(&mut edges)]);
    let mut found: Vec<(usize, usize)> = from.into_iter().zip(to).take(edges).collect();
    found.sort_unstable();
    let [first, on_side, on_main, last, ..] = nodes;
    assert_eq!(found, [(first, on_side), (first, on_main), (on_side, last), (on_main, last)]);
    let (mut roots, mut count, mut kind) = ([0_usize; 2], 2_usize, 9_i32);
    device.ok("cudaGraphGetRootNodes", &[graph, at(&mut roots), at(&mut count)]);
    device.ok("cudaGraphNodeGetType", &[last, at(&mut kind)]);
    assert_eq!((count, roots, kind), (1, [first, 0], 2));
    let mut before = [0_usize; 1];
    let mut count = 1_usize;
    device.ok("cudaGraphNodeGetDependencies", &[last, at(&mut before), 0, at(&mut count)]);
    assert_eq!((count, before), (1, [on_main]));
}

#[test]
fn a_forked_stream_must_be_joined() {
    let device = Device::new();
    let (main, side) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING));
    let (fork, memory) = (device.event(), device.memory());
    device.begin(main, GLOBAL);
    device.ok("cudaEventRecord", &[fork, main]);
    device.ok("cudaStreamWaitEvent", &[side, fork, 0]);
    device.fill(memory, 2, side);
    device.end_fails(904, main);
}

#[test]
fn a_capture_ends_where_it_began() {
    let device = Device::new();
    let (main, side, fork) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING), device.event());
    let mut graph = 0_usize;
    device.fails(401, "cudaStreamEndCapture", &[main, at(&mut graph)]);
    device.begin(main, GLOBAL);
    device.fails(401, "cudaStreamBeginCapture", &[main, GLOBAL]);
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let mut graph = 0_usize;
            Probe::open().call("cudaStreamEndCapture", &[main, at(&mut graph)])
        });
        assert_eq!(ended.join().expect("no panic"), 908);
    });
    device.ok("cudaEventRecord", &[fork, main]);
    device.ok("cudaStreamWaitEvent", &[side, fork, 0]);
    device.fails(903, "cudaStreamEndCapture", &[side, at(&mut graph)]);
    device.end_fails(901, main);
}

#[test]
fn waiting_for_captured_work_makes_the_capture_invalid() {
    let device = Device::new();
    let (stream, event) = (device.stream(NON_BLOCKING), device.event());
    let memory = device.memory();
    for (function, arguments, code) in [
        ("cudaStreamSynchronize", [stream], 900),
        ("cudaStreamQuery", [stream], 900),
        ("cudaDeviceSynchronize", [0], 900),
        ("cudaEventSynchronize", [event], 907),
        ("cudaEventQuery", [event], 907),
    ] {
        // Not even a relaxed capture allows these.
        device.begin(stream, RELAXED);
        device.ok("cudaEventRecord", &[event, stream]);
        device.fails(code, function, &arguments);
        assert_eq!(device.status(stream), 2, "after {function}");
        assert_eq!(device.fill(memory, 1, stream), 901);
        device.end_fails(901, stream);
    }
}

#[test]
fn an_event_of_a_capture_means_nothing_outside() {
    let device = Device::new();
    let (stream, other) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING));
    let event = device.event();
    device.begin(stream, GLOBAL);
    device.ok("cudaEventRecord", &[event, stream]);
    device.end(stream);
    device.fails(1, "cudaStreamWaitEvent", &[other, event, 0]);
    device.fails(1, "cudaEventSynchronize", &[event]);
    device.ok("cudaEventRecord", &[event, other]);
    device.ok("cudaEventSynchronize", &[event]);
}

#[test]
fn work_from_outside_is_no_dependency_of_a_node() {
    let device = Device::new();
    let (stream, other) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING));
    let event = device.event();
    device.ok("cudaEventRecord", &[event, other]);
    device.begin(stream, GLOBAL);
    device.fails(905, "cudaStreamWaitEvent", &[stream, event, 0]);
    device.end_fails(901, stream);
}

#[test]
fn a_capture_ends_with_its_stream() {
    let device = Device::new();
    let (stream, mut pointer) = (device.stream(NON_BLOCKING), 0_usize);
    device.begin(stream, GLOBAL);
    device.fails(900, "cudaMalloc", &[at(&mut pointer), 64]);
    device.ok("cudaStreamDestroy", &[stream]);
    device.ok("cudaMalloc", &[at(&mut pointer), 64]);
}

#[test]
fn captures_do_not_merge() {
    let device = Device::new();
    let (one, two) = (device.stream(NON_BLOCKING), device.stream(NON_BLOCKING));
    let event = device.event();
    device.begin(one, RELAXED);
    device.begin(two, RELAXED);
    device.ok("cudaEventRecord", &[event, one]);
    device.fails(902, "cudaStreamWaitEvent", &[two, event, 0]);
    device.end_fails(901, one);
    device.end_fails(901, two);
}

#[test]
fn the_legacy_stream_is_unusable_while_a_blocking_stream_captures() {
    let device = Device::new();
    let (blocking, other) = (device.stream(0), device.stream(NON_BLOCKING));
    let memory = device.memory();
    let mut status = 0;
    device.fails(900, "cudaStreamBeginCapture", &[0, GLOBAL]);
    device.begin(other, GLOBAL);
    assert_eq!(device.fill(memory, 1, 0), 0);
    device.end(other);
    device.begin(blocking, GLOBAL);
    device.fails(906, "cudaStreamIsCapturing", &[0, at(&mut status)]);
    assert_eq!(device.status(blocking), 1);
    assert_eq!(device.fill(memory, 1, 0), 906);
    device.end_fails(901, blocking);
}

#[test]
fn unsafe_calls_are_refused_by_the_modes_of_captures_and_threads() {
    fn allocates_in_a_thread(mode: usize) -> bool {
        let allocate = move || {
            let (probe, mut pointer, mut own) = (Probe::open(), 0_usize, mode);
            probe.call("cudaThreadExchangeStreamCaptureMode", &[at(&mut own)]);
            probe.call("cudaMalloc", &[at(&mut pointer), 64]) == 0
        };
        std::thread::spawn(allocate).join().expect("no panic")
    }
    let device = Device::new();
    let (stream, mut pointer) = (device.stream(NON_BLOCKING), 0_usize);
    for (mode, here, there, there_if_local) in
        [(GLOBAL, false, false, true), (THREAD_LOCAL, false, true, true), (RELAXED, true, true, true)]
    {
        for (allowed, allocate) in [
            (there, &(|| allocates_in_a_thread(GLOBAL)) as &dyn Fn() -> bool),
            (there_if_local, &|| allocates_in_a_thread(THREAD_LOCAL)),
            (true, &|| allocates_in_a_thread(RELAXED)),
        ] {
            device.begin(stream, mode);
            assert_eq!(allocate(), allowed, "mode {mode}");
            if allowed {
                device.end(stream);
            } else {
                device.end_fails(901, stream);
            }
        }
        device.begin(stream, mode);
        let code = device.call("cudaMalloc", &[at(&mut pointer), 64]);
        assert_eq!(code, if here { 0 } else { 900 }, "mode {mode}");
        let mut graph = 0_usize;
        assert_eq!(
            device.call("cudaStreamEndCapture", &[stream, at(&mut graph)]),
            if here { 0 } else { 901 }
        );
    }
}

#[test]
fn memory_that_has_gone_is_an_illegal_address() {
    let device = Device::new();
    let stream = device.stream(NON_BLOCKING);
    let mut pointer = 0_usize;
    device.ok("cudaMalloc", &[at(&mut pointer), 64]);
    device.begin(stream, GLOBAL);
    device.ok("cudaMemsetAsync", &[pointer, 1, 64, stream]);
    let executable = device.instantiate(device.end(stream));
    device.ok("cudaFree", &[pointer]);
    device.fails(700, "cudaGraphLaunch", &[executable, stream]);
}

#[test]
fn a_graph_of_the_same_shape_takes_the_place_of_another() {
    let device = Device::new();
    let (stream, memory) = (device.stream(NON_BLOCKING), device.memory());
    let graph = |values: &[usize], memory: &mut [u8]| {
        device.begin(stream, GLOBAL);
        for &value in values {
            device.fill(memory, value, stream);
        }
        device.end(stream)
    };
    let executable = device.instantiate(graph(&[1], memory));
    let mut result = [9_u64; 3];
    device.ok("cudaGraphExecUpdate", &[executable, graph(&[2], memory), at(&mut result)]);
    device.ok("cudaGraphLaunch", &[executable, stream]);
    assert_eq!((memory[0], result[0].to_le_bytes()[0]), (2, 0));
    let longer = graph(&[3, 4], memory);
    device.fails(910, "cudaGraphExecUpdate", &[executable, longer, at(&mut result)]);
    device.ok("cudaGraphLaunch", &[executable, stream]);
    assert_eq!((memory[0], result[0].to_le_bytes()[0]), (2, 2));
}

#[test]
fn captured_functions_run_at_each_launch() {
    unsafe extern "C" fn count(data: *mut c_void) {
        // SAFETY: the test below gives a number.
        unsafe { *data.cast::<u32>() += 1 };
    }
    let device = Device::new();
    let (stream, mut calls) = (device.stream(NON_BLOCKING), 0_u32);
    device.begin(stream, GLOBAL);
    device.ok("cudaLaunchHostFunc", &[stream, count as *const () as usize, at(&mut calls)]);
    let graph = device.end(stream);
    let executable = device.instantiate(graph);
    assert_eq!(calls, 0);
    device.ok("cudaGraphLaunch", &[executable, stream]);
    device.ok("cudaGraphLaunch", &[executable, stream]);
    assert_eq!(calls, 2);
    let (mut object, mut destroyed) = (0_usize, 0_u32);
    let create = [at(&mut object), at(&mut destroyed), count as *const () as usize, 1, 1];
    device.ok("cudaUserObjectCreate", &create);
    device.ok("cudaGraphRetainUserObject", &[graph, object, 1, 1]);
    let other = device.instantiate(graph);
    device.ok("cudaGraphDestroy", &[graph]);
    assert_eq!(destroyed, 0);
    device.ok("cudaGraphExecDestroy", &[other]);
    assert_eq!(destroyed, 1);
}

#[test]
fn a_capture_tells_of_itself() {
    let device = Device::new();
    let (stream, memory) = (device.stream(NON_BLOCKING), device.memory());
    let (mut status, mut id, mut graph, mut nodes, mut count) = (9, 9_u64, 9_usize, 9_usize, 9_usize);
    let places = [stream, at(&mut status), at(&mut id), at(&mut graph), at(&mut nodes), 0, at(&mut count)];
    device.ok("cudaStreamGetCaptureInfo", &places);
    assert_eq!(status, 0);
    device.begin(stream, GLOBAL);
    device.fill(memory, 1, stream);
    device.ok("cudaStreamGetCaptureInfo", &places);
    assert_eq!((status, count), (1, 1));
    // SAFETY: one node, which may be read until the next call on the stream.
    let node: usize = unsafe { std::ptr::with_exposed_provenance::<usize>(nodes).read() };
    let (first, mut kind) = (id, 9_i32);
    device.ok("cudaGraphNodeGetType", &[node, at(&mut kind)]);
    assert_eq!(kind, 2);
    assert_eq!(device.end(stream), graph);
    device.begin(stream, GLOBAL);
    device.ok("cudaStreamGetCaptureInfo", &places);
    assert_ne!(id, first, "each capture has its own number");
    device.end(stream);
}

#[test]
fn a_graph_in_a_graph() {
    let device = Device::new();
    let (stream, memory) = (device.stream(NON_BLOCKING), device.memory());
    device.begin(stream, GLOBAL);
    device.fill(memory, 5, stream);
    let inner = device.instantiate(device.end(stream));
    device.begin(stream, GLOBAL);
    device.ok("cudaGraphLaunch", &[inner, stream]);
    let outer = device.instantiate(device.end(stream));
    assert_eq!(memory[0], 0);
    device.ok("cudaGraphLaunch", &[outer, stream]);
    assert_eq!(memory[0], 5);
}
