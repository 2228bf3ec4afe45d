//! The device answers as a GPU does: the same calls, with good and bad arguments, against the answers of an H200.
//!
//! `tests/conformance/h200.txt` was written by this test on that GPU. To write it again there:
//! `STREAMSAN_CONFORMANCE_LIBRARY=libcudart.so.13 STREAMSAN_CONFORMANCE_WRITE=h200.txt`.

#[path = "conformance/probe.rs"]
mod probe;

use probe::{Probe, at};

/// Memory of each kind.
struct Memory {
    device: usize,
    pinned: usize,
    registered: usize,
    pageable: usize,
}

fn devices(probe: &mut Probe) {
    let (mut number, mut properties) = (77_i32, [0_u8; 1008]);
    probe.note("without a place", "cudaGetDeviceCount", &[0]);
    probe.note("99", "cudaSetDevice", &[99]);
    probe.note("-1", "cudaSetDevice", &[u32::MAX as usize]);
    probe.note("of 99", "cudaGetDeviceProperties", &[at(&mut properties), 99]);
    probe.note("9999", "cudaDeviceGetAttribute", &[at(&mut number), 9999, 0]);
    probe.note("of 99", "cudaDeviceGetAttribute", &[at(&mut number), 1, 99]);
    probe.note("without places", "cudaMemGetInfo", &[0, 0]);
    let (mut least, mut greatest) = (9_i32, 9_i32);
    probe.note("", "cudaDeviceGetStreamPriorityRange", &[at(&mut least), at(&mut greatest)]);
    probe.note_value("range", format!("{least} {greatest}"));
    probe.note("itself", "cudaDeviceEnablePeerAccess", &[0, 0]);
    probe.note("itself", "cudaDeviceDisablePeerAccess", &[0]);
    probe.note("itself", "cudaDeviceCanAccessPeer", &[at(&mut number), 0, 0]);
    probe.note_value("can", number);
    let mut bus = [0_u8; 16];
    probe.note("", "cudaDeviceGetPCIBusId", &[at(&mut bus), 16, 0]);
    probe.note_value("length", bus.iter().take_while(|&&byte| byte != 0).count());
    probe.note("in 5 bytes", "cudaDeviceGetPCIBusId", &[at(&mut bus), 5, 0]);
}

fn allocations(probe: &mut Probe, host: usize) -> Memory {
    let (mut device, mut pinned) = (0_usize, 0_usize);
    let pageable = host + (1 << 19);
    let none = host + (1 << 18);
    probe.note("null", "cudaFree", &[0]);
    probe.note("1 MiB", "cudaMalloc", &[at(&mut device), 1 << 20]);
    for (what, size) in [("nothing", 0), ("far too much", 1 << 50)] {
        let mut other = 5_usize;
        probe.note(what, "cudaMalloc", &[at(&mut other), size]);
        probe.note_value("pointer", other);
    }
    probe.note("without a place", "cudaMalloc", &[0, 16]);
    probe.note("inside", "cudaFree", &[device + 256]);
    probe.note("pageable", "cudaFree", &[host]);
    probe.note("null", "cudaFreeHost", &[0]);
    probe.note("pageable", "cudaFreeHost", &[host]);
    probe.note("device", "cudaFreeHost", &[device]);
    probe.note("64 KiB", "cudaHostAlloc", &[at(&mut pinned), 1 << 16, 0]);
    let mut other = 5_usize;
    probe.note("nothing", "cudaHostAlloc", &[at(&mut other), 0, 0]);
    probe.note_value("pointer", other);
    probe.note("flags 64", "cudaHostAlloc", &[at(&mut other), 16, 64]);
    probe.note("pinned", "cudaFree", &[pinned]);
    probe.note("pageable", "cudaHostUnregister", &[host]);
    probe.note("allocated", "cudaHostUnregister", &[pinned]);
    probe.note("64 KiB", "cudaHostRegister", &[host, 1 << 16, 0]);
    probe.note("again", "cudaHostRegister", &[host, 1 << 16, 0]);
    probe.note("inside", "cudaHostRegister", &[host + 4096, 4096, 0]);
    probe.note("allocated", "cudaHostRegister", &[pinned, 4096, 0]);
    probe.note("nothing", "cudaHostRegister", &[none, 0, 0]);
    probe.note("null", "cudaHostRegister", &[0, 16, 0]);
    probe.note("flags 256", "cudaHostRegister", &[none, 4096, 256]);
    probe.note("inside", "cudaHostUnregister", &[host + 4096]);
    probe.note("registered", "cudaFreeHost", &[host]);
    for (what, pointer) in [("allocated", pinned), ("registered", host), ("pageable", pageable)] {
        let mut flags = 99_u32;
        probe.note(what, "cudaHostGetFlags", &[at(&mut flags), pointer]);
        probe.note_value("flags", flags);
    }
    probe.note("pageable", "cudaHostGetDevicePointer", &[at(&mut other), pageable, 0]);
    Memory { device, pinned, registered: host, pageable }
}

