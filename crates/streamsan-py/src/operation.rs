//! Turning one call of an operator into one record.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use streamsan_record::table::RawAccess;
use streamsan_trace::{AccessMode, GapReason, OpKind};

use crate::plan::{METADATA, Plan};
use crate::table::{has_page_locked, table};
use crate::tensor::{access, address, device_access, device_index, for_each_tensor, tell_size};
use crate::torch_functions::{current_raw_stream, storage_bytes};

/// What the recorder says of memory that is page-locked.
const PAGE_LOCKED: u32 = 2;

/// Records an operator that ran on `device`, on the current stream of it.
pub fn record(
    py: Python<'_>,
    plan: &Plan,
    device: u32,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
    out: &Bound<'_, PyAny>,
    flags: u32,
) -> PyResult<()> {
    let Some(table) = table() else {
        return Ok(());
    };
    let mut accesses = Vec::with_capacity(8);
    let mut unknown = false;
    collect_outputs(plan, out, &mut accesses, &mut unknown)?;
    let outputs = accesses.len();
    plan.for_each_input(args, kwargs, &mut |input, tensor| {
        if input.mode == METADATA {
            return Ok(());
        }
        add(tensor, input.mode, input.argument, &mut accesses, &mut unknown)
    })?;
    // Reads first: an operation reads its inputs before it writes its results.
    accesses.rotate_left(outputs);
    let stream = current_raw_stream(py, device)?;
    // SAFETY: pointer and length are those of `accesses`.
    unsafe {
        (table.operation)(stream, device, plan.kind, flags, accesses.as_ptr(), accesses.len());
        if unknown {
            (table.gap)(GapReason::UnknownOperator as u32, plan.label);
        }
    }
    Ok(())
}

/// Records a kernel that reads (or writes) one tensor on a device, on the current stream there.
pub fn record_tensor(tensor: &Bound<'_, PyAny>, writes: bool) -> PyResult<()> {
    let (Some(table), Ok(device)) = (table(), u32::try_from(device_index(tensor)?)) else {
        return Ok(());
    };
    let mode = if writes { AccessMode::Write } else { AccessMode::Read };
    if let Some(access) = access(tensor, mode as u32, 0)? {
        tell_size(tensor)?;
        let stream = current_raw_stream(tensor.py(), device)?;
        // SAFETY: one access is given and lives through the call.
        unsafe { (table.operation)(stream, device, OpKind::Kernel as u32, 0, &raw const access, 1) }
    }
    Ok(())
}

/// Adds what an operator does to a tensor, if that lies on a device.
fn add(
    tensor: &Bound<'_, PyAny>,
    mode: u32,
    argument: u32,
    into: &mut Vec<RawAccess>,
    unknown: &mut bool,
) -> PyResult<()> {
    match device_access(tensor, mode, argument)? {
        Ok(found) => into.extend(found),
        Err(_) => *unknown = true,
    }
    Ok(())
}

fn collect_outputs(
    plan: &Plan,
    out: &Bound<'_, PyAny>,
    into: &mut Vec<RawAccess>,
    unknown: &mut bool,
) -> PyResult<()> {
    let mut one = |value: &Bound<'_, PyAny>, fills: bool| {
        for_each_tensor(value, &mut |tensor| {
            if fills { add(tensor, AccessMode::Write as u32, 0, into, unknown) } else { Ok(()) }
        })
    };
    if plan.fills.len() <= 1 {
        return one(out, plan.fills.first().copied().unwrap_or(false));
    }
    if let Ok(results) = out.cast::<PyTuple>() {
        for (result, &fills) in results.iter().zip(&plan.fills) {
            one(&result, fills)?;
        }
    } else if let Ok(results) = out.cast::<PyList>() {
        for (result, &fills) in results.iter().zip(&plan.fills) {
            one(&result, fills)?;
        }
    }
    Ok(())
}

/// Tells the recorder the sizes of blocks that a result brought to light.
pub fn note_sizes(out: &Bound<'_, PyAny>) -> PyResult<()> {
    for_each_tensor(out, &mut |tensor| {
        if device_index(tensor)? >= 0 {
            // A sparse tensor has no storage to ask for: its parts come by themselves.
            drop(tell_size(tensor));
        }
        Ok(())
    })
}

/// The accesses that the host is about to make to page-locked memory for an operator: its arguments on the host.
pub fn page_locked_accesses(
    plan: &Plan,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<Vec<RawAccess>> {
    let mut accesses = Vec::new();
    let Some(table) = table().filter(|_| has_page_locked()) else {
        return Ok(accesses);
    };
    plan.for_each_input(args, kwargs, &mut |input, tensor| {
        if input.mode == METADATA || device_index(tensor)? >= 0 {
            return Ok(());
        }
        // Tensors without an address (meta, sparse, fake) are not page-locked.
        let Ok(address) = address(tensor) else {
            return Ok(());
        };
        // SAFETY: the table's functions may be called from any thread, with any address.
        if address != 0 && unsafe { (table.memory_kind)(address) } == PAGE_LOCKED {
            accesses.extend(access(tensor, input.mode, input.argument)?);
        }
        Ok(())
    })?;
    Ok(accesses)
}

/// Announces page-locked memory that torch's allocator handed out for a result, with a name unless it is 0.
pub fn announce_page_locked(out: &Bound<'_, PyAny>, name: u32) -> PyResult<()> {
    let Some(table) = table() else {
        return Ok(());
    };
    for_each_tensor(out, &mut |tensor| {
        let (address, size) = storage_bytes(tensor)?;
        // SAFETY: the table's functions may be called from any thread, with any address.
        unsafe {
            (table.host_block)(address, size);
            if name != 0 {
                (table.name_block)(address, name, 0);
            }
        }
        Ok(())
    })
}
