//! Limits of one input: time of the processor and memory.
//!
//! libFuzzer's own limits count the time on the wall, which says nothing on a busy machine, and the memory of
//! the whole process.

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Processor time that one input may take. Inputs are short: this is far above what any should need.
pub const TIME: Duration = Duration::from_secs(5);

/// Bytes that may be allocated for one input at any time.
pub const MEMORY: usize = 256 << 20;

/// Does `work` and panics if it took more than the limits.
pub fn within(work: impl FnOnce()) {
    let (before, start) = (ALLOCATOR.current_usage(), processor_time());
    ALLOCATOR.reset_peak_usage();
    work();
    let (took, held) = (processor_time() - start, ALLOCATOR.peak_usage().saturating_sub(before));
    assert!(took <= TIME, "one input took {took:?} of processor time");
    assert!(held <= MEMORY, "one input took {held} bytes of memory");
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
