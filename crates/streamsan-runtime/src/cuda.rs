//! The back end for GPUs: the driver's streams, events and copies, on the device's primary context, which PyTorch
//! and the CUDA runtime use too.
//!
//! Each operation is followed by an event of its own, so that whatever comes after an operation waits for it and not
//! for what was enqueued later. Events are taken from a pool and go back when they have passed.
//!
//! Sources: CUDA driver API, "Stream Management", "Event Management", "Memory Management"; the bindings are
//! cudarc's `driver::sys`, not its safe layer, which keeps one read event for all readers of a slice.

mod driver;
mod timeline;

use crate::backend::{Address, Backend, HostWork, Space, StreamIndex};
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard, held};
use driver::{Context, check};
use std::ffi::c_void;
use timeline::Timeline;

use cudarc::driver::sys;

/// A GPU.
pub(crate) struct Cuda {
    context: Context,
    streams: Mutex<Vec<Timeline>>,
    used: Mutex<[usize; 2]>,
}

impl Cuda {
    /// The device with this ordinal.
    pub(crate) fn new(ordinal: i32) -> Result<Self, Error> {
        Ok(Self { context: Context::primary(ordinal)?, streams: Mutex::default(), used: Mutex::default() })
    }

    fn streams(&self) -> Result<MutexGuard<'_, Vec<Timeline>>, Error> {
        self.context.enter()?;
        Ok(held(&self.streams))
    }

    fn account(&self, space: Space, change: impl FnOnce(usize) -> usize) -> usize {
        let mut used = held(&self.used);
        let entry = &mut used[usize::from(space == Space::Host)];
        *entry = change(*entry);
        *entry
    }

    fn out_of_memory(&self, space: Space, wanted: usize) -> Error {
        let used = self.account(space, |used| used);
        let name = match space {
            Space::Device => "device memory",
            Space::Host => "page-locked host memory",
        };
        Error::OutOfMemory { space: name, wanted, used, limit: self.context.total_memory(space) }
    }
}

impl Backend for Cuda {
    fn create_stream(&self, name: &str) -> Result<StreamIndex, Error> {
        let mut streams = self.streams()?;
        streams.push(Timeline::new(name)?);
        Ok(StreamIndex(streams.len() - 1))
    }

    unsafe fn copy(
        &self,
        stream: StreamIndex,
        from: Address,
        to: Address,
        bytes: usize,
    ) -> Result<u64, Error> {
        let mut streams = self.streams()?;
        let timeline = &mut streams[stream.0];
        // SAFETY: the caller vouches for both ranges until the copy is done. Addresses are unified: the driver sees
        // from them which way it goes.
        let code = unsafe { sys::cuMemcpyAsync(to.0 as u64, from.0 as u64, bytes, timeline.handle()) };
        check(code, &timeline.name, "copy")?;
        timeline.mark()
    }

    fn run(&self, _: StreamIndex, _: &str, _: HostWork) -> Result<u64, Error> {
        Err(Error::Unsupported { what: "run a function of the host as an operation: launch kernels instead" })
    }

    fn raw_stream(&self, stream: StreamIndex) -> Result<*mut c_void, Error> {
        Ok(self.streams()?[stream.0].handle().cast())
    }

    fn mark(&self, stream: StreamIndex) -> Result<u64, Error> {
        self.streams()?[stream.0].mark()
    }

    fn wait(&self, waiter: StreamIndex, awaited: StreamIndex, number: u64) -> Result<(), Error> {
        let mut streams = self.streams()?;
        let Some(event) = streams[awaited.0].event_of(number) else { return Ok(()) };
        let timeline = &mut streams[waiter.0];
        // SAFETY: both handles are ours and alive.
        let code = unsafe { sys::cuStreamWaitEvent(timeline.handle(), event, 0) };
        check(code, &timeline.name, "wait")
    }

    fn finished(&self, stream: StreamIndex, number: u64) -> Result<bool, Error> {
        self.streams()?[stream.0].finished(number)
    }

    fn synchronize(&self, stream: StreamIndex, number: u64) -> Result<(), Error> {
        let (event, name) = {
            let streams = self.streams()?;
            let timeline = &streams[stream.0];
            let Some(event) = timeline.event_of(number) else { return Ok(()) };
            (event, timeline.name.clone())
        };
        // Not under the lock: other threads go on. The event stays this number's, or a later one's of the stream, which
        // only waits longer.
        // SAFETY: events live as long as the back end.
        check(unsafe { sys::cuEventSynchronize(event) }, &name, "wait of the host")
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Address, Error> {
        self.context.enter()?;
        let mut address = 0_u64;
        let mut pointer: *mut c_void = std::ptr::null_mut();
        let size = bytes.max(1);
        // SAFETY: places for the results.
        let code = unsafe {
            match space {
                Space::Device => sys::cuMemAlloc_v2(&raw mut address, size),
                Space::Host => sys::cuMemHostAlloc(&raw mut pointer, size, sys::CU_MEMHOSTALLOC_PORTABLE),
            }
        };
        match code {
            sys::CUresult::CUDA_SUCCESS => {
                self.account(space, |used| used + size);
                let address =
                    if space == Space::Host { pointer.expose_provenance() } else { address as usize };
                Ok(Address(address))
            }
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(self.out_of_memory(space, size)),
            other => check(other, "-", "allocation").map(|()| Address(0)),
        }
    }

    unsafe fn free(&self, space: Space, address: Address, bytes: usize) {
        if self.context.enter().is_err() {
            return;
        }
        self.account(space, |used| used.saturating_sub(bytes.max(1)));
        // SAFETY: ours, and nobody uses it, as the caller says. A failure leaves it to the end of the process.
        unsafe {
            match space {
                Space::Device => sys::cuMemFree_v2(address.0 as u64),
                Space::Host => sys::cuMemFreeHost(std::ptr::with_exposed_provenance_mut(address.0)),
            }
        };
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            held(&self.streams).drain(..).for_each(Timeline::close);
        }
    }
}
