//! The recorder's calls, one for each thing a runtime library can say.

use streamsan_trace::{HostWaitHow, MemorySpace};

use crate::{CopyCall, Library, MemsetCall, WaitOn};

/// Records what a process does with CUDA into one trace file.
///
/// Handles are CUDA's own, as `u64`; stream handle 0 is the legacy default stream of `device`. Calls are made
/// after the runtime call has succeeded, on the thread that made it, except where a method says otherwise.
#[derive(Debug)]
pub struct Recorder {
    _private: (),
}

#[expect(unused_variables, reason = "bodies follow")]
impl Recorder {
    /// A stream was created. `blocking`: without the non-blocking flag.
    pub fn stream_created(&self, handle: u64, device: u32, blocking: bool, priority: i32) {}

    /// A stream is about to be destroyed: called before the runtime call, so that its handle is not reused yet.
    pub fn stream_destroyed(&self, handle: u64) {}

    /// An event was created.
    pub fn event_created(&self, handle: u64) {}

    /// An event is about to be destroyed: called before the runtime call.
    pub fn event_destroyed(&self, handle: u64) {}

    /// An event was recorded in a stream.
    pub fn event_recorded(&self, event: u64, stream: u64, device: u32, caller: Library) {}

    /// A stream was made to wait for an event.
    pub fn event_waited(&self, stream: u64, device: u32, event: u64, caller: Library) {}

    /// The host is about to wait. Followed by [`Recorder::host_waited`] on the same thread if the call succeeds.
    /// Not needed for queries.
    pub fn host_wait_begin(&self, target: WaitOn) {}

    /// The host has learned that work has finished: a wait returned, or a query said "finished".
    pub fn host_waited(&self, target: WaitOn, how: HostWaitHow, caller: Library) {}

    /// A copy was enqueued.
    pub fn copy(&self, call: &CopyCall<'_>) {}

    /// A memset was enqueued.
    pub fn memset(&self, call: &MemsetCall) {}

    /// A kernel was launched.
    pub fn launch(&self, stream: u64, device: u32, kernel_name: &str) {}

    /// A host function was enqueued.
    pub fn host_function(&self, stream: u64, device: u32) {}

    /// Memory was allocated by a runtime call (not by torch's caching allocator).
    pub fn memory_allocated(&self, space: MemorySpace, address: u64, size: u64) {}

    /// Memory is about to be freed: called before the runtime call.
    pub fn memory_freed(&self, address: u64) {}

    /// A call was made that is not implemented or not modelled. Each name is recorded once a thread and site.
    pub fn unsupported(&self, call: &str) {}

    /// Whether the event's last record was made by one of torch's allocators. A query by them should then
    /// succeed at once on the virtual device.
    pub fn event_is_allocators(&self, event: u64) -> bool {
        false
    }

    /// The stream, as (raw handle, device), of the event's last record.
    pub fn event_target(&self, event: u64) -> Option<(u64, u32)> {
        None
    }
}
