//! Functions of torch that the hot path calls, looked up once.

use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

struct Functions {
    current_raw_stream: Py<PyAny>,
    current_autograd_node: Py<PyAny>,
    sequence_number: Py<PyAny>,
    tensor_base: Py<PyType>,
    data_ptr: Py<PyAny>,
    untyped_storage: Py<PyAny>,
    storage_data_ptr: Py<PyAny>,
}

static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();

fn functions(py: Python<'_>) -> PyResult<&Functions> {
    FUNCTIONS.get_or_try_init(py, || {
        let native = py.import("torch")?.getattr("_C")?;
        let tensor_base = native.getattr("TensorBase")?.cast_into::<PyType>()?;
        Ok(Functions {
            current_raw_stream: native.getattr("_cuda_getCurrentRawStream")?.unbind(),
            current_autograd_node: native.getattr("_current_autograd_node")?.unbind(),
            sequence_number: native.getattr("_autograd")?.getattr("_get_sequence_nr")?.unbind(),
            data_ptr: tensor_base.getattr("data_ptr")?.unbind(),
            untyped_storage: tensor_base.getattr("untyped_storage")?.unbind(),
            storage_data_ptr: native.getattr("StorageBase")?.getattr("data_ptr")?.unbind(),
            tensor_base: tensor_base.unbind(),
        })
    })
}

/// Raw handle of the current stream of a device.
pub fn current_raw_stream(py: Python<'_>, device: u32) -> PyResult<u64> {
    // Asked for each operator, as above.
    if let Some(stream) = native_stream(device) {
        return Ok(stream);
    }
    let stream = functions(py)?.current_raw_stream.bind(py).call1((device,))?.extract()?;
    CURRENT_STREAM
        .get_or_init(|| find_current_stream().filter(|&ask| ask_stream(ask, device) == Some(stream)));
    Ok(stream)
}

/// The same without Python, if that is known to work.
pub fn native_stream(device: u32) -> Option<u64> {
    ask_stream((*CURRENT_STREAM.get()?)?, device)
}

/// torch's C interface has it as a function of the device's index that writes the handle, and returns 0 if it could.
type AskStream = unsafe extern "C" fn(i32, *mut u64) -> i32;

static CURRENT_STREAM: OnceLock<Option<AskStream>> = OnceLock::new();

fn ask_stream(ask: AskStream, device: u32) -> Option<u64> {
    let mut stream = 0;
    let device = i32::try_from(device).ok()?;
    // SAFETY: the function has this type in torch's header, and there is room for what it writes.
    (unsafe { ask(device, &raw mut stream) } == 0).then_some(stream)
}

fn find_current_stream() -> Option<AskStream> {
    // SAFETY: plain C strings; the library is only looked for, not loaded, and never leaves the process; a missing
    // function is null, which is `None`.
    unsafe {
        let library = libc::dlopen(c"libtorch_cuda.so".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        std::mem::transmute(libc::dlsym(library, c"aoti_torch_get_current_cuda_stream".as_ptr()))
    }
}

/// Sequence number of the node that the engine runs on this thread, if it runs one.
pub fn running_node(py: Python<'_>) -> PyResult<Option<u64>> {
    let node = functions(py)?.current_autograd_node.bind(py).call0()?;
    if node.is_none() {
        return Ok(None);
    }
    node.call_method0(intern!(py, "_sequence_nr"))?.extract().map(Some)
}

/// The sequence number that the next node made on this thread will get.
pub fn next_sequence_number(py: Python<'_>) -> PyResult<u64> {
    // Asked for each operator: not through Python if torch's own function is there.
    if let Some(peek) = *PEEK.get_or_init(find_peek) {
        // SAFETY: the function takes nothing and reads a number of the calling thread.
        return Ok(unsafe { peek() });
    }
    functions(py)?.sequence_number.bind(py).call0()?.extract()
}

/// Whether the object is a tensor.
pub fn is_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let base = functions(object.py())?.tensor_base.as_ptr();
    // SAFETY: both are type objects, and the interpreter is attached.
    Ok(unsafe { pyo3::ffi::PyType_IsSubtype(pyo3::ffi::Py_TYPE(object.as_ptr()), base.cast()) } != 0)
}

/// Address of a tensor's first element. Not the method that the program calls: that one is watched.
pub fn data_ptr(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    functions(tensor.py())?.data_ptr.bind(tensor.py()).call1((tensor,))?.extract()
}

/// Address and bytes of the storage of a tensor.
pub fn storage_bytes(tensor: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    let py = tensor.py();
    let functions = functions(py)?;
    let storage = functions.untyped_storage.bind(py).call1((tensor,))?;
    let start = functions.storage_data_ptr.bind(py).call1((&storage,))?.extract()?;
    Ok((start, storage.call_method0(intern!(py, "nbytes"))?.extract()?))
}

static PEEK: OnceLock<Option<unsafe extern "C" fn() -> u64>> = OnceLock::new();

/// `at::sequence_number::peek`, if torch's library has it.
fn find_peek() -> Option<unsafe extern "C" fn() -> u64> {
    // SAFETY: plain C strings. The library is only looked for, not loaded, and never leaves the process. Its function, if there is
    // one of this name, takes nothing and returns a 64-bit number: both are part of the name's meaning in every torch
    // that has it, and a missing one is null.
    unsafe {
        let library = libc::dlopen(c"libtorch_cpu.so".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        std::mem::transmute(libc::dlsym(library, c"_ZN2at15sequence_number4peekEv".as_ptr()))
    }
}
