//! Followers of files that are not there yet, change places, shrink, or are damaged.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::turns;
use crate::file::layout::{FileHeader, PAGE};
use crate::file::{Follower, ReadError, write_bytes};

struct Place {
    path: PathBuf,
    _folder: TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    Place { path: folder.path().join("run.sstrace"), _folder: folder }
}

fn advance(follower: &mut Follower) -> Result<u64, String> {
    follower.advance(&mut |_, _, _| ()).map_err(|error| error.to_string())
}

fn finish(follower: &mut Follower) -> Result<u64, String> {
    follower.finish(&mut |_, _, _| ()).map_err(|error| error.to_string())
}

#[test]
fn a_file_that_is_not_there_yet_has_no_events() {
    let place = place();
    let mut follower = Follower::open(&place.path).unwrap();
    assert_eq!(advance(&mut follower), Ok(0));
    assert_eq!(finish(&mut follower), Err("no such file".to_owned()));
    fs::write(&place.path, write_bytes(&turns(9)).unwrap()).unwrap();
    assert_eq!(advance(&mut follower), Ok(9));
    assert_eq!((advance(&mut follower), finish(&mut follower)), (Ok(0), Ok(0)));
}

#[test]
fn a_header_that_is_half_written_is_waited_for() {
    let place = place();
    let whole = write_bytes(&turns(9)).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    let mut page = vec![0; PAGE];
    for written in [0, 8, 16, FileHeader::END_OFFSET] {
        page[..written].copy_from_slice(&whole[..written]);
        fs::write(&place.path, &page).unwrap();
        assert_eq!(advance(&mut follower), Ok(0), "{written}");
    }
    fs::write(&place.path, b"").unwrap();
    assert_eq!(advance(&mut follower), Ok(0));
    let said = "the file is empty; was the recorded program stopped before it began?";
    assert_eq!(finish(&mut follower), Err(said.to_owned()));
    fs::write(&place.path, &whole).unwrap();
    assert_eq!(advance(&mut follower), Ok(9));
}

#[test]
fn what_is_no_trace_is_refused_at_once() {
    let place = place();
    fs::write(&place.path, b"import torch").unwrap();
    assert!(matches!(Follower::open(&place.path), Err(ReadError::NotATrace)));
    fs::remove_file(&place.path).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    fs::create_dir(&place.path).unwrap();
    assert_eq!(advance(&mut follower), Err("it is a directory; name a .sstrace file".to_owned()));
}

#[test]
fn another_file_at_the_path_is_an_error_and_none_is_not() {
    let place = place();
    let bytes = write_bytes(&turns(9)).unwrap();
    fs::write(&place.path, &bytes).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    fs::rename(&place.path, place.path.with_extension("old")).unwrap();
    assert_eq!(advance(&mut follower), Ok(9));
    fs::write(&place.path, &bytes).unwrap();
    assert!(matches!(follower.advance(&mut |_, _, _| ()), Err(ReadError::Replaced)));
}

#[test]
fn a_file_that_is_written_anew_is_an_error() {
    let place = place();
    fs::write(&place.path, write_bytes(&turns(9_000)).unwrap()).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    assert_eq!(advance(&mut follower), Ok(9_000));
    fs::write(&place.path, write_bytes(&turns(9)).unwrap()).unwrap();
    assert!(matches!(follower.advance(&mut |_, _, _| ()), Err(ReadError::Replaced)));
}

#[test]
fn a_file_that_shrinks_says_where_it_ends() {
    let place = place();
    let bytes = write_bytes(&turns(9_000)).unwrap();
    fs::write(&place.path, &bytes).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    assert_eq!(advance(&mut follower), Ok(9_000));
    let file = fs::File::options().write(true).open(&place.path).unwrap();
    for length in [bytes.len() - 1, PAGE + 100, PAGE] {
        file.set_len(length as u64).unwrap();
        assert_eq!(
            advance(&mut follower),
            Err(format!("it is damaged at byte {}: the file is cut off", bytes.len() - 1))
        );
    }
    file.set_len(100).unwrap();
    let said = "the file is cut off at byte 100, inside its header of 4096 bytes";
    assert_eq!(advance(&mut follower), Err(said.to_owned()));
    file.set_len(0).unwrap();
    assert!(advance(&mut follower).is_err());
}

#[test]
fn what_lies_before_damage_is_handed_over_once() {
    let place = place();
    let mut bytes = write_bytes(&turns(100)).unwrap();
    // As in the test of the reader: the first record of event 51.
    let chunk = (PAGE..bytes.len())
        .step_by(PAGE)
        .find(|&at| bytes[at..at + 4] == *b"SSCK" && bytes[at + 4] == 1 && bytes[at + 8] == 1)
        .unwrap();
    let at = chunk + super::super::layout::CHUNK_HEADER + 25 * 3 * super::super::record::RECORD;
    bytes[at + 12] = 200;
    fs::write(&place.path, &bytes).unwrap();
    let mut follower = Follower::open(&place.path).unwrap();
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let error = follower.advance(&mut |_, event, _| numbers.push(event.number.0)).unwrap_err();
        assert_eq!(error.to_string(), format!("it is damaged at byte {at}: a record of unknown kind"));
    }
    assert_eq!(numbers, (1..50).collect::<Vec<_>>());
    assert_eq!(finish(&mut follower), Ok(1), "the gap");
}
