//! What the driver library of virtual runs asks for, and how the program asks for driver functions.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use crate::call::{call, give};
use crate::devices::VERSION;
use crate::errors::{self, Code};
use crate::launches::launch;
use crate::properties;

/// Version of [`DriverTable`]. Raised with any change to it, here and in the driver library.
const TABLE_VERSION: u32 = 2;

/// What the driver library needs beside the runtime's exported functions.
#[repr(C)]
struct DriverTable {
    version: u32,
    size: u32,
    /// Launches a kernel with this name.
    launch: unsafe extern "C" fn(stream: u64, name: *const c_char) -> Code,
    /// A call of this name is not there.
    unsupported: unsafe extern "C" fn(name: *const c_char) -> Code,
    /// A device attribute by number.
    attribute: extern "C" fn(number: c_int, device: c_int) -> c_int,
    /// The runtime's last error of this thread, and how to put it back: a driver call leaves it alone.
    last_error: extern "C" fn() -> Code,
    restore_error: extern "C" fn(Code),
}

unsafe extern "C" fn launch_by_name(stream: u64, name: *const c_char) -> Code {
    call(|| {
        // SAFETY: the driver library gives a string of its own.
        let name = unsafe { CStr::from_ptr(name) };
        launch(stream, &name.to_string_lossy())
    })
}

unsafe extern "C" fn unsupported(name: *const c_char) -> Code {
    // SAFETY: the driver library gives a string of its own.
    let name = unsafe { CStr::from_ptr(name) };
    crate::call::unsupported(&name.to_string_lossy())
}

extern "C" fn attribute(number: c_int, device: c_int) -> c_int {
    properties::attribute(number, u32::try_from(device).unwrap_or(0))
}

extern "C" fn last_error() -> Code {
    errors::last()
}

extern "C" fn restore_error(code: Code) {
    errors::restore(code);
}

static TABLE: DriverTable = DriverTable {
    version: TABLE_VERSION,
    size: size_of::<DriverTable>() as u32,
    launch: launch_by_name,
    unsupported,
    attribute,
    last_error,
    restore_error,
};

#[unsafe(no_mangle)]
extern "C" fn streamsan_driver_table() -> *const c_void {
    (&raw const TABLE).cast()
}

/// Signature of `cuGetProcAddress_v2`.
type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, c_ulonglong, *mut c_int) -> c_int;

/// The driver library of virtual runs. Another `libcuda.so.1` is not used: it knows nothing of our streams.
fn driver() -> Option<GetProcAddress> {
    static DRIVER: OnceLock<Option<GetProcAddress>> = OnceLock::new();
    *DRIVER.get_or_init(|| {
        // SAFETY: opens a library that the dynamic loader finds, and looks names up in it.
        unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() || libc::dlsym(library, c"streamsan_driver_version".as_ptr()).is_null() {
                return None;
            }
            let function = libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr());
            if function.is_null() {
                return None;
            }
            Some(std::mem::transmute::<*mut c_void, GetProcAddress>(function))
        }
    })
}

unsafe fn entry_point(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: c_ulonglong,
    status: *mut c_int,
) -> Code {
    call(|| {
        if name.is_null() || function.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut found = std::ptr::null_mut();
        if let Some(look_up) = driver() {
            // SAFETY: a name of the caller's and a place of our own.
            unsafe { look_up(name, &raw mut found, version, flags, std::ptr::null_mut()) };
        }
        // SAFETY: the caller gives a place for the function, and one for the status or null.
        unsafe {
            give(function, found)?;
            if !status.is_null() {
                give(status, c_int::from(found.is_null()))?;
            } else if found.is_null() {
                return Err(Code::SYMBOL_NOT_FOUND);
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_uint,
    flags: c_ulonglong,
    status: *mut c_int,
) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { entry_point(name, function, version.cast_signed(), flags, status) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDriverEntryPoint(
    name: *const c_char,
    function: *mut *mut c_void,
    flags: c_ulonglong,
    status: *mut c_int,
) -> Code {
    // SAFETY: as the caller of this function promises.
    unsafe { entry_point(name, function, VERSION, flags, status) }
}
