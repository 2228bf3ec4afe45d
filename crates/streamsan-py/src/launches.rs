//! Launches of kernels that are no operators, whose accesses the torch layer knows.

use pyo3::prelude::*;
use streamsan_trace::{GapReason, OpKind};

use crate::context::current_label;
use crate::table::{intern_text, table};
use crate::tensor::{access, device_index, tell_size};

/// Records a kernel on the stream with this raw handle, with the label and the place of `mark`. Each access is a tensor,
/// a mode (0 read, 1 write, 2 update) and the name of the argument.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn record_kernel(stream: u64, device: u32, accesses: Vec<(Bound<'_, PyAny>, u32, String)>) {
    let Some(table) = table() else { return };
    let mut raw = Vec::with_capacity(accesses.len());
    let mut unknown = false;
    for (tensor, mode, argument) in &accesses {
        let found = access(tensor, *mode, intern_text(argument)).and_then(|found| {
            if device_index(tensor)? >= 0 {
                tell_size(tensor)?;
            }
            Ok(found)
        });
        // A tensor without plain bytes raises; what is done to it is not known.
        match found {
            Ok(found) => raw.extend(found),
            Err(_) => unknown = true,
        }
    }
    // SAFETY: pointer and length are those of `raw`.
    unsafe {
        (table.operation)(stream, device, OpKind::Kernel as u32, 0, raw.as_ptr(), raw.len());
        if unknown {
            (table.gap)(GapReason::OpaqueKernel as u32, current_label());
        }
    }
}
