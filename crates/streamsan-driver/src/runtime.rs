//! The way to the device library: its table, and the runtime's functions by name.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// `CUDA_ERROR_INVALID_VALUE`
pub const INVALID_VALUE: c_int = 1;
/// `CUDA_ERROR_NOT_INITIALIZED`
pub const NOT_INITIALIZED: c_int = 3;
/// `CUDA_ERROR_NO_DEVICE`
pub const NO_DEVICE: c_int = 100;
/// `CUDA_ERROR_INVALID_DEVICE`
pub const INVALID_DEVICE: c_int = 101;
/// `CUDA_ERROR_INVALID_CONTEXT`
pub const INVALID_CONTEXT: c_int = 201;
/// `CUDA_ERROR_INVALID_HANDLE`
pub const INVALID_HANDLE: c_int = 400;
/// `CUDA_ERROR_NOT_FOUND`
pub const NOT_FOUND: c_int = 500;
/// `CUDA_ERROR_NOT_SUPPORTED`
pub const NOT_SUPPORTED: c_int = 801;

/// Version of [`DeviceTable`] that this library understands.
const TABLE_VERSION: u32 = 2;

/// The device library's table for this library.
#[repr(C)]
pub struct DeviceTable {
    version: u32,
    size: u32,
    /// Launches a kernel with this name.
    pub launch: unsafe extern "C" fn(stream: u64, name: *const c_char) -> c_int,
    /// A call of this name is not there.
    pub unsupported: unsafe extern "C" fn(name: *const c_char) -> c_int,
    /// A device attribute by number.
    pub attribute: extern "C" fn(number: c_int, device: c_int) -> c_int,
    last_error: extern "C" fn() -> c_int,
    restore_error: extern "C" fn(c_int),
}

/// The device library's table, or `None` if it is not preloaded or is of another version.
pub fn device() -> Option<&'static DeviceTable> {
    static TABLE: OnceLock<Option<&'static DeviceTable>> = OnceLock::new();
    *TABLE.get_or_init(|| {
        let function = address(c"streamsan_driver_table")?;
        // SAFETY: the device library's function of this name has this type, and its table is static.
        let table = unsafe {
            let function: extern "C" fn() -> *const DeviceTable = std::mem::transmute(function);
            function().as_ref()?
        };
        (table.version == TABLE_VERSION && table.size as usize == size_of::<DeviceTable>()).then_some(table)
    })
}

/// Calls the runtime. A failure is the driver's answer alone: the runtime's last error stays what it was.
pub fn quietly(body: impl FnOnce(&'static DeviceTable) -> c_int) -> c_int {
    let Some(table) = device() else { return NOT_INITIALIZED };
    let before = (table.last_error)();
    let code = body(table);
    if code != 0 {
        (table.restore_error)(before);
    }
    code
}

fn address(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up in the libraries of the process, the preloaded one first.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A function of the device library. Without the device library there is none: NVIDIA's runtime would call back
/// into this library.
pub fn function(name: &CStr) -> Option<*mut c_void> {
    device()?;
    address(name)
}

/// Calls a function of the runtime: `runtime!(cudaMalloc(pointer: *mut u64, size: usize))`. Its codes are those
/// of the driver wherever both know the failure.
macro_rules! runtime {
    ($name:ident($($argument:ident: $type:ty),* $(,)?)) => {{
        static FUNCTION: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let address = *FUNCTION.get_or_init(|| {
            const NAME: &str = concat!(stringify!($name), "\0");
            let name = std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
            $crate::runtime::function(name).map_or(0, |found| found as usize)
        });
        if address == 0 {
            $crate::runtime::NOT_INITIALIZED
        } else {
            // SAFETY: the runtime's function of this name has this type; its caller promises what it asks for.
            $crate::runtime::quietly(|_| unsafe {
                let function: unsafe extern "C" fn($($type),*) -> std::ffi::c_int =
                    std::mem::transmute(address);
                function($($argument),*)
            })
        }
    }};
}
pub(crate) use runtime;

/// Exports a driver function that is one call of the runtime: `forward!(cuMemFree_v2 = cudaFree(pointer: u64))`.
macro_rules! forward {
    ($($driver:ident = $runtime:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $driver($($argument: $type),*) -> std::ffi::c_int {
            if let Some(code) = $crate::faults::fault(stringify!($driver)) {
                return code;
            }
            $crate::runtime::runtime!($runtime($($argument: $type),*))
        }
    )*};
}
pub(crate) use forward;

/// Writes an answer through a pointer that the caller gave.
///
/// # Safety
///
/// `target` is null or may be written.
pub unsafe fn give<T>(target: *mut T, value: T) -> c_int {
    if target.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and writable as the caller promises.
    unsafe { target.write(value) };
    0
}
