//! Starts the recorder when CUDA comes into the process, and shows the process where it is.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use streamsan_record::table::{RawAccess, RecorderTable};
use streamsan_record::{follow_parent, table};
use streamsan_trace::CaptureKind;

use crate::call::{inquiry, watch_forks};
use crate::capture;
use crate::devices::configured_devices;
use crate::errors::Code;
use crate::graphs::Work;
use crate::graphs::work::Operator;
use crate::memory::is_device_memory;
use crate::protection;
use crate::streams::{Stream, enqueue, host_waited, with_state};

extern "C" fn on_load() {
    inquiry(|| {
        follow_parent();
        watch_forks();
        Ok(())
    });
}

/// Starts the recorder, once: when CUDA code is loaded, the torch layer asks for the recorder, or the device is
/// used. Not when this library is loaded: the shell that starts the program loads it too.
///
/// A forked child begins anew: its parent may not have been recorded because no trace was named then.
pub fn begin() {
    static BEGUN: [Once; 2] = [Once::new(), Once::new()];
    let child = usize::from(FORKED.load(Ordering::Relaxed));
    BEGUN[child].call_once(|| streamsan_record::begin("virtual", CaptureKind::Virtual, configured_devices));
}

/// Whether this process is a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// To be called in a forked child.
pub fn after_fork_in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// The recorder's own function for operations.
type Operation = unsafe extern "C" fn(u64, u32, u32, u32, *const RawAccess, usize);
static RECORD_OPERATION: OnceLock<Operation> = OnceLock::new();

/// Flag of an operation that ends with a host wait on its stream.
const READS_BACK: u32 = 1;

thread_local! {
    /// The torch layer's number of the operator that this thread records next, if it is to be a node of a graph.
    static KEPT: Cell<u64> = const { Cell::new(0) };
}

/// For the torch layer: the next operator that this thread records was not computed, but kept under this number.
#[unsafe(no_mangle)]
extern "C" fn streamsan_keep_operator(number: u64) {
    let _at_the_end_of_a_thread = KEPT.try_with(|kept| kept.set(number));
}

/// Makes an operator a node, if its stream captures.
fn capture_operator(
    stream: u64,
    device: u32,
    accesses: *const RawAccess,
    count: usize,
) -> Result<Option<()>, Code> {
    if !capture::any() {
        return Ok(None);
    }
    let number = KEPT.try_with(|kept| kept.replace(0)).unwrap_or(0);
    let accesses = if accesses.is_null() {
        &[]
    } else {
        // SAFETY: the caller gives `count` accesses.
        unsafe { std::slice::from_raw_parts(accesses, count) }
    };
    let touches: Vec<(usize, usize)> = accesses
        .iter()
        .map(|access| (access.address as usize, access.length as usize))
        .filter(|&(start, length)| is_device_memory(start, length).unwrap_or(false))
        .collect();
    // If it does not become a node it is dropped after the lock is given back: that tells the layer.
    let mut operator = Some(Operator { number, touches });
    let stream = Stream { handle: stream, device };
    let work = || operator.take().map_or(Work::Empty, Work::Operator);
    let added = with_state(|state| state.add_node(stream, work))?;
    Ok(added.map(|_| ()))
}

/// An operator that was computed above instead of by a launch: work of its stream like any other.
unsafe extern "C" fn operation(
    stream: u64,
    device: u32,
    kind: u32,
    flags: u32,
    accesses: *const RawAccess,
    count: usize,
) {
    let code = inquiry(|| {
        if let Some(()) = capture_operator(stream, device, accesses, count)? {
            return Ok(());
        }
        // Handle 0 is the stream of the device that the caller names, which need not be the current one.
        let stream = if stream == 0 {
            let stream = Stream { handle: 0, device };
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
    if matches!(code, Code::CAPTURE_INVALIDATED | Code::CAPTURE_IMPLICIT) {
        return;
    }
    if let Some(record) = RECORD_OPERATION.get() {
        // SAFETY: the recorder's function, with what its caller promises.
        unsafe { record(stream, device, kind, flags, accesses, count) };
    }
}

unsafe extern "C" fn host_access(accesses: *const RawAccess, count: usize) {
    // SAFETY: the recorder's function, with what its caller promises.
    unsafe { (table().host_access)(accesses, count) };
    if !accesses.is_null() {
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
    if !protection::give_away(address as usize) {
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
