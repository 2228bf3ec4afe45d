//! `streamsan sim`: stream programs through the judge, or through the checker.

use crate::arguments::SimArguments;
use crate::fault::Fault;
use crate::reports::{Judged, Look, render};
use crate::{ExitStatus, output};
use std::path::Path;
use streamsan_check::Config;
use streamsan_report::Format;

pub(crate) fn sim(arguments: &SimArguments) -> Result<i32, Fault> {
    let path = arguments.file.display().to_string();
    let text = text(&arguments.file).map_err(|why| Fault::new(format!("cannot read {path}: {why}")))?;
    let said = if arguments.check {
        checked(&path, &text, arguments.test.as_deref())?
    } else {
        streamsan_sim::describe(&path, &text, arguments.test.as_deref(), arguments.schedule.as_deref())
            .map_err(|error| Fault::new(error.to_string()))?
    };
    output::print(&said);
    Ok(ExitStatus::Clean.code())
}

/// Bytes of a file of programs: far more than anyone writes.
const MOST_BYTES: u64 = 1 << 20;

/// The text of a file. A pipe or a device may have no end, and a large file is something else.
fn text(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no regular file; name a markdown file with `sim` blocks".to_owned());
    }
    if metadata.len() > MOST_BYTES {
        return Err(format!("it has {} bytes, and programs have up to {MOST_BYTES}", metadata.len()));
    }
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            "it is not UTF-8; name a markdown file with `sim` blocks".to_owned()
        }
        _ => error.to_string(),
    })
}

fn checked(path: &str, text: &str, name: Option<&str>) -> Result<String, Fault> {
    let tests = streamsan_sim::parse_file(path, text).map_err(|error| Fault::new(error.to_string()))?;
    let judged: Vec<Judged> = tests
        .iter()
        .filter(|test| name.is_none_or(|name| test.name == name))
        .map(|test| {
            let trace = streamsan_sim::lower(&test.program, path, &test.name).trace;
            let report = streamsan_check::check(&trace, &Config::default());
            Judged { file: test.name.clone(), log: Box::new(trace), report, mistakes: Vec::new() }
        })
        .collect();
    if judged.is_empty() {
        return Err(Fault::new(format!("no such program in {path}")));
    }
    Ok(render(&judged, Format::Full, Look::default()))
}
