//! Finding the recorder of this process, and its calls that need nothing else.

use std::sync::OnceLock;

use pyo3::prelude::*;
use streamsan_record::table::{RawEnd, RecorderTable, TABLE_SYMBOL, TABLE_VERSION};

use crate::errors::CaptureError;

static TABLE: OnceLock<&'static RecorderTable> = OnceLock::new();

/// The recorder's table, once [`attach`] has found it.
pub fn table() -> Option<&'static RecorderTable> {
    TABLE.get().copied()
}

/// Interns a string; 0 without a recorder.
pub fn intern_text(text: &str) -> u32 {
    // SAFETY: pointer and length are those of `text`.
    table().map_or(0, |table| unsafe { (table.intern_string)(text.as_ptr(), text.len()) })
}

/// Finds the recorder of this process. False if the device library is not preloaded.
///
/// Raises `CaptureError` if the library belongs to another version of streamsan.
#[pyfunction]
pub fn attach() -> PyResult<bool> {
    if table().is_some() {
        return Ok(true);
    }
    // SAFETY: the symbol's name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, TABLE_SYMBOL.as_ptr()) };
    if symbol.is_null() {
        return Ok(false);
    }
    // SAFETY: the symbol is documented to be a function of this type.
    let get: unsafe extern "C" fn() -> *const RecorderTable = unsafe { std::mem::transmute(symbol) };
    // SAFETY: the function takes nothing and answers null or a table that is never freed.
    let found = unsafe { get().as_ref() };
    let Some(found) = found else {
        return Ok(false);
    };
    if found.version != TABLE_VERSION || (found.size as usize) < size_of::<RecorderTable>() {
        return Err(CaptureError::new_err(format!(
            "the preloaded device library has table version {}, this package needs {TABLE_VERSION}: \
             start the program with the `streamsan` command of this installation",
            found.version
        )));
    }
    Ok(std::ptr::eq(*TABLE.get_or_init(|| found), found))
}

/// Whether operators are computed here, on the virtual device, and not by a GPU.
#[pyfunction]
pub fn is_virtual() -> bool {
    // SAFETY: the symbol's name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"streamsan_is_virtual".as_ptr()) };
    if symbol.is_null() {
        return false;
    }
    // SAFETY: the symbol is documented to be a function of this type.
    let ask: unsafe extern "C" fn() -> libc::c_int = unsafe { std::mem::transmute(symbol) };
    // SAFETY: it takes nothing and answers a number.
    unsafe { ask() != 0 }
}

/// Whether this process writes a trace.
#[pyfunction]
pub fn recording() -> bool {
    // SAFETY: the table's functions may be called from any thread.
    table().is_some_and(|table| unsafe { (table.recording)() } != 0)
}

/// Interns a string and returns its id; 0 without a recorder.
#[pyfunction]
pub fn intern(text: &str) -> u32 {
    intern_text(text)
}

/// How many operations were recorded so far.
#[pyfunction]
pub fn operations_recorded() -> u64 {
    // SAFETY: as above.
    table().map_or(0, |table| unsafe { (table.operations_recorded)() })
}

/// Closes the trace: nothing is recorded after.
#[pyfunction]
pub fn close() {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.close)() }
    }
}

/// Sets a text of the trace's header: 0 command, 1 directory, 2 versions.
#[pyfunction]
pub fn set_header_text(which: u32, text: &str) {
    if let Some(table) = table() {
        // SAFETY: pointer and length are those of `text`.
        unsafe { (table.set_header_text)(which, text.as_ptr(), text.len()) }
    }
}

/// Names the stream with this raw handle.
#[pyfunction]
pub fn name_stream(stream: u64, device: u32, name: &str, by_user: bool) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.name_stream)(stream, device, intern_text(name), u32::from(by_user)) }
    }
}

/// Names the block that holds this address.
#[pyfunction]
pub fn name_block(address: u64, name: &str, by_user: bool) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.name_block)(address, intern_text(name), u32::from(by_user)) }
    }
}

/// Says that `expression` gives this stream in the frame with this id; `binding`: how long, as a number of `Binding`.
#[pyfunction]
pub fn visible_stream(frame: u32, stream: u64, device: u32, expression: &str, binding: u32) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.visible_stream)(frame, stream, device, intern_text(expression), binding) }
    }
}

/// Says before which line code goes that is to run before what the frame with this id does; `reach`: a number of `Reach`.
#[pyfunction]
pub fn placement(frame: u32, line: u32, reach: u32) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.placement)(frame, line, reach) }
    }
}

/// Records a wait on an event that was never recorded.
#[pyfunction]
pub fn unrecorded_wait(object: u64, stream: u64, device: u32) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.unrecorded_wait)(object, stream, device) }
    }
}

/// An end of a collective, as (event, number, device).
type End = (u64, u64, u32);

/// The end of the collective that this thread enqueued last, as (raw event, number of the end, device), or None.
#[pyfunction]
pub fn collective_end() -> Option<End> {
    // SAFETY: as above.
    let end = unsafe { (table()?.collective_end)() };
    (end.number > 0).then_some((end.event, end.number, end.device))
}

/// A method of a collective's work object begins; `asks`: its answer is whether the collective has finished.
#[pyfunction]
pub fn work_begin(asks: bool) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.work_begin)(u32::from(asks)) }
    }
}

/// It has returned with `stream` current. `holds`: 1, the stream waits for the `end` of its collective; 2, the host knows
/// it; 0, neither.
#[pyfunction]
#[pyo3(signature = (end=None, stream=0, holds=0))]
pub fn work_end(end: Option<End>, stream: u64, holds: u32) {
    if let Some(table) = table() {
        let end = end.map_or_else(RawEnd::default, |(event, number, device)| RawEnd {
            event,
            number,
            device,
            reserved: 0,
        });
        // SAFETY: as above.
        unsafe { (table.work_end)(end, stream, holds) }
    }
}

/// Announces `size` bytes of page-locked memory that torch's allocator handed out.
#[pyfunction]
pub fn host_block(address: u64, size: u64) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.host_block)(address, size) }
    }
}

/// Says that torch hands page-locked memory out and fills it, until the call with False.
#[pyfunction]
pub fn handing_out(begin: bool) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.handing_out)(u32::from(begin)) }
    }
}

/// Says that torch's allocator takes memory from the pool of a graph on this thread, until the call with False.
#[pyfunction]
pub fn graph_memory(begin: bool) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.graph_memory)(u32::from(begin)) }
    }
}

/// Whether this process has page-locked memory.
#[pyfunction]
pub fn has_page_locked() -> bool {
    // SAFETY: as above.
    table().is_some_and(|table| unsafe { (table.has_page_locked)() } != 0)
}

/// Records that the program made its stream object number `object` while `sharers` earlier objects of the same
/// stream are alive, with the context of `mark`.
#[pyfunction]
pub fn stream_object(stream: u64, device: u32, object: u32, sharers: u32) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.stream_object)(stream, device, object, sharers) }
    }
}

/// Records that something could not be seen; `reason` is a `GapReason` as a number.
#[pyfunction]
pub fn gap(reason: u32, detail: &str) {
    if let Some(table) = table() {
        // SAFETY: as above.
        unsafe { (table.gap)(reason, intern_text(detail)) }
    }
}
