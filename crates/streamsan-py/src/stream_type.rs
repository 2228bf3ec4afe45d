//! Objects of `torch.Stream`, taken note of when they are made.
//!
//! The class is written in C and Python code cannot replace what makes its objects. So the entry for that in the
//! class is replaced here; the entry is found by its value, since the stable interface does not tell its place.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Number of the entry that makes objects (`Py_tp_new`).
const MAKE: c_int = 65;

/// Words of a class in which the entry can lie; it lies in the 40th where this was tried.
const WORDS: usize = 50;

struct Watched {
    make: ffi::newfunc,
    hook: Py<PyAny>,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// Has `hook(made, args, kwargs)` called for each object that the class makes, from now on. Only the first call has
/// an effect. False if the class is built in another way.
#[pyfunction]
pub fn watch_stream_type(class: &Bound<'_, PyType>, hook: Py<PyAny>) -> bool {
    let object = class.as_type_ptr();
    // SAFETY: the class is a type object.
    let make = unsafe { ffi::PyType_GetSlot(object, MAKE) };
    if make.is_null() {
        return false;
    }
    let words = object.cast::<*mut std::ffi::c_void>();
    // SAFETY: a type object has more words than these.
    let mut places = (0..WORDS).filter(|&index| unsafe { *words.add(index) } == make);
    let (Some(place), None) = (places.next(), places.next()) else {
        return false;
    };
    // SAFETY: the entry has this type.
    let make = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ffi::newfunc>(make) };
    if WATCHED.set(Watched { make, hook }).is_err() {
        return true;
    }
    // SAFETY: the interpreter is attached, so nobody reads the entry now; the function lives as long as the process.
    unsafe {
        *words.add(place) = make_watched as *mut std::ffi::c_void;
        ffi::PyType_Modified(object);
    }
    true
}

unsafe extern "C" fn make_watched(
    class: *mut PyTypeObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> *mut PyObject {
    let Some(watched) = WATCHED.get() else {
        return std::ptr::null_mut();
    };
    // SAFETY: the class's own function, with what it was called with.
    let made = unsafe { (watched.make)(class, args, kwargs) };
    if !made.is_null() {
        // A panic must not unwind into the interpreter; its message has been printed.
        drop(catch_unwind(AssertUnwindSafe(|| {
            Python::attach(|py| {
                // SAFETY: all are objects of the interpreter, which is attached; `kwargs` may be null.
                let (made, args, kwargs) = unsafe {
                    (
                        Bound::from_borrowed_ptr(py, made),
                        Bound::from_borrowed_ptr(py, args).cast_into_unchecked::<PyTuple>(),
                        Bound::from_borrowed_ptr_or_opt(py, kwargs),
                    )
                };
                let kwargs = kwargs.unwrap_or_else(|| PyDict::new(py).into_any());
                if let Err(error) = watched.hook.bind(py).call1((&made, &args, &kwargs)) {
                    error.write_unraisable(py, None);
                }
            });
        })));
    }
    made
}
