//! Kernel launches.

use std::ffi::{CStr, c_char, c_uint, c_void};

use crate::callers::exported;
use crate::code::Code;
use crate::real::real;
use crate::recording::begin;
use crate::streams::stream;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dimensions {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// The start of `cudaLaunchConfig_t`.
#[repr(C)]
struct LaunchConfiguration {
    grid: Dimensions,
    block: Dimensions,
    shared_memory: usize,
    stream: u64,
}

/// What a launch names its kernel by.
#[derive(Clone, Copy)]
enum Kernel {
    /// The host function that stands for it.
    Function(u64),
    /// The handle of the kernel.
    Handle(u64),
}

impl Kernel {
    /// Its name, as the compiler mangled it. Asked after its launch, so it is loaded, and for the life of the process.
    fn name(self) -> &'static str {
        let mut name: *const c_char = std::ptr::null();
        let place = &raw mut name;
        let found = match self {
            Self::Function(function) => real!(cudaFuncGetName(place: *mut *const c_char, function: u64)).ok(),
            Self::Handle(kernel) => driver_name(place, kernel),
        };
        if !found || name.is_null() {
            return "unknown kernel";
        }
        // SAFETY: a string of the loaded module that holds the kernel.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("unknown kernel")
    }
}

/// Asks the driver: a kernel's handle is the same there.
fn driver_name(place: *mut *const c_char, kernel: u64) -> bool {
    type GetName = unsafe extern "C" fn(*mut *const c_char, u64) -> i32;
    // SAFETY: C strings; the library is loaded, as a kernel was launched.
    let function = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return false;
        }
        libc::dlsym(library, c"cuKernelGetName".as_ptr())
    };
    if function.is_null() {
        return false;
    }
    // SAFETY: the driver's function of this name has this signature; the kernel was just launched.
    unsafe { std::mem::transmute::<*mut c_void, GetName>(function)(place, kernel) == 0 }
}

/// Tells of a launch.
fn launched(code: Code, kernel: Kernel, handle: u64) -> Code {
    code.then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.launch(stream.handle, stream.device, || kernel.name());
    })
}

extern "C" fn __cudaLaunchKernel(
    kernel: u64,
    grid: Dimensions,
    block: Dimensions,
    arguments: *mut *mut c_void,
    shared_memory: usize,
    stream: u64,
) -> Code {
    begin();
    let code = real!(__cudaLaunchKernel(
        kernel: u64,
        grid: Dimensions,
        block: Dimensions,
        arguments: *mut *mut c_void,
        shared_memory: usize,
        stream: u64
    ));
    launched(code, Kernel::Handle(kernel), stream)
}

extern "C" fn cudaLaunchKernel(
    function: u64,
    grid: Dimensions,
    block: Dimensions,
    arguments: *mut *mut c_void,
    shared_memory: usize,
    stream: u64,
) -> Code {
    begin();
    let code = real!(cudaLaunchKernel(
        function: u64,
        grid: Dimensions,
        block: Dimensions,
        arguments: *mut *mut c_void,
        shared_memory: usize,
        stream: u64
    ));
    launched(code, Kernel::Function(function), stream)
}

extern "C" fn cudaLaunchCooperativeKernel(
    function: u64,
    grid: Dimensions,
    block: Dimensions,
    arguments: *mut *mut c_void,
    shared_memory: usize,
    stream: u64,
) -> Code {
    begin();
    let code = real!(cudaLaunchCooperativeKernel(
        function: u64,
        grid: Dimensions,
        block: Dimensions,
        arguments: *mut *mut c_void,
        shared_memory: usize,
        stream: u64
    ));
    launched(code, Kernel::Function(function), stream)
}

extern "C" fn cudaLaunchKernelExC(
    configuration: *const LaunchConfiguration,
    function: u64,
    arguments: *mut *mut c_void,
) -> Code {
    begin();
    let code = real!(cudaLaunchKernelExC(
        configuration: *const LaunchConfiguration,
        function: u64,
        arguments: *mut *mut c_void
    ));
    if !code.ok() {
        return code;
    }
    // SAFETY: the launch succeeded, so the caller gave a configuration.
    let stream = unsafe { (*configuration).stream };
    launched(code, Kernel::Function(function), stream)
}

exported! {
    __cudaLaunchKernel
    cudaLaunchKernel
    cudaLaunchCooperativeKernel
    cudaLaunchKernelExC
}
