//! NCCL's allocations, and what it is told of memory in advance.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use super::communicators::with;
use super::{Status, answer, give, unsupported};
use crate::devices::current_device;

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclMemAlloc(pointer: *mut usize, size: usize) -> Status {
    answer(|| {
        let start = if size == 0 { 0 } else { crate::memory::allocate(current_device(), size)? };
        // SAFETY: the caller gives a place for the pointer.
        unsafe { give(pointer, start) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclMemFree(pointer: usize) -> Status {
    answer(|| if pointer == 0 { Ok(()) } else { Ok(crate::memory::free(pointer)?) })
}

/// A handle for a registration, which changes nothing here: it only makes operations faster.
unsafe fn register(communicator: u64, handle: *mut u64) -> Status {
    static NEXT: AtomicU64 = AtomicU64::new(0x6200_0000_0000);
    answer(|| {
        with(communicator, |_| Ok(()))?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(handle, NEXT.fetch_add(0x40, Ordering::Relaxed)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommRegister(
    communicator: u64,
    _buffer: usize,
    _size: usize,
    handle: *mut u64,
) -> Status {
    // SAFETY: as the caller of this function promises.
    unsafe { register(communicator, handle) }
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDeregister(communicator: u64, _handle: u64) -> Status {
    answer(|| with(communicator, |_| Ok(())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommWindowRegister(
    communicator: u64,
    _buffer: usize,
    _size: usize,
    window: *mut u64,
    _flags: c_int,
) -> Status {
    // SAFETY: as the caller of this function promises.
    unsafe { register(communicator, window) }
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommWindowDeregister(communicator: u64, _window: u64) -> Status {
    answer(|| with(communicator, |_| Ok(())))
}

/// Calls that are refused, whatever they are called with: without these names NVIDIA's library would get handles that
/// are none of its own.
macro_rules! refused {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name() -> Status {
            answer(|| unsupported(stringify!($name)))
        })*
    };
}

refused! {
    // For kernels that communicate themselves: none is run here.
    ncclDevCommCreate ncclDevCommDestroy ncclGetLsaDevicePointer ncclGetLsaMultimemDevicePointer
    ncclGetMultimemDevicePointer ncclGetPeerDevicePointer
    // Newer than what torch 2.11 calls.
    ncclCommGetUniqueId ncclCommGrow ncclCommMemStats ncclCommQueryProperties ncclCommResume ncclCommSuspend
    ncclPutSignal ncclSignal ncclWaitSignal ncclWinGetUserPtr
}
