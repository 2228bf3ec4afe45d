//! Calls by which the system, not the program's own code, reads or writes the program's memory.
//!
//! On a protected page such a call would fail, where the program's own access would fault and be seen. So these stand
//! in front of the C library's: they say what is about to be touched, and pass the call on.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::protection::system_access;

/// The C library's function of this name.
fn next(name: &CStr, known: &OnceLock<usize>) -> usize {
    // SAFETY: a name that ends in a zero.
    *known.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) } as usize)
}

/// Calls with a buffer and its size; `$writes` says whether the system writes to the buffer.
macro_rules! pass_on {
    ($($name:ident($($before:ident: $type:ty,)? buffer, size $(, $after:ident: $after_type:ty)*) $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $($before: $type,)? buffer: *mut c_void, size: usize $(, $after: $after_type)*
        ) -> isize {
            type Function = unsafe extern "C" fn($($type,)? *mut c_void, usize $(, $after_type)*) -> isize;
            static NEXT: OnceLock<usize> = OnceLock::new();
            let name = concat!(stringify!($name), "\0");
            let address = CStr::from_bytes_with_nul(name.as_bytes()).map_or(0, |name| next(name, &NEXT));
            system_access(buffer as usize, size, $writes);
            // SAFETY: the C library's function of this name, with the caller's arguments.
            unsafe { std::mem::transmute::<usize, Function>(address)($($before,)? buffer, size $(, $after)*) }
        }
    )*};
}

pass_on! {
    read(file: c_int, buffer, size) true;
    write(file: c_int, buffer, size) false;
    pread(file: c_int, buffer, size, offset: i64) true;
    pread64(file: c_int, buffer, size, offset: i64) true;
    pwrite(file: c_int, buffer, size, offset: i64) false;
    pwrite64(file: c_int, buffer, size, offset: i64) false;
    recv(socket: c_int, buffer, size, flags: c_int) true;
    send(socket: c_int, buffer, size, flags: c_int) false;
}

/// Calls of C's files: so many pieces of so many bytes.
macro_rules! pass_on_files {
    ($($name:ident $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(buffer: *mut c_void, size: usize, count: usize, file: *mut c_void) -> usize {
            type Function = unsafe extern "C" fn(*mut c_void, usize, usize, *mut c_void) -> usize;
            static NEXT: OnceLock<usize> = OnceLock::new();
            let name = concat!(stringify!($name), "\0");
            let address = CStr::from_bytes_with_nul(name.as_bytes()).map_or(0, |name| next(name, &NEXT));
            system_access(buffer as usize, size.saturating_mul(count), $writes);
            // SAFETY: as above.
            unsafe { std::mem::transmute::<usize, Function>(address)(buffer, size, count, file) }
        }
    )*};
}

pass_on_files! {
    fread true;
    fwrite false;
}
