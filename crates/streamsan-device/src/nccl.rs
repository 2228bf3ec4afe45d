//! NCCL's names, answered for groups of one process.
//!
//! torch's process group for NCCL runs unmodified on top. With one rank each operation gives back what it was given, so
//! its bytes are copied within host memory, in the order of its stream, and it is recorded with the bytes that it
//! touches. Groups of several processes are refused: the other ranks' memory is not here.

mod communicators;
mod groups;
mod memory;
mod movement;
mod operations;
mod scaling;

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};

use crate::call::call;
use crate::errors::Code;

pub use movement::Movement;

/// `ncclResult_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    const CUDA_ERROR: Self = Self(1);
    const INVALID_ARGUMENT: Self = Self(4);
    const INVALID_USAGE: Self = Self(5);
}

/// Why a call failed: its answer, and what `ncclGetLastError` says of it.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    fn argument(text: impl Into<String>) -> Self {
        Self { status: Status::INVALID_ARGUMENT, text: text.into() }
    }

    fn usage(text: impl Into<String>) -> Self {
        Self { status: Status::INVALID_USAGE, text: text.into() }
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self { status: Status::CUDA_ERROR, text: format!("the CUDA runtime answered error {}", code.0) }
    }
}

type Done = Result<(), Failure>;

thread_local! {
    /// What `ncclGetLastError` points at.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of a call.
fn answer(body: impl FnOnce() -> Done) -> Status {
    let mut done = Ok(());
    let code = call(|| {
        done = body();
        Ok(())
    });
    if code != Code::SUCCESS {
        done = Err(code.into());
    }
    let Err(failure) = done else { return Status::SUCCESS };
    let text = format!("streamsan's virtual device: {}", failure.text.replace('\0', " "));
    let text = CString::new(text).unwrap_or_default();
    // At the end of a thread its error has no reader any more.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.status
}

/// Writes an answer through a pointer that the caller gave.
///
/// # Safety
///
/// `target` is null or may be written.
unsafe fn give<T>(target: *mut T, value: T) -> Done {
    // SAFETY: as the caller promises.
    unsafe { crate::call::give(target, value) }.map_err(|_| Failure::argument("no place for the answer"))
}

/// A call that needs what this device does not have.
fn unsupported(name: &str) -> Done {
    crate::call::record(|recorder| recorder.unsupported(name));
    Err(Failure::usage(format!("{name} is not there")))
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: c_int) -> *const c_char {
    match status {
        0 => c"no error",
        1 => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        2 => c"unhandled system error (run with NCCL_DEBUG=INFO for details)",
        3 => c"internal error - please report this issue to the NCCL developers",
        4 => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
        5 => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        6 => c"remote process exited or there was a network error",
        7 => c"NCCL operation in progress",
        _ => c"unknown result code",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetLastError(_communicator: u64) -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Version that is answered where no NCCL is loaded to ask.
const USUAL_VERSION: c_int = 22_800;

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> Status {
    answer(|| {
        // SAFETY: the caller gives a place for the number.
        unsafe { give(version, loaded_version().unwrap_or(USUAL_VERSION)) }
    })
}

/// The version of the library that torch was loaded with: torch compares it with the one it was built for.
fn loaded_version() -> Option<c_int> {
    // SAFETY: looks a name up in a library that is loaded already; its function only writes a number.
    unsafe {
        let library = libc::dlopen(c"libnccl.so.2".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let function = libc::dlsym(library, c"ncclGetVersion".as_ptr());
        if function.is_null() || std::ptr::eq(function, ncclGetVersion as *const c_void) {
            return None;
        }
        let ask: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(function);
        let mut version = 0;
        (ask(&raw mut version) == 0 && version > 0).then_some(version)
    }
}
