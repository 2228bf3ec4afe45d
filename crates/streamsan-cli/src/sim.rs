//! `streamsan sim`: stream programs through the judge, or through the checker.

use crate::arguments::SimArguments;
use crate::fault::Fault;
use crate::reports::{Judged, render};
use crate::{ExitStatus, output};
use streamsan_check::Config;
use streamsan_report::Format;

pub(crate) fn sim(arguments: &SimArguments) -> Result<i32, Fault> {
    let path = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| Fault::new(format!("cannot read {path}: {error}")))?;
    let said = if arguments.check {
        checked(&path, &text, arguments.test.as_deref())?
    } else {
        streamsan_sim::describe(&path, &text, arguments.test.as_deref(), arguments.schedule.as_deref())
            .map_err(|error| Fault::new(error.to_string()))?
    };
    output::print(&said);
    Ok(ExitStatus::Clean.code())
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
    Ok(render(&judged, Format::Full, false, None))
}
