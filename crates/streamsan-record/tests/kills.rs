//! A recorder that is killed at a random point: every step that was finished before is in the trace.
//!
//! This test binary starts itself again as a child whose threads record known steps. After each step a thread writes
//! into a shared file how many it has finished. The parent kills the child at a random moment, reads the trace, and
//! compares each thread's events with the steps: all that were finished must be there, and at most one more.
//!
//! A few kills belong to the ordinary tests. A thousand, each file also given to `streamsan check`:
//! `STREAMSAN_KILLS=1000 STREAMSAN_COMMAND=target/release/streamsan cargo test --release -p streamsan-record --test kills -- --nocapture`

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use streamsan_record::table::{RawAccess, RawFrame, TorchCallback};
use streamsan_record::{Library, StartOptions, recorder, start, table};
use streamsan_trace::file::read;
use streamsan_trace::{
    AccessMode, CaptureKind, DeviceId, Event, EventKind, GapReason, MemorySpace, ThreadId, Trace,
};

const TRACE: &str = "STREAMSAN_TEST_KILLED_TRACE";
const THREADS: u64 = 3;
/// Each thread has memory, a stream and events of its own.
const MEMORY: u64 = 0x10_0000_0000;
const BLOCK: u64 = 1 << 32;

/// What a step leaves in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Left {
    /// The label, the line of the innermost frame, and offset and length of each access.
    Operation(String, u32, Vec<(u64, u64)>),
    Record,
    Wait,
    Alloc(u64),
    Size(u64),
    Free,
}

/// What step `index` of a thread leaves: operations, among them events, and memory that comes and goes.
fn expected(thread: u64, index: u64) -> Vec<Left> {
    match index % 8 {
        3 => vec![Left::Record],
        5 => vec![Left::Wait],
        6 => {
            let (address, size) = small_block(thread, index);
            vec![Left::Alloc(address), Left::Size(size)]
        }
        7 => vec![Left::Free],
        _ => {
            let accesses = (0..=index % 3).map(|access| (access * (1 << 30), index + 1)).collect();
            vec![Left::Operation(label(thread, index), index as u32, accesses)]
        }
    }
}

/// Many operations have names of their own, so that strings are written between the records.
fn label(thread: u64, index: u64) -> String {
    if index.is_multiple_of(20) { format!("aten::op{thread}_{index}") } else { "aten::mul".to_owned() }
}

fn small_block(thread: u64, index: u64) -> (u64, u64) {
    (MEMORY + THREADS * BLOCK + (thread * 1000 + index % 1000) * 4096, 512 + index)
}

/// Does step `index`.
fn step(thread: u64, index: u64) {
    let table = table();
    let (stream, event) = (0x5000 + thread, 0x9000 + thread);
    let recorder = recorder().expect("recording");
    match index % 8 {
        3 => {
            recorder.event_recorded(event, stream, 0, Library::TorchPython);
            callback(TorchCallback::EventRecord, event, stream);
        }
        5 => {
            recorder.event_waited(stream, 0, event, Library::TorchPython);
            callback(TorchCallback::EventWait, event, stream);
        }
        6 => {
            let (address, size) = small_block(thread, index);
            callback(TorchCallback::MemoryAllocation, address, stream);
            // SAFETY: the table's functions may be called from any thread.
            unsafe { (table.block_size)(address, size) };
        }
        7 => callback(TorchCallback::MemoryDeallocation, small_block(thread, index - 1).0, 0),
        _ => {
            let name = label(thread, index);
            let accesses: Vec<RawAccess> = (0..=index % 3)
                .map(|access| RawAccess {
                    address: MEMORY + thread * BLOCK + access * (1 << 30),
                    length: index + 1,
                    shape: 0,
                    mode: AccessMode::Update as u32,
                    argument: 0,
                    reserved: 0,
                })
                .collect();
            // SAFETY: the pointers are of values that live through the calls.
            unsafe {
                let file = (table.intern_string)("train.py".as_ptr(), 8);
                let label = (table.intern_string)(name.as_ptr(), name.len());
                let line = index as u32;
                let frame = RawFrame {
                    file,
                    function: file,
                    line,
                    end_line: line,
                    column: 0,
                    end_column: 0,
                    origin: 0,
                };
                let frame = (table.intern_frame)(&raw const frame);
                let site = (table.intern_site)(&raw const frame, 1);
                (table.set_context)(site, 0, label);
                (table.operation)(stream, 0, 0, 0, accesses.as_ptr(), accesses.len());
            }
        }
    }
}

