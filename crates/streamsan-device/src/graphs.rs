//! Graph capture: there is none yet. Asking whether one is under way is answered truly.

use std::ffi::{c_int, c_ulonglong, c_void};

use crate::call::{call, give};
use crate::errors::Code;
use crate::streams::with_stream;

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamIsCapturing(stream: u64, status: *mut c_int) -> Code {
    call(|| {
        with_stream(stream, |_, _| ())?;
        // SAFETY: the caller gives a place for the status.
        unsafe { give(status, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetCaptureInfo(
    stream: u64,
    status: *mut c_int,
    id: *mut c_ulonglong,
    graph: *mut *mut c_void,
    dependencies: *mut *const c_void,
    edges: *mut *const c_void,
    count: *mut usize,
) -> Code {
    call(|| {
        with_stream(stream, |_, _| ())?;
        // SAFETY: the caller gives a place for the status, and for each of the others or null.
        unsafe {
            give(status, 0)?;
            for (given, write) in [
                (id.is_null(), &(|| id.write(0)) as &dyn Fn()),
                (graph.is_null(), &|| graph.write(std::ptr::null_mut())),
                (dependencies.is_null(), &|| dependencies.write(std::ptr::null())),
                (edges.is_null(), &|| edges.write(std::ptr::null())),
                (count.is_null(), &|| count.write(0)),
            ] {
                if !given {
                    write();
                }
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) -> Code {
    thread_local! {
        static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
    }
    call(|| {
        // SAFETY: null or the caller's mode.
        let mode = unsafe { mode.as_mut() }.ok_or(Code::INVALID_VALUE)?;
        *mode = MODE.try_with(|own| own.replace(*mode)).unwrap_or(0);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capture_mode_is_exchanged() {
        let mut mode = 2;
        // SAFETY: a place for the mode, here and below.
        assert_eq!(unsafe { cudaThreadExchangeStreamCaptureMode(&raw mut mode) }, Code::SUCCESS);
        assert_eq!(mode, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { cudaThreadExchangeStreamCaptureMode(&raw mut mode) }, Code::SUCCESS);
        assert_eq!(mode, 2);
    }
}
