//! C structures of the CUDA 13 runtime that calls fill in or read.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimensions {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
pub struct LaunchConfiguration {
    pub grid: Dimensions,
    pub block: Dimensions,
    pub shared_memory: usize,
    pub stream: u64,
    pub attributes: *const c_void,
    pub attribute_count: c_uint,
}

/// `cudaPointerAttributes`.
#[repr(C)]
pub struct PointerAttributes {
    pub kind: c_int,
    pub device: c_int,
    pub device_pointer: u64,
    pub host_pointer: u64,
    pub reserved: [c_long; 8],
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Default)]
pub struct FunctionAttributes {
    pub shared_size: usize,
    pub constant_size: usize,
    pub local_size: usize,
    pub maximum_threads_per_block: c_int,
    pub registers: c_int,
    pub ptx_version: c_int,
    pub binary_version: c_int,
    pub cache_mode_ca: c_int,
    pub maximum_dynamic_shared_size: c_int,
    pub preferred_carveout: c_int,
    pub cluster_dimensions_must_be_set: c_int,
    pub required_cluster: [c_int; 3],
    pub cluster_scheduling_policy: c_int,
    pub non_portable_cluster_allowed: c_int,
    pub reserved: [c_int; 16],
}

/// `cudaDeviceProp`.
#[repr(C)]
pub struct DeviceProperties {
    pub name: [c_char; 256],
    pub uuid: [u8; 16],
    pub luid: [c_char; 8],
    pub luid_device_node_mask: c_uint,
    pub total_memory: usize,
    pub shared_memory_per_block: usize,
    pub registers_per_block: c_int,
    pub warp_size: c_int,
    pub maximum_pitch: usize,
    pub maximum_threads_per_block: c_int,
    pub maximum_block: [c_int; 3],
    pub maximum_grid: [c_int; 3],
    pub constant_memory: usize,
    pub major: c_int,
    pub minor: c_int,
    pub texture_alignment: usize,
    pub texture_pitch_alignment: usize,
    pub multiprocessors: c_int,
    pub integrated: c_int,
    pub can_map_host_memory: c_int,
    /// Texture and surface limits, all 0: there are none.
    pub texture_limits: [c_int; 39],
    pub surface_alignment: usize,
    pub concurrent_kernels: c_int,
    pub ecc_enabled: c_int,
    pub pci_bus: c_int,
    pub pci_device: c_int,
    pub pci_domain: c_int,
    pub tcc_driver: c_int,
    pub copy_engines: c_int,
    pub unified_addressing: c_int,
    pub memory_bus_width: c_int,
    pub l2_cache_size: c_int,
    pub persisting_l2_cache_size: c_int,
    pub maximum_threads_per_multiprocessor: c_int,
    pub stream_priorities_supported: c_int,
    pub global_l1_cache_supported: c_int,
    pub local_l1_cache_supported: c_int,
    pub shared_memory_per_multiprocessor: usize,
    pub registers_per_multiprocessor: c_int,
    pub managed_memory: c_int,
    pub is_multi_gpu_board: c_int,
    pub multi_gpu_board_group: c_int,
    pub host_native_atomics: c_int,
    pub pageable_memory_access: c_int,
    pub concurrent_managed_access: c_int,
    pub compute_preemption: c_int,
    pub host_pointer_for_registered_memory: c_int,
    pub cooperative_launch: c_int,
    pub shared_memory_per_block_opt_in: usize,
    pub pageable_memory_uses_host_tables: c_int,
    pub direct_managed_access: c_int,
    pub maximum_blocks_per_multiprocessor: c_int,
    pub access_policy_window: c_int,
    pub reserved_shared_memory_per_block: usize,
    pub host_register_supported: c_int,
    pub sparse_arrays: c_int,
    pub host_register_read_only: c_int,
    pub timeline_semaphores: c_int,
    pub memory_pools_supported: c_int,
    pub gpu_direct_rdma: c_int,
    pub gpu_direct_rdma_flush_options: c_uint,
    pub gpu_direct_rdma_ordering: c_int,
    pub memory_pool_handle_types: c_uint,
    pub deferred_mapping: c_int,
    pub ipc_events: c_int,
    pub cluster_launch: c_int,
    pub unified_function_pointers: c_int,
    pub numa_configuration: c_int,
    pub numa_id: c_int,
    pub mps_enabled: c_int,
    pub host_numa_id: c_int,
    pub gpu_pci_device: c_uint,
    pub gpu_pci_subsystem: c_uint,
    pub host_numa_multinode_ipc: c_int,
    pub reserved: [c_int; 56],
}

impl DeviceProperties {
    /// All fields 0.
    pub const fn zeroed() -> Self {
        // SAFETY: every field is an integer or an array of integers, for which zero bits are a value.
        unsafe { std::mem::zeroed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    // The numbers are those of the C compiler for the CUDA 13.0 headers.
    #[test]
    fn structures_have_cudas_layout() {
        assert_eq!(size_of::<DeviceProperties>(), 1008);
        assert_eq!(offset_of!(DeviceProperties, total_memory), 288);
        assert_eq!(offset_of!(DeviceProperties, maximum_threads_per_block), 320);
        assert_eq!(offset_of!(DeviceProperties, major), 360);
        assert_eq!(offset_of!(DeviceProperties, multiprocessors), 384);
        assert_eq!(offset_of!(DeviceProperties, texture_limits), 396);
        assert_eq!(offset_of!(DeviceProperties, surface_alignment), 552);
        assert_eq!(offset_of!(DeviceProperties, copy_engines), 584);
        assert_eq!(offset_of!(DeviceProperties, shared_memory_per_multiprocessor), 624);
        assert_eq!(offset_of!(DeviceProperties, cooperative_launch), 668);
        assert_eq!(offset_of!(DeviceProperties, shared_memory_per_block_opt_in), 672);
        assert_eq!(offset_of!(DeviceProperties, reserved_shared_memory_per_block), 696);
        assert_eq!(offset_of!(DeviceProperties, memory_pools_supported), 720);
        assert_eq!(offset_of!(DeviceProperties, cluster_launch), 748);
        assert_eq!(offset_of!(DeviceProperties, reserved), 784);
        assert_eq!(size_of::<PointerAttributes>(), 88);
        assert_eq!(size_of::<FunctionAttributes>(), 144);
        assert_eq!(size_of::<LaunchConfiguration>(), 56);
    }
}
