//! Runs over page-locked memory where it is.

use super::Pipeline;
use super::error::ItemError;
use super::slot::{Failure, Function};
use super::statistics::Statistics;
use crate::buffer::Buffer;
use crate::error::Error;
use crate::host::HostBuffer;
use crate::stream::Stream;
use bytemuck::Pod;
use std::time::Instant;

impl<T: Pod> Pipeline<T> {
    /// Runs `function` over items that lie in page-locked memory already, into results that do: no byte is copied by
    /// the host, and the host waits only at the end. Ordinary memory becomes such memory with [`Device::register`](crate::Device::register).
    /// Gives what failed beside the statistics; the results of all other items are there.
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
        let (mut statistics, mut failed) = (Statistics::default(), Vec::new());
        for (item, (source, result)) in (0..).zip(items.iter().zip(&mut *results)) {
            if self.cancel.is_cancelled() {
                statistics.cancelled = true;
                break;
            }
            let mut slot = (item % self.slots.len() as u64) as usize;
            let mut outcome = self.submit_in_place(slot, source, result, &mut function);
            while matches!(outcome, Err(("function", Error::OutOfMemory { .. }))) && self.slots.len() > 1 {
                self.slots.swap(0, slot);
                slot = 0;
                self.slots.pop();
                outcome = self.submit_in_place(slot, source, result, &mut function);
            }
            let bytes = source.len() as u64 * size_of::<T>() as u64;
            statistics.items += 1;
            match outcome {
                Ok(()) => {
                    statistics.uploaded += bytes;
                    statistics.downloaded += bytes;
                }
                Err((stage, error)) => failed.push(ItemError { item, stage, message: error.to_string() }),
            }
        }
        if let Err(error) = self.streams.download.synchronize() {
            statistics.stopped = Some(error.to_string());
            for (item, result) in (0..statistics.items).zip(&*results) {
                let said = failed.iter().any(|failed| failed.item == item);
                if let (false, Err(error)) = (said, result.read()) {
                    failed.push(ItemError { item, stage: "function", message: error.to_string() });
                }
            }
            failed.sort_by_key(|failed| failed.item);
        }
        statistics.loads = statistics.items;
        statistics.failed = failed.len() as u64;
        statistics.slots = self.slots.len();
        statistics.seconds = begin.elapsed().as_secs_f64();
        self.judge(&mut statistics);
        Ok((statistics, failed))
    }

    fn submit_in_place(
        &mut self,
        slot: usize,
        source: &HostBuffer<T>,
        result: &mut HostBuffer<T>,
        function: &mut Function<'_, T>,
    ) -> Result<(), Failure> {
        let (streams, buffer) = (&self.streams, &mut self.slots[slot].buffer);
        buffer.limit(source.len()).map_err(|error| ("upload", error))?;
        streams.upload.upload(source, buffer).map_err(|error| ("upload", error))?;
        function(&streams.compute, buffer).map_err(|error| ("function", error))?;
        streams.download.download(buffer, result).map_err(|error| ("download", error))
    }
}
