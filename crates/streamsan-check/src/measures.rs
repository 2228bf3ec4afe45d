//! What a program does and what its order allows, in counts: no times.

use streamsan_trace::StreamId;

/// Of one trace, or of the part of it that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Streams with operations.
    pub streams: Vec<StreamMeasures>,
    /// Operations of all streams; a graph's launch is one.
    pub operations: u64,
    /// Operations in the longest chain of which each has to wait for the one before.
    pub longest: u64,
    /// Copies between host and device.
    pub copies: u64,
    /// Their bytes.
    pub copied: u64,
    /// Copies that are not ordered with some work of another stream.
    pub beside: u64,
    /// Their bytes.
    pub beside_bytes: u64,
    /// Waits of the host that it had to wait in: for operations that it did not know to be done.
    pub host_waits: u64,
    /// These operations.
    pub waited_for: u64,
    /// Waits after which no stream had work.
    pub drained: u64,
    /// Most bytes of blocks of the caching allocator that were in use at one time.
    pub memory: u64,
    /// Most bytes that were freed and held for `record_stream` at one time, if only waits of the host count.
    pub held: u64,
}

/// Of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMeasures {
    /// The stream.
    pub stream: StreamId,
    /// Operations.
    pub operations: u64,
    /// Bytes from host to device.
    pub uploaded: u64,
    /// Those of them from memory that is not page-locked.
    pub uploaded_pageable: u64,
    /// Bytes from device to host.
    pub downloaded: u64,
    /// Those of them to memory that is not page-locked.
    pub downloaded_pageable: u64,
    /// Waits for other streams.
    pub waits: u64,
    /// Those that ordered nothing new.
    pub redundant: u64,
}

impl StreamMeasures {
    /// Of a stream that has done nothing.
    pub(crate) fn new(stream: StreamId) -> Self {
        Self {
            stream,
            operations: 0,
            uploaded: 0,
            uploaded_pageable: 0,
            downloaded: 0,
            downloaded_pageable: 0,
            waits: 0,
            redundant: 0,
        }
    }
}
