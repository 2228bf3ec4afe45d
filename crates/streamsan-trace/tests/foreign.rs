//! Files that are no traces, or that claim to be enormous: a clear answer, soon, and in little memory.
//!
//! In a process of its own, so that its greatest memory can be looked at.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use streamsan_trace::file::layout::{ChunkHeader, ChunkKind, FileHeader};
use streamsan_trace::file::record::{Record, encode};
use streamsan_trace::file::{Follower, TraceFile, read, write_bytes};
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, CaptureKind, Event, EventKind, GapReason, Header, Log, OpKind,
    OpNumber, ShapeId, SiteId, StreamId, StringId, ThreadId, Trace,
};
use tempfile::TempDir;

/// What this process may need at most, in KiB, with all tests at once.
const MOST_MEMORY: u64 = 200 * 1024;

const TERABYTE: u64 = 1 << 40;

/// Looks at the memory when a test ends.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("run.sstrace")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < MOST_MEMORY, "{kilobytes} KiB");
    }
}

/// What each of the readers says.
fn answers(path: &Path) -> [Result<Vec<String>, String>; 3] {
    let gaps = |trace: &dyn Log| {
        let mut gaps = Vec::new();
        trace.read(&mut |event, _| {
            if let EventKind::Gap { reason: GapReason::Damaged, detail } = event.kind {
                gaps.push(trace.tables().string(detail).to_owned());
            }
        });
        gaps
    };
    let follow = || {
        let mut follower = Follower::open(path)?;
        let mut gaps = Vec::new();
        let _ = follower.advance(&mut |_, _, _| ());
        follower.finish(&mut |tables, event, _| {
            if let EventKind::Gap { reason: GapReason::Damaged, detail } = event.kind {
                gaps.push(tables.string(detail).to_owned());
            }
        })?;
        Ok(gaps)
    };
    [read(path).map(|trace| gaps(&trace)), TraceFile::open(path).map(|trace| gaps(&trace)), follow()]
        .map(|answer: Result<_, streamsan_trace::file::ReadError>| answer.map_err(|error| error.to_string()))
}

/// All readers refuse the file with these words.
fn refused(path: &Path, words: &str) {
    for answer in answers(path) {
        assert_eq!(answer.unwrap_err(), words);
    }
}

/// All readers end at this damage.
fn damaged(path: &Path, words: &str) {
    for answer in answers(path) {
        assert_eq!(answer.unwrap(), [words]);
    }
}

#[test]
fn files_of_other_kinds_are_named_as_what_they_are() {
    let place = Place::new();
    let no_trace = "it is not a streamsan trace (it does not start with SSTRACE)";
    refused(&std::env::current_exe().unwrap(), no_trace);
    for bytes in [&b"PK\x03\x04zip"[..], b"{\"traceEvents\": []}", b"\x1f\x8b", b"S", b"SSTRACK"] {
        fs::write(place.path(), bytes).unwrap();
        let words = if b"SSTRACE\0".starts_with(bytes) {
            "the file is cut off at byte 1, inside its header of 4096 bytes"
        } else {
            no_trace
        };
        refused(&place.path(), words);
    }
    fs::write(place.path(), "").unwrap();
    refused(&place.path(), "the file is empty; was the recorded program stopped before it began?");
    // Says that it is a file of no bytes, and has some.
    refused(Path::new("/proc/self/status"), no_trace);
}

#[test]
fn what_is_no_file_is_not_opened() {
    let place = Place::new();
    refused(place.0.path(), "it is a directory; name a .sstrace file");
    let no_file = "it is no regular file; name a .sstrace file";
    refused(Path::new("/dev/zero"), no_file);
    let pipe = place.0.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refused(&pipe, no_file);
    let _socket = std::os::unix::net::UnixListener::bind(place.0.path().join("socket")).unwrap();
    refused(&place.0.path().join("socket"), no_file);
}

/// A header and nothing else, in a file of a terabyte of which nothing is on disk.
fn sparse(place: &Place, end: u64) -> File {
    let file = File::create(place.path()).unwrap();
    file.set_len(TERABYTE).unwrap();
    let header = FileHeader { end, closed: 1, ..FileHeader::open(CaptureKind::Sim, 1, 1) };
    file.write_all_at(bytemuck::bytes_of(&header), 0).unwrap();
    file
}

fn chunk(file: &File, at: u64, kind: ChunkKind, length: u64, committed: u64) {
    let mut header = ChunkHeader::new(kind, 0, length, 0);
    header.committed = committed;
    file.write_all_at(bytemuck::bytes_of(&header), at).unwrap();
}

#[test]
fn a_terabyte_of_nothing_is_no_chunk() {
    let place = Place::new();
    sparse(&place, TERABYTE);
    damaged(&place.path(), "damaged at byte 4096: no chunk where one should be");
}

