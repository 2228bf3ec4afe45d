//! Allocation: device memory is host memory, up to a limit.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::RwLock;

use streamsan_record::Library;
use streamsan_record::callers::library_at;
use streamsan_record::with_caller;
use streamsan_trace::{DeviceId, MemorySpace};

use crate::call::{call, give, read, record, write};
use crate::capture::unsafe_call;
use crate::devices::{current_device, memory_limit, page_locked_limit};
use crate::errors::{Answer, Code};
use crate::protection;
use crate::regions::{Region, RegionKind, Regions};

/// All regions of the process.
pub static REGIONS: RwLock<Regions> = RwLock::new(Regions::new());

/// torch takes device memory in segments of this alignment, as CUDA gives it.
pub const ALIGNMENT: usize = 2 << 20;

/// `cudaHostAllocMapped`: all page-locked memory can be reached from the device.
const MAPPED: u32 = 2;

/// The region that holds this address.
pub fn region_at(address: usize) -> Result<Option<Region>, Code> {
    Ok(read(&REGIONS)?.find(address))
}

/// Whether these bytes lie in memory of one device.
pub fn is_device_memory(start: usize, size: usize) -> Result<bool, Code> {
    Ok(read(&REGIONS)?.is_device_memory(start, size))
}

/// Bytes in use on a device.
pub fn used(device: u32) -> Result<u64, Code> {
    Ok(read(&REGIONS)?.used(device))
}

/// Maps zeroed memory that starts at a multiple of `alignment`.
fn map(size: usize, alignment: usize) -> Option<usize> {
    map_with(size, alignment, libc::PROT_READ | libc::PROT_WRITE)
}

/// Maps memory, or with `PROT_NONE` only addresses, from a multiple of `alignment` on.
pub fn map_with(size: usize, alignment: usize, protection: c_int) -> Option<usize> {
    let padded = size.checked_add(alignment)?;
    // SAFETY: a new private mapping at an address of the system's choice.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            padded,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return None;
    }
    let start = (base as usize).next_multiple_of(alignment);
    let end = start + page_rounded(size);
    // SAFETY: both pieces are parts of the mapping just made, outside start..end.
    unsafe {
        if start > base as usize {
            libc::munmap(base, start - base as usize);
        }
        let tail = page_rounded(base as usize + padded);
        if tail > end {
            libc::munmap(end as *mut c_void, tail - end);
        }
    }
    Some(start)
}

/// Gives a mapping back.
pub fn unmap(start: usize, size: usize) {
    // SAFETY: a mapping of `map` that its owner gives up.
    unsafe { libc::munmap(start as *mut c_void, page_rounded(size)) };
}

const fn page_rounded(size: usize) -> usize {
    size.next_multiple_of(4096)
}

/// Allocates memory of a device.
pub fn allocate(device: u32, size: usize) -> Result<usize, Code> {
    if !write(&REGIONS)?.reserve(device, size, memory_limit()) {
        return Err(Code::MEMORY_ALLOCATION);
    }
    let Some(start) = map(size, ALIGNMENT) else {
        write(&REGIONS)?.release(device, size);
        return Err(Code::MEMORY_ALLOCATION);
    };
    write(&REGIONS)?.insert(Region { start, size, kind: RegionKind::Device(device), device, flags: 0 });
    record(|recorder| {
        recorder.memory_allocated(MemorySpace::Device(DeviceId(device)), start as u64, size as u64);
    });
    Ok(start)
}

