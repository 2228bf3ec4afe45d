//! A device: its back end, and in one place everything that keeps its use safe.

use crate::backend::{Address, Backend, Space, StreamIndex};
use crate::buffer::Buffer;
use crate::cpu::{Cpu, CpuOptions};
use crate::error::Error;
use crate::host::HostBuffer;
use crate::journal::{Journal, Touch};
use crate::order::{Order, Point, Uses};
use crate::pool::Pool;
use crate::stream::Stream;
use crate::sync::{Mutex, MutexGuard, held};
use bytemuck::Pod;
use std::panic::Location;
use std::sync::Arc;
use streamsan_trace::{BlockId, HostWaitHow, OpKind, Trace};

/// A device with its streams and memory.
///
/// Everything that is submitted goes through one lock, so that the order of calls is the order of issue.
///
/// ```
/// use streamsan_runtime::{CpuOptions, Device};
/// let device = Device::cpu(&CpuOptions::default());
/// let (copies, compute) = (device.stream("copies")?, device.stream("compute")?);
/// let mut input = device.host_buffer::<f32>(4)?;
/// input.write()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// let mut on_device = device.buffer::<f32>(4, &copies)?;
/// copies.upload(&input, &mut on_device)?;
/// let mut double = compute.operation("double");
/// let values = double.update(&mut on_device);
/// double.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value *= 2.0))?;
/// let mut output = device.host_buffer::<f32>(4)?;
/// copies.download(&on_device, &mut output)?; // waits for `double` by itself
/// assert_eq!(&*output.read()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), streamsan_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) shared: Arc<Shared>,
}

/// What all handles of a device share.
pub(crate) struct Shared {
    pub(crate) backend: Box<dyn Backend>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Shared")
    }
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) order: Order,
    pub(crate) journal: Option<Journal>,
    pub(crate) pool: Pool,
    /// Last operation of each stream.
    last: Vec<Option<Point>>,
    /// Waits that were needed so far, and the one to leave out: for tests of the tests.
    waits: u64,
    left_out: Option<u64>,
}

impl Device {
    /// A device without a GPU: streams are threads, device memory is host memory.
    pub fn cpu(options: &CpuOptions) -> Self {
        Self::new(Box::new(Cpu::new(options)))
    }

