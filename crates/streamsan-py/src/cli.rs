//! The `streamsan` command.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which is the command's name; returns the exit status.
#[pyfunction]
pub fn main(py: Python<'_>, argv: Vec<OsString>) -> i32 {
    py.detach(|| streamsan_cli::main(argv))
}
