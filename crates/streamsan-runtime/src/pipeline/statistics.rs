//! What a pipeline did.

/// Counts and times of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Items that were handed out, failed ones included.
    pub items: u64,
    /// Those that failed.
    pub failed: u64,
    /// Bytes copied to the device.
    pub uploaded: u64,
    /// Bytes copied from the device.
    pub downloaded: u64,
    /// Time from the first item to the last result.
    pub seconds: f64,
    /// Whether it was stopped before the source ended.
    pub cancelled: bool,
}

impl Statistics {
    /// Bytes a second, both directions together; 0 if nothing ran.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { (self.uploaded + self.downloaded) as f64 / self.seconds } else { 0.0 }
    }
}