#[test]
fn a_header_that_claims_more_than_there_is_ends_where_the_file_ends() {
    let place = Place::new();
    let mut bytes = write_bytes(&Trace::default()).unwrap();
    bytes[FileHeader::END_OFFSET..FileHeader::END_OFFSET + 8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    fs::write(place.path(), &bytes).unwrap();
    damaged(&place.path(), "damaged at byte 4096: the file is cut off");
    let mut chunk = ChunkHeader::new(ChunkKind::Records, 0, (1 << 60) - 4096, 0);
    chunk.committed = (1 << 60) - 5000;
    bytes.extend_from_slice(bytemuck::bytes_of(&chunk));
    bytes.resize(5000, 0);
    fs::write(place.path(), &bytes).unwrap();
    damaged(&place.path(), "damaged at byte 5000: the file is cut off");
}

#[test]
fn a_terabyte_of_committed_zeros_is_no_event() {
    let place = Place::new();
    let file = sparse(&place, TERABYTE);
    chunk(&file, 4096, ChunkKind::Records, TERABYTE - 4096, TERABYTE - 4096 - 64);
    damaged(&place.path(), "damaged at byte 4160: a record of unknown kind");
}

#[test]
fn an_event_that_claims_billions_of_accesses_is_read_as_far_as_they_are_there() {
    let place = Place::new();
    let file = sparse(&place, TERABYTE);
    chunk(&file, 4096, ChunkKind::Records, TERABYTE - 4096, TERABYTE - 4096 - 64);
    let kind = EventKind::Op {
        stream: StreamId(0),
        label: StringId(0),
        kind: OpKind::Kernel,
        forward_site: SiteId(0),
        accesses: AccessRange::default(),
    };
    let mut records = [Record::default()];
    encode(OpNumber(1), SiteId(0), &kind, &[], &mut records);
    records[0].words[3] = u32::MAX;
    file.write_all_at(bytemuck::cast_slice(&records), 4160).unwrap();
    damaged(&place.path(), "damaged at byte 4160: an event with more accesses than can be");
    records[0].words[3] = 1 << 20;
    file.write_all_at(bytemuck::cast_slice(&records), 4160).unwrap();
    damaged(&place.path(), "damaged at byte 4192: an access with a field out of range");
}

#[test]
fn strings_of_gigabytes_are_refused() {
    let place = Place::new();
    let file = sparse(&place, TERABYTE);
    chunk(&file, 4096, ChunkKind::Blobs, TERABYTE - 4096, TERABYTE - 4096 - 64);
    let entry = |at: u64, id: u32, length: u32| {
        file.write_all_at(bytemuck::cast_slice(&[1_u32, id, length, 0]), at).unwrap();
    };
    entry(4160, 1, u32::MAX);
    damaged(&place.path(), "damaged at byte 4160: interned things that are too large");
}

#[test]
fn ids_beyond_what_the_file_can_have_made_are_refused() {
    let place = Place::new();
    let file = sparse(&place, TERABYTE);
    // 2^35 records are claimed; one is there.
    chunk(&file, 4096, ChunkKind::Records, TERABYTE - 4096, TERABYTE - 4096 - 64);
    let mut records = [Record::default()];
    let kind = EventKind::StreamDestroy { stream: StreamId(u32::MAX) };
    encode(OpNumber(1), SiteId(0), &kind, &[], &mut records);
    file.write_all_at(bytemuck::cast_slice(&records), 4160).unwrap();
    damaged(&place.path(), "damaged at byte 4160: an event with an unknown id");
}

/// Two threads that take turns.
fn turns(events: u64) -> Trace {
    let mut trace = Trace { header: Header { closed: true, ..Header::default() }, ..Trace::default() };
    for number in 1..=events {
        let access = Access {
            block: BlockId(1),
            mode: AccessMode::Update,
            offset: 0,
            length: 4,
            shape: ShapeId(0),
            argument: StringId(0),
        };
        let accesses = trace.push_accesses(&[access; 3]);
        let kind = EventKind::HostAccess { label: StringId(0), accesses };
        let thread = ThreadId((number % 2) as u32);
        trace.events.push(Event { number: OpNumber(number), thread, site: SiteId(0), kind });
    }
    trace
}

#[test]
fn a_file_that_grows_and_shrinks_meanwhile_ends_no_process() {
    let place = Place::new();
    let bytes = write_bytes(&turns(30_000)).unwrap();
    fs::write(place.path(), &bytes).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(place.path()).unwrap();
            let mut random = 12_345_u64;
            while !done.load(Ordering::Relaxed) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let length = (random >> 33) as usize % bytes.len();
                file.set_len(length as u64).unwrap();
                file.write_all_at(&bytes[length / 2..], (length / 2) as u64).unwrap();
            }
        });
        let rising = |last: &mut u64, event: &Event| {
            assert!(event.number.0 > *last, "{event:?} after {last}");
            *last = event.number.0;
        };
        for _ in 0..60 {
            if let Ok(trace) = TraceFile::open(&place.path()) {
                let mut last = 0;
                trace.read(&mut |event, _| rising(&mut last, event));
            }
            let Ok(mut follower) = Follower::open(&place.path()) else { continue };
            let mut last = 0;
            for _ in 0..5 {
                let _ = follower.advance(&mut |_, event, _| rising(&mut last, event));
            }
            let _ = follower.finish(&mut |_, event, _| rising(&mut last, event));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(TraceFile::open(&place.path()).is_ok());
}
