//! `streamsan run`: start a program under the recorder, wait, check.

mod child;
mod confirm;
mod device;
pub(crate) mod installation;
mod live;
mod one_stream;
mod place;
pub(crate) mod python;
mod target;
mod traces;
mod verdict;

use crate::ExitStatus;
use crate::arguments::RunArguments;
use crate::check::{output_files, refuse_to_overwrite};
use crate::environment as variables;
use crate::fault::Fault;
use crate::output::say;
use crate::wanted::Wanted;
use installation::Installation;
use python::Python;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use streamsan_report::ColorChoice;
use target::Target;
pub(crate) use verdict::is_incomplete;

/// Runs and checks. `all` is the whole command line.
pub(crate) fn run(arguments: &RunArguments, all: &[OsString], color: ColorChoice) -> Result<i32, Fault> {
    let target = Target::new(arguments, all)?;
    let reports = output_files(&arguments.reports, arguments.force)?;
    let wanted = Wanted::new(&arguments.wanted, &[])?;
    let python = Python::find()?;
    python.can_record()?;
    if target.needs_torch() {
        python.has_suitable_torch()?;
        if let Some(warning) = crate::doctor::warning(&python) {
            say(&warning);
        }
    }
    let installation = Installation::find(&python)?;
    let device = device::Taken::choose(arguments, &python)?;
    let trace = arguments.trace.clone().unwrap_or_else(|| target.default_trace());
    refuse_to_overwrite(&trace, arguments.force)?;
    let place = place::Place::take(&trace)?;

    let traces = Arc::new(traces::Traces::new(&trace));
    let mut command = target.command(&python);
    prepare(&mut command, &device, arguments, &installation, &trace)?;
    say(&format!("recording to {} on {}", trace.display(), device.shown()));
    let folder = arguments.one_stream.then(|| one_stream::Folder::new("one-stream")).transpose()?;
    let side = folder.as_ref().map(|folder| one_stream::Side::new(&mut command, folder, "first", true));
    let side = side.transpose()?;
    let mut watch = None;
    let end = child::run(command, &target.name(), |program| {
        if arguments.live || arguments.halt_on_error {
            let halt = arguments.halt_on_error;
            watch = Some(live::Watch::start(Arc::clone(&traces), program.clone(), wanted.clone(), halt));
        }
    })?;
    let halted = watch.is_some_and(live::Watch::finish);
    // It ended because it was told to; that is no failure of its own.
    let end = if halted { End::Exited(0) } else { end };
    place.keep_new();
    let comparison = match (&folder, side) {
        (Some(folder), Some(side)) => {
            let again = |trace: &Path| {
                let mut command = target.command(&python);
                prepare(&mut command, &device, arguments, &installation, trace)?;
                Ok(command)
            };
            Some(one_stream::compare(&side.finish(end), folder, &target.name(), again)?)
        }
        _ => None,
    };
    let mut suspects = Vec::new();
    let status = if arguments.no_check {
        verdict::without_check(&traces, end)
    } else {
        verdict::with_check(&traces, end, arguments.error_exitcode, color, wanted, &reports, &mut suspects)
    };
    if arguments.confirm {
        let prepare = |trace: &Path| {
            let mut command = target.command(&python);
            prepare(&mut command, &device, arguments, &installation, trace)?;
            Ok(command)
        };
        let name = target.name();
        confirm::Confirmation {
            suspects: &suspects,
            name: &name,
            on_virtual_device: device.is_virtual(),
            prepare,
        }
        .run()?;
    }
    if let Some(comparison) = comparison {
        comparison.say();
        if comparison.differs() && status == 0 {
            return Ok(i32::from(arguments.error_exitcode));
        }
    }
    Ok(status)
}

fn prepare(
    command: &mut Command,
    device: &device::Taken,
    arguments: &RunArguments,
    installation: &Installation,
    trace: &Path,
) -> Result<(), Fault> {
    // The program may change its directory.
    let trace = std::path::absolute(trace)
        .map_err(|error| Fault::new(format!("cannot find out where {} is: {error}", trace.display())))?;
    command
        .env(variables::TRACE, trace)
        .env(variables::RUN, std::process::id().to_string())
        .env("PYTHONPATH", in_front(&installation.startup(), "PYTHONPATH"));
    device.prepare(command, arguments, installation);
    Ok(())
}

/// A path before what a variable holds already.
fn in_front(path: &Path, variable: &str) -> OsString {
    let mut value = OsString::from(path);
    if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
        value.push(OsStr::new(":"));
        value.push(rest);
    }
    value
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl End {
    /// The status that a shell would show.
    fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

/// A name for a trace in the current directory.
fn trace_name(stem: &str) -> PathBuf {
    let plain: String = stem
        .chars()
        .map(
            |character| {
                if character.is_alphanumeric() || "._-".contains(character) { character } else { '_' }
            },
        )
        .collect();
    PathBuf::from(format!("streamsan-{plain}-{}.sstrace", std::process::id()))
}

/// The status when nothing was recorded: the program's own if it failed.
fn nothing(end: End) -> i32 {
    if end.code() == 0 { ExitStatus::NothingCaptured.code() } else { end.code() }
}
