//! Random delays before operations.

use std::time::Duration;

/// Decides how long each operation of a stream is held back.
#[derive(Debug)]
pub(super) struct Delays(Option<fastrand::Rng>);

impl Delays {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self(seed.map(fastrand::Rng::with_seed))
    }

    /// Nothing, a change of threads, or up to some tens of microseconds: long enough for other streams to overtake.
    pub(super) fn pause(&mut self) {
        let Some(random) = &mut self.0 else { return };
        match random.u8(0..8) {
            0..=3 => {}
            4..=6 => crate::sync::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(random.u64(1..40))),
        }
    }
}
