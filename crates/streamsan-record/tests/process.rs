//! The one recorder of a real process: exit, `_exit`, kill, fork, a full disk, a file that the program closes, and the C table.
//!
//! Each test starts this test binary again as a child that records and then ends in its own way.

use std::fs::{self, File};
use std::os::fd::IntoRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output};

use streamsan_record::table::{RawAccess, TABLE_VERSION};
use streamsan_record::{Library, StartOptions, env, recorder, start, table};
use streamsan_trace::file::read;
use streamsan_trace::{CaptureKind, EventKind, GapReason, MemorySpace, Trace};

/// Names what the child does.
const CHILD: &str = "STREAMSAN_TEST_CHILD";
const SIDE: u64 = 0x5000;
const MEMORY: u64 = 0x7000_0000;

fn spawn(what: &str, path: &Path) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(CHILD, what)
        .env(env::TRACE, path)
        .output()
        .unwrap()
}

/// Runs a child and reads what it recorded.
fn record(what: &str) -> (ExitStatus, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let output = spawn(what, &path);
    let trace = read(&path).unwrap_or_else(|error| {
        panic!("cannot read {}: {error}\n{}", path.display(), String::from_utf8_lossy(&output.stderr))
    });
    (output.status, trace)
}

fn gaps(trace: &Trace) -> Vec<GapReason> {
    let reason = |kind| if let EventKind::Gap { reason, .. } = kind { Some(reason) } else { None };
    trace.events.iter().filter_map(|event| reason(event.kind)).collect()
}

fn operations(trace: &Trace) -> usize {
    trace.events.iter().filter(|event| matches!(event.kind, EventKind::Op { .. })).count()
}

/// What the children do.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let what = std::env::var(CHILD).expect("the tests set it");
    let path = std::env::var_os(env::TRACE).expect("the tests set it").into();
    match what.as_str() {
        "full" => limit_file_size(640 * 1024),
        "full at start" => limit_file_size(4096),
        _ => {}
    }
    let options = StartOptions { path, capture: CaptureKind::Virtual, devices: 1 };
    if what == "no room" {
        limit_file_size(100);
        let path = options.path.clone();
        let error = start(options).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the trace ") && error.contains("too large"), "{error}");
        assert!(recorder().is_none() && !path.exists());
        operate(1);
        // SAFETY: as below.
        unsafe { libc::_exit(9) }
    }
    let trace = std::path::absolute(&options.path).unwrap();
    start(options).unwrap();
    if what == "full at start" {
        operate(10);
        assert!(recorder().is_none());
        std::process::exit(0);
    }
    let recorder = recorder().unwrap();
    recorder.stream_created(SIDE, 0, false, 0);
    recorder.memory_allocated(MemorySpace::Device(streamsan_trace::DeviceId(0)), MEMORY, 4096);
    operate(100);
    match what.as_str() {
        "exit" => std::process::exit(7),
        // SAFETY: ends the process; nothing else runs.
        "_exit" => unsafe { libc::_exit(3) },
        // SAFETY: likewise.
        "kill" => unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        },
        "fork" => fork(),
        "full" => {
            operate(10_000);
            assert!(streamsan_record::recorder().is_none());
            operate(10);
            std::process::exit(0);
        }
        "threads" => {
            let before = mappings();
            for _ in 0..200 {
                std::thread::spawn(|| {
                    operate(1);
                    streamsan_record::recorder().unwrap().event_recorded(
                        0x9000,
                        SIDE,
                        0,
                        Library::TorchPython,
                    );
                })
                .join()
                .unwrap();
            }
            assert!(mappings() < before + 50, "{} mappings, {before} before", mappings());
            // SAFETY: as above: nothing flushes what is held now.
            unsafe { libc::_exit(0) }
        }
        "close files" => {
            close_files_and_open_others(&trace, || other_file(&trace));
            operate(10_000);
            // Its own trace, but not for writing.
            close_files_and_open_others(&trace, || File::open(&trace).unwrap());
            std::env::set_current_dir("/").unwrap();
            operate(10_000);
            std::process::exit(0);
        }
        "close and replace" => {
            close_files_and_open_others(&trace, || other_file(&trace));
            fs::rename(&trace, trace.with_extension("moved")).unwrap();
            fs::write(&trace, "the user's").unwrap();
            operate(10_000);
            assert!(streamsan_record::recorder().is_none());
            std::process::exit(0);
        }
        "fault" => {
            streamsan_record::report(|_| panic!("a fault that the test makes"));
            assert!(streamsan_record::recorder().is_none());
            operate(5);
            std::process::exit(6);
        }
        "close" => {
            // SAFETY: the table's functions take no pointers here.
            unsafe { (table().close)() };
            operate(5);
            std::process::exit(0);
        }
        other => panic!("{other}"),
    }
}

