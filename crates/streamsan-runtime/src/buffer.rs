//! Buffers in device memory.

use crate::backend::{ALIGNMENT, Address, Space, StreamIndex};
use crate::device::Device;
use crate::error::Error;
use crate::journal::Touch;
use crate::order::Uses;
use crate::stream::Lease;
use crate::sync::{Mutex, held};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use streamsan_trace::{AccessMode, BlockId};

/// `length` elements in device memory, owned by a stream.
///
/// It knows its last writer and every stream that still reads it. An operation on it waits for those it has to
/// come after; a shared borrow allows reading, a unique one writing, so that two operations that could clash
/// cannot be given the same buffer at once. Dropping it makes its owner stream, not the host, wait for every use.
#[derive(Debug)]
pub struct Buffer<T> {
    pub(crate) memory: Memory,
    length: usize,
    element: PhantomData<T>,
}

/// A block and who uses it.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) device: Device,
    pub(crate) space: Space,
    /// Whose pool device memory goes back to; it is no one else's stream until then.
    owner: Option<Arc<Lease>>,
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    pub(crate) block: Option<BlockId>,
    /// Guarded by the device's lock, which every operation holds.
    pub(crate) uses: Mutex<Uses>,
}

impl Memory {
    pub(crate) fn new(
        device: Device,
        space: Space,
        owner: Option<Arc<Lease>>,
        bytes: usize,
        place: &Location<'_>,
    ) -> Result<Self, Error> {
        let (address, uses, block) = device.shared.allocate(space, index(owner.as_ref()), bytes, place)?;
        Ok(Self { device, space, owner, address, bytes, block, uses: Mutex::new(uses) })
    }

    /// What the journal says of an access to all of it.
    pub(crate) fn touch(&self, mode: AccessMode) -> Touch {
        Touch { block: self.block.unwrap_or(BlockId(0)), mode, bytes: self.bytes }
    }
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(length: usize, owner: &Arc<Lease>, place: &Location<'_>) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(length, "device memory")?;
        let (device, owner) = (owner.device.clone(), Some(Arc::clone(owner)));
        let memory = Memory::new(device, Space::Device, owner, bytes, place)?;
        Ok(Self { memory, length, element: PhantomData })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Host memory is in one pool for all.
fn index(owner: Option<&Arc<Lease>>) -> StreamIndex {
    owner.map_or(StreamIndex(0), |owner| owner.index)
}

/// Bytes of some elements.
pub(crate) fn bytes_of<T>(length: usize, space: &'static str) -> Result<usize, Error> {
    const { assert!(align_of::<T>() <= ALIGNMENT, "elements of a buffer are aligned to 256 bytes at most") };
    length.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory {
        space,
        wanted: usize::MAX,
        used: 0,
        limit: 0,
    })
}

impl Drop for Memory {
    fn drop(&mut self) {
        let uses = std::mem::take(&mut *held(&self.uses));
        let (shared, owner) = (&self.device.shared, index(self.owner.as_ref()));
        let mut state = shared.state();
        match self.space {
            Space::Device => {
                let place = Location::caller();
                // If the wait cannot be enqueued, the memory is not given to anyone.
                let points = uses.before_write().cloned().collect();
                if shared.stream_waits(&mut state, owner, points, place).is_err() {
                    return;
                }
                if let (Some(journal), Some(block)) = (&mut state.journal, self.block) {
                    journal.free(block);
                }
                state.pool.put(self.space, owner, (self.address, uses), self.bytes);
            }
            Space::Host => {
                let (block, address, bytes) = (self.block, self.address, self.bytes);
                state.pool.pending.push(crate::pool::Pending { block, address, bytes, uses });
            }
        }
    }
}
