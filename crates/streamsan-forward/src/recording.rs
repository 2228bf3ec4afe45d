//! Starts the recorder, and shows the process where it is.

use std::ffi::c_int;
use std::sync::Once;
use std::{env, fs};

use streamsan_record::env::DEVICE_COUNT;
use streamsan_record::table::RecorderTable;
use streamsan_record::{Recorder, follow_parent, table};
use streamsan_trace::CaptureKind;

use crate::callers::{keeping_choice, with_first};
use crate::devices::current_device;

extern "C" fn on_load() {
    follow_parent();
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// Starts the recorder, once: when the torch layer asks for it, or at the first call that is recorded. Not when this
/// library is loaded: the shell that starts the program loads it too.
pub fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        streamsan_record::begin("cuda", CaptureKind::Cuda, devices);
        streamsan_record::report(|recorder| recorder.ask_for_device(|| with_first(current_device)));
    });
}

/// Asks the recorder, if this process is recorded. Other calls may be made in between: to find the place of this one, Python
/// runs, and may free tensors.
pub fn ask<T>(question: impl FnOnce(&'static Recorder) -> T) -> Option<T> {
    keeping_choice(|| streamsan_record::ask(question))
}

/// Tells the recorder, likewise.
pub fn report(what: impl FnOnce(&'static Recorder)) {
    keeping_choice(|| streamsan_record::report(what));
}

/// How many devices the machine has. The runtime is not asked: that would start CUDA before the program does.
fn devices() -> u32 {
    let said = env::var(DEVICE_COUNT).ok().and_then(|count| count.trim().parse().ok());
    said.unwrap_or_else(|| fs::read_dir("/proc/driver/nvidia/gpus").map_or(1, Iterator::count) as u32)
}

#[unsafe(no_mangle)]
extern "C" fn streamsan_table() -> *const RecorderTable {
    begin();
    table()
}

/// 1 if this process runs on the virtual device.
#[unsafe(no_mangle)]
extern "C" fn streamsan_is_virtual() -> c_int {
    0
}
