//! Streams, events, copies, and what is in a graph: those of the device library, under the driver's names.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::runtime::{forward, give, runtime};

forward! {
    cuStreamCreate = cudaStreamCreateWithFlags(stream: *mut u64, flags: c_uint);
    cuStreamCreateWithPriority = cudaStreamCreateWithPriority(stream: *mut u64, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2 = cudaStreamDestroy(stream: u64);
    cuStreamSynchronize = cudaStreamSynchronize(stream: u64);
    cuStreamQuery = cudaStreamQuery(stream: u64);
    cuStreamGetFlags = cudaStreamGetFlags(stream: u64, flags: *mut c_uint);
    cuStreamGetPriority = cudaStreamGetPriority(stream: u64, priority: *mut c_int);
    cuStreamGetId = cudaStreamGetId(stream: u64, id: *mut u64);
    cuStreamGetDevice = cudaStreamGetDevice(stream: u64, device: *mut c_int);
    cuStreamIsCapturing = cudaStreamIsCapturing(stream: u64, status: *mut c_int);
    cuStreamWaitEvent = cudaStreamWaitEvent(stream: u64, event: u64, flags: c_uint);
    cuLaunchHostFunc = cudaLaunchHostFunc(stream: u64, function: *mut c_void, data: *mut c_void);
    cuEventCreate = cudaEventCreateWithFlags(event: *mut u64, flags: c_uint);
    cuEventDestroy_v2 = cudaEventDestroy(event: u64);
    cuEventRecord = cudaEventRecord(event: u64, stream: u64);
    cuEventRecordWithFlags = cudaEventRecordWithFlags(event: u64, stream: u64, flags: c_uint);
    cuEventQuery = cudaEventQuery(event: u64);
    cuEventSynchronize = cudaEventSynchronize(event: u64);
    cuEventElapsedTime = cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64);
    cuEventElapsedTime_v2 = cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64);
    cuMemAlloc_v2 = cudaMalloc(pointer: *mut u64, size: usize);
    cuMemFree_v2 = cudaFree(pointer: u64);
    cuMemAllocAsync = cudaMallocAsync(pointer: *mut u64, size: usize, stream: u64);
    cuMemFreeAsync = cudaFreeAsync(pointer: u64, stream: u64);
    cuMemGetInfo_v2 = cudaMemGetInfo(free: *mut usize, total: *mut usize);
    cuMemAllocHost_v2 = cudaMallocHost(pointer: *mut u64, size: usize);
    cuMemHostAlloc = cudaHostAlloc(pointer: *mut u64, size: usize, flags: c_uint);
    cuMemFreeHost = cudaFreeHost(pointer: u64);
    cuMemHostRegister_v2 = cudaHostRegister(pointer: u64, size: usize, flags: c_uint);
    cuMemHostUnregister = cudaHostUnregister(pointer: u64);
    cuMemHostGetDevicePointer_v2 = cudaHostGetDevicePointer(device: *mut u64, host: u64, flags: c_uint);
    cuMemHostGetFlags = cudaHostGetFlags(flags: *mut c_uint, host: u64);
    cuMemsetD8_v2 = cudaMemset(to: u64, value: u8, size: usize);
    cuMemsetD8Async = cudaMemsetAsync(to: u64, value: u8, size: usize, stream: u64);
    cuMemsetD2D8_v2 = cudaMemset2D(to: u64, pitch: usize, value: u8, width: usize, height: usize);
    cuMemsetD2D8Async = cudaMemset2DAsync(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64);
    cuGraphDebugDotPrint = cudaGraphDebugDotPrint(graph: u64, path: *const c_char, flags: c_uint);
    cuGraphGetNodes = cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    cuGraphGetRootNodes = cudaGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    cuGraphGetEdges_v2 = cudaGraphGetEdges(graph: u64, from: *mut u64, to: *mut u64, edges: *mut c_void, count: *mut usize);
    cuGraphNodeGetType = cudaGraphNodeGetType(node: u64, kind: *mut c_int);
    cuGraphNodeGetDependencies_v2 = cudaGraphNodeGetDependencies(node: u64, nodes: *mut u64, edges: *mut c_void, count: *mut usize);
    cuGraphNodeGetDependentNodes_v2 = cudaGraphNodeGetDependentNodes(node: u64, nodes: *mut u64, edges: *mut c_void, count: *mut usize);
}

/// `cudaMemcpyKind`.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;
const BY_POINTERS: c_int = 4;

macro_rules! copies {
    ($($blocking:ident, $asynchronous:ident = $kind:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $blocking(to: u64, from: u64, size: usize) -> c_int {
            let kind = $kind;
            runtime!(cudaMemcpy(to: u64, from: u64, size: usize, kind: c_int))
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $asynchronous(to: u64, from: u64, size: usize, stream: u64) -> c_int {
            if let Some(code) = crate::faults::fault(stringify!($asynchronous)) {
                return code;
            }
            let kind = $kind;
            runtime!(cudaMemcpyAsync(to: u64, from: u64, size: usize, kind: c_int, stream: u64))
        }
    )*};
}

copies! {
    cuMemcpy, cuMemcpyAsync = BY_POINTERS;
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2 = HOST_TO_DEVICE;
    cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2 = DEVICE_TO_HOST;
    cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2 = DEVICE_TO_DEVICE;
}

/// Start of the runtime's `cudaPointerAttributes`.
#[repr(C)]
struct Attributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    reserved: [i64; 8],
}

/// Numbers of `CUpointer_attribute` that are answered.
const MEMORY_TYPE: c_int = 2;
const DEVICE_POINTER: c_int = 3;
const HOST_POINTER: c_int = 4;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(answer: *mut c_void, attribute: c_int, pointer: u64) -> c_int {
    let mut known = Attributes { kind: 0, device: -1, device_pointer: 0, host_pointer: 0, reserved: [0; 8] };
    let place = &raw mut known;
    let code = runtime!(cudaPointerGetAttributes(place: *mut Attributes, pointer: u64));
    if code != 0 {
        return code;
    }
    if known.kind == 0 {
        return crate::runtime::INVALID_VALUE;
    }
    // SAFETY: the caller gives a place of the attribute's type.
    unsafe {
        match attribute {
            // Host memory is 1 and device memory 2 for the runtime and the driver.
            MEMORY_TYPE => give(answer.cast(), known.kind),
            DEVICE_POINTER => give(answer.cast(), known.device_pointer),
            HOST_POINTER if known.host_pointer != 0 => give(answer.cast(), known.host_pointer),
            IS_MANAGED => give(answer.cast::<c_int>(), 0),
            DEVICE_ORDINAL => give(answer.cast(), known.device),
            _ => crate::runtime::INVALID_VALUE,
        }
    }
}
