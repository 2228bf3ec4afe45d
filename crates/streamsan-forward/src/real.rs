//! The real runtimes: where their functions are.
//!
//! A process can have several, such as torch's for CUDA 13 and that of a library for CUDA 12. A call goes to the one that
//! its caller is linked with (`callers.rs`).

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::callers::chosen;
use crate::runtimes::library;

/// For so many runtimes the functions are looked up once.
const REMEMBERED: usize = 4;

/// One function of the real runtimes, looked up at its first use in each.
pub struct Entry {
    name: &'static CStr,
    /// By runtime; 0: not looked up yet.
    addresses: [AtomicUsize; REMEMBERED],
}

impl Entry {
    /// The function with this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, addresses: [const { AtomicUsize::new(0) }; REMEMBERED] }
    }

    /// Its name, as the loader takes it.
    pub fn symbol(&self) -> &'static CStr {
        self.name
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// Where it is in the runtime of the call that is under way, if that has it.
    pub fn address(&self) -> Option<usize> {
        let runtime = chosen();
        let remembered = self.addresses.get(runtime);
        let known = remembered.map_or(0, |address| address.load(Ordering::Relaxed));
        if known != 0 {
            return Some(known);
        }
        let library = library(runtime)?;
        // SAFETY: a handle that is never closed, and a C string.
        let found = unsafe { libc::dlsym(library as *mut c_void, self.name.as_ptr()) } as usize;
        if found == 0 {
            return None;
        }
        if let Some(remembered) = remembered {
            remembered.store(found, Ordering::Relaxed);
        }
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
