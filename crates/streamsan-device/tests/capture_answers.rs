//! What is refused in a capture, and what that does to the capture: questions for a GPU. See `conformance.rs`.
//!
//! `tests/conformance/captures_h200.txt` was written by this test on that GPU. To write it again there:
//! `STREAMSAN_CONFORMANCE_LIBRARY=libcudart.so.13 STREAMSAN_CONFORMANCE_WRITE=captures_h200.txt`.

#[path = "conformance/probe.rs"]
mod probe;

use std::ffi::c_void;

use probe::{Probe, at};

const MODES: [&str; 3] = ["global", "thread-local", "relaxed"];

/// What the questions are about.
struct Things {
    stream: usize,
    other: usize,
    blocking: usize,
    event: usize,
    recorded: usize,
    memory: usize,
    pinned: usize,
    pageable: usize,
}

fn things(probe: &mut Probe, pageable: usize) -> Things {
    let mut things =
        Things { stream: 0, other: 0, blocking: 0, event: 0, recorded: 0, memory: 0, pinned: 0, pageable };
    for stream in [&mut things.stream, &mut things.other] {
        probe.call("cudaStreamCreateWithFlags", &[at(stream), 1]);
    }
    probe.call("cudaStreamCreate", &[at(&mut things.blocking)]);
    probe.call("cudaEventCreate", &[at(&mut things.event)]);
    probe.call("cudaEventCreate", &[at(&mut things.recorded)]);
    probe.call("cudaMalloc", &[at(&mut things.memory), 1 << 16]);
    probe.call("cudaHostAlloc", &[at(&mut things.pinned), 1 << 16, 0]);
    probe.call("cudaEventRecord", &[things.recorded, things.other]);
    probe.call("cudaDeviceSynchronize", &[]);
    things
}

/// Notes the state of the capture, and ends it.
fn end(probe: &mut Probe, stream: usize) -> usize {
    let (mut status, mut graph) = (9_i32, 5_usize);
    probe.note("", "cudaStreamIsCapturing", &[stream, at(&mut status)]);
    probe.note_value("status", status);
    probe.note("", "cudaStreamEndCapture", &[stream, at(&mut graph)]);
    probe.note_value("a graph", graph != 0);
    graph
}

/// Asks one call in a capture of each mode.
fn in_each_mode(probe: &mut Probe, things: &Things, what: &str, function: &str, arguments: &[usize]) {
    for (mode, name) in MODES.into_iter().enumerate() {
        probe.call("cudaStreamBeginCapture", &[things.stream, mode]);
        probe.note(&format!("{what}, {name}"), function, arguments);
        end(probe, things.stream);
        probe.call("cudaDeviceSynchronize", &[]);
    }
}

fn calls_that_may_be_unsafe(probe: &mut Probe, things: &Things) {
    let (mut pointer, mut free, mut total) = (0_usize, 0_usize, 0_usize);
    let Things { other, recorded, memory, pinned, pageable, .. } = *things;
    for (what, function, arguments) in [
        ("", "cudaMalloc", vec![at(&mut pointer), 64]),
        ("null", "cudaFree", vec![0]),
        ("", "cudaHostAlloc", vec![at(&mut pointer), 64, 0]),
        ("null", "cudaFreeHost", vec![0]),
        ("", "cudaMemGetInfo", vec![at(&mut free), at(&mut total)]),
        ("", "cudaStreamCreate", vec![at(&mut pointer)]),
        ("", "cudaEventCreate", vec![at(&mut pointer)]),
        ("of another stream", "cudaStreamSynchronize", vec![other]),
        ("of another stream", "cudaStreamQuery", vec![other]),
        ("of an event from outside", "cudaEventSynchronize", vec![recorded]),
        ("of an event from outside", "cudaEventQuery", vec![recorded]),
        ("", "cudaDeviceSynchronize", vec![]),
        ("device to device", "cudaMemcpy", vec![memory, memory + 4096, 64, 3]),
        ("from page-locked memory", "cudaMemcpy", vec![memory, pinned, 64, 1]),
        ("from pageable memory", "cudaMemcpy", vec![memory, pageable, 64, 1]),
        ("of device memory", "cudaMemset", vec![memory, 0, 64]),
    ] {
        in_each_mode(probe, things, what, function, &arguments);
    }
}

