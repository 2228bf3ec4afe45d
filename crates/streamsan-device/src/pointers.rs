//! What an address is.

use streamsan_record::{PointerKind, copy_kind};
use streamsan_trace::OpKind;

use crate::abi::PointerAttributes;
use crate::call::call;
use crate::errors::Code;
use crate::memory::region_at;

/// What the memory at `address` is.
pub fn kind_of(address: usize) -> Result<PointerKind, Code> {
    Ok(match region_at(address)? {
        Some(region) => region.kind.device().map_or(PointerKind::Pinned, PointerKind::Device),
        None => PointerKind::Pageable,
    })
}

/// Which way a copy goes: with unified addresses, the pointers decide. A side that the call names device memory may
/// also be page-locked memory, but not pageable memory; a side that it names host memory may be any memory.
pub fn direction(destination: PointerKind, source: PointerKind, requested: i32) -> Result<OpKind, Code> {
    let (from_device, to_device) = match requested {
        0 | 4 => (false, false),
        1 => (false, true),
        2 => (true, false),
        3 => (true, true),
        _ => return Err(Code::INVALID_MEMCPY_DIRECTION),
    };
    let wrong = |named_device: bool, pointer: PointerKind| named_device && pointer == PointerKind::Pageable;
    if wrong(from_device, source) || wrong(to_device, destination) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(copy_kind(destination, source))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaPointerGetAttributes(attributes: *mut PointerAttributes, pointer: usize) -> Code {
    call(|| {
        let address = pointer as u64;
        let (kind, device, device_pointer, host_pointer) = match region_at(pointer)? {
            // CUDA calls the device of unknown memory -2.
            None => (0, -2, 0, address),
            Some(region) => match region.kind.device() {
                Some(device) => (2, device.cast_signed(), address, 0),
                None => (1, region.device.cast_signed(), address, address),
            },
        };
        // SAFETY: the caller gives a place for the attributes.
        unsafe {
            crate::call::give(
                attributes,
                PointerAttributes { kind, device, device_pointer, host_pointer, reserved: [0; 8] },
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: PointerKind = PointerKind::Device(0);

    #[test]
    fn pointers_decide_the_direction() {
        for requested in [1, 4] {
            let kind = direction(DEVICE, PointerKind::Pageable, requested);
            assert_eq!(kind, Ok(OpKind::CopyHostToDevice));
        }
        assert_eq!(direction(PointerKind::Pinned, DEVICE, 4), Ok(OpKind::CopyDeviceToHost));
        assert_eq!(direction(DEVICE, PointerKind::Device(1), 3), Ok(OpKind::CopyDeviceToDevice));
        assert_eq!(direction(PointerKind::Pageable, PointerKind::Pinned, 0), Ok(OpKind::CopyHostToHost));
    }

    #[test]
    fn a_direction_against_the_pointers_is_refused() {
        assert_eq!(direction(PointerKind::Pageable, DEVICE, 1), Err(Code::INVALID_VALUE));
        assert_eq!(direction(PointerKind::Pageable, DEVICE, 0), Ok(OpKind::CopyDeviceToHost));
        assert_eq!(direction(DEVICE, DEVICE, 1), Ok(OpKind::CopyDeviceToDevice));
        assert_eq!(direction(DEVICE, PointerKind::Pageable, 3), Err(Code::INVALID_VALUE));
        assert_eq!(direction(DEVICE, DEVICE, 5), Err(Code::INVALID_MEMCPY_DIRECTION));
        assert_eq!(direction(DEVICE, PointerKind::Pinned, 3), Ok(OpKind::CopyHostToDevice));
    }
}
