//! The check of this process's own trace, while it is written.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use streamsan_cli::live::{LiveTrace, NewFinding};
use streamsan_trace::file::ReadError;

use crate::report::read_error;
use crate::table::table;

/// For so long a thread may keep what it holds back to itself.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long a wait for the check lets the others run between two looks.
const PAUSE: Duration = Duration::from_micros(50);

/// A trace that is checked while it is written: reads the file, waits for nobody.
#[pyclass(frozen, module = "streamsan._core")]
pub struct Live {
    path: String,
    trace: Mutex<LiveTrace>,
    behind: Mutex<Behind>,
}

/// How far the check was to be at some moment.
struct Behind {
    number: u64,
    since: Instant,
}

/// A finding as (number of its later operation, code of the rule, whether it is an error, line).
type Found = (u64, &'static str, bool, String);

#[pymethods]
impl Live {
    /// Starts at the beginning of the trace at `path`. `configured`: rules have the levels that the project sets; raises
    /// `ValueError` if its settings are not as they should be.
    #[new]
    #[pyo3(signature = (path, configured=false))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
    fn new(path: PathBuf, configured: bool) -> PyResult<Self> {
        let shown = path.display().to_string();
        let opened = if configured {
            LiveTrace::open_configured(&path).map_err(PyValueError::new_err)?
        } else {
            LiveTrace::open(&path)
        };
        let trace = opened.map_err(|error| read_error(&shown, &error))?;
        let behind = Mutex::new(Behind { number: 0, since: Instant::now() });
        Ok(Self { path: shown, trace: Mutex::new(trace), behind })
    }

    /// Checks what was added since the last call; returns what is new.
    fn advance(&self, py: Python<'_>) -> PyResult<Vec<Found>> {
        let found = py.detach(|| self.look());
        let found = found.map_err(|error| self.raised(&error))?;
        Ok(found.into_iter().map(plain).collect())
    }

    /// Checks up to the event `number`, and waits for threads that are about to write it for `patience` seconds at most.
    /// Returns what is new, and whether it came so far.
    fn catch_up(&self, py: Python<'_>, number: u64, patience: f64) -> PyResult<(Vec<Found>, bool)> {
        let result = py.detach(|| {
            let deadline = Instant::now() + Duration::try_from_secs_f64(patience).unwrap_or_default();
            let mut found = Vec::new();
            loop {
                found.extend(self.look()?);
                if self.trace().last() >= number {
                    return Ok((found, true));
                }
                if Instant::now() >= deadline {
                    return Ok((found, false));
                }
                std::thread::sleep(PAUSE);
            }
        });
        let (found, complete) = result.map_err(|error: ReadError| self.raised(&error))?;
        Ok((found.into_iter().map(plain).collect(), complete))
    }

    /// What occurs again is new again.
    fn forget_findings(&self, py: Python<'_>) {
        py.detach(|| self.trace().forget_findings());
    }

    /// Whether there may be errors that come with the report only.
    fn leaves_out_errors(&self, py: Python<'_>) -> bool {
        py.detach(|| self.trace().leaves_out_errors())
    }

    /// The number of the last event that was checked.
    fn last(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.trace().last())
    }
}

impl Live {
    pub fn trace(&self) -> MutexGuard<'_, LiveTrace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raised(&self, error: &ReadError) -> PyErr {
        read_error(&self.path, error)
    }

    /// Checks what was added. If a thread has kept something to itself for a while, it is written for it.
    fn look(&self) -> Result<Vec<NewFinding>, ReadError> {
        let mut trace = self.trace();
        let mut found = trace.advance()?;
        let Some(table) = table() else { return Ok(found) };
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if trace.last() < behind.number {
            if behind.since.elapsed() < PATIENCE {
                return Ok(found);
            }
            // SAFETY: the table's functions may be called from any thread.
            unsafe { (table.settle_others)(behind.number) }
            found.extend(trace.advance()?);
        }
        // SAFETY: as above.
        *behind = Behind { number: unsafe { (table.settle)() }, since: Instant::now() };
        Ok(found)
    }
}

fn plain(finding: NewFinding) -> Found {
    (finding.number, finding.rule, finding.is_error, finding.line)
}
