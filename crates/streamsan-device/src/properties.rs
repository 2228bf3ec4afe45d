//! What the device says of itself: an sm_90 device by its numbers, and none by its name.

use std::ffi::c_int;

use crate::abi::DeviceProperties;
use crate::call::{call, give};
use crate::devices::{device, memory_limit};
use crate::errors::Code;

/// The device's name.
pub const NAME: &str = "streamsan virtual device";
/// Most threads of a block.
pub const MAXIMUM_THREADS: c_int = 1024;
/// Most shared memory that a block may ask for, in bytes.
pub const SHARED_MEMORY_OPT_IN: c_int = 232_448;

const MULTIPROCESSORS: c_int = 132;
const SHARED_MEMORY: c_int = 49_152;
const SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 233_472;
const REGISTERS: c_int = 65_536;
const L2_CACHE: c_int = 50 << 20;
const COPY_ENGINES: c_int = 3;

fn properties(device: u32) -> DeviceProperties {
    let mut properties = DeviceProperties::zeroed();
    for (to, &from) in properties.name.iter_mut().zip(NAME.as_bytes()) {
        *to = from.cast_signed();
    }
    properties.uuid = uuid(device);
    properties.total_memory = memory_limit() as usize;
    properties.shared_memory_per_block = SHARED_MEMORY as usize;
    properties.registers_per_block = REGISTERS;
    properties.warp_size = 32;
    properties.maximum_pitch = c_int::MAX as usize;
    properties.maximum_threads_per_block = MAXIMUM_THREADS;
    properties.maximum_block = [1024, 1024, 64];
    properties.maximum_grid = [c_int::MAX, 65_535, 65_535];
    properties.constant_memory = 65_536;
    properties.major = 9;
    properties.texture_alignment = 512;
    properties.texture_pitch_alignment = 32;
    properties.multiprocessors = MULTIPROCESSORS;
    properties.can_map_host_memory = 1;
    properties.surface_alignment = 512;
    properties.concurrent_kernels = 1;
    properties.pci_bus = device.cast_signed() + 1;
    properties.copy_engines = COPY_ENGINES;
    properties.unified_addressing = 1;
    properties.memory_bus_width = 5120;
    properties.l2_cache_size = L2_CACHE;
    properties.maximum_threads_per_multiprocessor = 2048;
    properties.stream_priorities_supported = 1;
    properties.shared_memory_per_multiprocessor = SHARED_MEMORY_PER_MULTIPROCESSOR as usize;
    properties.registers_per_multiprocessor = REGISTERS;
    properties.host_pointer_for_registered_memory = 1;
    properties.cooperative_launch = 1;
    properties.shared_memory_per_block_opt_in = SHARED_MEMORY_OPT_IN as usize;
    properties.maximum_blocks_per_multiprocessor = 32;
    properties.reserved_shared_memory_per_block = 1024;
    properties.host_register_supported = 1;
    properties.memory_pools_supported = 1;
    properties.cluster_launch = 1;
    properties
}

/// Bytes that tell devices apart.
pub fn uuid(device: u32) -> [u8; 16] {
    let mut uuid = *b"streamsan-dev\0\0\0";
    uuid[15] = device as u8;
    uuid
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceProperties(place: *mut DeviceProperties, number: c_int) -> Code {
    // SAFETY: the caller gives a place for the properties.
    call(|| unsafe { give(place, properties(device(number)?)) })
}

/// The highest number of an attribute in CUDA 13.0.
const LAST_ATTRIBUTE: c_int = 147;

/// A device attribute by its number, the same for the runtime and the driver. What is not there is 0.
pub fn attribute(number: c_int, device: u32) -> c_int {
    match number {
        1..=3 => MAXIMUM_THREADS,
        4 => 64,
        5 | 11 => c_int::MAX,
        6 | 7 => 65_535,
        8 => SHARED_MEMORY,
        9 | 12 | 82 => REGISTERS,
        // Clock of the multiprocessors and of the memory, in kHz.
        13 => 1_700_000,
        36 => 2_600_000,
        14 | 30 => 512,
        16 => MULTIPROCESSORS,
        33 => device.cast_signed() + 1,
        37 => 5120,
        38 => L2_CACHE,
        39 => 2048,
        40 => COPY_ENGINES,
        10 | 51 | 106 => 32,
        75 => 9,
        81 => SHARED_MEMORY_PER_MULTIPROCESSOR,
        97 => SHARED_MEMORY_OPT_IN,
        111 => 1024,
        // Overlap of copies, mapped host memory, concurrent kernels, unified addresses, priorities, registered
        // host pointers, cooperative launches, host registration, pools, clusters.
        15 | 19 | 31 | 41 | 78 | 91 | 95 | 99 | 115 | 120 => 1,
        _ => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetAttribute(value: *mut c_int, number: c_int, ordinal: c_int) -> Code {
    call(|| {
        if !(1..=LAST_ATTRIBUTE).contains(&number) {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller gives a place for the number.
        unsafe { give(value, attribute(number, device(ordinal)?)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_and_attributes_agree() {
        let all = properties(0);
        for (number, value) in [
            (1, all.maximum_threads_per_block),
            (10, all.warp_size),
            (16, all.multiprocessors),
            (38, all.l2_cache_size),
            (39, all.maximum_threads_per_multiprocessor),
            (41, all.unified_addressing),
            (75, all.major),
            (76, all.minor),
            (83, all.managed_memory),
            (95, all.cooperative_launch),
            (97, c_int::try_from(all.shared_memory_per_block_opt_in).unwrap_or(0)),
            (115, all.memory_pools_supported),
            (120, all.cluster_launch),
        ] {
            assert_eq!(attribute(number, 0), value, "attribute {number}");
        }
    }
}
