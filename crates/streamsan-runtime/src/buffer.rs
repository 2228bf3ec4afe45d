//! Buffers in device memory.

use crate::backend::{ALIGNMENT, Address, Space, StreamIndex};
use crate::device::Device;
use crate::error::Error;
use crate::journal::Touch;
use crate::order::Uses;
use crate::pool::{Kept, Pending};
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
pub(crate) struct Memory {
    pub(crate) device: Device,
    pub(crate) space: Space,
    /// Whose pool device memory goes back to; it is no one else's stream until then.
    owner: Option<Arc<Lease>>,
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    pub(crate) block: Option<BlockId>,
    pub(crate) origin: Origin,
    /// Guarded by the device's lock, which every operation holds.
    pub(crate) uses: Mutex<Uses>,
}

/// Where memory comes from, and so where it goes.
pub(crate) enum Origin {
    /// The back end.
    Allocated,
    /// Somebody who had it and made it page-locked.
    Registered(Kept),
    /// It has gone back already.
    Gone,
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
        Ok(Self {
            device,
            space,
            owner,
            address,
            bytes,
            block,
            origin: Origin::Allocated,
            uses: Mutex::new(uses),
        })
    }

    /// Somebody's own memory, registered.
    pub(crate) fn registered(
        device: Device,
        address: Address,
        bytes: usize,
        kept: Kept,
        place: &Location<'_>,
    ) -> Self {
        let mut state = device.shared.state();
        let journal = state.journal.as_mut();
        let owner = StreamIndex(0);
        let block = journal.map(|journal| journal.allocate(Space::Host, owner, address, bytes, place));
        drop(state);
        let (origin, uses) = (Origin::Registered(kept), Mutex::default());
        Self { device, space: Space::Host, owner: None, address, bytes, block, origin, uses }
    }

    /// What the journal says of an access to its first bytes.
    pub(crate) fn touch(&self, mode: AccessMode, bytes: usize) -> Touch {
        Touch { block: self.block.unwrap_or(BlockId(0)), mode, bytes: bytes.min(self.bytes) }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("space", &self.space)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(length: usize, owner: &Arc<Lease>, place: &Location<'_>) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(length, "device memory")?;
        let (device, owner) = (owner.device.clone(), Some(Arc::clone(owner)));
        let memory = Memory::new(device, Space::Device, owner, bytes, place)?;
        Ok(Self { memory, length, element: PhantomData })
    }

    /// Makes it seem to have this many elements, if it has room for them.
    pub(crate) fn limit(&mut self, length: usize) -> Result<(), Error> {
        self.length = limited::<T>(&self.memory, length)?;
        Ok(())
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

/// `length`, if the memory has room for so many elements.
pub(crate) fn limited<T>(memory: &Memory, length: usize) -> Result<usize, Error> {
    let room = memory.bytes / size_of::<T>().max(1);
    if length <= room { Ok(length) } else { Err(Error::Length { from: length, to: room }) }
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
        let kept = match std::mem::replace(&mut self.origin, Origin::Gone) {
            Origin::Allocated => None,
            Origin::Registered(kept) => Some(kept),
            Origin::Gone => return,
        };
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
                state.pool.pending.push(Pending { block, address, bytes, uses, kept });
            }
        }
    }
}
