//! Pipelines: a function over any number of items through a fixed number of slots, with upload, function and
//! download of different items at once.
//!
//! The loop below submits items in turn and never waits between the stages of one: the buffers know what has to
//! come first. The host waits in two places only: before it refills a slot's upload buffer, and before it hands
//! out a slot's result. Memory is that of the slots, whatever the number of items.

mod delivery;
mod error;
mod in_place;
mod load;
mod measure;
mod options;
mod sink;
mod slot;
mod source;
mod statistics;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::plan::{Budget, Machine, Plan, Work, plan, plan_single};
use crate::stream::Stream;
use bytemuck::Pod;
use delivery::{Delivery, Report};
pub use error::{ItemError, PipelineError};
use load::{Filler, Load, Segment};
pub use measure::Measured;
pub use options::{Cancel, PipelineOptions};
use sink::Each;
pub use sink::{ItemWriter, Part, Sink, SliceSink};
use slot::{Failure, Function, Slot, Streams};
pub use source::{ItemReader, Items, Source};
pub use statistics::{Progress, Statistics};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// A pipeline with its slots.
///
/// ```
/// use streamsan_runtime::{CpuOptions, Device, Pipeline, PipelineOptions};
/// let device = Device::cpu(&CpuOptions::default());
/// let options = PipelineOptions { item: 1024, memory: 64 << 10, ..PipelineOptions::default() };
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
pub struct Pipeline<T> {
    streams: Streams,
    slots: Vec<Slot<T>>,
    /// Elements of a slot.
    capacity: usize,
    plan: Plan,
    elementwise: bool,
    cancel: Cancel,
    measured: Option<Measured>,
    progress: Option<(Duration, Report)>,
    /// The item whose failure ended a stream, and what it said.
    broken: Option<(u64, String)>,
}

impl<T> fmt::Debug for Pipeline<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pipeline")
            .field("slots", &self.slots.len())
            .field("capacity", &self.capacity)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

/// A load that was submitted.
struct UnderWay {
    slot: usize,
    load: Load,
    outcome: Result<(), Failure>,
}

impl<T: Pod> Pipeline<T> {
    /// Plans a pipeline and makes its slots. Where memory is short there are fewer slots than planned, if their
    /// number was not chosen ([`Pipeline::slots`]).
    ///
    /// # Errors
    ///
    /// If the slots do not fit into the budget or the device.
    #[track_caller]
    pub fn new(device: &Device, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let bytes = (options.item.max(1) as u64).saturating_mul(size_of::<T>().max(1) as u64);
        // Nothing is known of the function yet: as long as a copy is the case that needs the most slots.
        let machine = Machine { upload: 50e9, download: 50e9, both: 100e9, handover: 3e-6, issue: 0.0 };
        let compute = bytes as f64 / machine.upload;
        let work =
            Work { items: 1 << 20, upload_bytes: bytes, download_bytes: bytes, slot_bytes: bytes, compute };
        let budget = Budget { device: options.memory, slots: options.slots };
        let make = if options.elementwise { plan } else { plan_single };
        let mut plan = make(&machine, &work, &budget).map_err(PipelineError::Plan)?;
        let capacity = options.item.saturating_mul(usize::try_from(plan.pack).unwrap_or(1));
        let stream = |name| device.stream(name).map_err(PipelineError::Device);
        let streams =
            Streams { upload: stream("upload")?, compute: stream("compute")?, download: stream("download")? };
        let mut slots = Vec::with_capacity(plan.slots);
        while slots.len() < plan.slots {
            match Slot::new(device, capacity, &streams.compute) {
                Ok(slot) => slots.push(slot),
                Err(Error::OutOfMemory { .. }) if options.slots.is_none() && !slots.is_empty() => {
                    plan.slots = slots.len();
                }
                Err(error) => return Err(PipelineError::Device(error)),
            }
        }
        Ok(Self {
            streams,
            slots,
            capacity,
            plan,
            elementwise: options.elementwise,
            cancel: options.cancel.clone(),
            measured: None,
            progress: None,
            broken: None,
        })
    }

    /// How the pipeline was planned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Calls `report` while a pipeline runs, when a result is handed out and this much time has gone by since the last
    /// call, and at the end of a run.
    pub fn on_progress(&mut self, every: Duration, report: impl FnMut(&Progress) + Send + 'static) {
        self.progress = Some((every, Box::new(report)));
    }

