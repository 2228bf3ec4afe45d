//! Kernel launches: recorded, not run. The arithmetic is done above, operator by operator.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{Dimensions, FunctionAttributes, LaunchConfiguration};
use crate::call::{ask_recorder, call, give};
use crate::capture;
use crate::errors::{Answer, Code};
use crate::graphs::Work;
use crate::properties::{MAXIMUM_THREADS, SHARED_MEMORY_OPT_IN};
use crate::registration::kernel_name;
use crate::streams::{Stream, enqueue};

/// A kernel was launched in a stream.
pub fn launch(stream: u64, name: &str) -> Answer {
    let captured = capture::of_stream(stream)?;
    let Stream { handle, device } = captured.map_or_else(|| enqueue(stream), Ok)?;
    let known = ask_recorder(|recorder| recorder.launch(handle, device, || name)).unwrap_or(true);
    if captured.is_some() {
        capture::add(stream, || Work::Kernel { name: name.to_owned(), known })?;
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn __cudaLaunchKernel(
    kernel: usize,
    _grid: Dimensions,
    _block: Dimensions,
    _arguments: *mut *mut c_void,
    _shared_memory: usize,
    stream: u64,
) -> Code {
    call(|| launch(stream, kernel_name(kernel)))
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchKernel(
    function: usize,
    _grid: Dimensions,
    _block: Dimensions,
    _arguments: *mut *mut c_void,
    _shared_memory: usize,
    stream: u64,
) -> Code {
    call(|| launch(stream, kernel_name(function)))
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchCooperativeKernel(
    function: usize,
    _grid: Dimensions,
    _block: Dimensions,
    _arguments: *mut *mut c_void,
    _shared_memory: usize,
    stream: u64,
) -> Code {
    call(|| launch(stream, kernel_name(function)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchKernelExC(
    configuration: *const LaunchConfiguration,
    function: usize,
    _arguments: *mut *mut c_void,
) -> Code {
    call(|| {
        // SAFETY: null or a configuration of the caller's.
        let configuration = unsafe { configuration.as_ref() }.ok_or(Code::INVALID_VALUE)?;
        launch(configuration.stream, kernel_name(function))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaGetKernel(kernel: *mut usize, function: usize) -> Code {
    // SAFETY: the caller gives a place for the handle.
    call(|| unsafe { give(kernel, function) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetFuncBySymbol(kernel: *mut usize, function: usize) -> Code {
    // SAFETY: the caller gives a place for the handle.
    call(|| unsafe { give(kernel, function) })
}

type PushedConfiguration = (Dimensions, Dimensions, usize, u64);

thread_local! {
    static PUSHED: Cell<PushedConfiguration> = const {
        let none = Dimensions { x: 0, y: 0, z: 0 };
        Cell::new((none, none, 0, 0))
    };
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dimensions,
    block: Dimensions,
    shared_memory: usize,
    stream: u64,
) -> c_uint {
    let pushed = PUSHED.try_with(|pushed| pushed.set((grid, block, shared_memory, stream)));
    c_uint::from(pushed.is_err())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dimensions,
    block: *mut Dimensions,
    shared_memory: *mut usize,
    stream: *mut u64,
) -> Code {
    call(|| {
        let pushed = PUSHED.try_with(Cell::get).map_err(|_| Code::UNKNOWN)?;
        // SAFETY: the caller gives places for all four.
        unsafe {
            give(grid, pushed.0)?;
            give(block, pushed.1)?;
            give(shared_memory, pushed.2)?;
            give(stream, pushed.3)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaFuncGetAttributes(attributes: *mut FunctionAttributes, _function: usize) -> Code {
    call(|| {
        let answer = FunctionAttributes {
            maximum_threads_per_block: MAXIMUM_THREADS,
            registers: 32,
            ptx_version: 90,
            binary_version: 90,
            maximum_dynamic_shared_size: SHARED_MEMORY_OPT_IN,
            ..FunctionAttributes::default()
        };
        // SAFETY: the caller gives a place for the attributes.
        unsafe { give(attributes, answer) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaFuncSetAttribute(_function: usize, _attribute: c_int, _value: c_int) -> Code {
    // Attributes only choose how a kernel runs.
    call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaFuncSetCacheConfig(_function: usize, _configuration: c_int) -> Code {
    call(|| Ok(()))
}

/// Blocks of `threads` threads that fit on a multiprocessor.
fn blocks_that_fit(threads: c_int) -> Result<c_int, Code> {
    if threads <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(if threads > MAXIMUM_THREADS { 0 } else { (2048 / threads).min(32) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    _function: usize,
    threads: c_int,
    _shared_memory: usize,
) -> Code {
    // SAFETY: the caller gives a place for the number.
    call(|| unsafe { give(blocks, blocks_that_fit(threads)?) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    _function: usize,
    threads: c_int,
    _shared_memory: usize,
    _flags: c_uint,
) -> Code {
    // SAFETY: the caller gives a place for the number.
    call(|| unsafe { give(blocks, blocks_that_fit(threads)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pushed_configuration_is_popped() {
        let (grid, block) = (Dimensions { x: 1, y: 2, z: 3 }, Dimensions { x: 4, y: 5, z: 6 });
        assert_eq!(__cudaPushCallConfiguration(grid, block, 7, 8), 0);
        let (mut popped, mut other, mut shared, mut stream) = (block, grid, 0, 0);
        // SAFETY: places for all four.
        let code = unsafe {
            __cudaPopCallConfiguration(&raw mut popped, &raw mut other, &raw mut shared, &raw mut stream)
        };
        assert_eq!(code, Code::SUCCESS);
        assert_eq!((popped, other, shared, stream), (grid, block, 7, 8));
    }

    #[test]
    fn a_launch_needs_a_stream() {
        let none = Dimensions::default();
        let code = __cudaLaunchKernel(1, none, none, std::ptr::null_mut(), 0, 0x1234);
        assert_eq!(code, Code::INVALID_RESOURCE_HANDLE);
    }
}
