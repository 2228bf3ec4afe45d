//! The `streamsan` command.

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which is the command's name; returns the exit status.
#[pyfunction]
pub fn main(_py: Python<'_>, argv: Vec<std::ffi::OsString>) -> i32 {
    let _ = argv;
    2
}
