//! Pipelines: a function over any number of items through a fixed number of slots, with upload, function and
//! download of different items at once.
//!
//! The loop below submits items in turn and never waits between the stages of one: the buffers know what has to
//! come first. The host waits in two places only: before it refills a slot's upload buffer, and before it hands
//! out a slot's result. Memory is that of the slots, whatever the number of items.

mod statistics;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::host::HostBuffer;
use crate::plan::{Budget, Machine, Plan, PlanError, Work, plan};
use crate::stream::Stream;
use bytemuck::Pod;
pub use statistics::Statistics;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a pipeline may use.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// Most elements of one item.
    pub item: usize,
    /// Device memory for the slots, in bytes. The function's own buffers are not in it.
    pub memory: u64,
    /// Exactly this many slots; else as many as pay.
    pub slots: Option<usize>,
    /// Stops the pipeline when set: items under way are still handed out.
    pub cancel: Cancel,
}

/// Asks a pipeline to stop; clones ask the same one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why an item has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemError {
    /// Which item, from 0.
    pub item: u64,
    /// Where: `source`, `upload`, `function` or `download`.
    pub stage: &'static str,
    /// What was said.
    pub message: String,
}

impl fmt::Display for ItemError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "item {}: {}: {}", self.item, self.stage, self.message)
    }
}

impl std::error::Error for ItemError {}

/// One slot: an upload buffer, device memory, a download buffer.
#[derive(Debug)]
struct Slot<T> {
    staged: HostBuffer<T>,
    buffer: Buffer<T>,
    result: HostBuffer<T>,
}

/// An item that was submitted.
#[derive(Debug)]
struct UnderWay {
    item: u64,
    length: usize,
    slot: usize,
    outcome: Result<(), ItemError>,
}

/// A pipeline with its slots.
///
/// ```
/// use streamsan_runtime::{CpuOptions, Device, Machine, Pipeline, PipelineOptions};
/// let device = Device::cpu(&CpuOptions::default());
/// let options = PipelineOptions { item: 1024, memory: 64 << 10, slots: Some(3), cancel: Default::default() };
/// let mut pipeline = Pipeline::<f32>::new(&device, &options)?;
/// let items = (0..1000).map(|item| Ok::<_, std::io::Error>(vec![item as f32; 1024]));
/// let mut sums = Vec::new();
/// let statistics = pipeline.run(
///     items,
///     |compute, buffer| {
///         let mut operation = compute.operation("double");
///         let values = operation.update(buffer);
///         operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value *= 2.0))
///     },
///     |_, result| sums.push(result.map(|values| values[0])),
/// );
/// assert_eq!((sums.len(), sums[999].clone()), (1000, Ok(1998.0)));
/// assert_eq!(statistics.items, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pipeline<T> {
    upload: Stream,
    compute: Stream,
    download: Stream,
    slots: Vec<Slot<T>>,
    plan: Plan,
    cancel: Cancel,
}

/// Why a pipeline could not be made.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineError {
    /// The budget does not hold.
    Plan(PlanError),
    /// The device refused.
    Device(Error),
}

