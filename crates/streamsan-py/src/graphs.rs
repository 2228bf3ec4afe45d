//! Graphs of the virtual device: operators that were captured are computed by Python, at each launch.
//!
//! The device library has functions for it, which are looked for once. With a GPU they are not there, nor needed.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

type Run = unsafe extern "C" fn(u64) -> i32;
type Forget = unsafe extern "C" fn(u64);

/// What the device library has for us.
struct Device {
    /// How many captures are under way.
    captures: &'static AtomicU32,
    captures_in: unsafe extern "C" fn(u64, u32) -> c_int,
    keep_operator: unsafe extern "C" fn(u64),
    operators_of_graphs: unsafe extern "C" fn(Run, Forget),
}

/// The two Python functions.
struct Operators {
    run: Py<PyAny>,
    forget: Py<PyAny>,
}

static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
static OPERATORS: OnceLock<Operators> = OnceLock::new();

fn device() -> Option<&'static Device> {
    DEVICE.get_or_init(find_device).as_ref()
}

fn find_device() -> Option<Device> {
    let symbol = |name: &CStr| {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let captures = symbol(c"streamsan_captures")?;
    let captures_in = symbol(c"streamsan_captures_in")?;
    let keep_operator = symbol(c"streamsan_keep_operator")?;
    let operators_of_graphs = symbol(c"streamsan_operators_of_graphs")?;
    // SAFETY: the device library, which is never unloaded, has a number and functions of these types under these names.
    unsafe {
        Some(Device {
            captures: &*captures.cast::<AtomicU32>(),
            captures_in: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64, u32) -> c_int>(
                captures_in,
            ),
            keep_operator: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64)>(keep_operator),
            operators_of_graphs: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Run, Forget)>(
                operators_of_graphs,
            ),
        })
    }
}

/// Whether a stream of the virtual device captures.
#[pyfunction]
pub fn is_capturing() -> bool {
    device().is_some_and(|device| device.captures.load(Ordering::Relaxed) != 0)
}

/// 1 if this stream gives nodes to a graph, 2 if its capture is invalid, else 0.
#[pyfunction]
pub fn captures_in(stream: u64, device_index: u32) -> i32 {
    // SAFETY: the function takes any numbers, from any thread.
    device().map_or(0, |device| unsafe { (device.captures_in)(stream, device_index) })
}

/// Says that the next operator that this thread records was not computed, but kept under this number.
#[pyfunction]
pub fn keep_operator(number: u64) {
    if let Some(device) = device() {
        // SAFETY: as above.
        unsafe { (device.keep_operator)(number) }
    }
}

/// Gives the functions that compute a kept operator again, and drop it, by its number.
#[pyfunction]
pub fn compute_operators_of_graphs(run: Py<PyAny>, forget: Py<PyAny>) {
    if let Some(device) = device()
        && OPERATORS.set(Operators { run, forget }).is_ok()
    {
        // SAFETY: both functions may be called from any thread, and never unwind.
        unsafe { (device.operators_of_graphs)(run_operator, forget_operator) }
    }
}

/// Calls a function of Python's with a number, and keeps a pending exception. False if it raised, or nothing can be called
/// any more.
fn call(function: impl Fn(&Operators) -> &Py<PyAny>, number: u64) -> bool {
    let Some(operators) = OPERATORS.get() else { return false };
    let called = catch_unwind(AssertUnwindSafe(|| {
        Python::try_attach(|py| {
            let (mut kind, mut value, mut traceback) =
                (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the interpreter is attached; the three references go back to it below.
            unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback) };
            let result = function(operators).bind(py).call1((number,));
            let succeeded = match result {
                Ok(_) => true,
                Err(error) => {
                    error.print(py);
                    false
                }
            };
            // SAFETY: as above.
            unsafe { ffi::PyErr_Restore(kind, value, traceback) };
            succeeded
        })
    }));
    // A panic here must not unwind into CUDA's caller; its message has been printed.
    called.ok().flatten().unwrap_or(false)
}

unsafe extern "C" fn run_operator(number: u64) -> i32 {
    i32::from(!call(|operators| &operators.run, number))
}

unsafe extern "C" fn forget_operator(number: u64) {
    call(|operators| &operators.forget, number);
}
