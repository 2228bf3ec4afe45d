//! What an address is: as the recorder has seen it made, else as the real runtime says.

use std::ffi::{c_int, c_long};

use streamsan_record::{PointerKind, Recorder};
use streamsan_trace::MemorySpace;

use crate::real::real;

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    /// 0 unknown, 1 page-locked, 2 of a device, 3 managed.
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    reserved: [c_long; 8],
}

/// What the memory at `address` is.
pub fn kind_of(recorder: &Recorder, address: u64) -> PointerKind {
    match recorder.memory_space(address) {
        Some(MemorySpace::Cached(device) | MemorySpace::Device(device)) => PointerKind::Device(device.0),
        Some(MemorySpace::Pinned) => PointerKind::Pinned,
        Some(MemorySpace::Pageable) => PointerKind::Pageable,
        None => asked(address),
    }
}

/// Memory that others than the runtime's callers made: through the driver, or in a runtime of their own.
fn asked(address: u64) -> PointerKind {
    let mut attributes = Attributes::default();
    let place = &raw mut attributes;
    let code = real!(cudaPointerGetAttributes(place: *mut Attributes, address: u64));
    match attributes.kind {
        1 if code.ok() => PointerKind::Pinned,
        2 | 3 if code.ok() => PointerKind::Device(u32::try_from(attributes.device).unwrap_or(0)),
        _ => PointerKind::Pageable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The numbers are those of the C compiler for the CUDA 13.0 headers.
    #[test]
    fn the_structure_has_cudas_layout() {
        assert_eq!(size_of::<Attributes>(), 88);
    }
}