    /// Runs `function` over all items and hands their results to `sink`, in order.
    ///
    /// `function` submits operations on the stream it is given and may make buffers of its own; its buffer has as
    /// many elements as the item. When it returns, the item's download is submitted. It is called again for an item
    /// if it ran out of device memory, and not at all for an item without elements. An item that fails, in the source or in `function`, is handed to `sink` as an
    /// error and stops no other.
    pub fn run<I, E>(
        &mut self,
        items: impl IntoIterator<Item = Result<I, E>>,
        mut function: impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
        sink: impl FnMut(u64, Result<&[T], ItemError>),
    ) -> Statistics
    where
        I: AsRef<[T]>,
        E: fmt::Display,
    {
        let (mut source, mut sink) = (Items::new(items), Each::new(sink));
        self.drive(&mut source, &mut function, Delivery::new(&mut sink, false)).0
    }

    /// As [`Pipeline::run`], from a source into a sink, such as files. Gives what failed beside the statistics.
    ///
    /// ```
    /// use streamsan_runtime::{CpuOptions, Device, ItemReader, Pipeline, PipelineOptions, SliceSink};
    /// let device = Device::cpu(&CpuOptions::default());
    /// let options = PipelineOptions { item: 4, elementwise: true, ..PipelineOptions::default() };
    /// let mut pipeline = Pipeline::<u8>::new(&device, &options)?;
    /// let (bytes, mut results) = ([1_u8; 10], [0; 10]);
    /// let mut source = ItemReader::<u8, _>::new(bytes.as_slice(), 10, 4); // or `ItemReader::open`
    /// let (statistics, failed) = pipeline.transfer(
    ///     &mut source,
    ///     |compute, buffer| {
    ///         let mut operation = compute.operation("add");
    ///         let values = operation.update(buffer);
    ///         operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value += 1))
    ///     },
    ///     &mut SliceSink::new(&mut results), // or `ItemWriter::create`
    /// );
    /// assert_eq!((statistics.items, failed.len(), results), (3, 0, [2; 10]));
    /// # Ok::<(), streamsan_runtime::PipelineError>(())
    /// ```
    pub fn transfer(
        &mut self,
        source: &mut dyn Source<T>,
        mut function: impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
        sink: &mut dyn Sink<T>,
    ) -> (Statistics, Vec<ItemError>) {
        self.drive(source, &mut function, Delivery::new(sink, true))
    }

    fn drive(
        &mut self,
        source: &mut dyn Source<T>,
        function: &mut Function<'_, T>,
        mut delivery: Delivery<'_, T>,
    ) -> (Statistics, Vec<ItemError>) {
        let (mut under_way, mut filler) = (VecDeque::new(), Filler::default());
        let mut free: Vec<usize> = (0..self.slots.len()).rev().collect();
        while self.broken.is_none() && !filler.has_ended() {
            if self.cancel.is_cancelled() && !filler.is_inside_an_item() {
                delivery.statistics.cancelled = true;
                break;
            }
            let Some(slot) = free.pop() else {
                self.hand_out_oldest(&mut under_way, &mut free, &mut delivery);
                continue;
            };
            let mut next = match self.begin(slot, source, &mut filler) {
                Ok(next) => next,
                Err((_, error)) => {
                    self.broken =
                        Some((delivery.statistics.items + under_way.len() as u64, error.to_string()));
                    break;
                }
            };
            if next.load.segments.is_empty() {
                free.push(slot);
                continue;
            }
            delivery.statistics.loads += 1;
            if next.load.length > 0 && next.outcome.is_ok() {
                next.outcome = self.slots[slot].submit(&self.streams, function);
            }
            while matches!(next.outcome, Err(("function", Error::OutOfMemory { .. }))) && self.slots.len() > 1
            {
                // The results under way are safe first; then one slot's memory is the function's.
                while !under_way.is_empty() {
                    self.hand_out_oldest(&mut under_way, &mut free, &mut delivery);
                }
                self.slots.swap(0, next.slot);
                next.slot = 0;
                self.slots.pop();
                free = (1..self.slots.len()).rev().collect();
                next.outcome = self.slots[0].submit(&self.streams, function);
            }
            if next.outcome.is_err() && next.load.segments.len() > 1 {
                while !under_way.is_empty() {
                    self.hand_out_oldest(&mut under_way, &mut free, &mut delivery);
                }
                free.push(next.slot);
                self.one_by_one(&next, function, &mut delivery);
                continue;
            }
            under_way.push_back(next);
        }
        while !under_way.is_empty() {
            self.hand_out_oldest(&mut under_way, &mut free, &mut delivery);
        }
        delivery.report(&mut self.progress, true);
        let (mut statistics, failed) = delivery.finish(self.slots.len());
        statistics.stopped = self.broken.as_ref().map(|(_, message)| message.clone());
        self.judge(&mut statistics);
        (statistics, failed)
    }