fn callback(callback: TorchCallback, a: u64, b: u64) {
    // SAFETY: the table's functions may be called from any thread.
    unsafe { (table().torch_callback)(callback as u32, a, b) };
}

/// The child: records until it is killed.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let path = PathBuf::from(std::env::var_os(TRACE).expect("the test sets it"));
    let finished = File::options().write(true).open(path.with_extension("finished")).unwrap();
    start(StartOptions { path, capture: CaptureKind::Virtual, devices: 1 }).unwrap();
    let recorder = recorder().unwrap();
    for thread in 0..THREADS {
        recorder.stream_created(0x5000 + thread, 0, false, 0);
    }
    recorder.memory_allocated(MemorySpace::Device(DeviceId(0)), MEMORY, (THREADS + 1) * BLOCK);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let finished = &finished;
            scope.spawn(move || {
                // The first one, too, has a context: a torch layer is there.
                step(thread, 0);
                for index in 1_u64.. {
                    finished.write_all_at(&index.to_le_bytes(), thread * 8).unwrap();
                    step(thread, index);
                }
            });
        }
    });
}

/// What one kill showed.
#[derive(Default)]
struct Outcome {
    steps: u64,
    events: usize,
    checked: bool,
}

/// When a child is killed.
#[derive(Clone, Copy)]
enum Moment {
    AfterStart(Duration),
    AfterFirstStep(Duration),
}

