//! Reserved addresses and memory mapped into them, under the driver's names.

use std::ffi::{c_int, c_ulonglong, c_void};

use crate::runtime::forward;

forward! {
    cuMemAddressReserve = streamsan_address_reserve(
        start: *mut u64, size: usize, alignment: usize, wished: u64, flags: c_ulonglong,
    );
    cuMemAddressFree = streamsan_address_free(start: u64, size: usize);
    cuMemCreate = streamsan_memory_create(
        handle: *mut u64, size: usize, properties: *const c_void, flags: c_ulonglong,
    );
    cuMemRelease = streamsan_memory_release(handle: u64);
    cuMemMap = streamsan_memory_map(start: u64, size: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemUnmap = streamsan_memory_unmap(start: u64, size: usize);
    cuMemSetAccess = streamsan_memory_set_access(
        start: u64, size: usize, descriptions: *const c_void, count: usize,
    );
    cuMemGetAllocationGranularity = streamsan_memory_granularity(
        granularity: *mut usize, properties: *const c_void, which: c_int,
    );
    cuMemRetainAllocationHandle = streamsan_memory_handle(handle: *mut u64, address: u64);
}