fn pointers(probe: &mut Probe, memory: &Memory) {
    for (what, pointer) in [
        ("device", memory.device),
        ("device, inside", memory.device + 100),
        ("pinned", memory.pinned),
        ("registered", memory.registered),
        ("registered, inside", memory.registered + 100),
        ("pageable", memory.pageable),
    ] {
        let mut attributes = [0x55_5555_5555_usize; 11];
        probe.note(what, "cudaPointerGetAttributes", &[at(&mut attributes), pointer]);
        let same = |value: usize| if value == pointer { "same" } else { "other" };
        let (kind, device) = (attributes[0] as u32, (attributes[0] >> 32) as u32);
        let (on_device, on_host) = (same(attributes[1]), same(attributes[2]));
        probe.note_value("is", format!("{kind} of {}, {on_device}, {on_host}", device.cast_signed()));
    }
}

fn copies(probe: &mut Probe, memory: &Memory) {
    let Memory { device, pinned, pageable, .. } = *memory;
    for kind in 0..=5 {
        for (what, to, from) in [
            ("up", device, pageable),
            ("down", pageable, device),
            ("on the device", device, device + 4096),
            ("on the host", pageable, pageable + 4096),
            ("up from pinned", device, pinned),
        ] {
            probe.note(&format!("{what}, kind {kind}"), "cudaMemcpy", &[to, from, 64, kind]);
            probe.note(&format!("{what}, kind {kind}"), "cudaMemcpyAsync", &[to, from, 64, kind, 0]);
        }
    }
    probe.note("nothing", "cudaMemcpy", &[0, 0, 0, 1]);
    probe.note("from null", "cudaMemcpy", &[device, 0, 16, 1]);
    probe.note("past the end", "cudaMemcpy", &[device + (1 << 20) - 16, pageable, 64, 1]);
    for (what, width, height) in [("rows too long", 16, 4), ("one row too long", 16, 1), ("nothing", 0, 4)] {
        probe.note(what, "cudaMemcpy2D", &[device, 4, pageable, 64, width, height, 1]);
    }
    probe.note("to device 99", "cudaMemcpyPeer", &[device, 99, device, 0, 16]);
    for (what, to, size) in
        [("pageable", pageable, 16), ("pinned", pinned, 16), ("null", 0, 16), ("nothing at null", 0, 0)]
    {
        probe.note(what, "cudaMemset", &[to, 1, size]);
    }
    probe.note("rows too long", "cudaMemset2D", &[device, 4, 1, 16, 4]);
}

fn events(probe: &mut Probe) {
    let (mut first, mut second, mut untimed) = (0_usize, 0_usize, 0_usize);
    let mut time = 0_f32;
    probe.note("flags 8", "cudaEventCreateWithFlags", &[at(&mut first), 8]);
    probe.note("shared and timed", "cudaEventCreateWithFlags", &[at(&mut first), 4]);
    probe.note("", "cudaEventCreate", &[at(&mut first)]);
    probe.note("", "cudaEventCreate", &[at(&mut second)]);
    probe.note("untimed", "cudaEventCreateWithFlags", &[at(&mut untimed), 2]);
    probe.note("never recorded", "cudaEventQuery", &[first]);
    probe.note("never recorded", "cudaEventSynchronize", &[first]);
    probe.note("never recorded", "cudaStreamWaitEvent", &[0, first, 0]);
    probe.note("never recorded", "cudaEventElapsedTime", &[at(&mut time), first, second]);
    probe.note("", "cudaEventRecord", &[first, 0]);
    probe.note("half recorded", "cudaEventElapsedTime", &[at(&mut time), first, second]);
    probe.note("", "cudaEventRecord", &[second, 0]);
    probe.note("untimed", "cudaEventRecord", &[untimed, 0]);
    probe.note("", "cudaDeviceSynchronize", &[]);
    for (what, from, to) in [("on", first, second), ("back", second, first), ("from itself", first, first)] {
        probe.note(what, "cudaEventElapsedTime", &[at(&mut time), from, to]);
        probe.note_value("compared with zero", time.total_cmp(&0.0) as i8);
    }
    probe.note("untimed", "cudaEventElapsedTime", &[at(&mut time), first, untimed]);
    probe.note("without a place", "cudaEventElapsedTime", &[0, first, second]);
    for flags in [1, 2] {
        probe.note(&format!("flags {flags}"), "cudaEventRecordWithFlags", &[first, 0, flags]);
        probe.note(&format!("flags {flags}"), "cudaStreamWaitEvent", &[0, first, flags]);
    }
    probe.note("null", "cudaEventRecord", &[0, 0]);
    probe.note("null", "cudaEventQuery", &[0]);
    probe.note("null", "cudaEventSynchronize", &[0]);
    probe.note("null", "cudaStreamWaitEvent", &[0, 0, 0]);
    probe.note("null", "cudaEventDestroy", &[0]);
    probe.note("", "cudaEventDestroy", &[first]);
}

