//! Starts the recorder when this library is loaded, and shows the process where it is.

use std::env;
use std::ffi::c_int;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::OnceLock;

use streamsan_record::table::{RawAccess, RecorderTable};
use streamsan_record::{RecordError, StartOptions, env as names, start, table};
use streamsan_trace::CaptureKind;

use crate::call::{inquiry, watch_forks};
use crate::devices::configured_devices;
use crate::streams::{enqueue, host_waited, with_state};

extern "C" fn on_load() {
    inquiry(|| {
        watch_forks();
        let Some(path) = env::var_os(names::TRACE).filter(|path| !path.is_empty()) else { return Ok(()) };
        let options = StartOptions {
            path: PathBuf::from(path),
            capture: CaptureKind::Virtual,
            devices: configured_devices(),
        };
        match start(options) {
            // The trace of the process that made this one: not ours to write, and nothing to tell its user.
            Err(RecordError::File { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => eprintln!("streamsan: recording is off: {error}"),
            Ok(()) => {}
        }
        Ok(())
    });
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// The recorder's own function for operations.
type Operation = unsafe extern "C" fn(u64, u32, u32, u32, *const RawAccess, usize);
static RECORD_OPERATION: OnceLock<Operation> = OnceLock::new();

/// Flag of an operation that ends with a host wait on its stream.
const READS_BACK: u32 = 1;

/// An operator that was computed above instead of by a launch: work of its stream like any other.
unsafe extern "C" fn operation(
    stream: u64,
    device: u32,
    kind: u32,
    flags: u32,
    accesses: *const RawAccess,
    count: usize,
) {
    inquiry(|| {
        // Handle 0 is the stream of the device that the caller names, which need not be the current one.
        let stream = if stream == 0 {
            let stream = crate::streams::Stream { handle: 0, device };
            with_state(|state| {
                let chain = state.chain(stream);
                state.readiness.enqueue(chain);
                Ok(stream)
            })?
        } else {
            enqueue(stream)?
        };
        if flags & READS_BACK != 0 {
            host_waited(stream)?;
        }
        Ok(())
    });
    if let Some(record) = RECORD_OPERATION.get() {
        // SAFETY: the recorder's function, with what its caller promises.
        unsafe { record(stream, device, kind, flags, accesses, count) };
    }
}

/// The table as this library shows it.
struct Shown(RecorderTable);

// SAFETY: the table holds function addresses and null pointers only, and is never written after it is made.
unsafe impl Send for Shown {}
// SAFETY: as above.
unsafe impl Sync for Shown {}

#[unsafe(no_mangle)]
extern "C" fn streamsan_table() -> *const RecorderTable {
    static TABLE: OnceLock<Shown> = OnceLock::new();
    let mut found = std::ptr::null();
    inquiry(|| {
        let shown = TABLE.get_or_init(|| {
            let recorders = *table();
            let _ = RECORD_OPERATION.set(recorders.operation);
            Shown(RecorderTable { operation, ..recorders })
        });
        found = &raw const shown.0;
        Ok(())
    });
    found
}

/// 1 if this process runs on the virtual device.
#[unsafe(no_mangle)]
extern "C" fn streamsan_is_virtual() -> c_int {
    1
}
