//! Starts the recorder when CUDA comes into the process, and shows the process where it is.

use std::env;
use std::ffi::c_int;
use std::io::ErrorKind;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use streamsan_record::table::{RawAccess, RecorderTable};
use streamsan_record::{RecordError, StartOptions, env as names, start, table};
use streamsan_trace::CaptureKind;

use crate::call::{inquiry, watch_forks};
use crate::devices::configured_devices;
use crate::protection;
use crate::streams::{enqueue, host_waited, with_state};

extern "C" fn on_load() {
    inquiry(|| {
        crate::parent::follow();
        watch_forks();
        Ok(())
    });
}

/// Starts the recorder, once: when CUDA code is loaded, the torch layer asks for the recorder, or the device is
/// used. Not when this library is loaded: the shell that starts the program loads it too.
pub fn begin() {
    static BEGUN: Once = Once::new();
    // A fault here must not leave the call it happens in.
    BEGUN.call_once(|| drop(catch_unwind(start_recorder)));
}

fn start_recorder() {
    let Some(path) = env::var_os(names::TRACE).filter(|path| !path.is_empty()) else { return };
    let (path, devices) = (PathBuf::from(path), configured_devices());
    for path in names_to_try(&path) {
        match start(StartOptions { path, capture: CaptureKind::Virtual, devices }) {
            Err(RecordError::File { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                eprintln!("streamsan: recording is off: {error}");
                return;
            }
            Ok(()) => return,
        }
    }
    eprintln!(
        "streamsan: recording is off: all names for a trace of process {} are taken",
        std::process::id()
    );
}

/// How often a process may start itself again and still be recorded.
const TURNS: u32 = 1000;

/// The first process has the name that was asked for; each further one has its own.
fn names_to_try(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once(path.to_owned()).chain((1..=TURNS).map(move |turn| own_name(path, turn)))
}

/// `run.sstrace` becomes `run-p4711.sstrace`, and for a process that starts itself again `run-p4711-2.sstrace`.
fn own_name(path: &Path, turn: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let pid = std::process::id();
    let stem = if turn == 1 { format!("{stem}-p{pid}") } else { format!("{stem}-p{pid}-{turn}") };
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{}", extension.to_string_lossy()),
        None => stem,
    };
    path.with_file_name(name)
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

unsafe extern "C" fn host_access(accesses: *const RawAccess, count: usize) {
    // SAFETY: the recorder's function, with what its caller promises.
    unsafe { (table().host_access)(accesses, count) };
    if protection::enabled() && !accesses.is_null() {
        // SAFETY: the caller gives `count` accesses.
        for access in unsafe { std::slice::from_raw_parts(accesses, count) } {
            protection::allow(access.address as usize, access.length as usize);
        }
    }
}

unsafe extern "C" fn host_block(address: u64, size: u64) {
    protection::allow(address as usize, size as usize);
    // SAFETY: the recorder's function, with what its caller promises.
    unsafe { (table().host_block)(address, size) };
}

unsafe extern "C" fn escape(address: u64, label: u32) {
    // What is done with a pointer to protected memory is seen.
    if !protection::is_watched(address as usize) {
        // SAFETY: the recorder's function, with what its caller promises.
        unsafe { (table().escape)(address, label) };
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
    begin();
    let mut found = std::ptr::null();
    inquiry(|| {
        let shown = TABLE.get_or_init(|| {
            let recorders = *table();
            let _ = RECORD_OPERATION.set(recorders.operation);
            Shown(RecorderTable { operation, host_access, host_block, escape, ..recorders })
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::streams::{own_stream, with_stream};

    /// Whether a query of this stream would say "finished".
    fn is_finished(handle: u64) -> bool {
        let polled = with_stream(handle, |state, stream| {
            let chain = state.chain(stream);
            state.readiness.poll_chain(chain)
        });
        polled.is_ok_and(|(_, ready)| ready)
    }

    #[test]
    fn a_process_that_starts_itself_again_has_a_name_left() {
        let names: Vec<PathBuf> = names_to_try(Path::new("/traces/run.sstrace")).collect();
        let id = std::process::id();
        for (turn, name) in [
            (0, "/traces/run.sstrace".to_owned()),
            (1, format!("/traces/run-p{id}.sstrace")),
            (12, format!("/traces/run-p{id}-12.sstrace")),
            (1000, format!("/traces/run-p{id}-1000.sstrace")),
        ] {
            assert_eq!(names[turn], Path::new(&name));
        }
        let different: HashSet<&PathBuf> = names.iter().collect();
        assert_eq!((names.len(), different.len()), (1001, 1001));
    }

    #[test]
    fn an_operator_is_work_of_its_stream_and_one_that_reads_back_is_waited_for() {
        let table = streamsan_table();
        // SAFETY: the table lives as long as the process.
        let operation = unsafe { (*table).operation };
        let stream = own_stream();
        assert!(is_finished(stream));
        // SAFETY: no accesses.
        unsafe { operation(stream, 0, 0, 0, std::ptr::null(), 0) };
        assert!(!is_finished(stream));
        // SAFETY: no accesses.
        unsafe { operation(stream, 0, 0, READS_BACK, std::ptr::null(), 0) };
        assert!(is_finished(stream));
    }
}
