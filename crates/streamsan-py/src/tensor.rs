//! Which bytes a tensor covers.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use streamsan_record::table::RawAccess;
use streamsan_trace::Shape;

use crate::native_tensor::{Bytes, NativeTensor, native};
use crate::table::table;
use crate::torch_functions::{data_ptr, is_tensor, storage_bytes};

/// Calls `action` for the tensor, or for each of a list or tuple of them.
pub fn for_each_tensor<'py>(
    value: &Bound<'py, PyAny>,
    action: &mut dyn FnMut(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if value.is_none() {
        return Ok(());
    }
    if native(value).is_some() || is_tensor(value)? {
        return action(value);
    }
    if let Ok(list) = value.cast::<PyList>() {
        for item in list.iter() {
            for_each_tensor(&item, action)?;
        }
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        for item in tuple.iter() {
            for_each_tensor(&item, action)?;
        }
    }
    Ok(())
}

/// Device of the first of the tensors in a value that lies on one; -1 if none does.
pub fn device_of(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    if value.is_none() {
        return Ok(-1);
    }
    if native(value).is_some() || is_tensor(value)? {
        return device_index(value);
    }
    if let Ok(list) = value.cast::<PyList>() {
        for item in list.iter() {
            let device = device_of(&item)?;
            if device >= 0 {
                return Ok(device);
            }
        }
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        for item in tuple.iter() {
            let device = device_of(&item)?;
            if device >= 0 {
                return Ok(device);
            }
        }
    }
    Ok(-1)
}

/// Index of the tensor's device, or -1 if it lies in host memory.
pub fn device_index(tensor: &Bound<'_, PyAny>) -> PyResult<i32> {
    if let Some(device) = native(tensor).and_then(NativeTensor::device) {
        return Ok(device);
    }
    tensor.call_method0(intern!(tensor.py(), "get_device"))?.extract()
}

/// Address of the tensor's first element.
pub fn address(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Some(bytes) = native(tensor).and_then(NativeTensor::bytes) {
        return Ok(bytes.address);
    }
    data_ptr(tensor)
}

/// The bytes of a tensor as an access; `None` if it has none.
pub fn access(tensor: &Bound<'_, PyAny>, mode: u32, argument: u32) -> PyResult<Option<RawAccess>> {
    if let Some(native) = native(tensor)
        && let Some(bytes) = native.bytes()
        && let Ok(found) = native_access(native, bytes, mode, argument)
    {
        return Ok(found);
    }
    let py = tensor.py();
    let mut access =
        RawAccess { address: address(tensor)?, length: 0, shape: 0, mode, argument, reserved: 0 };
    if tensor.call_method0(intern!(py, "is_contiguous"))?.is_truthy()? {
        access.length = tensor.getattr(intern!(py, "nbytes"))?.extract()?;
        return Ok((access.length > 0).then_some(access));
    }
    let sizes: Vec<u64> = tensor.getattr(intern!(py, "shape"))?.extract()?;
    let strides: Vec<i64> = tensor.call_method0(intern!(py, "stride"))?.extract()?;
    let element: u64 = tensor.getattr(intern!(py, "itemsize"))?.extract()?;
    Ok(strided(access, &sizes, &strides, element))
}

/// What is read without Python cannot be told so.
struct NotNative;

fn native_access(
    tensor: NativeTensor<'_>,
    bytes: Bytes,
    mode: u32,
    argument: u32,
) -> Result<Option<RawAccess>, NotNative> {
    let access =
        RawAccess { address: bytes.address, length: bytes.length, shape: 0, mode, argument, reserved: 0 };
    if bytes.contiguous || bytes.length == 0 {
        return Ok((access.length > 0).then_some(access));
    }
    let (sizes, strides) = tensor.steps().ok_or(NotNative)?;
    Ok(strided(access, &sizes, &strides, bytes.element))
}

/// The bytes of a tensor on a device as an access, `None` if it lies in host memory or has none; and tells the recorder
/// the size of its block, if that is not known yet. The inner error says that its bytes cannot be told.
pub fn device_access(
    tensor: &Bound<'_, PyAny>,
    mode: u32,
    argument: u32,
) -> PyResult<Result<Option<RawAccess>, PyErr>> {
    if let Some(native) = native(tensor)
        && let Some(device) = native.device()
    {
        if device < 0 {
            return Ok(Ok(None));
        }
        if let Some(bytes) = native.bytes()
            && let Ok(found) = native_access(native, bytes, mode, argument)
        {
            return Ok(tell_size_of(tensor, || native.storage(bytes)).map(|()| found));
        }
    } else if device_index(tensor)? < 0 {
        return Ok(Ok(None));
    }
    // A tensor without plain strided bytes (a sparse one) raises here.
    Ok(access(tensor, mode, argument).and_then(|found| tell_size(tensor).map(|()| found)))
}

/// The access to a tensor's first element widened to all of them.
fn strided(mut access: RawAccess, sizes: &[u64], strides: &[i64], element: u64) -> Option<RawAccess> {
    let (shape, lowest) = Shape::from_tensor(sizes, strides, element)?;
    access.address = access.address.wrapping_add_signed(lowest);
    access.length = shape.length();
    access.shape = intern_shape(shape);
    Some(access)
}

static SHAPES: OnceLock<Mutex<FxHashMap<Shape, u32>>> = OnceLock::new();

fn intern_shape(shape: Shape) -> u32 {
    if shape.is_contiguous() {
        return 0;
    }
    let mut shapes = SHAPES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&id) = shapes.get(&shape) {
        return id;
    }
    let pairs: Vec<u64> = shape.dimensions.iter().flat_map(|step| [step.size, step.stride]).collect();
    // SAFETY: `pairs` holds two numbers for each of the dimensions.
    let id = table().map_or(0, |table| unsafe {
        (table.intern_shape)(shape.run, pairs.as_ptr(), shape.dimensions.len())
    });
    if shapes.len() >= 1 << 18 {
        shapes.clear();
    }
    shapes.insert(shape, id);
    id
}

/// Blocks handed out whose size no storage has told yet.
/// How many there are.
static UNSIZED_COUNT: AtomicUsize = AtomicUsize::new(0);

static UNSIZED: OnceLock<Mutex<FxHashSet<u64>>> = OnceLock::new();

fn with_unsized<R>(action: impl FnOnce(&mut FxHashSet<u64>) -> R) -> R {
    let mut blocks = UNSIZED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let answer = action(&mut blocks);
    UNSIZED_COUNT.store(blocks.len(), Ordering::Relaxed);
    answer
}

/// A block was handed out at this address.
pub fn expect_size(address: u64) {
    with_unsized(|blocks| blocks.insert(address));
}

/// The block at this address was given back.
pub fn forget_size(address: u64) {
    with_unsized(|blocks| blocks.remove(&address));
}

/// Tells the recorder the size of the tensor's block, if it is not known yet.
pub fn tell_size(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    tell_size_of(tensor, || native(tensor).and_then(|native| native.storage(native.bytes()?)))
}

fn tell_size_of(tensor: &Bound<'_, PyAny>, storage: impl FnOnce() -> Option<(u64, u64)>) -> PyResult<()> {
    // Those of this thread's operator were added by this thread.
    if UNSIZED_COUNT.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let (start, size) = match storage() {
        Some(storage) => storage,
        None => storage_bytes(tensor)?,
    };
    if with_unsized(|blocks| blocks.remove(&start))
        && let Some(table) = table()
    {
        // SAFETY: the table's functions may be called from any thread.
        unsafe { (table.block_size)(start, size) }
    }
    Ok(())
}