fn streams(probe: &mut Probe) {
    let (mut stream, mut urgent) = (0_usize, 0_usize);
    probe.note("flags 8", "cudaStreamCreateWithFlags", &[at(&mut stream), 8]);
    probe.note("non-blocking", "cudaStreamCreateWithFlags", &[at(&mut stream), 1]);
    for priority in [-9_i32, 9] {
        let mut kept = 99_i32;
        let asked = priority.cast_unsigned() as usize;
        probe.note("", "cudaStreamCreateWithPriority", &[at(&mut urgent), 1, asked]);
        probe.note("", "cudaStreamGetPriority", &[urgent, at(&mut kept)]);
        probe.note_value("asked for, kept", format!("{priority} {kept}"));
    }
    for (what, handle) in [("null", 0), ("legacy", 1), ("per thread", 2), ("own", stream)] {
        for function in
            ["cudaStreamGetFlags", "cudaStreamGetPriority", "cudaStreamGetDevice", "cudaStreamIsCapturing"]
        {
            let mut value = 99_i32;
            probe.note(what, function, &[handle, at(&mut value)]);
            probe.note_value("value", value);
        }
        probe.note(what, "cudaStreamSynchronize", &[handle]);
        probe.note(what, "cudaStreamQuery", &[handle]);
        probe.note(what, "cudaStreamDestroy", &[handle]);
    }
    probe.note("no function", "cudaLaunchHostFunc", &[0, 0, 0]);
    let mut mode = 2_i32;
    probe.note("", "cudaThreadExchangeStreamCaptureMode", &[at(&mut mode)]);
    probe.note_value("mode", mode);
}

fn pools(probe: &mut Probe, memory: &Memory) {
    let (mut pool, mut threshold, mut reuse, mut pointer) = (0_usize, 9_u64, 9_i32, 5_usize);
    probe.note("of 99", "cudaDeviceGetDefaultMemPool", &[at(&mut pool), 99]);
    probe.note("", "cudaDeviceGetDefaultMemPool", &[at(&mut pool), 0]);
    probe.note("threshold", "cudaMemPoolGetAttribute", &[pool, 4, at(&mut threshold)]);
    probe.note_value("threshold", threshold);
    probe.note("reuse", "cudaMemPoolGetAttribute", &[pool, 1, at(&mut reuse)]);
    probe.note_value("reuse", reuse);
    probe.note("99", "cudaMemPoolGetAttribute", &[pool, 99, at(&mut threshold)]);
    probe.note("nothing", "cudaMallocAsync", &[at(&mut pointer), 0, 0]);
    probe.note_value("pointer", pointer);
    probe.note("", "cudaMallocAsync", &[at(&mut pointer), 64, 0]);
    probe.note("", "cudaFreeAsync", &[pointer, 0]);
    probe.note("null", "cudaFreeAsync", &[0, 0]);
    probe.note("pageable", "cudaFreeAsync", &[memory.pageable, 0]);
    probe.note("far too much", "cudaMallocAsync", &[at(&mut pointer), 1 << 50, 0]);
}

fn frees(probe: &mut Probe, memory: &Memory) {
    probe.note("device", "cudaFree", &[memory.device]);
    probe.note("device, again", "cudaFree", &[memory.device]);
    probe.note("", "cudaHostUnregister", &[memory.registered]);
    probe.note("pinned", "cudaFreeHost", &[memory.pinned]);
    probe.note("pinned, again", "cudaFreeHost", &[memory.pinned]);
}

fn texts(probe: &mut Probe) {
    for code in
        [0, 1, 2, 3, 12, 13, 21, 100, 101, 217, 400, 401, 500, 600, 704, 705, 712, 713, 801, 999, 12345]
    {
        let texts =
            format!("{} {}", probe.text("cudaGetErrorName", code), probe.text("cudaGetErrorString", code));
        probe.note_value(&code.to_string(), texts);
    }
}

#[test]
fn answers_are_those_of_a_gpu() {
    let mut probe = Probe::open();
    // Page-aligned, as registering works on pages.
    let host = vec![0_u8; (1 << 20) + 4096];
    let aligned = (host.as_ptr() as usize).next_multiple_of(4096);
    devices(&mut probe);
    let memory = allocations(&mut probe, aligned);
    pointers(&mut probe, &memory);
    copies(&mut probe, &memory);
    events(&mut probe);
    streams(&mut probe);
    pools(&mut probe, &memory);
    frees(&mut probe, &memory);
    texts(&mut probe);
    probe.compare(include_str!("conformance/h200.txt"));
}
