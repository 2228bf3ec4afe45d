//! Pointers that are given away, and `record_stream`: calls that no operator's record shows.

use pyo3::prelude::*;

use crate::context;
use crate::operation;
use crate::table::{has_page_locked, intern_text, table};
use crate::tensor::{address, device_index};

/// Records that a pointer to the tensor's bytes is given away here, if they are page-locked.
///
/// With `by_user` only if the call is made in the user's own code: libraries also ask for addresses to compare them.
#[pyfunction]
pub fn escape(py: Python<'_>, tensor: &Bound<'_, PyAny>, label: &str, by_user: bool) -> PyResult<()> {
    let Some(table) = table().filter(|_| has_page_locked()) else {
        return Ok(());
    };
    if device_index(tensor)? >= 0 {
        return Ok(());
    }
    // Tensors without an address are not page-locked.
    let Ok(address) = address(tensor) else {
        return Ok(());
    };
    let (stack, owner) = context::capture_with_caller(py);
    if by_user && !owner {
        return Ok(());
    }
    context::enter(stack, 0, 0);
    // SAFETY: the table's functions may be called from any thread, with any address.
    unsafe { (table.escape)(address, intern_text(label)) }
    context::leave();
    Ok(())
}

/// Announces the page-locked memory of a tensor that was made without an operator, with the context of `mark`.
#[pyfunction]
pub fn announce_page_locked(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    operation::announce_page_locked(tensor, context::block_name())
}

/// Records that `record_stream` is called here on the tensor.
#[pyfunction]
pub fn record_stream(py: Python<'_>, tensor: &Bound<'_, PyAny>, stream: u64, device: u32) {
    let Some(table) = table() else {
        return;
    };
    // 0 stands for memory that is not the allocator's.
    let address = address(tensor).unwrap_or(0);
    context::enter(context::capture(py), 0, 0);
    // SAFETY: the table's functions may be called from any thread, with any address.
    unsafe { (table.record_stream)(address, stream, device) }
    context::leave();
}
