//! Stream-ordered allocation: the default pool of each device.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use crate::call::{call, give, lock, record};
use crate::devices::{device, memory_limit};
use crate::errors::{Answer, Code};
use crate::memory;
use crate::streams::{State, enqueue, with_stream};

/// Handles of the default pools: this, plus the device's number.
const DEFAULT_POOL: u64 = 0x5000_0000_0000;

/// `cudaMemPoolAttrReleaseThreshold` of each default pool that was given one.
static THRESHOLDS: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());

fn pool_device(pool: u64) -> Result<u32, Code> {
    let number = pool.checked_sub(DEFAULT_POOL).ok_or(Code::INVALID_VALUE)?;
    device(c_int::try_from(number).map_err(|_| Code::INVALID_VALUE)?).map_err(|_| Code::INVALID_VALUE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetDefaultMemPool(pool: *mut u64, number: c_int) -> Code {
    // SAFETY: the caller gives a place for the handle.
    call(|| unsafe { give(pool, DEFAULT_POOL + u64::from(device(number)?)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetMemPool(pool: *mut u64, number: c_int) -> Code {
    // SAFETY: the caller gives a place for the handle.
    call(|| unsafe { give(pool, DEFAULT_POOL + u64::from(device(number)?)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolGetAttribute(pool: u64, attribute: c_int, value: *mut c_void) -> Code {
    call(|| {
        let device = pool_device(pool)?;
        match attribute {
            // Whether reuse may follow events, reorder, or add dependencies: CUDA's defaults.
            // SAFETY: these attributes are of type int.
            1..=3 => unsafe { give(value.cast::<c_int>(), 1) },
            4 => {
                let known =
                    lock(&THRESHOLDS)?.iter().find(|(of, _)| *of == device).map_or(0, |(_, bytes)| *bytes);
                // SAFETY: this attribute is of 64 bits.
                unsafe { give(value.cast::<u64>(), known) }
            }
            // Reserved and used bytes, now and at most.
            5..=8 => {
                let used = memory::used(device)?;
                // SAFETY: these attributes are of 64 bits.
                unsafe { give(value.cast::<u64>(), used) }
            }
            _ => Err(Code::INVALID_VALUE),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolSetAttribute(pool: u64, attribute: c_int, value: *const c_void) -> Code {
    call(|| {
        let device = pool_device(pool)?;
        if value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        match attribute {
            1..=3 | 6 | 8 => Ok(()),
            4 => {
                // SAFETY: this attribute is of 64 bits.
                let bytes = unsafe { value.cast::<u64>().read() };
                let mut thresholds = lock(&THRESHOLDS)?;
                thresholds.retain(|(of, _)| *of != device);
                thresholds.push((device, bytes));
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPoolSetAccess(pool: u64, _descriptions: *const c_void, _count: usize) -> Code {
    // All memory may be reached from everywhere.
    call(|| pool_device(pool).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPoolTrimTo(pool: u64, _keep: usize) -> Code {
    call(|| pool_device(pool).map(|_| ()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocAsync(pointer: *mut usize, size: usize, stream: u64) -> Code {
    call(|| {
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        if size as u64 > memory_limit() {
            return Err(Code::MEMORY_ALLOCATION);
        }
        record_model_gap("cudaMallocAsync");
        refuse_capture(stream)?;
        let stream = enqueue(stream)?;
        let start = if size == 0 { 0 } else { memory::allocate(stream.device, size)? };
        // SAFETY: the caller gives a place for the pointer.
        unsafe { give(pointer, start) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaFreeAsync(pointer: usize, stream: u64) -> Code {
    call(|| {
        refuse_capture(stream)?;
        enqueue(stream)?;
        free_in_order(pointer)
    })
}

/// Memory that a graph allocates is not modelled.
fn refuse_capture(stream: u64) -> Answer {
    let (_, captured) = with_stream(stream, State::check_use)?;
    if captured?.is_some() { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}

fn free_in_order(pointer: usize) -> Answer {
    if pointer == 0 { Ok(()) } else { memory::free(pointer) }
}

/// The call works, but the order that its stream gives to the memory is not in the record.
fn record_model_gap(name: &str) {
    record(|recorder| recorder.unsupported(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_pool_comes_and_goes() {
        let mut pointer = 0;
        // SAFETY: a place for the pointer.
        assert_eq!(unsafe { cudaMallocAsync(&raw mut pointer, 100, 0) }, Code::SUCCESS);
        assert!(pointer != 0);
        assert_eq!(cudaFreeAsync(pointer, 0), Code::SUCCESS);
        assert_eq!(cudaFreeAsync(pointer, 0), Code::INVALID_VALUE);
    }

    #[test]
    fn a_threshold_is_kept() {
        let (mut pool, bytes, mut back) = (0, 77_u64, 0_u64);
        // SAFETY: places for all answers.
        unsafe {
            assert_eq!(cudaDeviceGetDefaultMemPool(&raw mut pool, 0), Code::SUCCESS);
            assert_eq!(cudaMemPoolSetAttribute(pool, 4, (&raw const bytes).cast()), Code::SUCCESS);
            assert_eq!(cudaMemPoolGetAttribute(pool, 4, (&raw mut back).cast()), Code::SUCCESS);
            assert_eq!(cudaMemPoolTrimTo(3, 0), Code::INVALID_VALUE);
        }
        assert_eq!(back, 77);
    }
}
