//! Trace files on disk: opened whole, followed while they grow, and changed under the reader.

use super::packed::expand;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use streamsan_check::{Config, LiveCheck};
use streamsan_trace::file::layout::{CHUNK_HEADER, ChunkHeader, ChunkKind, FileHeader, PAGE};
use streamsan_trace::file::record::Record;
use streamsan_trace::file::{Follower, TraceFile, read_bytes};
use streamsan_trace::{Access, Event, EventKind, GapReason, Log, Trace};

/// What a reader hands over: events without their ranges, which only a [`Trace`] has, and their accesses.
type Handed = Vec<(Event, Vec<Access>)>;

pub(crate) fn run(input: &[u8]) {
    let Some((&[control, first, second, third], packed)) = input.split_first_chunk::<4>() else { return };
    let bytes = expand(packed);
    let path = path();
    fs::write(&path, &bytes).expect("a temporary file can be written");
    let whole = read_bytes(&bytes);
    let opened = TraceFile::open(&path);
    assert_eq!(opened.is_ok(), whole.is_ok(), "only one of two readers reads it: {opened:?} {whole:?}");
    if let (Ok(opened), Ok(whole)) = (opened, whole) {
        let expected = handed(&whole);
        assert!(handed(&opened) == expected, "a trace in its file has other events");
        assert_eq!(opened.events(), expected.len() as u64);
        assert!(Follower::open(&path).is_ok(), "what can be read cannot be followed");
        assert!(follow(&path, || {}) == expected, "a follower hands over other events");
        match control % 4 {
            0 => damage_under_way(&path, &bytes, &opened, [first, second, third]),
            _ => grow(&path, &bytes, &whole, &expected, [first, second, third]),
        }
    }
    fs::remove_file(&path).expect("the temporary file is still there");
}

/// One file for each process.
fn path() -> PathBuf {
    std::env::temp_dir().join(format!("streamsan-fuzz-{}.sstrace", std::process::id()))
}

fn handed(log: &dyn Log) -> Handed {
    let mut all = Vec::new();
    log.read(&mut |event, accesses| all.push((plain(event), accesses.to_vec())));
    all
}

fn plain(event: &Event) -> Event {
    let mut event = *event;
    if let EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } = &mut event.kind {
        accesses.start = 0;
    }
    event
}

/// Follows the file to its end. Before the last call `then` happens.
fn follow(path: &Path, then: impl FnOnce()) -> Handed {
    let mut all = Vec::new();
    let mut live = LiveCheck::new(Config::default());
    let Ok(mut follower) = Follower::open(path) else { return all };
    let mut each = |tables: &_, event: &Event, accesses: &[Access]| {
        live.event(event, accesses, tables);
        all.push((plain(event), accesses.to_vec()));
    };
    let _ = follower.advance(&mut each);
    then();
    let _ = follower.advance(&mut each);
    let _ = follower.finish(&mut each);
    let _ = follower.advance(&mut each);
    all
}

/// Where a chunk is and what it holds.
struct Place {
    at: u64,
    kind: u32,
    thread: u32,
    committed: u64,
}

/// The chunks of a sound file.
fn places(bytes: &[u8]) -> Vec<Place> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let mut places = Vec::new();
    let mut at = PAGE;
    while at + CHUNK_HEADER <= bytes.len() && at < long(FileHeader::END_OFFSET) as usize {
        let committed = long(at + ChunkHeader::COMMITTED_OFFSET);
        places.push(Place { at: at as u64, kind: word(at + 4), thread: word(at + 8), committed });
        at += long(at + 16) as usize;
    }
    places
}

/// Lets the file grow as a recorder does, in four steps: of each thread's last chunk ever more is committed.
fn grow(path: &Path, bytes: &[u8], whole: &Trace, expected: &Handed, parts: [u8; 3]) {
    let damaged = |event: &Event| matches!(event.kind, EventKind::Gap { reason: GapReason::Damaged, .. });
    // Where a file is damaged, how much can be relied on depends on how much is there.
    if whole.events.iter().any(damaged) {
        return;
    }
    let chunks = places(bytes);
    let open = OpenOptions::new().write(true).open(path).expect("the temporary file can be opened");
    let commit = |part: u8| {
        for (index, chunk) in chunks.iter().enumerate() {
            let records = chunk.kind == ChunkKind::Records as u32;
            let last = chunks[index + 1..]
                .iter()
                .all(|later| later.thread != chunk.thread || later.kind != chunk.kind);
            if records && last {
                let some = chunk.committed * u64::from(part) / u64::from(u8::MAX);
                // Records are committed whole; an event and its accesses may be met half-way.
                let some = some - some % size_of::<Record>() as u64;
                put(&open, chunk.at + ChunkHeader::COMMITTED_OFFSET as u64, some);
            }
        }
    };
    let mut parts = parts;
    parts.sort_unstable();
    commit(0);
    let mut all = Vec::new();
    let mut follower = Follower::open(path).expect("what can be read can be followed");
    let mut each = |tables: &_, event: &Event, accesses: &[Access]| {
        let _: &streamsan_trace::Tables = tables;
        all.push((plain(event), accesses.to_vec()));
    };
    for part in parts.into_iter().chain([u8::MAX]) {
        commit(part);
        let count = follower.advance(&mut each);
        assert!(count.is_ok(), "a file that grows is no trace: {count:?}");
    }
    let count = follower.finish(&mut each);
    assert!(count.is_ok(), "a file that has grown is no trace: {count:?}");
    assert!(all == *expected, "a follower of a growing file hands over other events");
}

/// Cuts the file off and writes something else over it while it is read. Anything may come out, but no panic.
fn damage_under_way(path: &Path, bytes: &[u8], opened: &TraceFile, places: [u8; 3]) {
    let place = |part: u8| bytes.len() as u64 * u64::from(part) / u64::from(u8::MAX);
    let open = OpenOptions::new().write(true).open(path).expect("the temporary file can be opened");
    follow(path, || put(&open, place(places[0]), u64::MAX));
    handed(opened);
    follow(path, || open.set_len(place(places[1])).expect("the temporary file can be cut"));
    handed(opened);
    put(&open, place(places[2]), 1 << 40);
    handed(opened);
    let _ = TraceFile::open(path).map(|again| handed(&again));
}

fn put(file: &File, at: u64, value: u64) {
    file.write_all_at(&value.to_le_bytes(), at).expect("the temporary file can be written");
}
