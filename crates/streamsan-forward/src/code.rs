//! What a call of the runtime answers.

use crate::recording;

/// `cudaError_t`, as the real runtime gave it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    pub const SUCCESS: Self = Self(0);
    /// The real runtime has no such function, or there is none.
    pub const SYMBOL_NOT_FOUND: Self = Self(302);

    /// Whether the call succeeded.
    pub fn ok(self) -> bool {
        self == Self::SUCCESS
    }

    /// Tells the recorder if the call succeeded; gives the answer on.
    pub fn then(self, report: impl FnOnce(&'static streamsan_record::Recorder)) -> Self {
        if self.ok() {
            recording::report(report);
        }
        self
    }

    /// Like [`Code::then`], for a call whose beginning the recorder was told: it hears of the failure too.
    pub fn then_or_give_up(self, report: impl FnOnce(&'static streamsan_record::Recorder)) -> Self {
        if !self.ok() {
            recording::report(streamsan_record::Recorder::give_up);
        }
        self.then(report)
    }
}
