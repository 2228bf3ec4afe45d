//! What a back end does: streams, points in them, memory, copies.
//!
//! A back end knows nothing of safety. Order and lifetimes are kept in one place above it, [`crate::Device`], so
//! that both back ends are used in the same, checked way.

use crate::error::Error;
use std::ffi::c_void;

/// Index of a stream of one back end, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamIndex(pub(crate) usize);

/// An address in device or page-locked host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(pub(crate) usize);

/// Alignment of CUDA's allocations, and of those of every back end.
pub(crate) const ALIGNMENT: usize = 256;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// Device memory.
    Device,
    /// Page-locked host memory.
    Host,
}

/// A function to be run in stream order on the host's processor.
pub(crate) type HostWork = Box<dyn FnOnce() + Send>;

/// Streams are queues; the numbers of one stream's operations count up from 1.
///
/// An operation's number stands for the operation and all before it in its stream, as an event recorded behind
/// it would.
pub(crate) trait Backend: Send + Sync {
    /// Makes a stream.
    fn create_stream(&self, name: &str) -> Result<StreamIndex, Error>;

    /// Nobody submits to a stream any more, until it is taken up again. What it was given is still done.
    fn put_down(&self, stream: StreamIndex);

    /// A stream that was put down is used again, under another name. Its numbers go on.
    fn take_up(&self, stream: StreamIndex, name: &str) -> Result<(), Error>;

    /// Whether the calling thread runs an operation of this back end: if it waited for one, it could wait for itself.
    fn inside_operation(&self) -> bool {
        false
    }

    /// Whether functions of the host can be operations ([`Backend::run`]).
    fn runs_functions(&self) -> bool {
        true
    }

    /// Calls `work` so that it can use the driver.
    fn within(&self, work: &mut dyn FnMut()) -> Result<(), Error> {
        work();
        Ok(())
    }

    /// Enqueues a copy and gives its number.
    ///
    /// # Safety
    ///
    /// Both ranges must be allocated, must not overlap, and must stay untouched by others until the copy is done.
    unsafe fn copy(
        &self,
        stream: StreamIndex,
        from: Address,
        to: Address,
        bytes: usize,
    ) -> Result<u64, Error>;

    /// Enqueues a function and gives its number.
    ///
    /// # Errors
    ///
    /// If this back end runs no functions of the host as operations.
    fn run(&self, stream: StreamIndex, label: &str, work: HostWork) -> Result<u64, Error>;

    /// The driver's handle of a stream.
    ///
    /// # Errors
    ///
    /// If this back end has none.
    fn raw_stream(&self, _: StreamIndex) -> Result<*mut c_void, Error> {
        Err(Error::Unsupported { what: "launch kernels: run a function instead" })
    }

    /// A number that stands for everything enqueued so far in a stream.
    fn mark(&self, stream: StreamIndex) -> Result<u64, Error>;

    /// Makes everything enqueued from now on in `waiter` start after an operation of another stream.
    fn wait(&self, waiter: StreamIndex, awaited: StreamIndex, number: u64) -> Result<(), Error>;

    /// Whether an operation has finished.
    fn finished(&self, stream: StreamIndex, number: u64) -> Result<bool, Error>;

    /// Blocks the host until an operation has finished; an error if it, or one before it in its stream, failed.
    fn synchronize(&self, stream: StreamIndex, number: u64) -> Result<(), Error>;

    /// Allocates memory, aligned to [`ALIGNMENT`].
    fn allocate(&self, space: Space, bytes: usize) -> Result<Address, Error>;

    /// Makes host memory that somebody else owns page-locked.
    ///
    /// # Safety
    ///
    /// It is `bytes` long and lives until it is unregistered.
    unsafe fn register(&self, address: Address, bytes: usize) -> Result<(), Error>;

    /// Ends [`Backend::register`].
    ///
    /// # Safety
    ///
    /// It was registered with this size, and no operation will touch it any more.
    unsafe fn unregister(&self, address: Address, bytes: usize);

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// It came from [`Backend::allocate`] with this space and size, and no operation will touch it any more.
    unsafe fn free(&self, space: Space, address: Address, bytes: usize);
}