/// Frees memory of a device.
pub fn free(start: usize) -> Answer {
    crate::delays::before_anything()?;
    match region_at(start)? {
        Some(Region { start: first, kind: RegionKind::Device(_), .. }) if first == start => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    record(|recorder| recorder.memory_freed(start as u64));
    let mut regions = write(&REGIONS)?;
    // Two threads that free the same memory: the second finds nothing.
    let region =
        regions.remove(start, |kind| matches!(kind, RegionKind::Device(_))).ok_or(Code::INVALID_VALUE)?;
    if let RegionKind::Device(device) = region.kind {
        regions.release(device, region.size);
    }
    // Under the lock, so that the address is not handed out before it has left the table.
    unmap(region.start, region.size);
    Ok(())
}

/// Before a call on host memory: a program's own has the place of the program. torch holds locks in such calls, and
/// its own have a place already.
fn locate(caller: usize) {
    if library_at(caller) == Library::Other {
        record(|recorder| recorder.locate(true));
    }
}

/// Refuses page-locked memory past the limit, as a system does that has no more pages to lock.
fn lockable(size: usize) -> Answer {
    let locked = read(&REGIONS)?.page_locked();
    if locked.saturating_add(size as u64) > page_locked_limit() {
        Err(Code::MEMORY_ALLOCATION)
    } else {
        Ok(())
    }
}

fn allocate_host(size: usize, flags: u32) -> Result<usize, Code> {
    lockable(size)?;
    let start = protection::allocate(size).or_else(|| map(size, 4096));
    let start = start.ok_or(Code::MEMORY_ALLOCATION)?;
    let device = current_device();
    write(&REGIONS)?.insert(Region { start, size, kind: RegionKind::HostAllocated, device, flags });
    record(|recorder| recorder.memory_allocated(MemorySpace::Pinned, start as u64, size as u64));
    Ok(start)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMalloc(pointer: *mut usize, size: usize) -> Code {
    call(|| {
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        unsafe_call()?;
        let start = if size == 0 { Ok(0) } else { allocate(current_device(), size) };
        // SAFETY: the caller gives a place for the pointer.
        unsafe { give(pointer, start.unwrap_or(0))? };
        start.map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaFree(pointer: usize) -> Code {
    call(|| {
        unsafe_call()?;
        if pointer == 0 { Ok(()) } else { free(pointer) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> Code {
    call(|| {
        let limit = memory_limit();
        let used = read(&REGIONS)?.used(current_device());
        for (place, bytes) in [(free, limit.saturating_sub(used)), (total, limit)] {
            if !place.is_null() {
                // SAFETY: the caller gives a place for the number.
                unsafe { give(place, bytes as usize)? };
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn host_alloc(pointer: *mut usize, size: usize, flags: c_uint, caller: usize) -> Code {
    call(|| {
        locate(caller);
        if pointer.is_null() || flags & !0x7 != 0 {
            return Err(Code::INVALID_VALUE);
        }
        unsafe_call()?;
        let start = if size == 0 { Ok(0) } else { allocate_host(size, flags) };
        // SAFETY: the caller gives a place for the pointer.
        unsafe { give(pointer, start.unwrap_or(0))? };
        start.map(|_| ())
    })
}

with_caller!(cudaHostAlloc, "rcx", host_alloc);

unsafe extern "C" fn malloc_host(pointer: *mut usize, size: usize, caller: usize) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { host_alloc(pointer, size, 0, caller) }
}

with_caller!(cudaMallocHost, "rdx", malloc_host);

extern "C" fn free_host(pointer: usize, caller: usize) -> Code {
    call(|| {
        locate(caller);
        unsafe_call()?;
        if pointer == 0 {
            return Ok(());
        }
        crate::delays::before_anything()?;
        match region_at(pointer)? {
            Some(Region { start, kind: RegionKind::HostAllocated, .. }) if start == pointer => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        record(|recorder| recorder.memory_freed(pointer as u64));
        let mut regions = write(&REGIONS)?;
        let region =
            regions.remove(pointer, |kind| kind == RegionKind::HostAllocated).ok_or(Code::INVALID_VALUE)?;
        if !protection::release(region.start) {
            unmap(region.start, region.size);
        }
        Ok(())
    })
}

with_caller!(cudaFreeHost, "rsi", free_host);

extern "C" fn host_register(pointer: usize, size: usize, flags: c_uint, caller: usize) -> Code {
    call(|| {
        locate(caller);
        if pointer == 0 || size == 0 || flags & !0xf != 0 {
            return Err(Code::INVALID_VALUE);
        }
        unsafe_call()?;
        lockable(size)?;
        let device = current_device();
        {
            let mut regions = write(&REGIONS)?;
            match regions.overlapping(pointer, size).map(|region| region.kind) {
                None => {}
                Some(RegionKind::HostRegistered) => return Err(Code::HOST_MEMORY_ALREADY_REGISTERED),
                Some(_) => return Err(Code::INVALID_VALUE),
            }
            let kind = RegionKind::HostRegistered;
            regions.insert(Region { start: pointer, size, kind, device, flags });
        }
        record(|recorder| recorder.memory_allocated(MemorySpace::Pinned, pointer as u64, size as u64));
        Ok(())
    })
}

with_caller!(cudaHostRegister, "rcx", host_register);

extern "C" fn host_unregister(pointer: usize, caller: usize) -> Code {
    call(|| {
        locate(caller);
        unsafe_call()?;
        crate::delays::before_anything()?;
        match region_at(pointer)? {
            Some(Region { start, kind: RegionKind::HostRegistered, .. }) if start == pointer => {}
            Some(_) => return Err(Code::INVALID_VALUE),
            None => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
        }
        record(|recorder| recorder.memory_freed(pointer as u64));
        write(&REGIONS)?
            .remove(pointer, |kind| kind == RegionKind::HostRegistered)
            .map(|_| ())
            .ok_or(Code::HOST_MEMORY_NOT_REGISTERED)
    })
}

with_caller!(cudaHostUnregister, "rsi", host_unregister);

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaHostGetDevicePointer(device: *mut usize, host: usize, _flags: c_uint) -> Code {
    call(|| match region_at(host)?.map(|region| region.kind) {
        // SAFETY: the caller gives a place for the pointer.
        Some(RegionKind::HostAllocated | RegionKind::HostRegistered) => unsafe { give(device, host) },
        _ => Err(Code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaHostGetFlags(flags: *mut c_uint, host: usize) -> Code {
    call(|| match region_at(host)? {
        Some(Region {
            kind: RegionKind::HostAllocated | RegionKind::HostRegistered,
            flags: made_with,
            ..
        }) => {
            // SAFETY: the caller gives a place for the flags.
            unsafe { give(flags, made_with | MAPPED) }
        }
        _ => Err(Code::INVALID_VALUE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_gone_after_its_free() {
        let start = allocate(0, 10_000).expect("the default limit allows it");
        assert_eq!(start % ALIGNMENT, 0);
        // SAFETY: just allocated.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, 10_000) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert_eq!(region_at(start + 9_999).map(|region| region.is_some()), Ok(true));
        assert_eq!(free(start + 1), Err(Code::INVALID_VALUE));
        assert_eq!(free(start), Ok(()));
        assert_eq!(free(start), Err(Code::INVALID_VALUE));
        assert_eq!(region_at(start), Ok(None));
    }

    #[test]
    fn past_the_limit_the_pointer_is_null_and_the_error_stays() {
        let mut pointer = 1_usize;
        // SAFETY: a place for the pointer.
        let code = unsafe { cudaMalloc(&raw mut pointer, usize::MAX / 2) };
        assert_eq!((code, pointer), (Code::MEMORY_ALLOCATION, 0));
        let mut one = [0_u8; 64];
        let address = one.as_mut_ptr() as usize;
        assert_eq!(host_register(address, 64, 0, 0), Code::SUCCESS);
        assert_eq!(host_register(address + 8, 8, 0, 0), Code::HOST_MEMORY_ALREADY_REGISTERED);
        assert_eq!(host_unregister(address, 0), Code::SUCCESS);
        assert_eq!(host_unregister(address, 0), Code::HOST_MEMORY_NOT_REGISTERED);
    }

    #[test]
    fn a_null_pointer_may_be_freed() {
        assert_eq!(cudaFree(0), Code::SUCCESS);
        assert_eq!(free_host(0, 0), Code::SUCCESS);
    }
}
