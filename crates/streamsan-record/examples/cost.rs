//! What recording costs: processor time per operation with three accesses, and per event record with its callback,
//! through the C table; then what reading the trace costs. `cargo run --release -p streamsan-record --example cost`

use std::time::{Duration, Instant};

use streamsan_record::table::{RawAccess, TorchCallback};
use streamsan_record::{Library, StartOptions, recorder, start, table};
use streamsan_trace::file::read;
use streamsan_trace::{CaptureKind, DeviceId, MemorySpace};

const COUNT: u32 = 2_000_000;
const MEMORY: u64 = 0x7000_0000;
const SIDE: u64 = 0x5000;

/// Processor time of this process: wall time says little on a busy machine.
fn processor_time() -> Duration {
    // SAFETY: the structure is plain numbers and filled by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn main() {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("cost.sstrace"), Into::into);
    let _ = std::fs::remove_file(&path);
    start(StartOptions { path: path.clone(), capture: CaptureKind::Virtual, devices: 1 })
        .expect("a new file");
    let recorder = recorder().expect("recording");
    recorder.stream_created(SIDE, 0, false, 0);
    recorder.memory_allocated(MemorySpace::Device(DeviceId(0)), MEMORY, 1 << 30);
    let table = table();
    let block = |index: u64| MEMORY + index * 4096;
    // SAFETY: the pointers given are of values that live through the calls.
    unsafe {
        for index in 0..1000 {
            (table.torch_callback)(TorchCallback::MemoryAllocation as u32, block(index), 0);
            (table.block_size)(block(index), 4096);
        }
        let label = (table.intern_string)("aten::mul".as_ptr(), 9);
        let begin = processor_time();
        for turn in 0..u64::from(COUNT) {
            let access = |index: u64| RawAccess {
                address: block((turn * 7 + index * 131) % 1000),
                length: 4096,
                shape: 0,
                mode: 0,
                argument: 0,
                reserved: 0,
            };
            let accesses = [access(0), access(1), access(2)];
            (table.set_context)(0, 0, label);
            (table.operation)(SIDE, 0, 0, 0, accesses.as_ptr(), 3);
        }
        let each = processor_time().saturating_sub(begin) / COUNT;
        println!("operation with 3 accesses: {each:?}");

        let begin = processor_time();
        for _ in 0..COUNT {
            recorder.event_recorded(0x9000, SIDE, 0, Library::TorchPython);
            (table.torch_callback)(TorchCallback::EventRecord as u32, 0x9000, SIDE);
        }
        let each = processor_time().saturating_sub(begin) / COUNT;
        println!("event record with its callback: {each:?}");
        (table.close)();
    }
    let begin = Instant::now();
    let trace = read(&path).expect("the trace just written");
    let (events, seconds) = (trace.events.len(), begin.elapsed().as_secs_f64());
    let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!("read {events} events, {} accesses, {bytes} bytes in {seconds:.2} s", trace.accesses.len());
    let _ = std::fs::remove_file(&path);
}
