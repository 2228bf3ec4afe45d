//! Reserved addresses and memory mapped into them: what torch's expandable segments are made of.
//!
//! The driver library calls these under the driver's names.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::Mutex;

use streamsan_trace::{DeviceId, MemorySpace};

use crate::call::{call, give, lock, record, write};
use crate::devices::{device, memory_limit};
use crate::errors::{Answer, Code};
use crate::memory::{ALIGNMENT, REGIONS, map_with, region_at, unmap};
use crate::regions::{Region, RegionKind};

/// Start of `CUmemAllocationProp`.
#[repr(C)]
struct AllocationProperties {
    kind: c_int,
    handle_kinds: c_int,
    location_kind: c_int,
    location: c_int,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_DEVICE: c_int = 1;

/// Memory that has been set aside, mapped or not.
#[derive(Clone, Copy, Debug)]
struct Piece {
    device: u32,
    size: usize,
    /// Handles that are out, and whether it is mapped.
    holders: u32,
    mapped: bool,
}

struct Pieces {
    by_handle: BTreeMap<u64, Piece>,
    /// Handle of the piece mapped at an address.
    mapped: BTreeMap<usize, u64>,
    /// Reserved addresses: start and size.
    reserved: BTreeMap<usize, usize>,
    next_handle: u64,
}

static PIECES: Mutex<Pieces> = Mutex::new(Pieces {
    by_handle: BTreeMap::new(),
    mapped: BTreeMap::new(),
    reserved: BTreeMap::new(),
    next_handle: 0x5500_0000_0000,
});

impl Pieces {
    fn is_reserved(&self, start: usize, size: usize) -> bool {
        self.reserved
            .range(..=start)
            .next_back()
            .is_some_and(|(from, length)| start.checked_add(size).is_some_and(|end| end <= from + length))
    }

