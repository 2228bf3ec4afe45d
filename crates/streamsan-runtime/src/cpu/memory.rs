//! Host memory that stands for device and page-locked memory, with a limit for each.

use crate::backend::{ALIGNMENT, Address, Space};
use crate::error::Error;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
struct Pool {
    name: &'static str,
    limit: usize,
    used: AtomicUsize,
}

impl Pool {
    fn refused(&self, wanted: usize, used: usize) -> Error {
        Error::OutOfMemory { space: self.name, wanted, used, limit: self.limit }
    }
}

/// Both spaces.
#[derive(Debug)]
pub(super) struct Memory {
    device: Pool,
    host: Pool,
}

impl Memory {
    /// Limits in bytes; 0: none.
    pub(super) fn new(device: usize, host: usize) -> Self {
        let pool = |name, limit| Pool { name, limit, used: AtomicUsize::new(0) };
        Self { device: pool("device memory", device), host: pool("page-locked host memory", host) }
    }

    fn pool(&self, space: Space) -> &Pool {
        match space {
            Space::Device => &self.device,
            Space::Host => &self.host,
        }
    }

    /// Counts bytes as used, if the limit allows it.
    pub(super) fn take(&self, space: Space, bytes: usize) -> Result<(), Error> {
        let pool = self.pool(space);
        let grown =
            |used: usize| used.checked_add(bytes).filter(|&total| pool.limit == 0 || total <= pool.limit);
        let taken = pool.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        taken.map(|_| ()).map_err(|used| pool.refused(bytes, used))
    }

    /// Counts bytes as free.
    pub(super) fn give(&self, space: Space, bytes: usize) {
        self.pool(space).used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn allocate(&self, space: Space, bytes: usize) -> Result<Address, Error> {
        let pool = self.pool(space);
        let layout = layout(bytes).ok_or_else(|| pool.refused(bytes, pool.used.load(Ordering::Relaxed)))?;
        self.take(space, bytes)?;
        // SAFETY: the layout has a size greater than 0.
        let pointer = unsafe { alloc_zeroed(layout) };
        if pointer.is_null() {
            let used = pool.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(pool.refused(bytes, used));
        }
        Ok(Address(pointer.expose_provenance()))
    }

    /// # Safety
    ///
    /// The range came from [`Memory::allocate`] with this space and size, and nobody uses it.
    pub(super) unsafe fn free(&self, space: Space, address: Address, bytes: usize) {
        self.give(space, bytes);
        if let Some(layout) = layout(bytes) {
            // SAFETY: allocated with the same layout, as the caller says.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address.0), layout) };
        }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}
