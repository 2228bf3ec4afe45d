//! torch's `gpu_trace` calls, taken at their source.
//!
//! torch offers these calls to Python, but its way there loses a pending Python exception: a tensor freed
//! while an exception passes through C++ (activation checkpointing stops its recomputation that way) would
//! turn it into a `SystemError`. So the table of virtual functions that torch calls is replaced by a copy in
//! which the `gpu_trace` functions are ours. They keep a pending exception, and cost no Python call.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use streamsan_record::table::TorchCallback;

use crate::context::{attach, block_name, inside, locate_callback};
use crate::errors::CaptureError;
use crate::table::table;
use crate::tensor::{expect_size, forget_size};
use crate::torch_functions::{current_raw_stream, native_stream};

/// Type of the virtual functions. Those with fewer parameters ignore the rest, which the calling convention of
/// x86-64 Linux allows.
type TraceFunction = unsafe extern "C" fn(*const c_void, c_int, usize, usize);

/// Entries before the first function of a table: offset to the top and type information.
const PREFIX: usize = 2;

/// `c10::impl::GPUTrace::gpuTraceState`: the object whose functions torch calls.
const STATE: &str = "_ZN3c104impl8GPUTrace13gpuTraceStateE";

static REPLACED: AtomicBool = AtomicBool::new(false);

/// Replaces torch's `gpu_trace` functions, after `torch._C._activate_gpu_trace()`.
///
/// `library` is the path of `libc10.so`, `functions` are the names of the table's entries in order.
/// Raises `CaptureError` if this torch is built in another way.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn watch_gpu_trace(library: &str, functions: Vec<String>) -> PyResult<()> {
    if REPLACED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let state = find_state(library).ok_or_else(|| {
        CaptureError::new_err(format!("{library} does not have the symbol {STATE}; see `streamsan doctor`"))
    })?;
    let original = state.load(Ordering::Acquire).cast::<*const *const *const c_void>();
    if original.is_null() {
        return Err(CaptureError::new_err("torch's gpu_trace is not active"));
    }
    // SAFETY: torch's object is a pointer to an object whose first word points to its table of functions.
    let table = unsafe { **original };
    let mut copy = Vec::with_capacity(PREFIX + functions.len());
    for index in 0..PREFIX + functions.len() {
        // SAFETY: the table has two words before its first function, and one function for each name.
        copy.push(unsafe { *table.add(index).sub(PREFIX) });
    }
    let mut replaced = 0;
    for (slot, name) in copy[PREFIX..].iter_mut().zip(&functions) {
        if let Some(function) = own_function(name) {
            *slot = function as *const c_void;
            replaced += 1;
        }
    }
    if replaced != OWN_FUNCTIONS {
        return Err(CaptureError::new_err(format!(
            "torch's gpu_trace has {replaced} of the {OWN_FUNCTIONS} functions that streamsan knows; see `streamsan doctor`"
        )));
    }
    // torch's shape: a pointer to an object that begins with a pointer to the table. All of it lives as long as
    // the process.
    let words: &'static [*const c_void] = Vec::leak(copy);
    let object: &'static *const *const c_void = Box::leak(Box::new(words[PREFIX..].as_ptr()));
    let interpreter: &'static *const *const *const c_void = Box::leak(Box::new(std::ptr::from_ref(object)));
    state.store(std::ptr::from_ref(interpreter).cast_mut().cast(), Ordering::Release);
    Ok(())
}

