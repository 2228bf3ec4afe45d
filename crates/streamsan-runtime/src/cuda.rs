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
use driver::{Context, Entered, check, said};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use timeline::{Place, Timeline};

use cudarc::driver::sys;

/// A GPU.
pub(crate) struct Cuda {
    context: Context,
    streams: Mutex<Vec<Timeline>>,
    used: Mutex<[usize; 2]>,
}

/// The streams, with the context entered; left after the lock.
struct Streams<'a> {
    streams: MutexGuard<'a, Vec<Timeline>>,
    _entered: Entered,
}

impl Deref for Streams<'_> {
    type Target = Vec<Timeline>;
    fn deref(&self) -> &Vec<Timeline> {
        &self.streams
    }
}

impl DerefMut for Streams<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Timeline> {
        &mut self.streams
    }
}

impl Cuda {
    /// The device with this ordinal.
    pub(crate) fn new(ordinal: i32) -> Result<Self, Error> {
        Ok(Self { context: Context::primary(ordinal)?, streams: Mutex::default(), used: Mutex::default() })
    }

    fn streams(&self) -> Result<Streams<'_>, Error> {
        let entered = self.context.enter()?;
        Ok(Streams { streams: held(&self.streams), _entered: entered })
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

    fn put_down(&self, _: StreamIndex) {
        // The driver's stream is kept for the next one: another would not be cheaper, and nobody could wait for it.
    }

    fn take_up(&self, stream: StreamIndex, name: &str) -> Result<(), Error> {
        name.clone_into(&mut self.streams()?[stream.0].name);
        Ok(())
    }

    fn runs_functions(&self) -> bool {
        false
    }

    fn within(&self, work: &mut dyn FnMut()) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        work();
        Ok(())
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
        Ok(timeline.mark())
    }

    fn run(&self, _: StreamIndex, _: &str, _: HostWork) -> Result<u64, Error> {
        Err(Error::Unsupported { what: "run a function of the host as an operation: launch kernels instead" })
    }

    fn raw_stream(&self, stream: StreamIndex) -> Result<*mut c_void, Error> {
        Ok(self.streams()?[stream.0].handle().cast())
    }

    fn mark(&self, stream: StreamIndex) -> Result<u64, Error> {
        Ok(self.streams()?[stream.0].mark())
    }

    fn wait(&self, waiter: StreamIndex, awaited: StreamIndex, number: u64) -> Result<(), Error> {
        let mut streams = self.streams()?;
        let event = match streams[awaited.0].place_of(number) {
            Place::Passed => return Ok(()),
            Place::Event(event) => event,
            // Nothing to make a stream wait for: the host waits in its place.
            Place::Stream => return streams[awaited.0].synchronize(),
        };
        let timeline = &mut streams[waiter.0];
        // SAFETY: both handles are ours and alive.
        let code = unsafe { sys::cuStreamWaitEvent(timeline.handle(), event, 0) };
        check(code, &timeline.name, "wait")
    }

    fn finished(&self, stream: StreamIndex, number: u64) -> Result<bool, Error> {
        self.streams()?[stream.0].finished(number)
    }

    fn synchronize(&self, stream: StreamIndex, number: u64) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        let (event, name) = {
            let streams = self.streams()?;
            let timeline = &streams[stream.0];
            match timeline.place_of(number) {
                Place::Passed => return Ok(()),
                Place::Event(event) => (event, timeline.name.clone()),
                Place::Stream => return timeline.synchronize(),
            }
        };
        // Not under the lock: other threads go on. The event stays this number's, or a later one's of the stream, which
        // only waits longer.
        // SAFETY: events live as long as the back end.
        check(unsafe { sys::cuEventSynchronize(event) }, &name, "wait of the host")
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Address, Error> {
        let _entered = self.context.enter()?;
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

    unsafe fn register(&self, address: Address, bytes: usize) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        let pointer = std::ptr::with_exposed_provenance_mut(address.0);
        // SAFETY: the caller vouches for the memory.
        let code = unsafe { sys::cuMemHostRegister_v2(pointer, bytes, sys::CU_MEMHOSTREGISTER_PORTABLE) };
        match code {
            sys::CUresult::CUDA_SUCCESS => {
                self.account(Space::Host, |used| used + bytes);
                Ok(())
            }
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(self.out_of_memory(Space::Host, bytes)),
            other => Err(Error::NotPageLocked { bytes, reason: said(other) }),
        }
    }

    unsafe fn unregister(&self, address: Address, bytes: usize) {
        let Ok(_entered) = self.context.enter() else { return };
        self.account(Space::Host, |used| used.saturating_sub(bytes));
        // SAFETY: registered, and nobody uses it, as the caller says.
        unsafe { sys::cuMemHostUnregister(std::ptr::with_exposed_provenance_mut(address.0)) };
    }

    unsafe fn free(&self, space: Space, address: Address, bytes: usize) {
        let Ok(_entered) = self.context.enter() else { return };
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
        if let Ok(mut streams) = self.streams() {
            streams.drain(..).for_each(Timeline::close);
        }
    }
}
