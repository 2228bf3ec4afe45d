//! Reading tensors without Python.
//!
//! torch exports a C interface for compiled models, whose functions take a pointer to a tensor of C++: a word that
//! holds a pointer to what the tensor is. A tensor of Python has that word at a place which no interface tells. So it
//! is looked for when torch has been imported: `Tensor._cdata` says what it holds. The functions are then tried on
//! tensors whose answers Python gives too. Where anything differs tensors are read through Python.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use pyo3::ffi::PyTypeObject;
use pyo3::intern;
use pyo3::prelude::*;

use crate::torch_functions::{data_ptr, storage_bytes};

/// Pointer to a tensor of C++.
type Handle = *const c_void;
type Get<T> = unsafe extern "C" fn(Handle, *mut T) -> i32;

/// Words of a Python object in which the tensor is looked for, after its header; it is in the first where this was
/// tried.
const WORDS: std::ops::Range<usize> = 2..6;

/// The functions, and where the tensor lies.
struct Native {
    /// In bytes, from the start of the Python object.
    place: usize,
    /// Classes whose objects are plain tensors.
    classes: [usize; 2],
    /// What the interface calls a CUDA device.
    cuda: i32,
    /// What it calls a tensor with plain strided bytes.
    strided: i32,
    element_size: unsafe extern "C" fn(i32) -> usize,
    device_type: Get<i32>,
    device_index: Get<i32>,
    layout: Get<i32>,
    element_type: Get<i32>,
    address: Get<u64>,
    elements: Get<i64>,
    is_contiguous: Get<bool>,
    dimensions: Get<i64>,
    sizes: Get<*const i64>,
    strides: Get<*const i64>,
    storage_offset: Get<i64>,
    storage_size: Get<i64>,
}

static NATIVE: OnceLock<Option<&'static Native>> = OnceLock::new();

/// A tensor that is read without Python. It borrows the Python object.
#[derive(Clone, Copy)]
pub struct NativeTensor<'py> {
    native: &'static Native,
    handle: Handle,
    object: &'py Bound<'py, PyAny>,
}

/// Where the bytes of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Of the first element; 0 if there is none.
    pub address: u64,
    /// Of all elements, in bytes.
    pub length: u64,
    /// Of an element, in bytes.
    pub element: u64,
    /// Whether they lie one after the other.
    pub contiguous: bool,
}

/// The tensor, if it can be read so.
pub fn native<'py>(tensor: &'py Bound<'py, PyAny>) -> Option<NativeTensor<'py>> {
    let native = (*NATIVE.get()?)?;
    // SAFETY: the object lives, and every object has a class.
    let class = unsafe { pyo3::ffi::Py_TYPE(tensor.as_ptr()) } as usize;
    native.knows(class).then(|| NativeTensor::at(native, tensor))
}

/// Whether this is the class of plain tensors.
pub fn is_plain_class(class: *mut PyTypeObject) -> bool {
    matches!(NATIVE.get(), Some(Some(native)) if native.knows(class as usize))
}

impl Native {
    fn knows(&self, class: usize) -> bool {
        let [one, other] = self.classes;
        class == one || class == other
    }
}

impl<'py> NativeTensor<'py> {
    fn at(native: &'static Native, object: &'py Bound<'py, PyAny>) -> Self {
        let handle = object.as_ptr().wrapping_byte_add(native.place).cast_const().cast();
        Self { native, handle, object }
    }

    fn get<T>(self, function: Get<T>, start: T) -> Option<T> {
        let mut answer = start;
        // SAFETY: the handle points to a tensor of C++ that the Python object owns, and the function writes one value
        // of this type: both were tried when the function was found.
        (unsafe { function(self.handle, &raw mut answer) } == 0).then_some(answer)
    }

    /// Index of the device, or -1 if it is no CUDA device.
    pub fn device(self) -> Option<i32> {
        if self.get(self.native.device_type, 0)? != self.native.cuda {
            return Some(-1);
        }
        self.get(self.native.device_index, -1)
    }

    /// Where the bytes are. `None` if the tensor has no plain strided bytes.
    pub fn bytes(self) -> Option<Bytes> {
        // Asked first: the other functions complain to the program's standard error.
        if self.get(self.native.layout, -1)? != self.native.strided {
            return None;
        }
        let element_type = self.get(self.native.element_type, 0)?;
        // SAFETY: the function looks a number up.
        let element = unsafe { (self.native.element_size)(element_type) } as u64;
        let elements = u64::try_from(self.get(self.native.elements, 0)?).ok()?;
        let address = self.get(self.native.address, 0)?;
        let contiguous = self.get(self.native.is_contiguous, false)?;
        Some(Bytes { address, length: elements.checked_mul(element)?, element, contiguous })
    }

    /// Sizes and strides, in elements. Only for a tensor that has `bytes`.
    pub fn steps(self) -> Option<(Vec<u64>, Vec<i64>)> {
        // A nested tensor, which has none, would complain.
        if self.object.getattr(intern!(self.object.py(), "is_nested")).ok()?.is_truthy().ok()? {
            return None;
        }
        let count = usize::try_from(self.get(self.native.dimensions, 0)?).ok()?;
        let sizes = self.get(self.native.sizes, std::ptr::null())?;
        let strides = self.get(self.native.strides, std::ptr::null())?;
        if count == 0 || sizes.is_null() || strides.is_null() {
            return Some((Vec::new(), Vec::new()));
        }
        // SAFETY: both point to as many numbers as there are dimensions, which live as long as the tensor.
        let (sizes, strides) =
            unsafe { (std::slice::from_raw_parts(sizes, count), std::slice::from_raw_parts(strides, count)) };
        let sizes = sizes.iter().map(|&size| u64::try_from(size).ok()).collect::<Option<_>>()?;
        Some((sizes, strides.to_vec()))
    }

