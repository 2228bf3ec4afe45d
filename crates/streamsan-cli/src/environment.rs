//! The names of all environment variables that the command reads or sets.

/// The interpreter that runs streamsan; set by the console script.
pub(crate) const PYTHON: &str = "STREAMSAN_PYTHON";

/// The folder of the Python package; set by the console script.
pub(crate) const PACKAGE: &str = "STREAMSAN_PACKAGE";

/// The trace to write; read by the recorder.
pub(crate) const TRACE: &str = "STREAMSAN_TRACE";

/// Our process id, so that the program can tell that its parent is us; read by the device library.
pub(crate) const RUN: &str = "STREAMSAN_RUN";

/// What the preloaded library is for; read by it.
pub(crate) const DEVICE: &str = "STREAMSAN_DEVICE";

/// Bytes of memory of each virtual device; read by the device library.
pub(crate) const DEVICE_MEMORY: &str = "STREAMSAN_DEVICE_MEMORY";

/// Which page-locked memory is protected while copies are pending: 1, all; 0, none; otherwise what the program has the
/// address of. Read by the device library.
pub(crate) const PROTECT: &str = "STREAMSAN_PROTECT";

/// 1: asynchronous copies are done as late as waits allow; read by the device library and the torch layer.
pub(crate) const DELAY_COPIES: &str = "STREAMSAN_DELAY_COPIES";

/// The file for values given to `streamsan.watch`; written by the Python package.
pub(crate) const WATCH: &str = "STREAMSAN_WATCH";

/// How many virtual devices; read by the device library.
pub(crate) const DEVICE_COUNT: &str = "STREAMSAN_DEVICE_COUNT";

/// The plan of a further run of `--confirm`; read by the Python package.
pub(crate) const CONFIRM: &str = "STREAMSAN_CONFIRM";
