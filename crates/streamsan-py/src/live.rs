//! The check of this process's own trace, while it is written.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use streamsan_cli::live::{LiveTrace, NewFinding};

use crate::report::read_error;

/// A trace that is checked while it is written: reads the file, waits for nobody.
#[pyclass(frozen, module = "streamsan._core")]
pub struct Live {
    path: String,
    trace: Mutex<LiveTrace>,
}

/// A finding as (number of its later operation, code of the rule, whether it is an error, line).
type Found = (u64, &'static str, bool, String);

#[pymethods]
impl Live {
    /// Starts at the beginning of the trace at `path`.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
    fn new(path: PathBuf) -> PyResult<Self> {
        let shown = path.display().to_string();
        let trace = LiveTrace::open(&path).map_err(|error| read_error(&shown, &error))?;
        Ok(Self { path: shown, trace: Mutex::new(trace) })
    }

    /// Checks what was added since the last call; returns what is new.
    fn advance(&self, py: Python<'_>) -> PyResult<Vec<Found>> {
        let found = py.detach(|| self.trace().advance());
        let found = found.map_err(|error| read_error(&self.path, &error))?;
        Ok(found.into_iter().map(plain).collect())
    }

    /// What occurs again is new again.
    fn forget_findings(&self, py: Python<'_>) {
        py.detach(|| self.trace().forget_findings());
    }

    /// The number of the last event that was checked.
    fn last(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.trace().last())
    }
}

impl Live {
    fn trace(&self) -> std::sync::MutexGuard<'_, LiveTrace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn plain(finding: NewFinding) -> Found {
    (finding.number, finding.rule, finding.is_error, finding.line)
}
