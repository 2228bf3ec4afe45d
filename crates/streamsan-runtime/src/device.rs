//! A device: its back end, and in one place everything that keeps its use safe.

use crate::backend::{Address, Backend, Space, StreamIndex};
use crate::buffer::Buffer;
use crate::cpu::{Cpu, CpuOptions};
use crate::error::Error;
use crate::host::{HostBuffer, RegisterError};
use crate::journal::{Journal, Touch};
use crate::order::{Order, Point, Uses};
use crate::pool::{Pending, Pool};
use crate::stream::{Lease, Stream};
use crate::sync::{Mutex, MutexGuard, held, thread};
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
    pub(crate) backend: Arc<dyn Backend>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Shared")
    }
}

/// What the lock guards.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) order: Order,
    pub(crate) journal: Option<Journal>,
    pub(crate) pool: Pool,
    /// Last operation of each stream.
    last: Vec<Option<Point>>,
    /// Streams that nobody has a handle of.
    idle: Vec<StreamIndex>,
    /// Waits that were needed so far, and the one to leave out: for tests of the tests.
    waits: u64,
    left_out: Option<u64>,
}

impl Device {
    /// A device without a GPU: streams are threads, device memory is host memory.
    pub fn cpu(options: &CpuOptions) -> Self {
        Self::new(Arc::new(Cpu::new(options)))
    }

