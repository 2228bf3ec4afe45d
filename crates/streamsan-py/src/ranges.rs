//! What the program says of itself: ranges, names, and what a kernel that nobody knows touches.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pyo3::prelude::*;
use streamsan_check::Rule;
use streamsan_record::table::RawAccess;
use streamsan_trace::{GapReason, OpKind, RangeKind};

use crate::context;
use crate::stack::Stack;
use crate::table::{intern_text, table};
use crate::tensor::{access, address, device_index, tell_size};
use crate::torch_functions::current_raw_stream;

thread_local! {
    /// Ignores that the calling thread is in, as (site, label).
    static IGNORES: RefCell<Vec<(u32, u32)>> = const { RefCell::new(Vec::new()) };
    /// Ignores that the calling thread, one of the engine's, has taken over.
    static TAKEN: RefCell<Vec<(u32, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Records that a range begins here; `kind` is a `RangeKind` as a number.
#[pyfunction]
pub fn range_begin(py: Python<'_>, kind: u32, label: &str) {
    let Some(table) = table() else { return };
    let (stack, label) = (context::capture(py), intern_text(label));
    if kind == RangeKind::Ignore as u32 {
        IGNORES.with_borrow_mut(|ignores| ignores.push((stack.site, label)));
    }
    context::enter(stack, 0, 0);
    // SAFETY: the table's functions may be called from any thread.
    unsafe { (table.range_begin)(kind, label) }
    context::leave();
}

/// Records that the last range of this kind that this thread began ends here.
#[pyfunction]
pub fn range_end(py: Python<'_>, kind: u32) {
    let Some(table) = table() else { return };
    if kind == RangeKind::Ignore as u32 {
        IGNORES.with_borrow_mut(Vec::pop);
    }
    context::enter(context::capture(py), 0, 0);
    // SAFETY: as above.
    unsafe { (table.range_end)(kind) }
    context::leave();
}

/// The ignores that the calling thread is in.
pub fn ignores() -> Vec<(u32, u32)> {
    IGNORES.with_borrow(Vec::clone)
}

/// The ignores that the calling thread is in, the outermost first, as places and what they say.
#[pyfunction]
pub fn ignores_here() -> Vec<(u32, u32)> {
    ignores()
}

/// Has the calling thread be in these ignores and no others: tasks take turns on it.
#[pyfunction]
pub fn set_ignores(wanted: Vec<(u32, u32)>) {
    let Some(table) = table() else { return };
    IGNORES.with_borrow_mut(|open| {
        let shared = open.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
        let kind = RangeKind::Ignore as u32;
        for _ in shared..open.len() {
            // SAFETY: the table's functions may be called from any thread.
            unsafe { (table.range_end)(kind) }
        }
        for &(site, label) in &wanted[shared..] {
            context::enter(Stack { site, ..Stack::default() }, 0, 0);
            // SAFETY: as above.
            unsafe { (table.range_begin)(kind, label) }
            context::leave();
        }
        *open = wanted;
    });
}

/// On a thread of the engine: what is done from now on is in these ignores and no others. Whether that changes
/// anything; then the thread's context is to be set again.
pub fn take_over(ignores: &[(u32, u32)]) -> bool {
    let Some(table) = table() else { return false };
    TAKEN.with_borrow_mut(|taken| {
        if taken.as_slice() == ignores {
            return false;
        }
        let kind = RangeKind::Ignore as u32;
        // SAFETY: the table's functions may be called from any thread.
        unsafe {
            for _ in taken.iter() {
                (table.range_end)(kind);
            }
            for &(site, label) in ignores {
                (table.set_context)(site, 0, 0);
                (table.range_begin)(kind, label);
            }
        }
        ignores.clone_into(taken);
        true
    })
}

/// Kernels that this thread launches outside of operators touch these tensors until the next call; with None
/// nothing is known of them. Returns how many were launched since the last call.
#[pyfunction]
#[pyo3(signature = (accesses))]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn annotate(accesses: Option<Vec<(Bound<'_, PyAny>, u32)>>) -> u64 {
    let Some(table) = table() else { return 0 };
    let raw = accesses.as_deref().map(raw_accesses);
    let (active, raw) = (u32::from(raw.is_some()), raw.unwrap_or_default());
    // SAFETY: pointer and length are those of `raw`.
    unsafe { (table.annotate)(active, raw.as_ptr(), raw.len()) }
}

/// Records an operation with these accesses on the stream that is current here.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn record_annotated(py: Python<'_>, label: &str, accesses: Vec<(Bound<'_, PyAny>, u32)>) -> PyResult<()> {
    let Some(table) = table() else { return Ok(()) };
    let mut device = None;
    for (tensor, _) in &accesses {
        device = device.or(u32::try_from(device_index(tensor)?).ok());
    }
    // Without a tensor on a device there is no stream on which it could have run.
    let Some(device) = device else { return Ok(()) };
    let raw = raw_accesses(&accesses);
    let stream = current_raw_stream(py, device)?;
    context::enter(context::capture(py), 0, intern_text(label));
    // SAFETY: pointer and length are those of `raw`.
    unsafe { (table.operation)(stream, device, OpKind::Kernel as u32, 0, raw.as_ptr(), raw.len()) }
    context::leave();
    Ok(())
}

/// The accesses of tensors that have plain bytes; another one is a gap.
fn raw_accesses(accesses: &[(Bound<'_, PyAny>, u32)]) -> Vec<RawAccess> {
    let mut raw = Vec::with_capacity(accesses.len());
    for (tensor, mode) in accesses {
        match access(tensor, *mode, 0).and_then(|found| known_size(tensor).map(|()| found)) {
            Ok(found) => raw.extend(found),
            Err(_) => {
                if let Some(table) = table() {
                    // SAFETY: the table's functions may be called from any thread.
                    unsafe {
                        (table.gap)(GapReason::UnknownOperator as u32, intern_text("streamsan.annotate"));
                    }
                }
            }
        }
    }
    raw
}

fn known_size(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    if device_index(tensor)? >= 0 { tell_size(tensor) } else { Ok(()) }
}

/// Names the memory of a tensor, as the user says. Tensors without plain bytes have no name.
#[pyfunction]
pub fn name_tensor(tensor: &Bound<'_, PyAny>, name: &str) {
    if let (Some(table), Ok(address)) = (table(), address(tensor)) {
        // SAFETY: the table's functions may be called from any thread, with any address.
        unsafe { (table.name_block)(address, intern_text(name), 1) }
    }
}

/// Whether this is the code or the name of a rule.
#[pyfunction]
pub fn is_rule(text: &str) -> bool {
    Rule::parse(text).is_some()
}

/// Writes what the calling thread holds back. Returns the last event number given out; 0 without a recorder.
#[pyfunction]
pub fn settle() -> u64 {
    // SAFETY: the table's functions may be called from any thread.
    table().map_or(0, |table| unsafe { (table.settle)() })
}

/// Where the trace of this process is, absolute; None if there is none.
#[pyfunction]
pub fn trace_path() -> Option<PathBuf> {
    let table = table()?;
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    // SAFETY: `bytes` has room for its length.
    let length = unsafe { (table.trace_path)(bytes.as_mut_ptr(), bytes.len()) };
    bytes.truncate(length);
    (length > 0).then(|| PathBuf::from(OsStr::from_bytes(&bytes)))
}
