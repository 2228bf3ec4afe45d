//! One slot: an upload buffer, device memory, a download buffer.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::host::HostBuffer;
use crate::stream::Stream;
use bytemuck::Pod;

#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) staged: HostBuffer<T>,
    pub(super) buffer: Buffer<T>,
    pub(super) result: HostBuffer<T>,
}

/// The streams of a pipeline.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) upload: Stream,
    pub(super) compute: Stream,
    pub(super) download: Stream,
}

/// What a pipeline does with each slot.
pub(super) type Function<'a, T> = dyn FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error> + 'a;

/// Where something failed, and why.
pub(super) type Failure = (&'static str, Error);

impl<T: Pod> Slot<T> {
    pub(super) fn new(device: &Device, length: usize, owner: &Stream) -> Result<Self, Error> {
        Ok(Self {
            staged: device.host_buffer(length)?,
            buffer: device.buffer(length, owner)?,
            result: device.host_buffer(length)?,
        })
    }

    /// Makes all three seem to have this many elements.
    pub(super) fn limit(&mut self, length: usize) -> Result<(), Failure> {
        self.staged.limit(length).map_err(|error| ("upload", error))?;
        self.result.limit(length).map_err(|error| ("download", error))?;
        // The function may have put another buffer in the slot.
        self.buffer.limit(length).map_err(|error| ("upload", error))
    }

    /// Submits upload, function and download of what is staged.
    pub(super) fn submit(
        &mut self,
        streams: &Streams,
        function: &mut Function<'_, T>,
    ) -> Result<(), Failure> {
        streams.upload.upload(&self.staged, &mut self.buffer).map_err(|error| ("upload", error))?;
        function(&streams.compute, &mut self.buffer).map_err(|error| ("function", error))?;
        streams.download.download(&self.buffer, &mut self.result).map_err(|error| ("download", error))
    }
}
