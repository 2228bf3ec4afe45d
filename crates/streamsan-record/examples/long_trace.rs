//! What a long trace costs to read: a file of so many operations (default 10,000,000) with three accesses each and one
//! event record for every second, written by the recorder; then read from the file and, with `memory`, into memory.
//! `cargo run --release -p streamsan-record --example long_trace -- [OPERATIONS] [memory] [PATH]`

use std::path::Path;
use std::time::Duration;

use streamsan_record::table::RawAccess;
use streamsan_record::{Library, StartOptions, recorder, start, table};
use streamsan_trace::file::{Follower, TraceFile, read};
use streamsan_trace::{CaptureKind, DeviceId, Log, MemorySpace};

const MEMORY: u64 = 0x7000_0000;
const SIDE: u64 = 0x5000;
const THREADS: u64 = 2;

/// A line of `/proc/self/status`.
fn status(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim().to_owned()
}

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

fn record(path: &Path, operations: u64) {
    let _ = std::fs::remove_file(path);
    start(StartOptions { path: path.to_owned(), capture: CaptureKind::Virtual, devices: 1 })
        .expect("a new file");
    let recorder = recorder().expect("recording");
    recorder.stream_created(SIDE, 0, false, 0);
    recorder.memory_allocated(MemorySpace::Device(DeviceId(0)), MEMORY, 1 << 30);
    let table = table();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                // SAFETY: the pointers given are of values that live through the calls.
                unsafe {
                    let label = (table.intern_string)("aten::mul".as_ptr(), 9);
                    (table.set_context)(0, 0, label);
                    for turn in 0..operations / THREADS {
                        let access = |index: u64| RawAccess {
                            address: MEMORY + (turn * 7 + index * 131) % 1000 * 4096,
                            length: 4096,
                            shape: 0,
                            mode: 0,
                            argument: 0,
                            reserved: 0,
                        };
                        let accesses = [access(0), access(1), access(2)];
                        (table.operation)(SIDE, 0, 0, 0, accesses.as_ptr(), 3);
                        if turn % 2 == 0 {
                            recorder.event_recorded(0x9000, SIDE, 0, Library::Other);
                        }
                    }
                }
            });
        }
    });
    // SAFETY: takes nothing.
    unsafe { (table.close)() };
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let operations = arguments.first().map_or(10_000_000, |text| text.parse().expect("a number"));
    let into_memory = arguments.get(1).is_some_and(|text| text == "memory");
    let path = arguments.get(2).map_or_else(|| std::env::temp_dir().join("long.sstrace"), Into::into);
    // In a process of its own: a recorder touches all of the file that it writes.
    if arguments.iter().any(|text| text == "record") {
        record(&path, operations);
        return;
    }
    let own = std::env::current_exe().expect("this program");
    let path_text = path.to_string_lossy().into_owned();
    let child = std::process::Command::new(own)
        .args([&operations.to_string(), "-", &path_text, "record"])
        .status()
        .expect("it starts again");
    assert!(child.success());
    let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!("{operations} operations, {bytes} bytes; VmHWM {} before", status("VmHWM:"));
    if into_memory {
        measure("into memory", || read(&path).expect("the trace just written").events.len() as u64);
    } else {
        let mut opened = None;
        measure("TraceFile::open", || {
            opened.insert(TraceFile::open(&path).expect("the trace just written")).events()
        });
        let trace = opened.expect("opened above");
        measure("TraceFile::read", || {
            let mut events = 0;
            trace.read(&mut |_, _| events += 1);
            events
        });
        let mut follower = Follower::open(&path).expect("the trace just written");
        measure("Follower::advance", || follower.advance(&mut |_, _, _| ()).expect("nothing is missing"));
        measure("1000 times without anything new", || {
            (0..1000).map(|_| follower.advance(&mut |_, _, _| ()).expect("nothing is missing")).sum()
        });
    }
    let _ = std::fs::remove_file(&path);
}

/// Says what a reader took and cost.
fn measure(name: &str, reader: impl FnOnce() -> u64) {
    let begin = processor_time();
    let events = reader();
    let seconds = processor_time().saturating_sub(begin).as_secs_f64();
    println!("{name}: {events} events in {seconds:.2} s of processor time, VmHWM {}", status("VmHWM:"));
}
