//! The CUDA runtimes that are loaded, by number. Runtime 0 is torch's, or else the first one.

use std::env;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use streamsan_record::env::RUNTIME;

/// How the files of the runtime are called.
const RUNTIME_NAME: &[u8] = b"libcudart.so";
/// torch's library that makes most of the calls.
const TORCH_NAME: &[u8] = b"libc10_cuda.so";

/// The loader's handle of a runtime in this process. Whoever calls us is linked against one, so it is loaded.
pub fn library(runtime: usize) -> Option<usize> {
    match runtime.checked_sub(1) {
        None => first(),
        Some(place) => others().get(place).copied(),
    }
}

/// The runtime that the code at `address` is linked with; 0 if it is linked with none, or there is one only.
pub fn linked(address: usize) -> usize {
    let Some(first) = first() else { return 0 };
    // Where another library was named as the first one, it stands for torch's.
    let torchs = named().and_then(|_| opened(&torchs_runtime()?));
    let is_first = |library| library == first || Some(library) == torchs;
    let several = loaded(RUNTIME_NAME).iter().filter_map(|path| opened(path)).any(|found| !is_first(found));
    if !several {
        return 0;
    }
    let own = path_at(linked as *const () as usize);
    let path = path_at(address).and_then(|path| runtime_of(&path)).filter(|path| Some(path) != own.as_ref());
    // The loader's lock is not taken with ours held.
    match path.and_then(|path| opened(&path)) {
        Some(library) if !is_first(library) => number(library),
        _ => 0,
    }
}

fn others() -> MutexGuard<'static, Vec<usize>> {
    /// Handles of all runtimes but the first.
    static OTHERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    OTHERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a runtime that is not the first.
fn number(library: usize) -> usize {
    let mut others = others();
    let place = others.iter().position(|&known| known == library).unwrap_or_else(|| {
        others.push(library);
        others.len() - 1
    });
    place + 1
}

/// The path of the library that was named as the first runtime.
fn named() -> Option<CString> {
    let path = env::var_os(RUNTIME).filter(|path| !path.is_empty())?;
    CString::new(path.as_bytes()).ok()
}

fn first() -> Option<usize> {
    static FIRST: OnceLock<usize> = OnceLock::new();
    if let Some(&library) = FIRST.get() {
        return Some(library);
    }
    let path = match named() {
        Some(path) => path,
        None => torchs_runtime().or_else(|| loaded(RUNTIME_NAME).into_iter().next())?,
    };
    let library = opened(&path)?;
    Some(*FIRST.get_or_init(|| library))
}

fn torchs_runtime() -> Option<CString> {
    let runtime = runtime_of(loaded(TORCH_NAME).first()?)?;
    is_called(&runtime, RUNTIME_NAME).then_some(runtime)
}

/// The library that gives the library with this path its runtime calls: itself, or one that it is linked with.
fn runtime_of(path: &CStr) -> Option<CString> {
    let library = opened(path)?;
    // SAFETY: a handle that is never closed, and a C string. What the process sees first is not looked at, but the
    // library and what it needs.
    let found = unsafe { libc::dlsym(library as *mut c_void, c"cudaMalloc".as_ptr()) } as usize;
    if found == 0 { None } else { path_at(found) }
}

/// The loader's handle of a loaded library. The library is only looked for, not loaded.
fn opened(path: &CStr) -> Option<usize> {
    // SAFETY: a C string.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) } as usize;
    (library != 0).then_some(library)
}

/// The path of the library that holds this address.
fn path_at(address: usize) -> Option<CString> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the loader takes any address, and the place is ours.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string of the loader's, as long as the library is loaded.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_owned())
}

/// The paths of the loaded libraries with names that begin so, in the order in which they were loaded.
fn loaded(name: &'static [u8]) -> Vec<CString> {
    struct Search {
        name: &'static [u8],
        found: Vec<CString>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record and our own pointer back.
        let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: a string of the loader's that lives through this call.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) };
            if is_called(path, search.name) {
                search.found.push(path.to_owned());
            }
        }
        0
    }
    let mut search = Search { name, found: Vec::new() };
    // SAFETY: `visit` gets the place, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

fn is_called(path: &CStr, name: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    path.file_name().is_some_and(|file| file.as_bytes().starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_known_by_its_file_name() {
        assert!(is_called(c"/site/nvidia/cu13/lib/libcudart.so.13", RUNTIME_NAME));
        assert!(is_called(c"libcudart.so", RUNTIME_NAME));
        assert!(!is_called(c"/site/libcudart.so.13/libother.so", RUNTIME_NAME));
        assert!(!is_called(c"", RUNTIME_NAME));
    }

    #[test]
    fn without_a_runtime_every_caller_has_the_first() {
        assert_eq!(linked(without_a_runtime_every_caller_has_the_first as *const () as usize), 0);
        assert_eq!(library(1), None);
        let path = path_at(libc::dlsym as *const () as usize).expect("a loaded library");
        assert!(is_called(&path, b"libc.so"), "{path:?}");
        assert!(opened(&path).is_some());
    }
}