/// Kills a child and compares.
fn kill(moment: Moment, command: Option<&Path>) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let counts = path.with_extension("finished");
    fs::write(&counts, [0; THREADS as usize * 8]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(TRACE, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let delay = match moment {
        Moment::AfterStart(delay) => delay,
        Moment::AfterFirstStep(delay) => {
            let begin = Instant::now();
            while fs::read(&counts).unwrap().iter().all(|&byte| byte == 0) {
                assert!(begin.elapsed() < Duration::from_secs(300), "the child does not get anywhere");
            }
            delay
        }
    };
    // A sleep alone would end at few different moments.
    let begin = Instant::now();
    std::thread::sleep(delay.saturating_sub(Duration::from_micros(200)));
    while begin.elapsed() < delay {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "the child ended by itself");
    let finished: Vec<u64> = fs::read(&counts)
        .unwrap()
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let steps = finished.iter().sum();
    let started = fs::metadata(&path).is_ok_and(|data| data.len() > 0);
    let trace = match read(&path) {
        Ok(trace) => trace,
        // Killed before the header was there.
        Err(_) if steps == 0 => {
            check_with(command, &path, started, true);
            return Outcome::default();
        }
        Err(error) => panic!("cannot read a trace with {steps} steps: {error}"),
    };
    assert_eq!(gaps(&trace), [GapReason::NotClosed], "after {steps} steps");
    for (thread, &finished) in finished.iter().enumerate() {
        compare(&trace, thread as u64, finished);
    }
    let empty = !trace.events.iter().any(|event| matches!(event.kind, EventKind::Op { .. }));
    let checked = check_with(command, &path, true, empty);
    Outcome { steps, events: trace.events.len(), checked }
}

fn gaps(trace: &Trace) -> Vec<GapReason> {
    let reason = |kind| if let EventKind::Gap { reason, .. } = kind { Some(reason) } else { None };
    trace.events.iter().filter_map(|event| reason(event.kind)).collect()
}

/// A thread's events are what its finished steps leave, and perhaps what one more leaves, or a part of it.
#[track_caller]
fn compare(trace: &Trace, thread: u64, finished: u64) {
    let Some(recorded) = thread_of(trace, thread) else {
        assert_eq!(finished, 0, "a thread without events has finished steps");
        return;
    };
    let found: Vec<Left> = trace
        .events
        .iter()
        .filter(|event| event.thread == recorded)
        .filter_map(|event| left(trace, event))
        .collect();
    let mut at = 0;
    for index in 0..finished {
        for left in expected(thread, index) {
            assert_eq!(found.get(at), Some(&left), "thread {thread}, step {index} of {finished}");
            at += 1;
        }
    }
    let more = expected(thread, finished);
    let rest = &found[at..];
    assert!(rest.len() <= more.len() && rest == &more[..rest.len()], "after step {finished}: {rest:?}");
}

/// The number that the recorder gave to a thread of the child: its operations use the thread's stream.
fn thread_of(trace: &Trace, thread: u64) -> Option<ThreadId> {
    trace.events.iter().find_map(|event| match event.kind {
        EventKind::Op { stream, .. } if u64::from(stream.0) == thread => Some(event.thread),
        _ => None,
    })
}

fn left(trace: &Trace, event: &Event) -> Option<Left> {
    Some(match event.kind {
        EventKind::Op { label, accesses, .. } => {
            let site = &trace.tables.sites[event.site.index()];
            let line = trace.tables.frames[site[0].index()].line;
            let accesses =
                trace.accesses(accesses).iter().map(|access| (access.offset % BLOCK, access.length));
            Left::Operation(trace.tables.string(label).to_owned(), line, accesses.collect())
        }
        EventKind::EventRecord { .. } => Left::Record,
        EventKind::EventWait { .. } => Left::Wait,
        EventKind::Alloc { address, .. } => Left::Alloc(address),
        EventKind::BlockSize { size, .. } => Left::Size(size),
        EventKind::FreeRequest { .. } => Left::Free,
        EventKind::Gap { .. } => return None,
        other => panic!("{other:?}"),
    })
}

/// Has the command check the file, if there is a command: it must say that the end is missing.
#[track_caller]
fn check_with(command: Option<&Path>, path: &Path, exists: bool, empty: bool) -> bool {
    let Some(command) = command.filter(|_| exists) else { return false };
    let output = Command::new(command).arg("check").arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let allowed: &[i32] = if empty { &[2, 4] } else { &[0, 4] };
    assert!(output.status.code().is_some_and(|code| allowed.contains(&code)), "{}: {text}", output.status);
    // Lines are broken anywhere.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(empty || words.contains("killed or left without cleaning up"), "{text}");
    true
}

/// The command: the one that is named, or the one that was built beside this test.
fn command() -> Option<PathBuf> {
    let named = std::env::var_os("STREAMSAN_COMMAND").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("streamsan"));
    named.or_else(|| beside().filter(|path| path.exists()))
}

#[test]
fn a_kill_at_any_point_loses_no_finished_step() {
    let kills = std::env::var("STREAMSAN_KILLS").map_or(30, |count| count.parse().expect("a number"));
    let command = command();
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let (mut all, mut empty, mut checked) = (Outcome::default(), 0, 0);
    for turn in 0..kills {
        let moment = if turn % 5 == 0 {
            Moment::AfterStart(Duration::from_micros(random.u64(0..20_000)))
        } else {
            Moment::AfterFirstStep(Duration::from_micros(random.u64(0..40_000)))
        };
        let one = kill(moment, command.as_deref());
        all.steps += one.steps;
        all.events += one.events;
        empty += u32::from(one.steps == 0);
        checked += u32::from(one.checked);
    }
    println!(
        "{kills} kills, {empty} of them before the first step; {} steps finished, {} events read back; {checked} files checked by the command",
        all.steps, all.events
    );
    assert!(all.steps > 0, "no child got anywhere");
}
