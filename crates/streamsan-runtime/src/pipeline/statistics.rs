//! What a pipeline did.

use crate::plan::Bound;
use std::fmt;

/// Counts and times of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Items that were handed out, failed ones included.
    pub items: u64,
    /// Those that failed.
    pub failed: u64,
    /// Times that a slot was filled: fewer than items if they travelled together, more if they were cut.
    pub loads: u64,
    /// Bytes copied to the device for items that did not fail.
    pub uploaded: u64,
    /// Bytes copied from the device for items that did not fail.
    pub downloaded: u64,
    /// Time from the first item to the last result.
    pub seconds: f64,
    /// Slots at the end: fewer than planned if the function ran out of device memory.
    pub slots: usize,
    /// Whether it was stopped before the source ended.
    pub cancelled: bool,
    /// What ended a stream, and with it the run, before the source ended.
    pub stopped: Option<String>,
    /// Time at best and what limits it, if the pipeline was measured ([`Pipeline::measure`](crate::Pipeline::measure)).
    pub ideal: Option<(f64, Bound)>,
}

impl Statistics {
    /// Bytes a second, both directions together; 0 if nothing ran.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { (self.uploaded + self.downloaded) as f64 / self.seconds } else { 0.0 }
    }

    /// The time at best as a part of the time it took, 1 for perfect; `None` if it was not measured.
    pub fn efficiency(&self) -> Option<f64> {
        self.ideal.filter(|_| self.seconds > 0.0).map(|(seconds, _)| seconds / self.seconds)
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, failed, seconds, slots, .. } = self;
        let rate = self.rate() / 1e9;
        write!(
            formatter,
            "{items} items, {failed} failed, in {seconds:.3} s through {slots} slots: {rate:.2} GB/s both ways"
        )?;
        if let (Some(part), Some((_, bound))) = (self.efficiency(), self.ideal) {
            write!(formatter, ", {:.0} % of what {bound} allows", part * 100.0)?;
        }
        Ok(())
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Items that were handed out.
    pub items: u64,
    /// Those that failed.
    pub failed: u64,
    /// Bytes copied, both directions together.
    pub bytes: u64,
    /// Time since the run began.
    pub seconds: f64,
}