/// How many mappings this process has.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Records operations with one access each, through the table.
fn operate(count: usize) {
    let table = table();
    let label = "aten::mul";
    let access = RawAccess { address: MEMORY, length: 64, shape: 0, mode: 2, argument: 0, reserved: 0 };
    for _ in 0..count {
        // SAFETY: the pointers are of values that live through the calls.
        unsafe {
            let label = (table.intern_string)(label.as_ptr(), label.len());
            (table.set_context)(0, 0, label);
            (table.operation)(SIDE, 0, 0, 0, &raw const access, 1);
        }
    }
}

/// Does what daemons do at their start, and then has a file of the user at each number below that of the trace, and
/// `next` at this one.
fn close_files_and_open_others(trace: &Path, next: impl FnOnce() -> File) {
    let number = trace_descriptor(trace);
    assert!(number >= 900, "{number}");
    // SAFETY: this process uses none of them but for the trace.
    unsafe { libc::close_range(3, 1023, 0) };
    while other_file(trace).into_raw_fd() < number - 1 {}
    assert_eq!(next().into_raw_fd(), number);
}

/// The user's file, open for writing.
fn other_file(trace: &Path) -> File {
    let path = trace.with_extension("other");
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// The number under which this process has its trace.
fn trace_descriptor(trace: &Path) -> i32 {
    let is_trace =
        |number: &i32| fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|target| target == trace);
    (3..1024).rfind(is_trace).expect("the trace is open")
}

fn fork() {
    // SAFETY: the child only records, which must do nothing there, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let silent = recorder().is_none();
        operate(50);
        // SAFETY: ends the child; its exit handlers run, as they do in Python's.
        unsafe { libc::exit(i32::from(!silent)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child was silent");
    operate(10);
    std::process::exit(0);
}

/// Makes the file system refuse to let files grow beyond `bytes`, as a full disk does.
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: plain system calls.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
}

#[test]
fn an_exit_closes_the_trace_and_keeps_the_status() {
    let (status, trace) = record("exit");
    assert_eq!(status.code(), Some(7));
    assert!(trace.header.closed && gaps(&trace).is_empty());
    assert_eq!((operations(&trace), trace.accesses.len()), (100, 100));
    let EventKind::Op { label, .. } = trace.events.last().unwrap().kind else { panic!() };
    assert_eq!(trace.tables.string(label), "aten::mul");
}

#[test]
fn a_process_that_is_killed_or_leaves_at_once_loses_nothing() {
    for (what, code, signal) in [("kill", None, Some(libc::SIGKILL)), ("_exit", Some(3), None)] {
        let (status, trace) = record(what);
        assert_eq!((status.code(), status.signal()), (code, signal));
        assert_eq!(operations(&trace), 100);
        assert_eq!(gaps(&trace), [GapReason::NotClosed]);
    }
}

#[test]
fn a_forked_child_is_silent_and_leaves_the_file_to_its_parent() {
    let (status, trace) = record("fork");
    assert_eq!(status.code(), Some(0));
    assert_eq!(operations(&trace), 110);
    assert_eq!(gaps(&trace), [GapReason::Forked]);
    assert!(trace.header.closed);
}

#[test]
fn a_full_disk_stops_recording_and_not_the_program() {
    let (status, trace) = record("full");
    assert_eq!(status.code(), Some(0));
    assert!((100..10_100).contains(&operations(&trace)), "{}", operations(&trace));
    assert_eq!(gaps(&trace), [GapReason::Lost]);
}

#[test]
fn a_disk_with_room_for_the_header_only_says_so_in_the_trace() {
    let (status, trace) = record("full at start");
    assert_eq!(status.code(), Some(0));
    assert_eq!((operations(&trace), gaps(&trace)), (0, vec![GapReason::Lost]));
}

#[test]
fn a_program_that_closes_the_trace_keeps_its_files_and_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let output = spawn("close files", &path);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = read(&path).unwrap();
    assert_eq!((operations(&trace), gaps(&trace)), (20_100, vec![]));
    assert!(trace.header.closed);
    assert_eq!(fs::metadata(folder.path().join("run.other")).unwrap().len(), 0);
}

