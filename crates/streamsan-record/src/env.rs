//! The names of all environment variables that the recorder and the preloaded library read.

/// Path of the trace file to write. Recording is off without it.
pub const TRACE: &str = "STREAMSAN_TRACE";

/// Process id of the `streamsan run` that started the program.
pub const RUN: &str = "STREAMSAN_RUN";

/// `virtual` or `cuda`: what the preloaded library is for.
pub const DEVICE: &str = "STREAMSAN_DEVICE";

/// How many devices the virtual device shows.
pub const DEVICE_COUNT: &str = "STREAMSAN_DEVICE_COUNT";

/// Bytes of memory of each virtual device.
pub const DEVICE_MEMORY: &str = "STREAMSAN_DEVICE_MEMORY";

/// Bytes of host memory that a virtual run may page-lock; for tests of what happens when that is refused.
pub const PAGE_LOCKED_MEMORY: &str = "STREAMSAN_PAGE_LOCKED_MEMORY";

/// Path of the loaded library to which calls are forwarded on a GPU; by default the CUDA runtime that is loaded.
pub const RUNTIME: &str = "STREAMSAN_RUNTIME";
