//! Communicators, all of one rank.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{LazyLock, Mutex};

use super::scaling::Scale;
use super::{Done, Failure, Status, answer, give, unsupported};
use crate::call::lock;
use crate::devices::current_device;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([c_char; 128]);

/// `NCCL_SPLIT_NOCOLOR`: the rank takes part in no new communicator.
const NO_COLOR: c_int = -1;

/// A group of one process.
#[derive(Debug)]
pub struct Communicator {
    /// Its device.
    pub device: u32,
    /// Reduction operators made for it, by number.
    pub operators: HashMap<c_int, Scale>,
}

/// Communicators by handle. Handles look like addresses, are none of this process, and are never used twice.
struct Communicators {
    open: HashMap<u64, Communicator>,
    next: u64,
}

static COMMUNICATORS: LazyLock<Mutex<Communicators>> =
    LazyLock::new(|| Mutex::new(Communicators { open: HashMap::new(), next: 0x6100_0000_0000 }));

/// Works on a communicator.
pub fn with<T>(
    handle: u64,
    work: impl FnOnce(&mut Communicator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut communicators = lock(&COMMUNICATORS)?;
    let communicator = communicators
        .open
        .get_mut(&handle)
        .ok_or_else(|| Failure::argument(format!("{handle:#x} is no communicator, or was destroyed")))?;
    work(communicator)
}

fn make(device: u32) -> Result<u64, Failure> {
    let mut communicators = lock(&COMMUNICATORS)?;
    communicators.next += 0x40;
    let handle = communicators.next;
    communicators.open.insert(handle, Communicator { device, operators: HashMap::new() });
    Ok(handle)
}

fn close(handle: u64) -> Done {
    if handle == 0 {
        return Ok(());
    }
    with(handle, |_| Ok(()))?;
    lock(&COMMUNICATORS)?.open.remove(&handle);
    Ok(())
}

/// Refuses a group that is not of one process.
fn check_ranks(call: &str, ranks: c_int, rank: c_int) -> Done {
    if ranks > 1 {
        let _ = unsupported(&format!("{call} with {ranks} processes"));
        return Err(Failure::usage(format!(
            "NCCL groups have one process here, and this one was to have {ranks}: run one process (world size 1), \
             or use the gloo backend"
        )));
    }
    if ranks == 1 && rank == 0 {
        Ok(())
    } else {
        Err(Failure::argument(format!("{call} was called for rank {rank} of {ranks}")))
    }
}

unsafe fn make_into(place: *mut u64, call: &str, ranks: c_int, rank: c_int) -> Status {
    answer(|| {
        check_ranks(call, ranks, rank)?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, make(current_device())?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> Status {
    // It only has to be one: nobody is to be found by it.
    // SAFETY: the caller gives a place for the id.
    answer(|| unsafe { give(id, UniqueId([1; 128])) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRank(place: *mut u64, ranks: c_int, _id: UniqueId, rank: c_int) -> Status {
    // SAFETY: as the caller of this function promises.
    unsafe { make_into(place, "ncclCommInitRank", ranks, rank) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRankConfig(
    place: *mut u64,
    ranks: c_int,
    _id: UniqueId,
    rank: c_int,
    _configuration: *const c_void,
) -> Status {
    // SAFETY: as the caller of this function promises.
    unsafe { make_into(place, "ncclCommInitRankConfig", ranks, rank) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRankScalable(
    place: *mut u64,
    ranks: c_int,
    rank: c_int,
    _id_count: c_int,
    _ids: *const UniqueId,
    _configuration: *const c_void,
) -> Status {
    // SAFETY: as the caller of this function promises.
    unsafe { make_into(place, "ncclCommInitRankScalable", ranks, rank) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitAll(place: *mut u64, count: c_int, devices: *const c_int) -> Status {
    answer(|| {
        if count > 1 {
            let _ = unsupported(&format!("ncclCommInitAll of {count} devices"));
            return Err(Failure::usage(format!(
                "NCCL groups have one device here, and this one was to have {count}"
            )));
        }
        check_ranks("ncclCommInitAll", count, 0)?;
        // SAFETY: null, or as many numbers as there are devices.
        let device = unsafe { devices.as_ref() }
            .map_or(Ok(current_device()), |&number| crate::devices::device(number).map_err(Failure::from))?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, make(device)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommSplit(
    communicator: u64,
    color: c_int,
    _key: c_int,
    place: *mut u64,
    _configuration: *const c_void,
) -> Status {
    answer(|| {
        let device = with(communicator, |known| Ok(known.device))?;
        let new = match color {
            NO_COLOR => 0,
            0.. => make(device)?,
            _ => return Err(Failure::argument(format!("ncclCommSplit was called with colour {color}"))),
        };
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, new) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommShrink(
    communicator: u64,
    _excluded: *const c_int,
    excluded_count: c_int,
    place: *mut u64,
    _configuration: *const c_void,
    _flags: c_int,
) -> Status {
    answer(|| {
        let device = with(communicator, |known| Ok(known.device))?;
        if excluded_count > 0 {
            return Err(Failure::argument("ncclCommShrink leaves nobody in a group of one process"));
        }
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(place, make(device)?) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommFinalize(communicator: u64) -> Status {
    answer(|| with(communicator, |_| Ok(())))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDestroy(communicator: u64) -> Status {
    answer(|| close(communicator))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommAbort(communicator: u64) -> Status {
    answer(|| close(communicator))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommRevoke(communicator: u64, _flags: c_int) -> Status {
    answer(|| with(communicator, |_| Ok(())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommGetAsyncError(communicator: u64, status: *mut Status) -> Status {
    answer(|| {
        with(communicator, |_| Ok(()))?;
        // SAFETY: the caller gives a place for the answer, here and below.
        unsafe { give(status, Status::SUCCESS) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommCount(communicator: u64, count: *mut c_int) -> Status {
    answer(|| {
        with(communicator, |_| Ok(()))?;
        // SAFETY: as above.
        unsafe { give(count, 1) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommUserRank(communicator: u64, rank: *mut c_int) -> Status {
    answer(|| {
        with(communicator, |_| Ok(()))?;
        // SAFETY: as above.
        unsafe { give(rank, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommCuDevice(communicator: u64, device: *mut c_int) -> Status {
    answer(|| {
        let number = with(communicator, |known| Ok(known.device.cast_signed()))?;
        // SAFETY: as above.
        unsafe { give(device, number) }
    })
}

/// A communicator of one rank on device 0.
#[cfg(test)]
pub fn alone() -> u64 {
    make(0).expect("nothing holds the lock for long")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use crate::nccl::ncclGetLastError;

    #[test]
    fn a_group_has_one_process() {
        let mut handle = 0;
        // SAFETY: a place for the handle, here and below.
        let status = unsafe { ncclCommInitRank(&raw mut handle, 2, UniqueId([0; 128]), 0) };
        assert_eq!(status, Status::INVALID_USAGE);
        // SAFETY: a string that lives until the next error of this thread.
        let text = unsafe { CStr::from_ptr(ncclGetLastError(0)) }.to_string_lossy();
        assert!(text.contains("one process here, and this one was to have 2"), "{text}");
        // SAFETY: as above.
        let status =
            unsafe { ncclCommInitRankConfig(&raw mut handle, 1, UniqueId([0; 128]), 0, std::ptr::null()) };
        assert_eq!(status, Status::SUCCESS);
        let (mut count, mut rank) = (0, 7);
        // SAFETY: places for the answers.
        unsafe {
            assert_eq!(ncclCommCount(handle, &raw mut count), Status::SUCCESS);
            assert_eq!(ncclCommUserRank(handle, &raw mut rank), Status::SUCCESS);
        }
        assert_eq!((count, rank), (1, 0));
        assert_eq!(ncclCommDestroy(handle), Status::SUCCESS);
        assert_eq!(ncclCommDestroy(handle), Status::INVALID_ARGUMENT);
    }

    #[test]
    fn a_split_without_a_colour_gives_nothing() {
        let whole = alone();
        let mut part = 1;
        // SAFETY: a place for the handle, here and below.
        let status = unsafe { ncclCommSplit(whole, NO_COLOR, 0, &raw mut part, std::ptr::null()) };
        assert_eq!((status, part), (Status::SUCCESS, 0));
        // SAFETY: as above.
        let status = unsafe { ncclCommSplit(whole, 3, 0, &raw mut part, std::ptr::null()) };
        assert_eq!(status, Status::SUCCESS);
        assert!(part != 0 && part != whole);
    }
}
