//! Hands results out, in order, and counts.

use super::error::ItemError;
use super::load::Segment;
use super::sink::{Part, Sink};
use super::statistics::{Progress, Statistics};
use std::time::{Duration, Instant};

/// Called with how far a run is.
pub(super) type Report = Box<dyn FnMut(&Progress) + Send>;

/// One run's results.
pub(super) struct Delivery<'a, T> {
    sink: &'a mut dyn Sink<T>,
    pub(super) statistics: Statistics,
    /// Those that failed, if somebody wants to know.
    pub(super) failed: Option<Vec<ItemError>>,
    /// The last item that failed: no further part of it is handed out.
    last_failed: Option<u64>,
    begin: Instant,
    reported: Instant,
}

impl<'a, T> Delivery<'a, T> {
    pub(super) fn new(sink: &'a mut dyn Sink<T>, collect: bool) -> Self {
        let now = Instant::now();
        Self {
            sink,
            statistics: Statistics::default(),
            failed: collect.then(Vec::new),
            last_failed: None,
            begin: now,
            reported: now,
        }
    }

    /// Hands out what a segment became; `values` are those of the whole load.
    pub(super) fn hand_out(&mut self, segment: &Segment, values: Result<&[T], ItemError>) {
        if self.last_failed == Some(segment.item) {
            return;
        }
        let taken =
            segment.outcome.clone().and(values).inspect_err(|error| self.sink.failed(error, segment.total));
        let outcome = taken.and_then(|values| {
            let values = &values[segment.at..segment.at + segment.length];
            let part = Part { item: segment.item, first: segment.first, total: segment.total, values };
            self.sink.part(&part).map(|()| part.is_last()).map_err(|message| ItemError {
                item: segment.item,
                stage: "sink",
                message,
            })
        });
        match outcome {
            Ok(last) => {
                let bytes = segment.length as u64 * size_of::<T>() as u64;
                self.statistics.uploaded += bytes;
                self.statistics.downloaded += bytes;
                self.statistics.items += u64::from(last);
            }
            Err(error) => {
                self.statistics.items += 1;
                self.statistics.failed += 1;
                self.last_failed = Some(segment.item);
                self.failed.iter_mut().for_each(|failed| failed.push(error.clone()));
            }
        }
    }

    /// Says how far the run is, if it is time to.
    pub(super) fn report(&mut self, report: &mut Option<(Duration, Report)>, end: bool) {
        let Some((every, report)) = report else { return };
        if end || self.reported.elapsed() >= *every {
            self.reported = Instant::now();
            report(&Progress {
                items: self.statistics.items,
                failed: self.statistics.failed,
                bytes: self.statistics.uploaded + self.statistics.downloaded,
                seconds: self.begin.elapsed().as_secs_f64(),
            });
        }
    }

    pub(super) fn finish(mut self, slots: usize) -> (Statistics, Vec<ItemError>) {
        self.statistics.slots = slots;
        self.statistics.seconds = self.begin.elapsed().as_secs_f64();
        (self.statistics, self.failed.unwrap_or_default())
    }
}
