//! Start, devices and contexts. Each device has one context, the primary one.

use std::ffi::{c_char, c_int, c_uint};

use crate::runtime::{
    INVALID_CONTEXT, INVALID_DEVICE, NO_DEVICE, NOT_INITIALIZED, device, forward, give, runtime,
};

/// Handle of device 0's context; those of the others follow.
const CONTEXT: u64 = 0x5200_0000_0000;
const CONTEXT_STEP: u64 = 0x1000;

fn count() -> c_int {
    let mut count = 0;
    let place = &raw mut count;
    if runtime!(cudaGetDeviceCount(place: *mut c_int)) == 0 { count } else { 0 }
}

fn current() -> c_int {
    let mut number = 0;
    let place = &raw mut number;
    let _ = runtime!(cudaGetDevice(place: *mut c_int));
    number
}

fn context_of(number: c_int) -> u64 {
    CONTEXT + CONTEXT_STEP * u64::try_from(number).unwrap_or(0)
}

fn device_of(context: u64) -> Option<c_int> {
    let offset = context.checked_sub(CONTEXT)?;
    let number = c_int::try_from(offset / CONTEXT_STEP).ok()?;
    (offset % CONTEXT_STEP == 0 && number < count()).then_some(number)
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> c_int {
    if device().is_none() {
        NOT_INITIALIZED
    } else if count() == 0 {
        NO_DEVICE
    } else {
        0
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(place: *mut c_int, ordinal: c_int) -> c_int {
    if ordinal < 0 || ordinal >= count() {
        return INVALID_DEVICE;
    }
    // SAFETY: the caller gives a place for the number.
    unsafe { give(place, ordinal) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(place: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for the number.
    unsafe { give(place, count()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(text: *mut c_char, length: c_int, number: c_int) -> c_int {
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    let name = b"streamsan virtual device\0";
    let Ok(room) = usize::try_from(length) else { return crate::runtime::INVALID_VALUE };
    if text.is_null() || room == 0 {
        return crate::runtime::INVALID_VALUE;
    }
    let fitting = name.len().min(room);
    // SAFETY: the caller's buffer has `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr().cast(), text, fitting);
        text.add(fitting - 1).write(0);
    }
    0
}

unsafe fn give_uuid(uuid: *mut [u8; 16], number: c_int) -> c_int {
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    let mut bytes = *b"streamsan-dev\0\0\0";
    bytes[15] = number.to_le_bytes()[0];
    // SAFETY: the caller gives a place for 16 bytes.
    unsafe { give(uuid, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], number: c_int) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { give_uuid(uuid, number) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], number: c_int) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { give_uuid(uuid, number) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, number: c_int) -> c_int {
    let Some(table) = device() else { return NOT_INITIALIZED };
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    // SAFETY: the caller gives a place for the number.
    unsafe { give(value, (table.attribute)(attribute, number)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, number: c_int) -> c_int {
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    let mut free = 0;
    let free = &raw mut free;
    runtime!(cudaMemGetInfo(free: *mut usize, bytes: *mut usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    number: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> c_int {
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    // SAFETY: the caller gives places for both.
    unsafe { give(flags, 0).max(give(active, 1)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut u64, number: c_int) -> c_int {
    if number < 0 || number >= count() {
        return INVALID_DEVICE;
    }
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(context, context_of(number)) }
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(number: c_int) -> c_int {
    if number < 0 || number >= count() { INVALID_DEVICE } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut u64) -> c_int {
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(context, context_of(current())) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: u64) -> c_int {
    if context == 0 {
        return 0;
    }
    let Some(number) = device_of(context) else { return INVALID_CONTEXT };
    runtime!(cudaSetDevice(number: c_int))
}

thread_local! {
    /// Devices to return to, innermost last.
    static PUSHED: std::cell::RefCell<Vec<c_int>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: u64) -> c_int {
    let before = current();
    let code = cuCtxSetCurrent(context);
    if code == 0 {
        let _ = PUSHED.try_with(|pushed| pushed.borrow_mut().push(before));
    }
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut u64) -> c_int {
    let leaving = context_of(current());
    let Ok(Some(number)) = PUSHED.try_with(|pushed| pushed.borrow_mut().pop()) else {
        return INVALID_CONTEXT;
    };
    if !context.is_null() {
        // SAFETY: the caller gives a place for the handle.
        unsafe { context.write(leaving) };
    }
    runtime!(cudaSetDevice(number: c_int))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(number: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for the number.
    unsafe { give(number, current()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetFlags(flags: *mut c_uint) -> c_int {
    // SAFETY: the caller gives a place for the flags.
    unsafe { give(flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetApiVersion(_context: u64, version: *mut c_uint) -> c_int {
    // SAFETY: the caller gives a place for the number.
    unsafe { give(version, 3020) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLogsRegisterCallback(_callback: usize, _user: usize, handle: *mut usize) -> c_int {
    // The driver has nothing to log, so the callback is never called. torch 2.15 registers one.
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(handle, 1) }
}

#[unsafe(no_mangle)]
extern "C" fn cuLogsUnregisterCallback(_handle: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetLimit(_limit: c_int, _value: usize) -> c_int {
    // Kernels are not run, so no limit is reached.
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetLimit(value: *mut usize, _limit: c_int) -> c_int {
    // SAFETY: the caller gives a place for the number.
    unsafe { give(value, 0) }
}

forward! {
    cuDriverGetVersion = cudaDriverGetVersion(version: *mut c_int);
    cuCtxSynchronize = cudaDeviceSynchronize();
    cuDeviceCanAccessPeer = cudaDeviceCanAccessPeer(can: *mut c_int, number: c_int, peer: c_int);
    cuDeviceGetPCIBusId = cudaDeviceGetPCIBusId(text: *mut c_char, length: c_int, number: c_int);
    cuCtxGetStreamPriorityRange = cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_device_library_there_is_no_device() {
        let mut number = 7;
        // SAFETY: a place for the number, here and below.
        assert_eq!(unsafe { cuDeviceGetCount(&raw mut number) }, 0);
        assert_eq!(number, 0);
        assert_eq!(cuInit(0), NOT_INITIALIZED);
        // SAFETY: as above.
        assert_eq!(unsafe { cuDeviceGet(&raw mut number, 0) }, INVALID_DEVICE);
        assert_eq!(device_of(context_of(0)), None);
        assert_eq!(cuCtxSetCurrent(context_of(0)), INVALID_CONTEXT);
    }
}