impl fmt::Display for PipelineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(formatter),
            Self::Device(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for PipelineError {}

impl<T: Pod> Pipeline<T> {
    /// Plans a pipeline and makes its slots.
    ///
    /// # Errors
    ///
    /// If the slots do not fit into the budget or the device.
    #[track_caller]
    pub fn new(device: &Device, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let bytes = (options.item as u64).saturating_mul(size_of::<T>() as u64);
        // Nothing is known of the function yet: as long as a copy is the case that needs the most slots.
        let machine = Machine { upload: 50e9, download: 50e9, both: 100e9, handover: 3e-6, issue: 0.0 };
        let compute = bytes as f64 / machine.upload;
        let work =
            Work { items: 1 << 20, upload_bytes: bytes, download_bytes: bytes, slot_bytes: bytes, compute };
        let plan = plan(&machine, &work, &Budget { device: options.memory, slots: options.slots })
            .map_err(PipelineError::Plan)?;
        let stream = |name| device.stream(name).map_err(PipelineError::Device);
        let (upload, compute, download) = (stream("upload")?, stream("compute")?, stream("download")?);
        let slot = || {
            Ok(Slot {
                staged: device.host_buffer(options.item)?,
                buffer: device.buffer(options.item, &compute)?,
                result: device.host_buffer(options.item)?,
            })
        };
        let slots = (0..plan.slots).map(|_| slot()).collect::<Result<Vec<_>, Error>>();
        let slots = slots.map_err(PipelineError::Device)?;
        Ok(Self { upload, compute, download, slots, plan, cancel: options.cancel.clone() })
    }

    /// How the pipeline was planned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs `function` over all items and hands their results to `sink`, in order.
    ///
    /// `function` submits operations on the stream it is given and may make buffers of its own; when it
    /// returns, the item's download is submitted. An item shorter than the slot leaves the rest of the slot as
    /// it was. An item that fails, in the source or in `function`, is handed to `sink` as an error and stops no other.
    pub fn run<I, E>(
        &mut self,
        items: impl IntoIterator<Item = Result<I, E>>,
        mut function: impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
        mut sink: impl FnMut(u64, Result<&[T], ItemError>),
    ) -> Statistics
    where
        I: AsRef<[T]>,
        E: fmt::Display,
    {
        let begin = Instant::now();
        let mut statistics = Statistics::default();
        let mut under_way: VecDeque<UnderWay> = VecDeque::new();
        for (item, source) in (0..).zip(items) {
            if self.cancel.is_cancelled() {
                statistics.cancelled = true;
                break;
            }
            if under_way.len() == self.slots.len()
                && let Some(oldest) = under_way.pop_front()
            {
                self.hand_out(oldest, &mut sink, &mut statistics);
            }
            let slot = (item % self.slots.len() as u64) as usize;
            let (length, outcome) = match source {
                Ok(values) => {
                    let values = values.as_ref();
                    (values.len(), self.submit(item, slot, values, &mut function))
                }
                Err(error) => (0, Err(ItemError { item, stage: "source", message: error.to_string() })),
            };
            under_way.push_back(UnderWay { item, length, slot, outcome });
        }
        for item in under_way {
            self.hand_out(item, &mut sink, &mut statistics);
        }
        statistics.seconds = begin.elapsed().as_secs_f64();
        statistics
    }

    /// Runs `function` over items that lie in page-locked memory already, into results that do: no byte is copied by
    /// the host, and the host waits only at the end. Gives what failed beside the statistics; the results of all
    /// other items are there.
    ///
    /// # Errors
    ///
    /// If there are not as many results as items.
    pub fn run_in_place(
        &mut self,
        items: &[HostBuffer<T>],
        results: &mut [HostBuffer<T>],
        mut function: impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
    ) -> Result<(Statistics, Vec<ItemError>), Error> {
        if items.len() != results.len() {
            return Err(Error::Length { from: items.len(), to: results.len() });
        }
        let begin = Instant::now();
        let mut statistics = Statistics::default();
        let mut failed = Vec::new();
        for (item, (source, result)) in (0..).zip(items.iter().zip(&mut *results)) {
            if self.cancel.is_cancelled() {
                statistics.cancelled = true;
                break;
            }
            let slot = (item % self.slots.len() as u64) as usize;
            let buffer = &mut self.slots[slot].buffer;
            let bytes = source.len() as u64 * size_of::<T>() as u64;
            let outcome =
                self.upload.upload(source, buffer).map_err(|error| ("upload", error)).and_then(|()| {
                    function(&self.compute, buffer).map_err(|error| ("function", error))?;
                    self.download.download(buffer, result).map_err(|error| ("download", error))
                });
            statistics.items += 1;
            match outcome {
                Ok(()) => {
                    statistics.uploaded += bytes;
                    statistics.downloaded += bytes;
                }
                Err((stage, error)) => failed.push(ItemError { item, stage, message: error.to_string() }),
            }
        }
        // The first failure on the device ends its stream: everything after it has failed too.
        if let Err(error) = self.download.synchronize() {
            failed.push(ItemError { item: statistics.items, stage: "function", message: error.to_string() });
        }
        statistics.failed = failed.len() as u64;
        statistics.seconds = begin.elapsed().as_secs_f64();
        Ok((statistics, failed))
    }

    fn submit(
        &mut self,
        item: u64,
        slot: usize,
        values: &[T],
        function: &mut impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
    ) -> Result<(), ItemError> {
        let failed = |stage| move |error: Error| ItemError { item, stage, message: error.to_string() };
        let slot = &mut self.slots[slot];
        let mut staged = slot.staged.write().map_err(failed("upload"))?;
        let room = staged.len();
        let target = staged.get_mut(..values.len()).ok_or_else(|| ItemError {
            item,
            stage: "upload",
            message: format!("it has {} elements, a slot {room}: make the slots larger", values.len()),
        })?;
        target.copy_from_slice(values);
        self.upload.upload(&slot.staged, &mut slot.buffer).map_err(failed("upload"))?;
        function(&self.compute, &mut slot.buffer).map_err(failed("function"))?;
        self.download.download(&slot.buffer, &mut slot.result).map_err(failed("download"))
    }

    fn hand_out(
        &self,
        item: UnderWay,
        sink: &mut impl FnMut(u64, Result<&[T], ItemError>),
        statistics: &mut Statistics,
    ) {
        let UnderWay { item, length, slot, outcome } = item;
        let bytes = self.slots[slot].buffer.len() as u64 * size_of::<T>() as u64;
        let read = outcome.and_then(|()| {
            self.slots[slot].result.read().map_err(|error| ItemError {
                item,
                stage: "function",
                message: error.to_string(),
            })
        });
        statistics.items += 1;
        match read {
            Ok(values) => {
                statistics.uploaded += bytes;
                statistics.downloaded += bytes;
                sink(item, Ok(&values[..length]));
            }
            Err(error) => {
                statistics.failed += 1;
                sink(item, Err(error));
            }
        }
    }
}
