//! Memory that was given back and can be used again.
//!
//! Device memory goes back to the stream that owned it: that stream has been made to wait for every use, so its
//! next buffer may have the same bytes at once. The uses go with the memory, since the next buffer may be used on
//! another stream first, which has not waited. Host memory goes back when its copies have finished.

use crate::backend::{Address, Space, StreamIndex};
use crate::order::Uses;
use std::any::Any;
use std::collections::BTreeMap;
use streamsan_trace::BlockId;

/// Host memory that was dropped while copies still used it.
pub(crate) struct Pending {
    pub(crate) block: Option<BlockId>,
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    pub(crate) uses: Uses,
    /// Registered memory: whose it is, kept until the copies have finished.
    pub(crate) kept: Option<Kept>,
}

/// Somebody's own memory: a vector of some type.
pub(crate) type Kept = Box<dyn Any + Send>;

/// Memory that nobody owns.
#[derive(Debug)]
pub(crate) struct Free {
    pub(crate) owner: StreamIndex,
    pub(crate) address: Address,
    pub(crate) bytes: usize,
    pub(crate) uses: Uses,
}

/// Free memory by space, owner stream and size.
#[derive(Default)]
pub(crate) struct Pool {
    free: BTreeMap<(Space, StreamIndex, usize), Vec<(Address, Uses)>>,
    pub(crate) pending: Vec<Pending>,
}

impl Pool {
    /// Memory of exactly this size, and who may still use it; pipelines ask for the same sizes over and over.
    pub(crate) fn take(&mut self, space: Space, owner: StreamIndex, bytes: usize) -> Option<(Address, Uses)> {
        self.free.get_mut(&(space, owner, bytes))?.pop()
    }

    pub(crate) fn put(
        &mut self,
        space: Space,
        owner: StreamIndex,
        (address, uses): (Address, Uses),
        bytes: usize,
    ) {
        self.free.entry((space, owner, bytes)).or_default().push((address, uses));
    }

    pub(crate) fn take_all(&mut self, space: Space) -> Vec<Free> {
        let (wanted, rest) = std::mem::take(&mut self.free).into_iter().partition(|(key, _)| key.0 == space);
        self.free = rest;
        let blocks: BTreeMap<(Space, StreamIndex, usize), Vec<(Address, Uses)>> = wanted;
        blocks
            .into_iter()
            .flat_map(|((_, owner, bytes), free)| {
                free.into_iter().map(move |(address, uses)| Free { owner, address, bytes, uses })
            })
            .collect()
    }
}
