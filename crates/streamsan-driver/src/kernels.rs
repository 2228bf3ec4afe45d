//! Modules and kernels: kept by name, launched into the record, not run.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use crate::runtime::{INVALID_HANDLE, INVALID_VALUE, give, quietly};

/// Kernels by handle.
struct Kernels {
    names: HashMap<u64, CString>,
    next_handle: u64,
}

static KERNELS: Mutex<Option<Kernels>> = Mutex::new(None);

fn with_kernels<T>(work: impl FnOnce(&mut Kernels) -> T) -> Option<T> {
    let mut kernels = KERNELS.lock().ok()?;
    Some(work(
        kernels.get_or_insert_with(|| Kernels { names: HashMap::new(), next_handle: 0x5400_0000_0000 }),
    ))
}

/// Handle of every module: nothing is kept of them.
const MODULE: u64 = 0x5300_0000_0000;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoad(module: *mut u64, _path: *const c_char) -> c_int {
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(module, MODULE) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut u64, _image: *const c_void) -> c_int {
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(module, MODULE) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut u64,
    _image: *const c_void,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(module, MODULE) }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_module: u64) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(kernel: *mut u64, _module: u64, name: *const c_char) -> c_int {
    if name.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a string.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let handle = with_kernels(|kernels| {
        kernels.next_handle += 0x40;
        kernels.names.insert(kernels.next_handle, name);
        kernels.next_handle
    });
    // SAFETY: the caller gives a place for the handle.
    handle.map_or(crate::runtime::NOT_SUPPORTED, |handle| unsafe { give(kernel, handle) })
}

fn launch(kernel: u64, stream: u64) -> c_int {
    let Some(Some(name)) = with_kernels(|kernels| kernels.names.get(&kernel).cloned()) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the device library's function, with a string that outlives the call.
    quietly(|table| unsafe { (table.launch)(stream, name.as_ptr()) })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    kernel: u64,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_memory: c_uint,
    stream: u64,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    launch(kernel, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchCooperativeKernel(
    kernel: u64,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_memory: c_uint,
    stream: u64,
    _parameters: *mut *mut c_void,
) -> c_int {
    launch(kernel, stream)
}

/// `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfiguration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_memory: c_uint,
    stream: u64,
    attributes: *const c_void,
    attribute_count: c_uint,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    configuration: *const LaunchConfiguration,
    kernel: u64,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    // SAFETY: null or a configuration of the caller's.
    match unsafe { configuration.as_ref() } {
        Some(configuration) => launch(kernel, configuration.stream),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _kernel: u64) -> c_int {
    let answer = match attribute {
        // Threads of a block, registers of a thread.
        0 => 1024,
        4 => 32,
        // PTX and binary version.
        5 | 6 => 90,
        _ => 0,
    };
    // SAFETY: the caller gives a place for the number.
    unsafe { give(value, answer) }
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(_kernel: u64, _attribute: c_int, _value: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetCacheConfig(_kernel: u64, _configuration: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveClusters(
    clusters: *mut c_int,
    _kernel: u64,
    _configuration: *const c_void,
) -> c_int {
    // SAFETY: the caller gives a place for the number.
    unsafe { give(clusters, 1) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    _kernel: u64,
    threads: c_int,
    _shared_memory: usize,
) -> c_int {
    if threads <= 0 {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a place for the number.
    unsafe { give(blocks, (2048 / threads).min(32)) }
}
