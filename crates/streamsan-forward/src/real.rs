//! The real runtime: where its functions are.

use std::env;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use streamsan_record::env::RUNTIME;

/// How the files of the runtime are called.
const RUNTIME_NAME: &[u8] = b"libcudart.so";

/// One function of the real runtime, looked up at its first use.
pub struct Entry {
    name: &'static CStr,
    /// 0: not looked up yet.
    address: AtomicUsize,
}

impl Entry {
    /// The function with this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// Its name, as the loader takes it.
    pub fn symbol(&self) -> &'static CStr {
        self.name
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// Where it is, if there is one.
    pub fn address(&self) -> Option<usize> {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        let library = runtime()?;
        // SAFETY: a handle that is never closed, and a C string.
        let found = unsafe { libc::dlsym(library as *mut c_void, self.name.as_ptr()) } as usize;
        if found == 0 {
            return None;
        }
        self.address.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// The entry of the function with this name.
macro_rules! entry {
    ($name:ident) => {
        $crate::real::Entry::new(
            match ::std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        )
    };
}
pub(crate) use entry;

/// Calls the function of the real runtime with this name and these arguments.
macro_rules! real {
    ($name:ident($($value:ident: $kind:ty),*)) => {{
        static ENTRY: $crate::real::Entry = $crate::real::entry!($name);
        match ENTRY.address() {
            None => $crate::code::Code::SYMBOL_NOT_FOUND,
            Some(address) => {
                // SAFETY: the runtime's function of this name has this signature.
                let function: unsafe extern "C" fn($($kind),*) -> $crate::code::Code =
                    unsafe { ::std::mem::transmute(address) };
                // SAFETY: the arguments are those that our own caller gave for the same function.
                unsafe { function($($value),*) }
            }
        }
    }};
}
pub(crate) use real;

/// The loader's handle of the real runtime in this process. Whoever calls us is linked against it, so it is loaded.
fn runtime() -> Option<usize> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    if let Some(&library) = LIBRARY.get() {
        return Some(library);
    }
    let path = match env::var_os(RUNTIME).filter(|path| !path.is_empty()) {
        Some(path) => CString::new(path.as_bytes()).ok()?,
        None => loaded_runtime()?,
    };
    // SAFETY: a C string. The library is only looked for, not loaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) } as usize;
    (library != 0).then(|| *LIBRARY.get_or_init(|| library))
}

/// The path of the first loaded library that is called as the runtime is.
fn loaded_runtime() -> Option<CString> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record and our own pointer back.
        let (info, found) = unsafe { (&*info, &mut *data.cast::<Option<CString>>()) };
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: a string of the loader's that lives through this call.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) };
        if is_runtime(path) {
            *found = Some(path.to_owned());
        }
        c_int::from(found.is_some())
    }
    let mut found: Option<CString> = None;
    // SAFETY: `visit` gets the place, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

fn is_runtime(path: &CStr) -> bool {
    let path = std::path::Path::new(OsStr::from_bytes(path.to_bytes()));
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(RUNTIME_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_known_by_its_file_name() {
        assert!(is_runtime(c"/site/nvidia/cu13/lib/libcudart.so.13"));
        assert!(is_runtime(c"libcudart.so"));
        assert!(!is_runtime(c"/site/libcudart.so.13/libother.so"));
        assert!(!is_runtime(c""));
    }
}
