//! All readers say the same of any file, whole or not.

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{traces, turns};
use crate::file::{Follower, ReadError, TraceFile, read, read_bytes, write_bytes};
use crate::{Access, Event, EventKind, GapReason, Log, Trace};

/// Adds an event as the reader into memory does.
fn add(trace: &mut Trace, event: &Event, accesses: &[Access]) {
    let mut event = *event;
    if let EventKind::Op { accesses: range, .. } | EventKind::HostAccess { accesses: range, .. } =
        &mut event.kind
    {
        assert_eq!(range.count as usize, accesses.len());
        *range = trace.push_accesses(accesses);
    } else {
        assert!(accesses.is_empty());
    }
    trace.events.push(event);
}

fn streamed(path: &Path) -> Result<Trace, ReadError> {
    let file = TraceFile::open(path)?;
    let mut trace =
        Trace { header: file.header().clone(), tables: file.tables().clone(), ..Trace::default() };
    file.read(&mut |event, accesses| add(&mut trace, event, accesses));
    assert_eq!(file.events(), trace.events.len() as u64);
    let mut events = trace.events.iter().map(|event| event.number);
    file.read(&mut |event, _| assert_eq!(Some(event.number), events.next(), "read a second time"));
    Ok(trace)
}

fn followed(path: &Path) -> Result<Trace, ReadError> {
    let mut follower = Follower::open(path)?;
    let mut trace = Trace::default();
    let advanced = follower.advance(&mut |_, event, accesses| add(&mut trace, event, accesses));
    let before = trace.events.len();
    let again = follower.advance(&mut |_, event, _| panic!("{event:?} comes late"));
    assert_eq!(advanced.is_err(), again.is_err(), "{advanced:?} {again:?}");
    let rest = follower.finish(&mut |_, event, accesses| add(&mut trace, event, accesses))?;
    assert_eq!(rest, (trace.events.len() - before) as u64);
    if matches!(advanced, Err(ReadError::Damaged { .. })) {
        let damaged = |event: &Event| matches!(event.kind, EventKind::Gap { reason: GapReason::Damaged, .. });
        assert!(trace.events.iter().any(damaged));
    }
    trace.header = follower.header().unwrap().clone();
    trace.tables = follower.tables().unwrap().clone();
    Ok(trace)
}

/// Enough to see where two results differ.
fn short(read: &Result<Trace, String>) -> String {
    match read {
        Ok(trace) => {
            let gaps = trace.events.iter().rev().take(2).collect::<Vec<_>>();
            format!("{} events, at the end {gaps:?}, {:?}", trace.events.len(), trace.tables.strings.last())
        }
        Err(error) => error.clone(),
    }
}

/// Has all readers read `bytes`.
fn agree(bytes: &[u8], path: &Path) {
    fs::write(path, bytes).unwrap();
    let expected = read_bytes(bytes).map_err(|error| error.to_string());
    for (name, read) in [
        ("read", read as fn(&Path) -> Result<Trace, ReadError>),
        ("TraceFile", streamed),
        ("Follower", followed),
    ] {
        let found = read(path).map_err(|error| error.to_string());
        assert!(found == expected, "{name}: {}\nread_bytes: {}", short(&found), short(&expected));
    }
}

proptest! {
    // Fewer than usual: each case is many files.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 3))]

    #[test]
    fn of_whole_files_and_any_prefix(trace in traces(40), shares in vec(any::<prop::sample::Index>(), 6)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sstrace");
        let bytes = write_bytes(&trace).unwrap();
        agree(&bytes, &path);
        for share in shares {
            agree(&bytes[..share.index(bytes.len())], &path);
        }
    }

    #[test]
    fn of_files_with_flipped_bits(
        trace in traces(40),
        flips in vec((any::<prop::sample::Index>(), 0..8_u8, any::<bool>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sstrace");
        let mut bytes = write_bytes(&trace).unwrap();
        for (index, bit, early) in flips {
            // Most of a chunk is not used: half of the flips go where something is.
            let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
            let at = if early { used[index.index(used.len())] } else { index.index(bytes.len()) };
            bytes[at] ^= 1 << bit;
            agree(&bytes, &path);
        }
    }
}

#[test]
fn of_long_files_cut_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let bytes = write_bytes(&turns(4_000)).unwrap();
    for length in (0..bytes.len()).step_by(7_919) {
        agree(&bytes[..length], &path);
    }
}

#[test]
fn of_a_file_with_every_byte_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let bytes = write_bytes(&turns(3)).unwrap();
    for at in (0..bytes.len()).filter(|&at| at < 64 || bytes[at] != 0) {
        for value in [0, 1, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            agree(&bytes, &path);
        }
    }
}

#[test]
fn of_hundreds_of_threads_that_take_turns() {
    let mut trace = turns(20_000);
    for event in &mut trace.events {
        event.thread = crate::ThreadId((event.number.0 * event.number.0 % 701) as u32);
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = write_bytes(&trace).unwrap();
    agree(&bytes, &folder.path().join("run.sstrace"));
}

#[test]
fn of_an_event_that_is_larger_than_a_window() {
    let mut trace = turns(3);
    let access = trace.accesses[0];
    let accesses = trace.push_accesses(&vec![access; 7_000]);
    let EventKind::Op { accesses: range, .. } = &mut trace.events[1].kind else { panic!() };
    *range = accesses;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let bytes = write_bytes(&trace).unwrap();
    agree(&bytes, &path);
    assert_eq!(streamed(&path).unwrap().accesses.len(), 7_004);
    agree(&bytes[..bytes.len() - 50_000], &path);
}

#[test]
fn a_file_that_changes_after_it_was_opened_ends_with_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sstrace");
    let bytes = write_bytes(&turns(20_000)).unwrap();
    fs::write(&path, &bytes).unwrap();
    let opened = TraceFile::open(&path).unwrap();
    let numbers = || {
        let (mut numbers, mut last) = (0, None);
        opened.read(&mut |event, _| {
            assert!(last.is_none_or(|last: Event| last.number < event.number));
            (numbers, last) = (numbers + 1, Some(*event));
        });
        (numbers, last.unwrap().kind)
    };
    assert_eq!(numbers().0, 20_000);
    let file = fs::File::options().write(true).open(&path).unwrap();
    for length in [bytes.len() as u64 / 2, 5_000, 0] {
        file.set_len(length).unwrap();
        let (count, last) = numbers();
        assert!(count <= 20_000 * length / bytes.len() as u64 + 1, "{count} of {length}");
        assert!(matches!(last, EventKind::Gap { reason: GapReason::Damaged, .. }), "{last:?}");
    }
    fs::write(&path, vec![0xff; bytes.len()]).unwrap();
    assert_eq!(numbers().0, 1);
}