/// Asks calls of a thread that captures nothing, while this one does.
fn calls_of_another_thread(probe: &mut Probe, things: &Things) {
    let mut pointer = 0_usize;
    let Things { stream, other, recorded, .. } = *things;
    for (what, function, arguments) in [
        ("", "cudaMalloc", vec![at(&mut pointer), 64]),
        ("", "cudaHostAlloc", vec![at(&mut pointer), 64, 0]),
        ("of another stream", "cudaStreamSynchronize", vec![other]),
        ("of an event from outside", "cudaEventQuery", vec![recorded]),
        ("", "cudaDeviceSynchronize", vec![]),
    ] {
        for (mode, name) in MODES.into_iter().enumerate() {
            probe.call("cudaStreamBeginCapture", &[stream, mode]);
            let code = std::thread::scope(|scope| {
                let call = || Probe::open().call(function, &arguments);
                scope.spawn(call).join().expect("no panic")
            });
            probe.note_value(&format!("{function} {what}, {name}, of another thread"), code);
            end(probe, stream);
            probe.call("cudaDeviceSynchronize", &[]);
        }
    }
}

fn calls_on_the_stream(probe: &mut Probe, things: &Things) {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    let Things { stream, other, event, recorded, memory, pinned, pageable, .. } = *things;
    let mut milliseconds = 0_f32;
    for (what, function, arguments) in [
        ("of itself", "cudaStreamSynchronize", vec![stream]),
        ("of itself", "cudaStreamQuery", vec![stream]),
        ("never recorded", "cudaStreamWaitEvent", vec![stream, event, 0]),
        ("recorded outside", "cudaStreamWaitEvent", vec![stream, recorded, 0]),
        ("flags 2", "cudaStreamWaitEvent", vec![stream, event, 2]),
        ("flags 1, record", "cudaEventRecordWithFlags", vec![event, stream, 1]),
        ("flags 1, wait", "cudaStreamWaitEvent", vec![stream, event, 1]),
        ("a function", "cudaLaunchHostFunc", vec![stream, nothing as *const () as usize, 0]),
        ("page-locked up", "cudaMemcpyAsync", vec![memory, pinned, 64, 1, stream]),
        ("pageable up", "cudaMemcpyAsync", vec![memory, pageable, 64, 1, stream]),
        ("pageable down", "cudaMemcpyAsync", vec![pageable, memory, 64, 2, stream]),
        ("on the host", "cudaMemcpyAsync", vec![pageable, pageable + 64, 64, 0, stream]),
        ("again", "cudaStreamBeginCapture", vec![stream, 0]),
        ("without a place", "cudaStreamEndCapture", vec![stream, 0]),
        ("of the legacy stream", "cudaStreamQuery", vec![0]),
    ] {
        probe.call("cudaStreamBeginCapture", &[stream, 0]);
        probe.note(what, function, &arguments);
        end(probe, stream);
        probe.call("cudaDeviceSynchronize", &[]);
    }
    for (what, function, arguments) in [
        ("captured", "cudaEventSynchronize", vec![event]),
        ("captured", "cudaEventQuery", vec![event]),
        ("captured", "cudaEventElapsedTime", vec![at(&mut milliseconds), recorded, event]),
        ("captured, in the legacy stream", "cudaStreamWaitEvent", vec![0, event, 0]),
    ] {
        probe.call("cudaStreamBeginCapture", &[stream, 0]);
        probe.note("in a capture", "cudaEventRecord", &[event, stream]);
        probe.note(what, function, &arguments);
        end(probe, stream);
        probe.note("of a capture that has ended", "cudaStreamWaitEvent", &[other, event, 0]);
        probe.note("of a capture that has ended", "cudaEventQuery", &[event]);
        probe.call("cudaEventRecord", &[event, other]);
        probe.call("cudaDeviceSynchronize", &[]);
    }
}