fn find_state(library: &str) -> Option<&'static AtomicPtr<c_void>> {
    let path = CString::new(library).ok()?;
    let name = CString::new(STATE).ok()?;
    // SAFETY: both are C strings; the library is loaded already and stays loaded.
    let symbol = unsafe {
        let handle = libc::dlopen(path.as_ptr().cast::<c_char>(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if handle.is_null() { std::ptr::null_mut() } else { libc::dlsym(handle, name.as_ptr()) }
    };
    // SAFETY: the symbol is a `std::atomic` of a pointer, which is one word, and lives as long as the library.
    unsafe { symbol.cast::<AtomicPtr<c_void>>().as_ref() }
}

const OWN_FUNCTIONS: usize = 10;

fn own_function(name: &str) -> Option<TraceFunction> {
    Some(match name {
        "trace_gpu_memory_allocation" => allocation,
        "trace_gpu_memory_deallocation" => deallocation,
        "trace_gpu_event_record" => event_record,
        "trace_gpu_event_wait" => event_wait,
        "trace_gpu_event_synchronization" => event_synchronization,
        "trace_gpu_stream_synchronization" => stream_synchronization,
        "trace_gpu_device_synchronization" => device_synchronization,
        "trace_gpu_event_creation" | "trace_gpu_event_deletion" | "trace_gpu_stream_creation" => not_needed,
        _ => return None,
    })
}

/// Runs `action` with the interpreter, unless it is going down, and leaves a pending exception as it is.
fn with_python(action: impl FnOnce(Python<'_>)) {
    let guarded = catch_unwind(AssertUnwindSafe(|| {
        attach(|py| {
            let (mut kind, mut value, mut traceback) =
                (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the interpreter is attached; the three references go back to it below.
            unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback) };
            action(py);
            // SAFETY: as above.
            unsafe { ffi::PyErr_Restore(kind, value, traceback) };
        })
    }));
    // A panic here must not unwind into torch; its message has been printed.
    drop(guarded);
}

fn pass_on(callback: TorchCallback, a: usize, b: usize) {
    let Some(table) = table() else {
        return;
    };
    if !inside() {
        with_python(|py| {
            locate_callback(py);
        });
    }
    // SAFETY: the table's functions may be called from any thread.
    unsafe { (table.torch_callback)(callback as u32, a as u64, b as u64) }
}

unsafe extern "C" fn not_needed(_this: *const c_void, _kind: c_int, _a: usize, _b: usize) {}

unsafe extern "C" fn allocation(_this: *const c_void, _kind: c_int, pointer: usize, _b: usize) {
    let Some(table) = table() else {
        return;
    };
    let pointer = pointer as u64;
    // SAFETY: the table's functions may be called from any thread.
    let device = unsafe { (table.device_of)(pointer) };
    let (mut stream, mut name) = (0, block_name());
    // The allocator hands blocks out for the current stream of their device.
    // Memory that the driver maps (expandable segments) is of no device that is known; torch allocates on the current one.
    // SAFETY: as above.
    let device = if device == u32::MAX { unsafe { (table.current_device)() } } else { device };
    let known = native_stream(device);
    if let (Some(known), true) = (known, inside()) {
        stream = known;
    } else {
        with_python(|py| {
            stream = current_raw_stream(py, device).unwrap_or(0);
            name = locate_callback(py);
        });
    }
    expect_size(pointer);
    // SAFETY: as above.
    unsafe {
        (table.torch_callback)(TorchCallback::MemoryAllocation as u32, pointer, stream);
        if name != 0 {
            (table.name_block)(pointer, name, 0);
        }
    }
}

unsafe extern "C" fn deallocation(_this: *const c_void, _kind: c_int, pointer: usize, _b: usize) {
    forget_size(pointer as u64);
    pass_on(TorchCallback::MemoryDeallocation, pointer, 0);
}

unsafe extern "C" fn event_record(_this: *const c_void, _kind: c_int, event: usize, stream: usize) {
    pass_on(TorchCallback::EventRecord, event, stream);
}

unsafe extern "C" fn event_wait(_this: *const c_void, _kind: c_int, event: usize, stream: usize) {
    pass_on(TorchCallback::EventWait, event, stream);
}

unsafe extern "C" fn event_synchronization(_this: *const c_void, _kind: c_int, event: usize, _b: usize) {
    pass_on(TorchCallback::EventSynchronization, event, 0);
}

unsafe extern "C" fn stream_synchronization(_this: *const c_void, _kind: c_int, stream: usize, _b: usize) {
    pass_on(TorchCallback::StreamSynchronization, stream, 0);
}

unsafe extern "C" fn device_synchronization(_this: *const c_void, _kind: c_int, _a: usize, _b: usize) {
    pass_on(TorchCallback::DeviceSynchronization, 0, 0);
}
