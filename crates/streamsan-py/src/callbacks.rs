//! The `gpu_trace` callbacks of torch, registered as they are.

use pyo3::prelude::*;
use streamsan_record::table::TorchCallback;

use crate::context::locate_callback;
use crate::table::table;
use crate::tensor::{expect_size, forget_size};
use crate::torch_functions::current_raw_stream;

fn pass_on(py: Python<'_>, callback: TorchCallback, a: u64, b: u64) {
    let Some(table) = table() else {
        return;
    };
    locate_callback(py);
    // SAFETY: the table's functions may be called from any thread.
    unsafe { (table.torch_callback)(callback as u32, a, b) }
}

/// `memory_allocation(pointer)`.
#[pyfunction]
pub fn on_memory_allocation(py: Python<'_>, pointer: u64) -> PyResult<()> {
    let Some(table) = table() else {
        return Ok(());
    };
    // SAFETY: the table's functions may be called from any thread.
    let device = unsafe { (table.device_of)(pointer) };
    // The allocator hands blocks out for the current stream of their device.
    let stream = if device == u32::MAX { 0 } else { current_raw_stream(py, device)? };
    let name = locate_callback(py);
    expect_size(pointer);
    // SAFETY: as above.
    unsafe {
        (table.torch_callback)(TorchCallback::MemoryAllocation as u32, pointer, stream);
        if name != 0 {
            (table.name_block)(pointer, name, 0);
        }
    }
    Ok(())
}

/// `memory_deallocation(pointer)`.
#[pyfunction]
pub fn on_memory_deallocation(py: Python<'_>, pointer: u64) {
    forget_size(pointer);
    pass_on(py, TorchCallback::MemoryDeallocation, pointer, 0);
}

/// `event_record(event, stream)`.
#[pyfunction]
pub fn on_event_record(py: Python<'_>, event: u64, stream: u64) {
    pass_on(py, TorchCallback::EventRecord, event, stream);
}

/// `event_wait(event, stream)`.
#[pyfunction]
pub fn on_event_wait(py: Python<'_>, event: u64, stream: u64) {
    pass_on(py, TorchCallback::EventWait, event, stream);
}

/// `event_synchronization(event)`.
#[pyfunction]
pub fn on_event_synchronization(py: Python<'_>, event: u64) {
    pass_on(py, TorchCallback::EventSynchronization, event, 0);
}

/// `stream_synchronization(stream)`.
#[pyfunction]
pub fn on_stream_synchronization(py: Python<'_>, stream: u64) {
    pass_on(py, TorchCallback::StreamSynchronization, stream, 0);
}

/// `device_synchronization()`. Other releases of torch pass the device; it is not needed.
#[pyfunction]
#[pyo3(signature = (*_device))]
pub fn on_device_synchronization(py: Python<'_>, _device: &Bound<'_, pyo3::types::PyTuple>) {
    pass_on(py, TorchCallback::DeviceSynchronization, 0, 0);
}
