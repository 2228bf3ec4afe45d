//! Copying results into device memory, which is host memory on the virtual device.

use pyo3::prelude::*;

/// Below this the interpreter stays attached: detaching costs more than the copy.
const DETACH_FROM: usize = 1 << 16;

/// Copies `count` bytes.
///
/// The caller owns both ranges: they belong to tensors that it keeps alive, and do not overlap.
#[pyfunction]
pub fn copy_bytes(py: Python<'_>, target: usize, source: usize, count: usize) {
    let copy = move || {
        // SAFETY: the documented duty of the caller.
        unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, count) }
    };
    if count >= DETACH_FROM { py.detach(copy) } else { copy() }
}