#[test]
fn a_trace_that_was_closed_and_is_not_at_its_path_ends_with_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let output = spawn("close and replace", &path);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = read(&path.with_extension("moved")).unwrap();
    assert!((100..10_100).contains(&operations(&trace)), "{}", operations(&trace));
    assert_eq!(gaps(&trace), [GapReason::Lost]);
    assert_eq!(fs::read(&path).unwrap(), b"the user's");
    assert_eq!(fs::metadata(folder.path().join("run.other")).unwrap().len(), 0);
}

#[test]
fn no_room_for_a_trace_is_an_error_that_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let status = spawn("no room", &folder.path().join("run.sstrace")).status;
    assert_eq!(status.code(), Some(9));
}

#[test]
fn a_thread_that_ends_leaves_its_events_and_no_mapping() {
    let (status, trace) = record("threads");
    assert_eq!(status.code(), Some(0));
    assert_eq!(operations(&trace), 300);
    let records =
        trace.events.iter().filter(|event| matches!(event.kind, EventKind::EventRecord { .. })).count();
    assert_eq!(records, 200);
    assert_eq!(gaps(&trace), [GapReason::NotClosed]);
}

#[test]
fn a_fault_of_the_recorder_ends_the_recording_and_not_the_program() {
    let (status, trace) = record("fault");
    assert_eq!(status.code(), Some(6), "the program goes on");
    assert_eq!(operations(&trace), 100);
    let details: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Gap { reason: GapReason::Lost, detail } => Some(trace.tables.string(detail)),
            _ => None,
        })
        .collect();
    let [fault, lost] = &details[..] else { panic!("{details:?}") };
    assert!(fault.contains("fault of streamsan"), "{fault}");
    assert!(lost.contains("could not be written from #"), "{lost}");
    assert!(trace.header.closed, "what was recorded before is whole");
}

#[test]
fn nothing_follows_a_close() {
    let (_, trace) = record("close");
    assert_eq!(operations(&trace), 100);
    assert!(trace.header.closed && gaps(&trace).is_empty());
}

#[test]
fn the_table_is_there_without_recording() {
    let table = table();
    assert_eq!((table.version, table.size as usize), (TABLE_VERSION, size_of_val(table)));
    // SAFETY: null and empty arguments are allowed.
    unsafe {
        assert_eq!((table.recording)(), 0);
        assert_eq!((table.intern_string)(std::ptr::null(), 0), 0);
        assert_eq!((table.intern_frame)(std::ptr::null()), 0);
        assert_eq!((table.device_of)(MEMORY), u32::MAX);
        assert_eq!((table.memory_kind)(MEMORY), 0);
        (table.operation)(0, 0, 0, 0, std::ptr::null(), 0);
        (table.torch_callback)(99, 0, 0);
        (table.close)();
    }
    assert!(recorder().is_none());
}
