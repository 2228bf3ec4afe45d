//! What belongs to which device, as two H200s answer it. See `conformance.rs`.

#[path = "conformance/probe.rs"]
mod probe;

use probe::{Probe, at};

struct Side {
    memory: usize,
    stream: usize,
    event: usize,
}

fn side(probe: &mut Probe, device: usize) -> Side {
    let mut side = Side { memory: 0, stream: 0, event: 0 };
    probe.note("", "cudaSetDevice", &[device]);
    probe.note("", "cudaMalloc", &[at(&mut side.memory), 4096]);
    probe.note("", "cudaStreamCreateWithFlags", &[at(&mut side.stream), 1]);
    probe.note("", "cudaEventCreate", &[at(&mut side.event)]);
    side
}

fn peers(probe: &mut Probe) {
    let mut can = 9_i32;
    probe.note("1 from 0", "cudaDeviceCanAccessPeer", &[at(&mut can), 0, 1]);
    probe.note_value("can", can);
    probe.note("before it was enabled", "cudaDeviceDisablePeerAccess", &[1]);
    for turn in ["first", "second"] {
        probe.note(turn, "cudaDeviceEnablePeerAccess", &[1, 0]);
    }
    probe.note("flags 1", "cudaDeviceEnablePeerAccess", &[1, 1]);
    for turn in ["first", "second"] {
        probe.note(turn, "cudaDeviceDisablePeerAccess", &[1]);
    }
}

fn events(probe: &mut Probe, zero: &Side, one: &Side) {
    let (mut time, mut second) = (0_f32, 0_usize);
    probe.note("of its device", "cudaEventRecord", &[zero.event, zero.stream]);
    probe.note("of 1 in a stream of 0", "cudaEventRecord", &[one.event, zero.stream]);
    probe.note("of 1 in the default stream of 0", "cudaEventRecord", &[one.event, 0]);
    probe.note("of 1 in a stream of 1", "cudaEventRecord", &[one.event, one.stream]);
    probe.note("a stream of 0 for an event of 1", "cudaStreamWaitEvent", &[zero.stream, one.event, 0]);
    probe.note("a stream of 1 for an event of 0", "cudaStreamWaitEvent", &[one.stream, zero.event, 0]);
    probe.note("of 1", "cudaEventSynchronize", &[one.event]);
    probe.note("of 0", "cudaEventSynchronize", &[zero.event]);
    probe.note("of 1", "cudaEventQuery", &[one.event]);
    probe.note("between devices", "cudaEventElapsedTime", &[at(&mut time), zero.event, one.event]);
    probe.note("made on 0", "cudaEventCreate", &[at(&mut second)]);
    probe.note("of 1", "cudaSetDevice", &[1]);
    probe.note("made on 0, in the default stream of 1", "cudaEventRecord", &[second, 0]);
    probe.note("made on 0, destroyed on 1", "cudaEventDestroy", &[second]);
    probe.note("", "cudaSetDevice", &[0]);
}

fn streams(probe: &mut Probe, one: &Side) {
    let mut device = 9_i32;
    probe.note("of 1", "cudaStreamGetDevice", &[one.stream, at(&mut device)]);
    probe.note_value("device", device);
    probe.note("of 1", "cudaStreamSynchronize", &[one.stream]);
    probe.note("of 1", "cudaStreamQuery", &[one.stream]);
    probe.note("", "cudaGetDevice", &[at(&mut device)]);
    probe.note_value("current", device);
}

fn copies(probe: &mut Probe, zero: &Side, one: &Side) {
    for kind in [3, 4] {
        probe.note(&format!("kind {kind}"), "cudaMemcpy", &[zero.memory, one.memory, 64, kind]);
        for (what, stream) in [("in a stream of 0", zero.stream), ("in a stream of 1", one.stream)] {
            let arguments = [zero.memory, one.memory, 64, kind, stream];
            probe.note(&format!("{what}, kind {kind}"), "cudaMemcpyAsync", &arguments);
        }
    }
    let arguments = [zero.memory, 0, one.memory, 1, 64, zero.stream];
    probe.note("right devices", "cudaMemcpyPeerAsync", &arguments);
    let arguments = [zero.memory, 1, one.memory, 0, 64, zero.stream];
    probe.note("wrong devices", "cudaMemcpyPeerAsync", &arguments);
    probe.note("of 1 while 0 is current", "cudaMemset", &[one.memory, 1, 64]);
    let mut attributes = [0_usize; 11];
    probe.note("of 1", "cudaPointerGetAttributes", &[at(&mut attributes), one.memory]);
    probe.note_value("device", attributes[0] >> 32);
}

fn frees(probe: &mut Probe, zero: &Side, one: &Side) {
    for side in [zero, one] {
        probe.note("", "cudaStreamSynchronize", &[side.stream]);
        probe.note("while 0 is current", "cudaFree", &[side.memory]);
        probe.note("while 0 is current", "cudaStreamDestroy", &[side.stream]);
        probe.note("while 0 is current", "cudaEventDestroy", &[side.event]);
    }
}

#[test]
fn answers_are_those_of_two_gpus() {
    // SAFETY: the only test of this process, and the library has not been called yet.
    unsafe { std::env::set_var("STREAMSAN_DEVICE_COUNT", "2") };
    let mut probe = Probe::open();
    let one = side(&mut probe, 1);
    let zero = side(&mut probe, 0);
    peers(&mut probe);
    events(&mut probe, &zero, &one);
    streams(&mut probe, &one);
    copies(&mut probe, &zero, &one);
    frees(&mut probe, &zero, &one);
    probe.compare(include_str!("conformance/two_h200.txt"));
}
