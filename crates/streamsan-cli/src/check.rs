//! `streamsan check` and `streamsan advise`: recorded traces.

use crate::ExitStatus;
use crate::arguments::CheckArguments;
use crate::baseline::Baseline;
use crate::fault::Fault;
use crate::output;
use crate::profile;
use crate::reports::{Judged, Look, render, say_mistakes};
use crate::run::is_incomplete;
use crate::wanted::Wanted;
use std::path::{Path, PathBuf};
use streamsan_report::{ColorChoice, Format};

/// `advise`: whether advice is given too.
pub(crate) fn check(arguments: &CheckArguments, advise: bool, color: ColorChoice) -> Result<i32, Fault> {
    if !advise {
        profile::refuse(&arguments.traces)?;
    } else if profile::are_profiles(&arguments.traces)? {
        return profile::advise(arguments);
    }
    // Mistakes in the arguments are said before minutes of work.
    let files = output_files(&arguments.outputs, arguments.force)?;
    refuse_twice(&arguments.traces)?;
    let mut wanted = Wanted::new(&arguments.wanted, &arguments.assume_sync_before)?.advising(advise);
    if let Some(path) = &arguments.write_baseline {
        // What is a baseline is meant to be renewed.
        refuse_to_overwrite(path, arguments.force || Baseline::read(path).is_ok())?;
        wanted = wanted.without_baseline();
    }
    if !advise && wanted.is_for_advice() {
        return Err(Fault::new("the rules that are left are advice, which `check` does not give")
            .help("streamsan advise, with the same options"));
    }
    let judged: Vec<Judged> =
        arguments.traces.iter().map(|path| wanted.judge(path)).collect::<Result<_, _>>()?;
    say_mistakes(&judged);
    let look = Look { color: output::colors_stdout(color), limit: None, width: output::columns_stdout() };
    output::print(&render(&judged, arguments.output_format.into(), look));
    write_reports(&files, &judged)?;
    wanted.say_idle();
    if let Some(path) = &arguments.write_baseline {
        let sources: Vec<_> = judged.iter().map(Judged::files).collect();
        let traces = judged.iter().zip(&sources).map(|(one, files)| (one.log.as_ref(), &one.report, files));
        let baseline = Baseline::of(traces);
        write(path, &baseline.text())?;
        let count = baseline.len();
        let findings = if count == 1 { "finding" } else { "findings" };
        output::error(&format!("note: {} now holds {count} known {findings}", path.display()));
        let empty = judged.iter().any(|one| one.report.coverage.operations == 0);
        return Ok(if empty { ExitStatus::NothingCaptured } else { ExitStatus::Clean }.code());
    }
    Ok(status(arguments.exit_zero, wanted.error_on_warning, &judged).code())
}

/// Each trace counts in the sums, so it may be there once only.
fn refuse_twice(traces: &[PathBuf]) -> Result<(), Fault> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let known: Vec<PathBuf> = traces.iter().map(real).collect();
    for (index, path) in traces.iter().enumerate() {
        if known[..index].contains(&known[index]) {
            return Err(Fault::new(format!("{} is named twice", path.display())).help("name each trace once"));
        }
    }
    Ok(())
}

fn status(exit_zero: bool, error_on_warning: bool, judged: &[Judged]) -> ExitStatus {
    let errors = judged.iter().any(|one| one.report.has_errors());
    let warnings = judged.iter().any(|one| one.report.has_warnings());
    if judged.iter().any(|one| one.report.coverage.operations == 0) {
        ExitStatus::NothingCaptured
    } else if !exit_zero && (errors || error_on_warning && warnings) {
        ExitStatus::Errors
    } else if judged.iter().any(|one| is_incomplete(&one.report.gaps)) {
        ExitStatus::NothingCaptured
    } else {
        ExitStatus::Clean
    }
}

/// The files that a report is to be written to, with the formats that their names say.
pub(crate) fn output_files(paths: &[PathBuf], force: bool) -> Result<Vec<(PathBuf, Format)>, Fault> {
    let mut files: Vec<(PathBuf, Format)> = Vec::new();
    for path in paths {
        let format = format_of(path)?;
        refuse_to_overwrite(path, force)?;
        if files.iter().any(|(other, _)| other == path) {
            return Err(Fault::new(format!("{} is named twice", path.display())).help("name each file once"));
        }
        files.push((path.clone(), format));
    }
    Ok(files)
}

/// Writes the report to files.
pub(crate) fn write_reports(files: &[(PathBuf, Format)], judged: &[Judged]) -> Result<(), Fault> {
    files.iter().try_for_each(|(path, format)| write(path, &render(judged, *format, Look::default())))
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    std::fs::write(path, text)
        .map_err(|error| Fault::new(format!("cannot write {}: {error}", path.display())))
}

fn format_of(path: &Path) -> Result<Format, Fault> {
    if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".perfetto.json")) {
        return Ok(Format::Perfetto);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(Format::Json),
        Some("jsonl") => Ok(Format::JsonLines),
        Some("sarif") => Ok(Format::Sarif),
        Some("xml") => Ok(Format::Junit),
        Some("html" | "htm") => Ok(Format::Html),
        Some("txt") => Ok(Format::Full),
        _ => Err(Fault::new(format!("cannot tell the format of {} from its name", path.display()))
            .help("end the name in .html, .sarif, .json, .jsonl, .xml (JUnit), .perfetto.json or .txt")),
    }
}

/// An error if the file exists and may not be overwritten, or cannot be made where it should be.
pub(crate) fn refuse_to_overwrite(path: &Path, force: bool) -> Result<(), Fault> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Fault::new(format!("cannot write {shown}: it is a directory")).help("name a file in it"));
    }
    // A link, a pipe or a device is somebody's; `is_file` would follow a link.
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(
            Fault::new(format!("cannot write {shown}: it is no regular file")).help("choose another name")
        );
    }
    if path.is_file() && !force {
        return Err(
            Fault::new(format!("{shown} exists")).help("choose another name, or overwrite it with --force")
        );
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(Fault::new(format!("cannot write {shown}: there is no folder {}", parent.display()))
                .help(format!("mkdir -p {}", parent.display())))
        }
        _ => Ok(()),
    }
}