fn forks(probe: &mut Probe, things: &Things) {
    let Things { stream, other, event, memory, .. } = *things;
    let fill = |probe: &mut Probe, stream| probe.call("cudaMemsetAsync", &[memory, 1, 64, stream]);
    for (what, before, on_side) in [
        ("nothing anywhere", false, false),
        ("nothing in the fork", true, false),
        ("work in the fork", true, true),
        ("work in the fork only", false, true),
    ] {
        probe.call("cudaStreamBeginCapture", &[stream, 0]);
        if before {
            fill(probe, stream);
        }
        probe.call("cudaEventRecord", &[event, stream]);
        probe.note(what, "cudaStreamWaitEvent", &[other, event, 0]);
        if on_side {
            fill(probe, other);
        }
        end(probe, stream);
        probe.call("cudaEventRecord", &[event, other]);
    }
    probe.call("cudaStreamBeginCapture", &[stream, 0]);
    probe.call("cudaEventRecord", &[event, stream]);
    probe.call("cudaStreamWaitEvent", &[other, event, 0]);
    let mut graph = 5_usize;
    probe.note("in the fork", "cudaStreamEndCapture", &[other, at(&mut graph)]);
    end(probe, stream);
    probe.call("cudaEventRecord", &[event, other]);
    probe.call("cudaStreamBeginCapture", &[stream, 2]);
    probe.call("cudaStreamBeginCapture", &[other, 2]);
    probe.call("cudaEventRecord", &[event, stream]);
    probe.note("of another capture", "cudaStreamWaitEvent", &[other, event, 0]);
    end(probe, stream);
    end(probe, other);
}

fn legacy(probe: &mut Probe, things: &Things) {
    let Things { blocking, memory, event, .. } = *things;
    let mut status = 9_i32;
    probe.note("legacy", "cudaStreamBeginCapture", &[0, 0]);
    probe.note("mode 7", "cudaStreamBeginCapture", &[things.stream, 7]);
    let mut mode = 7_i32;
    probe.note("7", "cudaThreadExchangeStreamCaptureMode", &[at(&mut mode)]);
    for (what, function, arguments) in [
        ("of legacy", "cudaStreamIsCapturing", vec![0, at(&mut status)]),
        ("in legacy", "cudaMemsetAsync", vec![memory, 1, 64, 0]),
        ("in legacy", "cudaEventRecord", vec![event, 0]),
        ("of legacy", "cudaStreamQuery", vec![0]),
    ] {
        probe.call("cudaStreamBeginCapture", &[blocking, 2]);
        probe.note(what, function, &arguments);
        end(probe, blocking);
    }
}

fn updates(probe: &mut Probe, things: &Things) {
    let Things { stream, memory, .. } = *things;
    let graph = |probe: &mut Probe, nodes: usize, copies: bool| {
        probe.call("cudaStreamBeginCapture", &[stream, 0]);
        for _ in 0..nodes {
            if copies {
                probe.call("cudaMemcpyAsync", &[memory, memory + 4096, 64, 3, stream]);
            } else {
                probe.call("cudaMemsetAsync", &[memory, 1, 64, stream]);
            }
        }
        end(probe, stream)
    };
    let first = graph(probe, 1, false);
    let mut executable = 0_usize;
    probe.note("", "cudaGraphInstantiateWithFlags", &[at(&mut executable), first, 0]);
    for (nodes, copies) in [(1, false), (2, false), (1, true), (0, false)] {
        let mut result = [9_i32; 6];
        let other = graph(probe, nodes, copies);
        probe.note("", "cudaGraphExecUpdate", &[executable, other, at(&mut result)]);
        probe.note_value("result", result[0]);
    }
    probe.note("", "cudaGraphLaunch", &[executable, stream]);
    probe.note("", "cudaGraphExecDestroy", &[executable]);
}

#[test]
fn answers_in_captures_are_those_of_a_gpu() {
    let mut probe = Probe::open();
    let host = vec![0_u8; 1 << 16];
    let things = things(&mut probe, host.as_ptr() as usize);
    calls_that_may_be_unsafe(&mut probe, &things);
    calls_of_another_thread(&mut probe, &things);
    calls_on_the_stream(&mut probe, &things);
    forks(&mut probe, &things);
    legacy(&mut probe, &things);
    updates(&mut probe, &things);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/captures_h200.txt");
    probe.compare(&std::fs::read_to_string(file).unwrap_or_default());
}
