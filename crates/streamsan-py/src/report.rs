//! Checking traces for `streamsan.check` and writing their reports. What comes out is text; Python makes values of it.

use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use streamsan_cli::library::{self, CheckError, Checks, ProgramError, Request};
use streamsan_report::Format;
use streamsan_trace::OpNumber;
use streamsan_trace::file::{self, ReadError, TraceFile};

use crate::errors::TraceError;

/// Formats by the name that `--output-format` has for them.
const FORMATS: [(&str, Format); 8] = [
    ("full", Format::Full),
    ("concise", Format::Concise),
    ("json", Format::Json),
    ("json-lines", Format::JsonLines),
    ("sarif", Format::Sarif),
    ("github", Format::Github),
    ("junit", Format::Junit),
    ("html", Format::Html),
];

/// Those that a report carries with it; the others are made from the traces when they are asked for.
const CARRIED: usize = 3;

/// Formats by the end of a file's name.
const SUFFIXES: [(&str, &str); 6] = [
    ("html", "html"),
    ("json", "json"),
    ("jsonl", "json-lines"),
    ("sarif", "sarif"),
    ("txt", "full"),
    ("xml", "junit"),
];

/// A mistake as (file, line, message).
type Said = (String, u32, String);

/// Checks traces. Returns the reports that values are made of, by format, and the ignore comments that are not as they
/// should be, as (file, line, message).
///
/// Raises `OSError` if a file cannot be read, `TraceError` if it is no trace, `ValueError` if a rule is none.
#[pyfunction]
#[pyo3(signature = (paths, select, ignore, region=None, configured=false, advice=false))]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn check(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    select: Vec<String>,
    ignore: Vec<String>,
    region: Option<(u64, u64)>,
    configured: bool,
    advice: bool,
) -> PyResult<(Bound<'_, PyDict>, Vec<Said>)> {
    let request = Request { select, ignore, region, configured, advice };
    let (texts, mistakes) = py
        .detach(|| {
            let checks = Checks::of_files(&paths, &request)?;
            let texts: Vec<_> =
                FORMATS[..CARRIED].iter().map(|&(name, format)| (name, checks.render(format))).collect();
            let mistakes: Vec<Said> = checks
                .mistakes()
                .map(|mistake| (mistake.file.clone(), mistake.line, mistake.message.clone()))
                .collect();
            Ok((texts.into_iter().chain([("summary", checks.summary())]).collect::<Vec<_>>(), mistakes))
        })
        .map_err(raised)?;
    let dict = PyDict::new(py);
    for (name, text) in texts {
        dict.set_item(name, text)?;
    }
    Ok((dict, mistakes))
}

/// Checks traces and writes the report in a format of [`formats`]. Raises as `check` does.
#[pyfunction]
#[pyo3(signature = (paths, format, select, ignore, region=None, configured=false, advice=false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn render(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    format: &str,
    select: Vec<String>,
    ignore: Vec<String>,
    region: Option<(u64, u64)>,
    configured: bool,
    advice: bool,
) -> PyResult<String> {
    let Some((_, format)) = FORMATS.into_iter().find(|(name, _)| *name == format) else {
        return Err(PyValueError::new_err(format!("no format is called {format:?}")));
    };
    let request = Request { select, ignore, region, configured, advice };
    py.detach(|| Ok(Checks::of_files(&paths, &request)?.render(format))).map_err(raised)
}

/// The formats that reports can be written in.
#[pyfunction]
pub fn formats() -> Vec<&'static str> {
    FORMATS.into_iter().map(|(name, _)| name).collect()
}

/// Formats by the end of a file's name, without the dot.
#[pyfunction]
pub fn suffixes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (suffix, format) in SUFFIXES {
        dict.set_item(suffix, format)?;
    }
    Ok(dict)
}

/// Writes the trace at `source` up to the event `last` to a new file, with what begins at `first` as the part that is
/// checked.
///
/// Raises `OSError` if a file cannot be read or written, `TraceError` if the source is no trace.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn write_excerpt(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    first: u64,
    last: u64,
) -> PyResult<()> {
    py.detach(|| {
        let log =
            TraceFile::open(&source).map_err(|error| read_error(&source.display().to_string(), &error))?;
        file::write_excerpt(&log, OpNumber(first), OpNumber(last), &target)
            .map_err(|error| write_error(&target, &error))
    })
}

/// Writes the trace of a stream program, for tests and examples without torch: streams, waits, reads and writes, one a
/// line. `name` is the file that findings name.
///
/// Raises `ValueError` if the program is none, `OSError` if the file cannot be written.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn write_program(name: &str, text: &str, path: PathBuf) -> PyResult<()> {
    library::write_program(name, text, &path).map_err(|error| match error {
        ProgramError::Program(message) => PyValueError::new_err(message),
        ProgramError::Write(error) => write_error(&path, &error),
    })
}

fn write_error(path: &Path, error: &std::io::Error) -> PyErr {
    let text = error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((error.raw_os_error().unwrap_or(0), text, path.display().to_string()))
}

/// The exception for an error. What is wrong with a file is a builtin one, with the file's name.
fn raised(error: CheckError) -> PyErr {
    match error {
        CheckError::Rule(message) | CheckError::Settings(message) => PyValueError::new_err(message),
        CheckError::Read(path, error) => read_error(&path.display().to_string(), &error),
    }
}

/// The exception for a file that cannot be read.
pub fn read_error(path: &str, error: &ReadError) -> PyErr {
    let number = match error {
        ReadError::Io(error) => error.raw_os_error(),
        ReadError::Directory => Some(libc::EISDIR),
        _ => None,
    };
    match number {
        // Python makes FileNotFoundError and the like of the number.
        Some(number) => {
            let text = std::io::Error::from_raw_os_error(number).to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.to_owned()))
        }
        None => TraceError::new_err(format!("cannot read {path}: {error}")),
    }
}