    /// Address and bytes of the storage; `None` if the tensor has no element.
    pub fn storage(self, bytes: Bytes) -> Option<(u64, u64)> {
        if bytes.address == 0 {
            return None;
        }
        let offset = u64::try_from(self.get(self.native.storage_offset, 0)?).ok()?;
        let start = bytes.address.checked_sub(offset.checked_mul(bytes.element)?)?;
        Some((start, u64::try_from(self.get(self.native.storage_size, 0)?).ok()?))
    }
}

/// Has tensors read without Python from now on, if that gives what Python says of these: strided tensors in host memory,
/// of two classes, which are then those of plain tensors. Whether it does.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn read_tensors_natively(examples: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
    if NATIVE.get().is_none() {
        let mut found = find(&examples)?;
        if let Some(native) = found {
            for example in &examples {
                if !agrees(NativeTensor::at(native, example))? {
                    found = None;
                }
            }
        }
        let _first_wins = NATIVE.set(found);
    }
    Ok(NATIVE.get().is_some_and(Option::is_some))
}

/// Finds the functions, and the place of the tensor in the objects. They are kept to the end of the process.
fn find(examples: &[Bound<'_, PyAny>]) -> PyResult<Option<&'static Native>> {
    let Some(place) = place(examples)? else {
        return Ok(None);
    };
    let mut classes: Vec<usize> =
        examples.iter().map(|example| example.get_type().as_ptr() as usize).collect();
    classes.sort_unstable();
    classes.dedup();
    let &[one, other] = &classes[..] else {
        return Ok(None);
    };
    // SAFETY: a C string. The library is only looked for, not loaded, and never leaves the process.
    let library = unsafe { libc::dlopen(c"libtorch_cpu.so".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return Ok(None);
    }
    // SAFETY: the types are those that torch's header of this interface declares, which only ever grows.
    let native = unsafe {
        let constant = |name: &CStr| {
            let function: Option<unsafe extern "C" fn() -> i32> = symbol(library, name);
            function.map(|function| function())
        };
        (|| {
            Some(Native {
                place,
                classes: [one, other],
                cuda: constant(c"aoti_torch_device_type_cuda")?,
                strided: constant(c"aoti_torch_layout_strided")?,
                element_size: symbol(library, c"aoti_torch_dtype_element_size")?,
                device_type: symbol(library, c"aoti_torch_get_device_type")?,
                device_index: symbol(library, c"aoti_torch_get_device_index")?,
                layout: symbol(library, c"aoti_torch_get_layout")?,
                element_type: symbol(library, c"aoti_torch_get_dtype")?,
                address: symbol(library, c"aoti_torch_get_data_ptr")?,
                elements: symbol(library, c"aoti_torch_get_numel")?,
                is_contiguous: symbol(library, c"aoti_torch_is_contiguous")?,
                dimensions: symbol(library, c"aoti_torch_get_dim")?,
                sizes: symbol(library, c"aoti_torch_get_sizes")?,
                strides: symbol(library, c"aoti_torch_get_strides")?,
                storage_offset: symbol(library, c"aoti_torch_get_storage_offset")?,
                storage_size: symbol(library, c"aoti_torch_get_storage_size")?,
            })
        })()
    };
    Ok(native.map(|native| &*Box::leak(Box::new(native))))
}

/// The function of this name, if there is one.
///
/// # Safety
///
/// `F` is an optional pointer to a function of the type that the name has.
unsafe fn symbol<F>(library: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: a library that is loaded, and a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: a pointer that is not null, of the size of `F`, which the caller vouches for.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

/// Where in each of the objects, in bytes, the word lies that Python knows as `_cdata`. `None` if that is in no place
/// or in several.
fn place(examples: &[Bound<'_, PyAny>]) -> PyResult<Option<usize>> {
    let mut places: Vec<usize> = WORDS.map(|word| word * size_of::<usize>()).collect();
    for example in examples {
        let size: usize = example.get_type().getattr("__basicsize__")?.extract()?;
        let known: usize = example.getattr("_cdata")?.extract()?;
        places.retain(|&place| {
            // SAFETY: the word lies inside the object, which is at least as large as its class says.
            place + size_of::<usize>() <= size
                && unsafe { example.as_ptr().byte_add(place).cast::<usize>().read() } == known
        });
    }
    Ok(if let [place] = places[..] { Some(place) } else { None })
}

/// Whether Python says the same of a tensor that lies in host memory.
fn agrees(tensor: NativeTensor<'_>) -> PyResult<bool> {
    let object = tensor.object;
    let said = Bytes {
        address: data_ptr(object)?,
        length: object.getattr("nbytes")?.extract()?,
        element: object.getattr("itemsize")?.extract()?,
        contiguous: object.call_method0("is_contiguous")?.is_truthy()?,
    };
    let steps: (Vec<u64>, Vec<i64>) =
        (object.getattr("shape")?.extract()?, object.call_method0("stride")?.extract()?);
    let storage = if said.address == 0 { None } else { Some(storage_bytes(object)?) };
    Ok(tensor.device() == Some(-1)
        && tensor.bytes() == Some(said)
        && tensor.steps() == Some(steps)
        && tensor.storage(said) == storage)
}
