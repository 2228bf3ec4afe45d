//! `streamsan check`: recorded traces.

use crate::ExitStatus;
use crate::arguments::CheckArguments;
use crate::fault::Fault;
use crate::output;
use crate::reports::{Judged, render, say_mistakes};
use crate::run::is_incomplete;
use std::path::Path;
use streamsan_check::{Config, Rule};
use streamsan_report::{ColorChoice, Format};

pub(crate) fn check(arguments: &CheckArguments, color: ColorChoice) -> Result<i32, Fault> {
    // Mistakes in the arguments are said before minutes of work.
    let files: Vec<(&Path, Format)> = arguments
        .outputs
        .iter()
        .map(|path| output_file(path, arguments.force).map(|format| (path.as_path(), format)))
        .collect::<Result<_, _>>()?;
    let config = Config { ignore: ignored(arguments), ..Config::default() };
    let judged: Vec<Judged> =
        arguments.traces.iter().map(|path| Judged::read(path, &config)).collect::<Result<_, _>>()?;
    say_mistakes(&judged);
    output::print(&render(&judged, arguments.output_format.into(), output::colors_stdout(color), None));
    for (path, format) in files {
        std::fs::write(path, render(&judged, format, false, None))
            .map_err(|error| Fault::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(status(arguments, &judged).code())
}

fn status(arguments: &CheckArguments, judged: &[Judged]) -> ExitStatus {
    let errors = judged.iter().any(|one| one.report.has_errors());
    let warnings = judged.iter().any(|one| one.report.has_warnings());
    if judged.iter().any(|one| one.report.coverage.operations == 0) {
        ExitStatus::NothingCaptured
    } else if !arguments.exit_zero && (errors || arguments.error_on_warning && warnings) {
        ExitStatus::Errors
    } else if judged.iter().any(|one| is_incomplete(&one.report.gaps)) {
        ExitStatus::NothingCaptured
    } else {
        ExitStatus::Clean
    }
}

fn ignored(arguments: &CheckArguments) -> Vec<Rule> {
    let named = |rule, list: &[crate::arguments::Rules]| list.iter().any(|rules| rules.0.contains(&rule));
    let selected = |rule| arguments.select.is_empty() || named(rule, &arguments.select);
    Rule::all().filter(|&rule| !selected(rule) || named(rule, &arguments.ignore)).collect()
}

fn output_file(path: &Path, force: bool) -> Result<Format, Fault> {
    let shown = path.display();
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("txt") => Format::Full,
        _ => {
            return Err(Fault::new(format!("cannot tell the format of {shown} from its name"))
                .help("end the name in .json or .txt"));
        }
    };
    refuse_to_overwrite(path, force)?;
    Ok(format)
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
