//! Allocation, and page-locking of host memory.

use std::ffi::c_uint;

use streamsan_record::Library;
use streamsan_record::callers::library_at;
use streamsan_trace::{DeviceId, MemorySpace};

use crate::callers::{exported, with_caller};
use crate::code::Code;
use crate::devices::current_device;
use crate::real::real;
use crate::recording::{begin, report};

fn here() -> MemorySpace {
    MemorySpace::Device(DeviceId(current_device()))
}

/// Tells of memory that was made. The runtime gives null for no bytes.
fn allocated(code: Code, place: *mut u64, size: usize, space: impl FnOnce() -> MemorySpace) -> Code {
    code.then(|recorder| {
        // SAFETY: the runtime has written the address there.
        let start = unsafe { place.read() };
        if start != 0 && size > 0 {
            recorder.memory_allocated(space(), start, size as u64);
        }
    })
}

/// Before memory goes: its address may be handed out again at once.
fn goes(start: u64) {
    begin();
    if start != 0 {
        report(|recorder| recorder.memory_freed(start));
    }
}

extern "C" fn cudaMalloc(pointer: *mut u64, size: usize) -> Code {
    begin();
    allocated(real!(cudaMalloc(pointer: *mut u64, size: usize)), pointer, size, here)
}

extern "C" fn cudaFree(pointer: u64) -> Code {
    goes(pointer);
    real!(cudaFree(pointer: u64))
}

/// Memory of a pool: when it can be used and handed out again is up to streams, of which this trace knows the calls
/// only.
fn from_pool(code: Code, place: *mut u64, size: usize) -> Code {
    code.then(|recorder| recorder.unsupported("cudaMallocAsync"));
    allocated(code, place, size, here)
}

extern "C" fn cudaMallocAsync(pointer: *mut u64, size: usize, stream: u64) -> Code {
    begin();
    from_pool(real!(cudaMallocAsync(pointer: *mut u64, size: usize, stream: u64)), pointer, size)
}

extern "C" fn cudaMallocFromPoolAsync(pointer: *mut u64, size: usize, pool: u64, stream: u64) -> Code {
    begin();
    let code = real!(cudaMallocFromPoolAsync(pointer: *mut u64, size: usize, pool: u64, stream: u64));
    from_pool(code, pointer, size)
}

extern "C" fn cudaFreeAsync(pointer: u64, stream: u64) -> Code {
    goes(pointer);
    real!(cudaFreeAsync(pointer: u64, stream: u64))
}

/// Before a call on host memory: a program's own has the place of the program. torch holds locks in such calls, and
/// its own have a place already.
fn locate(caller: usize) {
    begin();
    if library_at(caller) == Library::Other {
        report(|recorder| recorder.locate(true));
    }
}

fn pinned() -> MemorySpace {
    MemorySpace::Pinned
}

extern "C" fn host_alloc(pointer: *mut u64, size: usize, flags: c_uint, caller: usize) -> Code {
    locate(caller);
    let code = real!(cudaHostAlloc(pointer: *mut u64, size: usize, flags: c_uint));
    allocated(code, pointer, size, pinned)
}
with_caller!(cudaHostAlloc, "rcx", host_alloc);

extern "C" fn malloc_host(pointer: *mut u64, size: usize, caller: usize) -> Code {
    locate(caller);
    allocated(real!(cudaMallocHost(pointer: *mut u64, size: usize)), pointer, size, pinned)
}
with_caller!(cudaMallocHost, "rdx", malloc_host);

extern "C" fn free_host(pointer: u64, caller: usize) -> Code {
    locate(caller);
    goes(pointer);
    real!(cudaFreeHost(pointer: u64))
}
with_caller!(cudaFreeHost, "rsi", free_host);

extern "C" fn host_register(pointer: u64, size: usize, flags: c_uint, caller: usize) -> Code {
    locate(caller);
    real!(cudaHostRegister(pointer: u64, size: usize, flags: c_uint)).then(|recorder| {
        recorder.memory_allocated(MemorySpace::Pinned, pointer, size as u64);
    })
}
with_caller!(cudaHostRegister, "rcx", host_register);

extern "C" fn host_unregister(pointer: u64, caller: usize) -> Code {
    locate(caller);
    goes(pointer);
    real!(cudaHostUnregister(pointer: u64))
}
with_caller!(cudaHostUnregister, "rsi", host_unregister);

exported! {
    cudaMalloc
    cudaFree
    cudaMallocAsync
    cudaMallocFromPoolAsync
    cudaFreeAsync
}
