//! Functions by name, and errors by number.

use std::ffi::{CStr, CString, c_char, c_int, c_ulonglong, c_void};

use crate::names::RENAMED;
use crate::runtime::{INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED, give, runtime};

/// Our own functions only: a name that we lack is not looked for elsewhere.
fn own(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: this library is loaded under this name, and stays so.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

fn look_up(name: &CStr) -> Option<*mut c_void> {
    let plain = name.to_str().ok().filter(|name| name.starts_with("cu"))?;
    // A name without its version means the newest one.
    let newest = RENAMED.iter().find(|(old, _)| *old == plain).map_or(plain, |(_, new)| new);
    own(&CString::new(newest).ok()?)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    function: *mut *mut c_void,
    _version: c_int,
    _flags: c_ulonglong,
    status: *mut c_int,
) -> c_int {
    if name.is_null() || function.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a string.
    let found = look_up(unsafe { CStr::from_ptr(name) });
    // SAFETY: the caller gives a place for the function, and one for the status or null.
    unsafe {
        give(function, found.unwrap_or(std::ptr::null_mut()));
        if !status.is_null() {
            give(status, c_int::from(found.is_none()));
        }
    }
    if found.is_some() { 0 } else { NOT_FOUND }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: c_ulonglong,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { cuGetProcAddress_v2(name, function, version, flags, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
extern "C" fn cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) -> c_int {
    NOT_SUPPORTED
}

/// Tells this library from any other of its name.
#[unsafe(no_mangle)]
extern "C" fn streamsan_driver_version() -> c_int {
    1
}

type Describe = unsafe extern "C" fn(c_int) -> *const c_char;

unsafe fn describe(function: &CStr, code: c_int, text: *mut *const c_char) -> c_int {
    let Some(describe) = crate::runtime::function(function) else { return NOT_SUPPORTED };
    // SAFETY: the runtime's functions of these names have this type; the caller gives a place for the text.
    unsafe {
        let describe: Describe = std::mem::transmute(describe);
        give(text, describe(code))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { describe(c"cudaGetErrorString", code, text) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { describe(c"cudaGetErrorName", code, text) }
}

#[unsafe(no_mangle)]
extern "C" fn cuProfilerStart() -> c_int {
    runtime!(cudaProfilerStart())
}

#[unsafe(no_mangle)]
extern "C" fn cuProfilerStop() -> c_int {
    runtime!(cudaProfilerStop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_version_stands_for_one_function() {
        for (index, (old, new)) in RENAMED.iter().enumerate() {
            assert!(RENAMED[index + 1..].iter().all(|(other, _)| other != old), "{old} twice");
            assert!(RENAMED.iter().all(|(other, _)| other != new), "{old} leads to {new}, which is renamed");
        }
    }

    #[test]
    fn without_the_device_library_nothing_works_and_nothing_crashes() {
        let mut text = std::ptr::null();
        // SAFETY: a place for the text.
        assert_eq!(unsafe { cuGetErrorString(1, &raw mut text) }, NOT_SUPPORTED);
    }
}
