//! What the machine and the function can do, measured with the pipeline's own slots.

use super::Pipeline;
use super::slot::Slot;
use crate::buffer::Buffer;
use crate::error::Error;
use crate::plan::{Machine, Work, ideal_seconds};
use crate::stream::Stream;
use bytemuck::Pod;
use std::time::Instant;

use super::statistics::Statistics;

/// Each time is the shortest of so many.
const TURNS: usize = 5;

/// What [`Pipeline::measure`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Rates and times of the machine.
    pub machine: Machine,
    /// Bytes of the sample.
    pub bytes: u64,
    /// Seconds of the function for the sample.
    pub compute: f64,
}

impl<T: Pod> Pipeline<T> {
    /// Measures copies and the function with a sample, each alone, and both copies at once. From then on
    /// [`Statistics::ideal`] says what a run could have taken at best.
    ///
    /// The link is measured with copies of the sample's size: a small one measures what small copies cost.
    ///
    /// # Errors
    ///
    /// If the sample is empty or longer than a slot, or something fails.
    pub fn measure(
        &mut self,
        sample: &[T],
        mut function: impl FnMut(&Stream, &mut Buffer<T>) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let streams = &self.streams;
        let room = self.capacity;
        if sample.is_empty() || sample.len() > room {
            return Err(Error::Length { from: sample.len(), to: room });
        }
        for slot in &mut self.slots {
            slot.limit(sample.len()).map_err(|(_, error)| error)?;
            slot.staged.write()?.copy_from_slice(sample);
        }
        let bytes = size_of_val(sample) as u64;
        let (first, others) = self.slots.split_at_mut(1);
        let Some(slot) = first.first_mut() else { return Err(Error::Length { from: sample.len(), to: 0 }) };
        let upload = shortest(|| {
            streams.upload.upload(&slot.staged, &mut slot.buffer)?;
            streams.upload.synchronize()
        })?;
        let compute = shortest_after(
            slot,
            |slot| {
                streams.upload.upload(&slot.staged, &mut slot.buffer)?;
                streams.upload.synchronize()
            },
            |slot| {
                function(&streams.compute, &mut slot.buffer)?;
                streams.compute.synchronize()
            },
        )?;
        let download = shortest(|| {
            streams.download.download(&slot.buffer, &mut slot.result)?;
            streams.download.synchronize()
        })?;
        let both = match others.first_mut() {
            None => upload + download,
            Some(other) => shortest(|| {
                streams.upload.upload(&other.staged, &mut other.buffer)?;
                streams.download.download(&slot.buffer, &mut slot.result)?;
                streams.upload.synchronize()?;
                streams.download.synchronize()
            })?,
        };
        let (handover, issue) = handover(slot, &streams.upload, &streams.download)?;
        let size = bytes as f64;
        let machine = Machine {
            upload: size / upload,
            download: size / download,
            both: 2.0 * size / both,
            handover,
            issue,
        };
        let measured = Measured { machine, bytes, compute };
        self.measured = Some(measured);
        Ok(measured)
    }

    /// Fills in what a run could have taken at best.
    pub(super) fn judge(&self, statistics: &mut Statistics) {
        let (Some(measured), Some(load)) = (self.measured, statistics.uploaded.checked_div(statistics.loads))
        else {
            return;
        };
        let compute = measured.compute * load as f64 / measured.bytes as f64;
        let work = Work {
            items: statistics.loads,
            upload_bytes: load,
            download_bytes: load,
            slot_bytes: load,
            compute,
        };
        statistics.ideal = Some(ideal_seconds(&measured.machine, &work, statistics.slots));
    }
}

/// The shortest time of some turns, never 0.
fn shortest(mut work: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    shortest_after(&mut (), |()| Ok(()), |()| work())
}

fn shortest_after<S>(
    state: &mut S,
    mut before: impl FnMut(&mut S) -> Result<(), Error>,
    mut work: impl FnMut(&mut S) -> Result<(), Error>,
) -> Result<f64, Error> {
    let mut shortest = f64::INFINITY;
    for _ in 0..TURNS {
        before(state)?;
        let begin = Instant::now();
        work(state)?;
        shortest = shortest.min(begin.elapsed().as_secs_f64());
    }
    Ok(shortest.max(1e-9))
}

/// Copies of one element in turn on two streams, each after the other: the time of a turn, and the host's part of it.
fn handover<T: Pod>(slot: &mut Slot<T>, upload: &Stream, download: &Stream) -> Result<(f64, f64), Error> {
    const STEPS: u32 = 32;
    let whole = slot.staged.len();
    slot.limit(1).map_err(|(_, error)| error)?;
    let mut issue = f64::INFINITY;
    let chain = shortest(|| {
        let begin = Instant::now();
        for _ in 0..STEPS {
            upload.upload(&slot.staged, &mut slot.buffer)?;
            download.download(&slot.buffer, &mut slot.result)?;
        }
        issue = issue.min(begin.elapsed().as_secs_f64());
        download.synchronize()
    })?;
    slot.limit(whole).map_err(|(_, error)| error)?;
    let (chain, issue) = (chain / f64::from(2 * STEPS), issue / f64::from(STEPS));
    Ok((chain, issue))
}
