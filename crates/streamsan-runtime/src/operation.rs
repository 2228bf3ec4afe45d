//! Operations with declared accesses.

use crate::backend::Backend;
use crate::buffer::{Buffer, Memory};
use crate::error::Error;
use crate::journal::Touch;
use crate::stream::Stream;
use crate::sync::held;
use bytemuck::Pod;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_trace::{AccessMode, OpKind};

/// Operations are told apart, so that a token of one is refused by another.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// An operation that is being put together. It borrows its buffers until it has been submitted: a buffer that it
/// changes cannot be given to it twice.
///
/// ```compile_fail,E0502
/// # use streamsan_runtime::{CpuOptions, Device};
/// # let device = Device::cpu(&CpuOptions::default());
/// # let stream = device.stream("s").unwrap();
/// let mut buffer = device.buffer::<u8>(1, &stream).unwrap();
/// let mut operation = stream.operation("both");
/// let read = operation.read(&buffer);
/// let changed = operation.update(&mut buffer);
/// operation.run(move |memory| memory.slice_mut(changed)[0] = memory.slice(read)[0]).unwrap();
/// ```
#[derive(Debug)]
pub struct Operation<'a> {
    stream: &'a Stream,
    label: &'a str,
    id: u64,
    /// Memory, how, and how many bytes of it.
    uses: Vec<(&'a Memory, AccessMode, usize)>,
}

/// A buffer that an operation reads. It gives elements only while the operation runs.
#[derive(Debug)]
pub struct Read<T> {
    range: Range,
    element: PhantomData<T>,
}

/// A buffer that an operation changes.
#[derive(Debug)]
pub struct Write<T> {
    range: Range,
    element: PhantomData<T>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    /// The operation that the token was made for.
    operation: u64,
    address: usize,
    length: usize,
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Read<T> {}

/// The memory of an operation while it runs.
#[derive(Debug)]
pub struct Running {
    operation: u64,
}

impl Running {
    /// The elements of a buffer that the operation reads.
    ///
    /// # Panics
    ///
    /// If the token was made for another operation.
    pub fn slice<T: Pod>(&self, buffer: Read<T>) -> &[T] {
        self.check(buffer.range);
        let pointer = std::ptr::with_exposed_provenance(buffer.range.address);
        // SAFETY: the stream has waited for the last writer, later writers wait for this operation, and the block
        // lives until then. `Running` exists only while the operation runs.
        unsafe { std::slice::from_raw_parts(pointer, buffer.range.length) }
    }

    /// The elements of a buffer that the operation changes. A token gives them once.
    ///
    /// # Panics
    ///
    /// If the token was made for another operation.
    #[expect(clippy::mut_from_ref, clippy::needless_pass_by_value, reason = "the token is the unique borrow")]
    pub fn slice_mut<T: Pod>(&self, buffer: Write<T>) -> &mut [T] {
        self.check(buffer.range);
        let pointer = std::ptr::with_exposed_provenance_mut(buffer.range.address);
        // SAFETY: as in `slice`; nobody else has the buffer, since the operation borrowed it uniquely, and the token
        // is used up, so no second slice can be made.
        unsafe { std::slice::from_raw_parts_mut(pointer, buffer.range.length) }
    }

    fn check(&self, range: Range) {
        assert_eq!(range.operation, self.operation, "a buffer that was declared for another operation");
    }
}

/// Where kernels are launched.
#[derive(Debug)]
pub struct Launch {
    operation: u64,
    stream: *mut c_void,
}

impl Launch {
    /// The driver's handle of the stream, a `CUstream`.
    pub fn stream(&self) -> *mut c_void {
        self.stream
    }

    /// The device address of a buffer that the operation reads, and its elements.
    ///
    /// # Panics
    ///
    /// If the token was made for another operation.
    pub fn read<T>(&self, buffer: Read<T>) -> (u64, usize) {
        self.range(buffer.range)
    }

    /// The device address of a buffer that the operation changes, and its elements.
    ///
    /// # Panics
    ///
    /// If the token was made for another operation.
    pub fn write<T>(&self, buffer: &Write<T>) -> (u64, usize) {
        self.range(buffer.range)
    }

    fn range(&self, range: Range) -> (u64, usize) {
        assert_eq!(range.operation, self.operation, "a buffer that was declared for another operation");
        (range.address as u64, range.length)
    }
}

impl<'a> Operation<'a> {
    pub(crate) fn new(stream: &'a Stream, label: &'a str) -> Self {
        Self { stream, label, id: NEXT.fetch_add(1, Ordering::Relaxed), uses: Vec::new() }
    }

