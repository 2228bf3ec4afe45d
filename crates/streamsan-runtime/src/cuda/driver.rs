//! The driver library, the primary context, and the driver's errors.

use crate::backend::Space;
use crate::error::Error;
use cudarc::driver::sys;
use std::ffi::CStr;

/// The primary context of a device, kept while this lives.
pub(super) struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Loads the driver and takes the primary context of a device.
    pub(super) fn primary(ordinal: i32) -> Result<Self, Error> {
        // SAFETY: loading the driver runs its constructors, as any CUDA program does.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDevice {
                reason: "libcuda.so.1 cannot be loaded: is the NVIDIA driver installed?".to_owned(),
            });
        }
        let (mut device, mut handle) = (0, std::ptr::null_mut());
        // SAFETY: places for the results.
        unsafe {
            no_device(sys::cuInit(0))?;
            no_device(sys::cuDeviceGet(&raw mut device, ordinal))?;
            no_device(sys::cuDevicePrimaryCtxRetain(&raw mut handle, device))?;
        }
        Ok(Self { device, handle })
    }

    /// Makes the context the calling thread's until the answer is dropped.
    pub(super) fn enter(&self) -> Result<Entered, Error> {
        let mut before = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        check(unsafe { sys::cuCtxGetCurrent(&raw mut before) }, "-", "asking for the context")?;
        if before == self.handle {
            return Ok(Entered { before: None });
        }
        // SAFETY: the context is retained.
        check(unsafe { sys::cuCtxSetCurrent(self.handle) }, "-", "entering the context")?;
        Ok(Entered { before: Some(before) })
    }

    /// Bytes of the device, or 0 for host memory, whose limit is not known.
    pub(super) fn total_memory(&self, space: Space) -> usize {
        let mut total = 0;
        if space == Space::Device {
            // SAFETY: a place for the result.
            let _ = unsafe { sys::cuDeviceTotalMem_v2(&raw mut total, self.device) };
        }
        total
    }
}

/// A context is the calling thread's; the one before comes back at the end.
pub(super) struct Entered {
    before: Option<sys::CUcontext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: null, or the context that the caller had, which outlives the call that we are in.
            let _ = unsafe { sys::cuCtxSetCurrent(before) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, released once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

fn no_device(code: sys::CUresult) -> Result<(), Error> {
    match code {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(Error::NoDevice { reason: said(other) }),
    }
}

/// The driver's answer as a result.
pub(super) fn check(code: sys::CUresult, stream: &str, operation: &str) -> Result<(), Error> {
    match code {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(Error::Operation {
            stream: stream.to_owned(),
            operation: operation.to_owned(),
            message: said(other),
        }),
    }
}

/// The driver's words for a code.
pub(super) fn said(code: sys::CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: a place for the result, a string that lives as long as the driver.
    let found = unsafe { sys::cuGetErrorString(code, &raw mut text) };
    if found != sys::CUresult::CUDA_SUCCESS || text.is_null() {
        return format!("{code:?}");
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