    /// The GPU with this ordinal, on its primary context.
    ///
    /// # Errors
    ///
    /// If there is no driver or no such device.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: i32) -> Result<Self, Error> {
        Ok(Self::new(Arc::new(crate::cuda::Cuda::new(ordinal)?)))
    }

    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self { shared: Arc::new(Shared { backend, state: Mutex::default() }) }
    }

    /// Calls `work` with the device's context as the calling thread's, for calls of the driver such as loading a
    /// module. Afterwards the thread has the context that it had before. Without a GPU it is a plain call.
    ///
    /// # Errors
    ///
    /// If the context cannot be entered.
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> Result<R, Error> {
        let (mut work, mut answer) = (Some(work), None);
        self.shared.backend.within(&mut || answer = work.take().map(|work| work()))?;
        answer.ok_or(Error::Unsupported { what: "call a function in its context" })
    }

    /// Keeps a log of everything from now on, for `streamsan-check`.
    pub fn start_journal(&self) {
        self.shared.state().journal = Some(Journal::new());
    }

    /// The log since [`Device::start_journal`], if it was called.
    pub fn journal(&self) -> Option<Trace> {
        self.shared.state().journal.as_ref().map(Journal::trace)
    }

    /// Makes a stream. When its last handle and the last buffer that it owns are gone, it is given to a later caller of
    /// this function.
    ///
    /// # Errors
    ///
    /// If the back end cannot make one.
    #[track_caller]
    pub fn stream(&self, name: &str) -> Result<Stream, Error> {
        let place = Location::caller();
        let mut state = self.shared.state();
        let index = if let Some(index) = state.take_idle(self.shared.backend.as_ref()) {
            self.shared.backend.take_up(index, name).inspect_err(|_| state.idle.push(index))?;
            index
        } else {
            let index = self.shared.backend.create_stream(name)?;
            state.order.add_stream();
            state.last.push(None);
            index
        };
        if let Some(journal) = &mut state.journal {
            journal.stream(index, name, place);
        }
        // Not under the lock: a lease that is dropped takes it.
        drop(state);
        Ok(Stream::new(Arc::new(Lease { device: self.clone(), index }), name))
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
        Buffer::new(length, owner.lease(), Location::caller())
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

    /// Makes memory that is there already page-locked, so that it is copied from and to where it is: worth its time
    /// for data that is used more than once.
    ///
    /// ```
    /// use streamsan_runtime::{CpuOptions, Device};
    /// let device = Device::cpu(&CpuOptions::default());
    /// let stream = device.stream("s")?;
    /// let mut weights = device.register(vec![1.0_f32; 1024]).map_err(|refused| refused.error)?;
    /// let mut buffer = device.buffer::<f32>(1024, &stream)?;
    /// stream.upload(&weights, &mut buffer)?;
    /// stream.download(&buffer, &mut weights)?;
    /// assert_eq!(weights.into_vec()?.len(), 1024); // waits for both copies
    /// # Ok::<(), streamsan_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If it cannot be page-locked. The error has the data.
    #[track_caller]
    pub fn register<T: Pod + Send>(&self, data: Vec<T>) -> Result<HostBuffer<T>, RegisterError<T>> {
        HostBuffer::register(self.clone(), data, Location::caller())
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
        if self.backend.inside_operation() {
            return Err(Error::InsideOperation);
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

    /// Memory for a block, who may still use it, and its name in the journal.
    pub(crate) fn allocate(
        &self,
        space: Space,
        owner: StreamIndex,
        bytes: usize,
        place: &Location<'_>,
    ) -> Result<(Address, Uses, Option<BlockId>), Error> {
        let mut state = self.state();
        let found = match self.find_memory(&mut state, space, owner, bytes) {
            Err(error @ Error::OutOfMemory { .. }) => {
                state = self.settle(state);
                if !self.empty_pool(&mut state, space) {
                    return Err(error);
                }
                self.backend.allocate(space, bytes).map(|address| (address, Uses::default()))
            }
            other => other,
        };
        let (address, uses) = found?;
        let journal = state.journal.as_mut();
        let block = journal.map(|journal| journal.allocate(space, owner, address, bytes, place));
        Ok((address, uses, block))
    }

    /// From the pool, or new.
    fn find_memory(
        &self,
        state: &mut State,
        space: Space,
        owner: StreamIndex,
        bytes: usize,
    ) -> Result<(Address, Uses), Error> {
        self.reclaim(state);
        match state.pool.take(space, owner, bytes) {
            Some(found) => Ok(found),
            None => Ok((self.backend.allocate(space, bytes)?, Uses::default())),
        }
    }

    /// Blocks the host until everything that was submitted has finished, unless it is an operation that asks. Not
    /// under the lock: operations under way may need it to drop what they own.
    fn settle<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if self.backend.inside_operation() {
            return state;
        }
        let mut points: Vec<Point> = state.last.iter().flatten().cloned().collect();
        drop(state);
        // What has failed has finished too, but the host is told nothing.
        points.retain(|point| self.backend.synchronize(point.stream, point.number).is_ok());
        let mut state = self.state();
        for point in points {
            state.host_learns(&point, HostWaitHow::Synchronize);
        }
        state
    }

    /// Host memory whose copies have finished goes back to the pool.
    fn reclaim(&self, state: &mut State) {
        for left in std::mem::take(&mut state.pool.pending) {
            if self.finished(state, &left.uses) {
                self.let_go(state, &left);
            } else {
                state.pool.pending.push(left);
            }
        }
    }

    /// Host memory that no copy uses any more.
    pub(crate) fn let_go(&self, state: &mut State, left: &Pending) {
        if let (Some(journal), Some(block)) = (&mut state.journal, left.block) {
            journal.free(block);
        }
        if left.kept.is_some() {
            // SAFETY: registered with this size, and no copy uses it any more; the caller drops it afterwards.
            unsafe { unregister(self.backend.as_ref(), left.address, left.bytes) };
        } else {
            state.pool.put(Space::Host, StreamIndex(0), (left.address, Uses::default()), left.bytes);
        }
    }

    /// Registered memory that the host has waited for is an ordinary vector again.
    pub(crate) fn unregister(&self, block: Option<BlockId>, address: Address, bytes: usize) {
        let mut state = self.state();
        if let (Some(journal), Some(block)) = (&mut state.journal, block) {
            journal.free(block);
        }
        // SAFETY: registered with this size, and the host has waited for every copy.
        unsafe { unregister(self.backend.as_ref(), address, bytes) };
    }

    /// Gives back pooled memory whose uses have finished; says whether there was any.
    fn empty_pool(&self, state: &mut State, space: Space) -> bool {
        self.reclaim(state);
        let mut freed = false;
        for block in state.pool.take_all(space) {
            if self.finished(state, &block.uses) {
                // SAFETY: nobody owns pooled memory, and every use of it has finished.
                unsafe { self.backend.free(space, block.address, block.bytes) };
                freed = true;
            } else {
                state.pool.put(space, block.owner, (block.address, block.uses), block.bytes);
            }
        }
        freed
    }

    /// Nobody has a handle of a stream any more.
    pub(crate) fn put_down(&self, stream: StreamIndex) {
        let mut state = self.state();
        state.idle.push(stream);
        self.backend.put_down(stream);
    }
}

impl State {
    /// A stream without handles that has done all it was given. One that failed is of no use to anybody.
    fn take_idle(&mut self, backend: &dyn Backend) -> Option<StreamIndex> {
        let Self { idle, last, .. } = self;
        let state = |stream: StreamIndex| {
            last[stream.0].as_ref().map_or(Ok(true), |point| backend.finished(stream, point.number))
        };
        idle.retain(|&stream| state(stream).is_ok());
        let at = idle.iter().position(|&stream| state(stream) == Ok(true))?;
        Some(idle.remove(at))
    }

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
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *held(&self.state));
        let backend = Arc::clone(&self.backend);
        if backend.inside_operation() {
            // An operation owned the last handle: it must not wait for itself.
            let left = thread::Builder::new().spawn(move || wind_up(backend.as_ref(), state));
            // Without a thread the memory is kept to the end of the process.
            drop(left);
        } else {
            wind_up(backend.as_ref(), state);
        }
    }
}

/// # Safety
///
/// As for [`Backend::unregister`]; memory without bytes was never registered.
unsafe fn unregister(backend: &dyn Backend, address: Address, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as the caller says.
        unsafe { backend.unregister(address, bytes) };
    }
}

/// Waits for everything and gives all memory back.
fn wind_up(backend: &dyn Backend, mut state: State) {
    for point in state.last.iter().flatten() {
        // An operation that failed has finished too.
        let _ = backend.synchronize(point.stream, point.number);
    }
    for left in std::mem::take(&mut state.pool.pending) {
        if left.kept.is_some() {
            // SAFETY: registered with this size, and everything that was submitted has finished.
            unsafe { unregister(backend, left.address, left.bytes) };
        } else {
            state.pool.put(Space::Host, StreamIndex(0), (left.address, Uses::default()), left.bytes);
        }
    }
    for space in [Space::Device, Space::Host] {
        for block in state.pool.take_all(space) {
            // SAFETY: nobody owns pooled memory, and everything that was submitted has finished.
            unsafe { backend.free(space, block.address, block.bytes) };
        }
    }
}
