//! What compiled CUDA code says of itself when it is loaded: its kernels and device variables.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use crate::call::{call, give, inquiry, lock};
use crate::errors::Code;
use crate::memory;

/// A kernel's name, as its library holds it.
#[derive(Clone, Copy)]
struct KernelName(*const c_char);

// SAFETY: a constant of a loaded library, only read.
unsafe impl Send for KernelName {}

/// A device variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its memory on the device; 0 before its first use.
    pub address: usize,
    /// Bytes.
    pub size: usize,
}

struct Registered {
    kernels: HashMap<usize, KernelName>,
    variables: HashMap<usize, Variable>,
}

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

fn with_registered<T>(work: impl FnOnce(&mut Registered) -> T) -> Result<T, Code> {
    // torch registers some ten thousand kernels while it is imported.
    let empty = || Registered { kernels: HashMap::with_capacity(1 << 14), variables: HashMap::new() };
    Ok(work(lock(&REGISTERED)?.get_or_insert_with(empty)))
}

/// The name of the kernel behind a host function, as the compiler mangled it.
pub fn kernel_name(function: usize) -> &'static str {
    let name = with_registered(|registered| registered.kernels.get(&function).copied()).ok().flatten();
    name.and_then(|KernelName(name)| {
        // SAFETY: a constant of a library that is still loaded, as it launches this kernel.
        unsafe { CStr::from_ptr(name) }.to_str().ok()
    })
    .unwrap_or("unknown kernel")
}

/// The memory of the variable with this host shadow; allocated at its first use.
pub fn variable(shadow: usize) -> Result<Variable, Code> {
    let known = with_registered(|registered| registered.variables.get(&shadow).copied())?;
    let known = known.ok_or(Code::INVALID_SYMBOL)?;
    if known.address != 0 {
        return Ok(known);
    }
    let address = memory::allocate(crate::devices::current_device(), known.size.max(1))?;
    let winner = with_registered(|registered| {
        let variable = registered.variables.get_mut(&shadow)?;
        if variable.address == 0 {
            variable.address = address;
        }
        Some(*variable)
    })?
    .ok_or(Code::INVALID_SYMBOL)?;
    if winner.address != address {
        memory::free(address)?;
    }
    Ok(winner)
}

/// A place that stands for a loaded module: nothing is read from it.
static MODULE: usize = 0;

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(_binary: *const c_void) -> *const usize {
    crate::recording::begin();
    &raw const MODULE
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_module: *const usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_module: *const usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_module: *const usize) -> c_char {
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    _module: *const usize,
    host_function: usize,
    _device_function: *const c_char,
    device_name: *const c_char,
) {
    // The other arguments, on the stack, are of no use here.
    inquiry(|| {
        if device_name.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        with_registered(|registered| registered.kernels.insert(host_function, KernelName(device_name)))
            .map(|_| ())
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    _module: *const usize,
    shadow: usize,
    _address: *const c_char,
    _name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    inquiry(|| {
        with_registered(|registered| registered.variables.insert(shadow, Variable { address: 0, size }))
            .map(|_| ())
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    _module: *const usize,
    _pointer: *mut *mut c_void,
    _address: *const c_char,
    _name: *const c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
}

// Variables of the host that kernels use: no kernel runs here. The runtime itself would take our module for its own.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterHostVar() {}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterUnifiedTable() {}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetSymbolAddress(address: *mut usize, shadow: usize) -> Code {
    // SAFETY: the caller gives a place for the address.
    call(|| unsafe { give(address, variable(shadow)?.address) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetSymbolSize(size: *mut usize, shadow: usize) -> Code {
    // SAFETY: the caller gives a place for the size.
    call(|| unsafe { give(size, variable(shadow)?.size) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_name_it_was_registered_with() {
        // SAFETY: a constant name.
        unsafe { __cudaRegisterFunction(&raw const MODULE, 77, c"x".as_ptr(), c"_Z3addPf".as_ptr()) };
        assert_eq!(kernel_name(77), "_Z3addPf");
        assert_eq!(kernel_name(78), "unknown kernel");
    }

    #[test]
    fn a_variable_has_one_place_and_its_size() {
        let null = std::ptr::null();
        __cudaRegisterVar(&raw const MODULE, 4096, null, null, 0, 24, 0, 0);
        let first = variable(4096).expect("registered");
        assert_eq!(first.size, 24);
        assert_eq!(variable(4096).map(|again| again.address), Ok(first.address));
        assert_eq!(variable(1).map(|variable| variable.size), Err(Code::INVALID_SYMBOL));
        assert_eq!(memory::region_at(first.address).map(|region| region.is_some()), Ok(true));
    }
}