    /// Fills a slot from the source. On failure nothing was taken from it.
    fn begin(
        &mut self,
        slot: usize,
        source: &mut dyn Source<T>,
        filler: &mut Filler,
    ) -> Result<UnderWay, Failure> {
        let (cancel, place) = (&self.cancel, &mut self.slots[slot]);
        place.limit(self.capacity)?;
        let load = {
            let mut room = place.staged.write().map_err(|error| ("upload", error))?;
            filler.fill(source, &mut room, self.elementwise, &|| cancel.is_cancelled())
        };
        let outcome = place.limit(load.length);
        Ok(UnderWay { slot, load, outcome })
    }

    /// Items that travelled together do so no longer, so that only the one that is to blame fails.
    fn one_by_one(
        &mut self,
        together: &UnderWay,
        function: &mut Function<'_, T>,
        delivery: &mut Delivery<'_, T>,
    ) {
        let staged = {
            let staged = &mut self.slots[together.slot].staged;
            staged.write().map(|values| values.to_vec())
        };
        for segment in &together.load.segments {
            let range = segment.at..segment.at + segment.length;
            let failed =
                |(stage, error): Failure| ItemError { item: segment.item, stage, message: error.to_string() };
            let slot = &mut self.slots[together.slot];
            let done = match &staged {
                Err(error) => Err(failed(("upload", error.clone()))),
                Ok(_) if segment.length == 0 || segment.outcome.is_err() => Ok(()),
                Ok(staged) => slot
                    .limit(segment.length)
                    .and_then(|()| {
                        let mut target = slot.staged.write().map_err(|error| ("upload", error))?;
                        target.copy_from_slice(&staged[range]);
                        Ok(())
                    })
                    .and_then(|()| slot.submit(&self.streams, function))
                    .map_err(failed),
            };
            let alone = Segment { at: 0, outcome: segment.outcome.clone(), ..*segment };
            self.deliver(together.slot, std::slice::from_ref(&alone), done, delivery);
        }
    }

    fn hand_out_oldest(
        &mut self,
        under_way: &mut VecDeque<UnderWay>,
        free: &mut Vec<usize>,
        delivery: &mut Delivery<'_, T>,
    ) {
        let Some(UnderWay { slot, load, outcome }) = under_way.pop_front() else { return };
        let item = load.segments.first().map_or(0, |segment| segment.item);
        let outcome = outcome.map_err(|(stage, error)| ItemError { item, stage, message: error.to_string() });
        self.deliver(slot, &load.segments, outcome, delivery);
        free.push(slot);
    }

    /// Waits for a slot's result and hands out its items.
    fn deliver(
        &mut self,
        slot: usize,
        segments: &[Segment],
        outcome: Result<(), ItemError>,
        delivery: &mut Delivery<'_, T>,
    ) {
        let broken = &mut self.broken;
        let item = segments.first().map_or(0, |segment| segment.item);
        let values = outcome.and_then(|()| {
            self.slots[slot].result.read().map_err(|error| {
                let (first, message) = broken.get_or_insert_with(|| (item, error.to_string()));
                let message = if *first == item {
                    message.clone()
                } else {
                    format!("not done, since item {first} ended a stream: {message}")
                };
                ItemError { item, stage: "function", message }
            })
        });
        for segment in segments {
            let values = match &values {
                Ok(values) => Ok(&**values),
                Err(error) => Err(ItemError { item: segment.item, ..error.clone() }),
            };
            delivery.hand_out(segment, values);
        }
        delivery.report(&mut self.progress, false);
    }
}
