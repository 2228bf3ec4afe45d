//! Streams: where operations and copies are submitted.

use crate::backend::StreamIndex;
use crate::buffer::{Buffer, Memory};
use crate::device::Device;
use crate::error::Error;
use crate::host::HostBuffer;
use crate::operation::Operation;
use crate::order::Point;
use crate::sync::held;
use bytemuck::Pod;
use std::panic::Location;
use std::sync::Arc;
use streamsan_trace::{AccessMode, OpKind};

/// A stream of a device. What is submitted to one stream runs in order; waits for other streams come by themselves
/// with the buffers that are used.
#[derive(Clone, Debug)]
pub struct Stream {
    lease: Arc<Lease>,
    name: Arc<str>,
}

/// The right to submit to a stream. Without one the stream is idle and is given to somebody else.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) device: Device,
    pub(crate) index: StreamIndex,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.device.shared.put_down(self.index);
    }
}

/// A point in a stream: everything submitted to it before.
#[derive(Clone, Debug)]
pub struct Event {
    device: Device,
    point: Point,
}

impl Stream {
    pub(crate) fn new(lease: Arc<Lease>, name: &str) -> Self {
        Self { lease, name: name.into() }
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.lease.device
    }

    pub(crate) fn index(&self) -> StreamIndex {
        self.lease.index
    }

    /// Starts an operation: name the buffers it touches, then run it.
    pub fn operation<'a>(&'a self, label: &'a str) -> Operation<'a> {
        Operation::new(self, label)
    }

    /// Copies page-locked host memory to the device.
    ///
    /// # Errors
    ///
    /// If the lengths differ or the copy cannot be enqueued.
    #[track_caller]
    pub fn upload<T: Pod>(&self, from: &HostBuffer<T>, to: &mut Buffer<T>) -> Result<(), Error> {
        same_length(from.len(), to.len())?;
        self.copy_memory::<T>(
            (&from.memory, &to.memory, to.len()),
            ("upload", OpKind::CopyHostToDevice),
            Location::caller(),
        )
    }

    /// Copies from the device to page-locked host memory.
    ///
    /// # Errors
    ///
    /// If the lengths differ or the copy cannot be enqueued.
    #[track_caller]
    pub fn download<T: Pod>(&self, from: &Buffer<T>, to: &mut HostBuffer<T>) -> Result<(), Error> {
        same_length(from.len(), to.len())?;
        self.copy_memory::<T>(
            (&from.memory, &to.memory, to.len()),
            ("download", OpKind::CopyDeviceToHost),
            Location::caller(),
        )
    }

    /// Copies on the device.
    ///
    /// # Errors
    ///
    /// If the lengths differ or the copy cannot be enqueued.
    #[track_caller]
    pub fn copy<T: Pod>(&self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<(), Error> {
        same_length(from.len(), to.len())?;
        self.copy_memory::<T>(
            (&from.memory, &to.memory, to.len()),
            ("copy", OpKind::CopyDeviceToDevice),
            Location::caller(),
        )
    }

    fn copy_memory<T>(
        &self,
        (from, to, length): (&Memory, &Memory, usize),
        (label, kind): (&str, OpKind),
        place: &Location<'_>,
    ) -> Result<(), Error> {
        let shared = &self.lease.device.shared;
        for memory in [from, to] {
            if !Arc::ptr_eq(&memory.device.shared, shared) {
                return Err(Error::OtherDevice);
            }
        }
        let bytes = length * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        let mut state = shared.state();
        let (mut read, mut written) = (held(&from.uses), held(&to.uses));
        let before = read.before_read().chain(written.before_write()).cloned().collect();
        shared.stream_waits(&mut state, self.lease.index, before, place)?;
        // SAFETY: both blocks live until every use has passed (`Memory::drop`), they are different blocks since one
        // is borrowed uniquely, and whoever touches them waits for this copy.
        let number = unsafe { shared.backend.copy(self.lease.index, from.address, to.address, bytes) }?;
        let touches = [from.touch(AccessMode::Read, bytes), to.touch(AccessMode::Write, bytes)];
        let point = state.submitted(self.lease.index, number, label, kind, &touches, place);
        read.read_by(point.clone());
        written.written_by(point);
        Ok(())
    }

    /// The point after everything submitted so far.
    ///
    /// # Errors
    ///
    /// If the back end cannot record it.
    #[track_caller]
    pub fn record(&self) -> Result<Event, Error> {
        let point = self.lease.device.shared.record(self.lease.index, Location::caller())?;
        Ok(Event { device: self.device().clone(), point })
    }

    /// Makes everything submitted from now on wait for a point of another stream.
    ///
    /// # Errors
    ///
    /// If the event is of another device, or the wait cannot be enqueued.
    #[track_caller]
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        let shared = &self.lease.device.shared;
        if !Arc::ptr_eq(&event.device.shared, shared) {
            return Err(Error::OtherDevice);
        }
        let mut state = shared.state();
        shared.stream_waits(&mut state, self.lease.index, vec![event.point.clone()], Location::caller())
    }

    /// Blocks the host until everything submitted so far has finished.
    ///
    /// # Errors
    ///
    /// The failure of an operation.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.record()?.synchronize()
    }
}

impl Event {
    /// Blocks the host until the point has passed.
    ///
    /// # Errors
    ///
    /// The failure of an operation before it.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.shared.host_waits(&self.point)
    }
}

fn same_length(from: usize, to: usize) -> Result<(), Error> {
    if from == to { Ok(()) } else { Err(Error::Length { from, to }) }
}