    /// Forgets a piece that nobody holds; its memory is free again.
    fn settle(&mut self, handle: u64) -> Answer {
        let Some(piece) = self.by_handle.get(&handle).copied() else { return Ok(()) };
        if piece.holders == 0 && !piece.mapped {
            self.by_handle.remove(&handle);
            write(&REGIONS)?.release(piece.device, piece.size);
        }
        Ok(())
    }
}

fn aligned(value: usize) -> Result<(), Code> {
    if value.is_multiple_of(ALIGNMENT) { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn streamsan_address_reserve(
    start: *mut usize,
    size: usize,
    alignment: usize,
    _wished: usize,
    _flags: c_ulonglong,
) -> Code {
    call(|| {
        aligned(size)?;
        if size == 0 || (alignment != 0 && !alignment.is_power_of_two()) {
            return Err(Code::INVALID_VALUE);
        }
        let reserved =
            map_with(size, alignment.max(ALIGNMENT), libc::PROT_NONE).ok_or(Code::MEMORY_ALLOCATION)?;
        lock(&PIECES)?.reserved.insert(reserved, size);
        // SAFETY: the caller gives a place for the address.
        unsafe { give(start, reserved) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_address_free(start: usize, size: usize) -> Code {
    call(|| {
        let mut pieces = lock(&PIECES)?;
        if pieces.reserved.get(&start) != Some(&size)
            || pieces.mapped.range(start..start + size).next().is_some()
        {
            return Err(Code::INVALID_VALUE);
        }
        pieces.reserved.remove(&start);
        unmap(start, size);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn streamsan_memory_create(
    handle: *mut u64,
    size: usize,
    properties: *const AllocationProperties,
    _flags: c_ulonglong,
) -> Code {
    call(|| {
        // SAFETY: null or properties of the caller's.
        let properties = unsafe { properties.as_ref() }.ok_or(Code::INVALID_VALUE)?;
        // Handles for other processes may be asked for; to export one is refused.
        if properties.location_kind != ON_DEVICE {
            record(|recorder| recorder.unsupported("cuMemCreate(host memory)"));
            return Err(Code::NOT_SUPPORTED);
        }
        aligned(size)?;
        if handle.is_null() || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = device(properties.location)?;
        let mut pieces = lock(&PIECES)?;
        if !write(&REGIONS)?.reserve(device, size, memory_limit()) {
            return Err(Code::MEMORY_ALLOCATION);
        }
        pieces.next_handle += 0x40;
        let new = pieces.next_handle;
        pieces.by_handle.insert(new, Piece { device, size, holders: 1, mapped: false });
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(handle, new) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_memory_release(handle: u64) -> Code {
    call(|| {
        let mut pieces = lock(&PIECES)?;
        let piece = pieces.by_handle.get_mut(&handle).filter(|piece| piece.holders > 0);
        piece.ok_or(Code::INVALID_VALUE)?.holders -= 1;
        pieces.settle(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_memory_map(
    start: usize,
    size: usize,
    offset: usize,
    handle: u64,
    _flags: c_ulonglong,
) -> Code {
    let mut device = 0;
    let code = call(|| {
        let mut pieces = lock(&PIECES)?;
        let piece = pieces.by_handle.get(&handle).copied().ok_or(Code::INVALID_VALUE)?;
        if offset != 0 || size != piece.size || !pieces.is_reserved(start, size) {
            return Err(Code::INVALID_VALUE);
        }
        if piece.mapped {
            record(|recorder| recorder.unsupported("cuMemMap(one handle at two addresses)"));
            return Err(Code::NOT_SUPPORTED);
        }
        aligned(start)?;
        {
            let mut regions = write(&REGIONS)?;
            if regions.overlapping(start, size).is_some() {
                return Err(Code::INVALID_VALUE);
            }
            protect(start, size, libc::PROT_READ | libc::PROT_WRITE)?;
            let kind = RegionKind::Mapped(piece.device);
            regions.insert(Region { start, size, kind, device: piece.device, flags: 0 });
        }
        pieces.mapped.insert(start, handle);
        if let Some(piece) = pieces.by_handle.get_mut(&handle) {
            piece.mapped = true;
        }
        device = piece.device;
        Ok(())
    });
    if code == Code::SUCCESS {
        call(|| {
            record(|recorder| {
                recorder.memory_allocated(MemorySpace::Device(DeviceId(device)), start as u64, size as u64);
            });
            Ok(())
        });
    }
    code
}

fn protect(start: usize, size: usize, protection: c_int) -> Answer {
    // SAFETY: addresses that this library has reserved.
    let changed = unsafe { libc::mprotect(start as *mut c_void, size, protection) };
    if changed == 0 { Ok(()) } else { Err(Code::MEMORY_ALLOCATION) }
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_memory_unmap(start: usize, size: usize) -> Code {
    call(|| {
        aligned(start).and(aligned(size))?;
        crate::delays::before_anything()?;
        let end = start.checked_add(size).ok_or(Code::INVALID_VALUE)?;
        let mapped: Vec<(usize, u64)> =
            lock(&PIECES)?.mapped.range(start..end).map(|(at, handle)| (*at, *handle)).collect();
        if mapped.first().is_none_or(|(at, _)| *at != start) {
            return Err(Code::INVALID_VALUE);
        }
        for &(at, _) in &mapped {
            record(|recorder| recorder.memory_freed(at as u64));
        }
        let mut pieces = lock(&PIECES)?;
        for (at, handle) in mapped {
            if pieces.mapped.remove(&at).is_none() {
                continue;
            }
            let region = write(&REGIONS)?.remove(at, |kind| matches!(kind, RegionKind::Mapped(_)));
            if let Some(region) = region {
                vacate(region.start, region.size)?;
            }
            if let Some(piece) = pieces.by_handle.get_mut(&handle) {
                piece.mapped = false;
            }
            pieces.settle(handle)?;
        }
        Ok(())
    })
}

/// Puts bare reserved addresses where memory was.
fn vacate(start: usize, size: usize) -> Answer {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: replaces a part of our own reservation.
    let placed = unsafe { libc::mmap(start as *mut c_void, size, libc::PROT_NONE, flags, -1, 0) };
    if placed == libc::MAP_FAILED { Err(Code::UNKNOWN) } else { Ok(()) }
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_memory_set_access(
    start: usize,
    _size: usize,
    _descriptions: *const c_void,
    _count: usize,
) -> Code {
    // Mapped memory may be reached from every device.
    call(|| match region_at(start)?.map(|region| region.kind) {
        Some(RegionKind::Mapped(_)) => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn streamsan_memory_granularity(
    granularity: *mut usize,
    _properties: *const AllocationProperties,
    _which: c_int,
) -> Code {
    // SAFETY: the caller gives a place for the number.
    call(|| unsafe { give(granularity, ALIGNMENT) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn streamsan_memory_handle(handle: *mut u64, address: usize) -> Code {
    call(|| {
        let start = region_at(address)?.ok_or(Code::INVALID_VALUE)?.start;
        let mut pieces = lock(&PIECES)?;
        let known = pieces.mapped.get(&start).copied().ok_or(Code::INVALID_VALUE)?;
        if let Some(piece) = pieces.by_handle.get_mut(&known) {
            piece.holders += 1;
        }
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(handle, known) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(size: usize) -> u64 {
        let mut handle = 0;
        let properties =
            AllocationProperties { kind: 1, handle_kinds: 0, location_kind: ON_DEVICE, location: 0 };
        // SAFETY: places for the answer and the properties.
        let code = unsafe { streamsan_memory_create(&raw mut handle, size, &raw const properties, 0) };
        assert_eq!(code, Code::SUCCESS);
        handle
    }

    fn reserve(size: usize) -> usize {
        let mut start = 0;
        // SAFETY: a place for the address.
        let code = unsafe { streamsan_address_reserve(&raw mut start, size, 0, 0, 0) };
        assert_eq!(code, Code::SUCCESS);
        start
    }

    #[test]
    fn memory_is_there_while_it_is_mapped_and_new_each_time() {
        let (start, handle) = (reserve(4 * ALIGNMENT), create(ALIGNMENT));
        let at = start + ALIGNMENT;
        assert_eq!(streamsan_memory_map(at, ALIGNMENT, 0, handle, 0), Code::SUCCESS);
        assert_eq!(
            region_at(at + 5).map(|region| region.map(|region| region.kind)),
            Ok(Some(RegionKind::Mapped(0)))
        );
        // SAFETY: just mapped.
        unsafe { (at as *mut u8).write(7) };
        assert_eq!(streamsan_address_free(start, 4 * ALIGNMENT), Code::INVALID_VALUE);
        assert_eq!(crate::memory::free(at), Err(Code::INVALID_VALUE));
        assert_eq!(streamsan_memory_unmap(at, ALIGNMENT), Code::SUCCESS);
        assert_eq!(region_at(at), Ok(None));
        assert_eq!(streamsan_memory_map(at, ALIGNMENT, 0, handle, 0), Code::SUCCESS);
        // SAFETY: just mapped again.
        assert_eq!(unsafe { (at as *const u8).read() }, 0);
        assert_eq!(streamsan_memory_unmap(at, ALIGNMENT), Code::SUCCESS);
        assert_eq!(streamsan_memory_release(handle), Code::SUCCESS);
        assert_eq!(streamsan_memory_release(handle), Code::INVALID_VALUE);
        assert_eq!(streamsan_address_free(start, 4 * ALIGNMENT), Code::SUCCESS);
    }

    #[test]
    fn a_released_piece_lives_until_it_is_unmapped() {
        let (start, handle) = (reserve(ALIGNMENT), create(ALIGNMENT));
        assert_eq!(streamsan_memory_map(start, ALIGNMENT, 0, handle, 0), Code::SUCCESS);
        assert_eq!(streamsan_memory_release(handle), Code::SUCCESS);
        assert_eq!(lock(&PIECES).map(|pieces| pieces.by_handle.contains_key(&handle)), Ok(true));
        assert_eq!(streamsan_memory_unmap(start, ALIGNMENT), Code::SUCCESS);
        assert_eq!(lock(&PIECES).map(|pieces| pieces.by_handle.contains_key(&handle)), Ok(false));
        assert_eq!(streamsan_address_free(start, ALIGNMENT), Code::SUCCESS);
    }

    #[test]
    fn addresses_outside_a_reservation_are_refused() {
        let (start, handle) = (reserve(ALIGNMENT), create(2 * ALIGNMENT));
        assert_eq!(streamsan_memory_map(start, 2 * ALIGNMENT, 0, handle, 0), Code::INVALID_VALUE);
        assert_eq!(streamsan_memory_unmap(start, ALIGNMENT), Code::INVALID_VALUE);
        assert_eq!(streamsan_memory_release(handle), Code::SUCCESS);
        assert_eq!(streamsan_address_free(start, ALIGNMENT), Code::SUCCESS);
    }
}