    /// The operation reads this buffer.
    pub fn read<T: Pod>(&mut self, buffer: &'a Buffer<T>) -> Read<T> {
        self.uses.push((&buffer.memory, AccessMode::Read, buffer.len() * size_of::<T>()));
        Read { range: self.range(buffer), element: PhantomData }
    }

    /// The operation overwrites this buffer.
    pub fn write<T: Pod>(&mut self, buffer: &'a mut Buffer<T>) -> Write<T> {
        self.change(buffer, AccessMode::Write)
    }

    /// The operation reads and changes this buffer.
    pub fn update<T: Pod>(&mut self, buffer: &'a mut Buffer<T>) -> Write<T> {
        self.change(buffer, AccessMode::Update)
    }

    fn change<T: Pod>(&mut self, buffer: &'a mut Buffer<T>, mode: AccessMode) -> Write<T> {
        let range = self.range(buffer);
        self.uses.push((&buffer.memory, mode, buffer.len() * size_of::<T>()));
        Write { range, element: PhantomData }
    }

    /// Submits the operation. It waits for whatever it has to come after and runs later, in stream order; if it
    /// panics, its stream does nothing any more and says so when it is synchronized.
    ///
    /// `work` may own and submit what it likes, and drop it. It must not wait for this device: that is
    /// [`Error::InsideOperation`].
    ///
    /// # Errors
    ///
    /// If a buffer is of another device, or the back end runs no functions of the host.
    #[track_caller]
    pub fn run(self, work: impl FnOnce(&Running) + Send + 'static) -> Result<(), Error> {
        // Before the lock is taken: what `work` owns takes it when it is dropped.
        if !self.stream.device().shared.backend.runs_functions() {
            return Err(Error::Unsupported {
                what: "run a function of the host as an operation: launch kernels instead",
            });
        }
        let running = Running { operation: self.id };
        let (index, label) = (self.stream.index(), self.label);
        self.submit(Location::caller(), move |backend| {
            backend.run(index, label, Box::new(move || work(&running)))
        })
    }

    /// Launches kernels: `work` is called at once, after the waits were enqueued, and enqueues what it likes in the
    /// stream it is given, with the device's context as the thread's. It must not call this device, nor drop what
    /// belongs to it: the device's lock is held, so that nothing comes in between.
    ///
    /// # Errors
    ///
    /// If a buffer is of another device, or the back end has no streams of a driver.
    ///
    /// # Safety
    ///
    /// What `work` enqueues goes into the given stream, and touches the memory of the declared buffers only, as declared.
    #[track_caller]
    pub unsafe fn launch<E>(
        self,
        work: impl FnOnce(&Launch) -> Result<(), E>,
    ) -> Result<Result<(), E>, Error> {
        let (index, operation) = (self.stream.index(), self.id);
        let (mut outcome, mut work) = (Ok(Ok(())), Some(work));
        let submitted = self.submit(Location::caller(), |backend| {
            let stream = backend.raw_stream(index)?;
            // What was enqueued before a panic is in the stream all the same, and uses the buffers.
            backend.within(&mut || {
                if let Some(work) = work.take() {
                    outcome = catch_unwind(AssertUnwindSafe(|| work(&Launch { operation, stream })));
                }
            })?;
            backend.mark(index)
        });
        match outcome {
            Ok(outcome) => submitted.map(|()| outcome),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn submit(
        self,
        place: &Location<'_>,
        enqueue: impl FnOnce(&dyn Backend) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        let shared = &self.stream.device().shared;
        if self.uses.iter().any(|(memory, ..)| !Arc::ptr_eq(&memory.device.shared, shared)) {
            return Err(Error::OtherDevice);
        }
        let (mut state, index) = (shared.state(), self.stream.index());
        let mut before = Vec::new();
        for (memory, mode, _) in &self.uses {
            let uses = held(&memory.uses);
            if mode.writes() {
                before.extend(uses.before_write().cloned());
            } else {
                before.extend(uses.before_read().cloned());
            }
        }
        shared.stream_waits(&mut state, index, before, place)?;
        let number = enqueue(shared.backend.as_ref())?;
        let touches: Vec<Touch> =
            self.uses.iter().map(|(memory, mode, bytes)| memory.touch(*mode, *bytes)).collect();
        let point = state.submitted(index, number, self.label, OpKind::Kernel, &touches, place);
        for (memory, mode, _) in self.uses {
            let mut uses = held(&memory.uses);
            if mode.writes() {
                uses.written_by(point.clone());
            } else {
                uses.read_by(point.clone());
            }
        }
        Ok(())
    }

    fn range<T: Pod>(&self, buffer: &Buffer<T>) -> Range {
        Range { operation: self.id, address: buffer.memory.address.0, length: buffer.len() }
    }
}
