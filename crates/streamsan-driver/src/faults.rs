//! Failures on request, so that a program's handling of them can be tested without a GPU.
//!
//! `STREAMSAN_DRIVER_FAULT=cuEventRecord:3:999` makes the third call of `cuEventRecord` answer 999 instead of doing
//! anything; `cuEventRecord:3+:999` that call and all later ones. Several are separated by commas. Calls of memory,
//! streams, events and asynchronous copies can be made to fail.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Fault {
    name: String,
    first: u64,
    and_later: bool,
    code: c_int,
    calls: AtomicU64,
}

fn parse(text: &str) -> Option<Fault> {
    let mut parts = text.trim().split(':');
    let (name, first, code) = (parts.next()?, parts.next()?, parts.next()?);
    let and_later = first.ends_with('+');
    let first = first.trim_end_matches('+').parse().ok()?;
    Some(Fault {
        name: name.to_owned(),
        first,
        and_later,
        code: code.parse().ok()?,
        calls: AtomicU64::new(0),
    })
}

fn read(text: &str) -> Vec<Fault> {
    let wrong = |part: &&str| {
        if parse(part).is_none() {
            eprintln!(
                "streamsan: STREAMSAN_DRIVER_FAULT: `{part}` is not understood: write name:call:code, as in cuEventRecord:3:999"
            );
        }
    };
    text.split(',').filter(|part| !part.trim().is_empty()).inspect(wrong).filter_map(parse).collect()
}

/// What this call is to answer instead of doing anything, if it is one that is to fail.
pub fn fault(name: &str) -> Option<c_int> {
    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
    let faults = FAULTS.get_or_init(|| read(&std::env::var("STREAMSAN_DRIVER_FAULT").unwrap_or_default()));
    due(faults, name)
}

fn due(faults: &[Fault], name: &str) -> Option<c_int> {
    let fault = faults.iter().find(|fault| fault.name == name)?;
    let call = fault.calls.fetch_add(1, Ordering::Relaxed) + 1;
    (call == fault.first || fault.and_later && call > fault.first).then_some(fault.code)
}

#[cfg(test)]
mod tests {
    use super::{due, read};

    #[test]
    fn the_chosen_calls_fail() {
        let faults = read("cuEventRecord:2:999, cuMemAlloc_v2:2+:2,nonsense");
        let answers = |name: &str| [(); 4].map(|()| due(&faults, name));
        assert_eq!(answers("cuEventRecord"), [None, Some(999), None, None]);
        assert_eq!(answers("cuMemAlloc_v2"), [None, Some(2), Some(2), Some(2)]);
        assert_eq!(answers("cuMemFree_v2"), [None; 4]);
    }
}