    /// The GPU with this ordinal, on its primary context.
    ///
    /// # Errors
    ///
    /// If there is no driver or no such device.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: i32) -> Result<Self, Error> {
        Ok(Self::new(Box::new(crate::cuda::Cuda::new(ordinal)?)))
    }

    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        let state = State {
            order: Order::default(),
            journal: None,
            pool: Pool::default(),
            last: Vec::new(),
            waits: 0,
            left_out: None,
        };
        Self { shared: Arc::new(Shared { backend, state: Mutex::new(state) }) }
    }

    /// Keeps a log of everything from now on, for `streamsan-check`.
    pub fn start_journal(&self) {
        self.shared.state().journal = Some(Journal::new());
    }

    /// The log since [`Device::start_journal`], if it was called.
    pub fn journal(&self) -> Option<Trace> {
        self.shared.state().journal.as_ref().map(Journal::trace)
    }

    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// If the back end cannot make one.
    #[track_caller]
    pub fn stream(&self, name: &str) -> Result<Stream, Error> {
        let place = Location::caller();
        let mut state = self.shared.state();
        let index = self.shared.backend.create_stream(name)?;
        state.order.add_stream();
        state.last.push(None);
        if let Some(journal) = &mut state.journal {
            journal.stream(index, name, place);
        }
        Ok(Stream::new(self.clone(), index, name))
    }

    /// Makes a buffer of `length` zeroed or reused elements in device memory. It belongs to `owner`: when it is
    /// dropped, its memory goes to the next buffer of that stream.
    ///
    /// # Errors
    ///
    /// If there is no memory left, or the stream is another device's.
    #[track_caller]
    pub fn buffer<T: Pod>(&self, length: usize, owner: &Stream) -> Result<Buffer<T>, Error> {
        if !Arc::ptr_eq(&owner.device().shared, &self.shared) {
            return Err(Error::OtherDevice);
        }
        Buffer::new(self.clone(), length, owner.index(), Location::caller())
    }

    /// Makes a buffer of `length` zeroed or reused elements in page-locked host memory.
    ///
    /// # Errors
    ///
    /// If there is no memory left.
    #[track_caller]
    pub fn host_buffer<T: Pod>(&self, length: usize) -> Result<HostBuffer<T>, Error> {
        HostBuffer::new(self.clone(), length, Location::caller())
    }

    /// Blocks the host until everything that was submitted has finished.
    ///
    /// # Errors
    ///
    /// The first failure of an operation.
    pub fn synchronize(&self) -> Result<(), Error> {
        let points: Vec<Point> = self.shared.state().last.iter().flatten().cloned().collect();
        points.iter().try_for_each(|point| self.shared.host_waits(point))
    }

    /// For tests: how many waits between streams were needed so far.
    #[doc(hidden)]
    pub fn waits(&self) -> u64 {
        self.shared.state().waits
    }

    /// For tests: leaves out the wait with this number, counted from 0, as a broken planner would.
    #[doc(hidden)]
    pub fn leave_out_wait(&self, number: u64) {
        self.shared.state().left_out = Some(number);
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        held(&self.state)
    }

    /// Blocks the host until a point has passed.
    pub(crate) fn host_waits(&self, point: &Point) -> Result<(), Error> {
        if self.state().order.host_is_after(point) {
            return Ok(());
        }
        self.backend.synchronize(point.stream, point.number)?;
        self.state().host_learns(point, HostWaitHow::Synchronize);
        Ok(())
    }

    /// Whether all of some uses have finished; the host then knows.
    pub(crate) fn finished(&self, state: &mut State, uses: &Uses) -> bool {
        uses.before_write().all(|point| {
            let known = state.order.host_is_after(point);
            let finished = known || self.backend.finished(point.stream, point.number).unwrap_or(true);
            if finished && !known {
                state.host_learns(point, HostWaitHow::Query);
            }
            finished
        })
    }

    /// The point after everything that was submitted to a stream.
    pub(crate) fn record(&self, stream: StreamIndex, place: &Location<'_>) -> Result<Point, Error> {
        let mut state = self.state();
        let number = self.backend.mark(stream)?;
        let point = state.order.operation(stream, number);
        if let Some(journal) = &mut state.journal {
            journal.record(&point, place);
        }
        Ok(point)
    }

    /// Makes a stream wait for those points that it is not ordered after yet, each once, and for none that another
    /// one brings along.
    pub(crate) fn stream_waits(
        &self,
        state: &mut State,
        stream: StreamIndex,
        mut points: Vec<Point>,
        place: &Location<'_>,
    ) -> Result<(), Error> {
        points.retain(|point| !state.order.is_after(stream, point));
        for (index, point) in points.iter().enumerate() {
            let brought = |(other, later): (usize, &Point)| later.brings(point, other < index);
            if points.iter().enumerate().filter(|(other, _)| *other != index).any(brought) {
                continue;
            }
            let number = state.waits;
            state.waits += 1;
            if state.left_out != Some(number) {
                self.backend.wait(stream, point.stream, point.number)?;
                if let Some(journal) = &mut state.journal {
                    journal.wait(stream, point, place);
                }
            }
            state.order.stream_learns(stream, point);
        }
        Ok(())
    }

    /// Memory for a block: from the pool, or new, or what other streams no longer need.
    pub(crate) fn allocate(
        &self,
        state: &mut State,
        space: Space,
        owner: StreamIndex,
        bytes: usize,
    ) -> Result<(Address, Uses), Error> {
        self.reclaim(state);
        if let Some(found) = state.pool.take(space, owner, bytes) {
            return Ok(found);
        }
        let address = match self.backend.allocate(space, bytes) {
            Err(error @ Error::OutOfMemory { .. }) => {
                if !self.empty_pool(state, space) {
                    return Err(error);
                }
                self.backend.allocate(space, bytes)
            }
            other => other,
        };
        Ok((address?, Uses::default()))
    }

    /// Host memory whose copies have finished goes back to the pool.
    fn reclaim(&self, state: &mut State) {
        for left in std::mem::take(&mut state.pool.pending) {
            if self.finished(state, &left.uses) {
                state.pool_host(left.block, left.address, left.bytes);
            } else {
                state.pool.pending.push(left);
            }
        }
    }

    /// Gives back what nobody uses, after the operations that may still touch it; says whether there was anything.
    fn empty_pool(&self, state: &mut State, space: Space) -> bool {
        for point in state.last.clone().into_iter().flatten() {
            // An operation that failed has finished too.
            if self.backend.synchronize(point.stream, point.number).is_ok() {
                state.host_learns(&point, HostWaitHow::Synchronize);
            }
        }
        for left in std::mem::take(&mut state.pool.pending) {
            state.pool_host(left.block, left.address, left.bytes);
        }
        let blocks = state.pool.take_all(space);
        for &(address, bytes) in &blocks {
            // SAFETY: nobody owns pooled memory, and everything that was submitted has finished.
            unsafe { self.backend.free(space, address, bytes) };
        }
        !blocks.is_empty()
    }
}

impl State {
    pub(crate) fn host_learns(&mut self, point: &Point, how: HostWaitHow) {
        self.order.host_learns(point);
        if let Some(journal) = &mut self.journal {
            journal.host_wait(point, how);
        }
    }

    /// An operation was enqueued under this number.
    pub(crate) fn submitted(
        &mut self,
        stream: StreamIndex,
        number: u64,
        label: &str,
        kind: OpKind,
        touches: &[Touch],
        place: &Location<'_>,
    ) -> Point {
        let point = self.order.operation(stream, number);
        self.last[stream.0] = Some(point.clone());
        if let Some(journal) = &mut self.journal {
            journal.operation(&point, label, kind, touches, place);
        }
        point
    }

    fn pool_host(&mut self, block: Option<BlockId>, address: Address, bytes: usize) {
        if let (Some(journal), Some(block)) = (&mut self.journal, block) {
            journal.free(block);
        }
        self.pool.put(Space::Host, StreamIndex(0), (address, Uses::default()), bytes);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut state = std::mem::replace(
            &mut *held(&self.state),
            State {
                order: Order::default(),
                journal: None,
                pool: Pool::default(),
                last: Vec::new(),
                waits: 0,
                left_out: None,
            },
        );
        for point in state.last.iter().flatten() {
            // An operation that failed has finished too.
            let _ = self.backend.synchronize(point.stream, point.number);
        }
        for left in std::mem::take(&mut state.pool.pending) {
            state.pool.put(Space::Host, StreamIndex(0), (left.address, Uses::default()), left.bytes);
        }
        for space in [Space::Device, Space::Host] {
            for (address, bytes) in state.pool.take_all(space) {
                // SAFETY: nobody owns pooled memory, and everything that was submitted has finished.
                unsafe { self.backend.free(space, address, bytes) };
            }
        }
    }
}
