//! What the checker costs on generated programs. `benches/checker.py` runs it for all widths, beside CSAN's engine.
//!
//! - `engine_speed speed STREAMS OPERATIONS ROUNDS`: checks a log that lies in memory; prints the seconds of
//!   processor time of each round.
//! - `engine_speed memory STREAMS OPERATIONS`: checks a log that is made while it is read; prints the seconds and
//!   the peak of resident memory in KiB.
//! - `engine_speed file PATH ROUNDS`: the same for a recorded trace, whatever it finds; first how many operations it has.
//! - `engine_speed live PATH`: follows a recorded trace as `run --live` does; prints operations and own memory in KiB at
//!   150,000 operations and then at each tenth.
//! - `engine_speed events STREAMS OPERATIONS`: prints the events, one a line, for other engines.

#[path = "../benches/generated/mod.rs"]
mod generated;

use generated::Generated;
use std::io::Write;
use streamsan_check::{Config, Report, check};
use streamsan_trace::{Access, EventKind, Log, WaitTarget};

/// Seconds that this thread has run: others may use the machine too.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this needs Linux");
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    nanoseconds.expect("the first number is the time on a processor") as f64 / 1e9
}

/// The report of one check, and its seconds.
fn measured(log: &dyn Log) -> (Report, f64) {
    let start = processor_seconds();
    let report = check(log, &Config::default());
    (report, processor_seconds() - start)
}

/// Seconds of one check, which must find nothing.
fn timed(log: &dyn Log, operations: u64) -> f64 {
    let (report, seconds) = measured(log);
    assert!(report.gaps.is_empty(), "everything is seen, but: {:?}", report.gaps);
    assert!(report.findings.is_empty(), "everything is ordered, but: {:?}", report.findings);
    assert!(report.coverage.operations >= operations);
    seconds
}

fn peak_memory() -> String {
    memory("VmHWM:")
}

fn memory(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("this needs Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it is there");
    line.trim().trim_end_matches(" kB").to_owned()
}

/// Checks a trace while it is read, and says what is kept.
fn live(path: &std::path::Path) {
    let mut follower = streamsan_trace::file::Follower::open(path).expect("a trace");
    let mut check = streamsan_check::LiveCheck::new(Config::default());
    let (mut operations, mut next) = (0_u64, 150_000);
    let mut each = |tables: &streamsan_trace::Tables, event: &streamsan_trace::Event, accesses: &[Access]| {
        check.event(event, accesses, tables);
        operations += u64::from(matches!(event.kind, EventKind::Op { .. }));
        if operations >= next {
            println!("{operations} {}", memory("RssAnon:"));
            next += 100_000;
        }
    };
    follower.advance(&mut each).expect("a trace that can be read");
    follower.finish(&mut each).expect("a trace that can be read");
    println!("{operations} {}", memory("RssAnon:"));
}

/// One event a line, as CSAN's event handler takes them: kernels with pointers read and written, and so on.
fn print_events(log: &Generated) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut addresses = std::collections::HashMap::new();
    let mut result = Ok(());
    log.read(&mut |event, accesses| {
        let mut line = || match event.kind {
            EventKind::StreamCreate { stream, .. } => writeln!(out, "stream {}", stream.0),
            EventKind::Alloc { block, address, .. } => {
                addresses.insert(block, address);
                writeln!(out, "alloc {address}")
            }
            EventKind::FreeRequest { block } => writeln!(out, "free {}", addresses[&block]),
            EventKind::EventRecord { event, stream } => writeln!(out, "record {} {}", event.0, stream.0),
            EventKind::EventWait { event, stream } => writeln!(out, "wait {} {}", event.0, stream.0),
            EventKind::HostWait { target: WaitTarget::Event(event), .. } => {
                writeln!(out, "synchronize {}", event.0)
            }
            EventKind::HostWait { .. } => writeln!(out, "device"),
            EventKind::Op { stream, .. } => {
                let pointers = |writes: bool| {
                    let wanted = accesses.iter().filter(|access| access.mode.writes() == writes);
                    let pointer = |access: &Access| (addresses[&access.block] + access.offset).to_string();
                    wanted.map(pointer).collect::<Vec<_>>().join(",")
                };
                writeln!(out, "kernel {} {} {}", stream.0, pointers(false), pointers(true))
            }
            _ => Ok(()),
        };
        if result.is_ok() {
            result = line();
        }
    });
    result
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> u64 {
        let text = arguments.get(index).map_or("", String::as_str);
        text.parse().unwrap_or_else(|_| panic!("argument {} is `{text}`: give a number", index + 1))
    };
    if arguments.first().is_some_and(|command| command == "file") {
        let path = arguments.get(1).map_or("", String::as_str);
        let trace = streamsan_trace::file::read(path.as_ref()).expect("a trace that can be read");
        println!("{}", measured(&trace).0.coverage.operations);
        for _ in 0..number(2) {
            println!("{}", measured(&trace).1);
        }
        return;
    }
    if arguments.first().is_some_and(|command| command == "live") {
        return live(arguments.get(1).map_or("", String::as_str).as_ref());
    }
    let (streams, operations) = (number(1) as usize, number(2));
    let log = Generated::new(streams, operations, 1);
    match arguments[0].as_str() {
        "speed" => {
            let trace = log.in_memory();
            for _ in 0..number(3) {
                println!("{}", timed(&trace, operations));
            }
        }
        "memory" => println!("{} {}", timed(&log, operations), peak_memory()),
        "events" => print_events(&log).expect("the reader takes all lines"),
        other => panic!("`{other}` is no command: speed, memory, file, live or events"),
    }
}
