//! `streamsan advise PROFILE`: profiles of torch.profiler.

use crate::arguments::{CheckArguments, OutputFormat};
use crate::check::refuse_to_overwrite;
use crate::fault::Fault;
use crate::reports::Files;
use crate::{ExitStatus, TOOL, output};
use std::path::{Path, PathBuf};
use streamsan_import::{Analysis, ImportError, Profile, analyse, is_profile};
use streamsan_report::Sources;

/// The profiles among the files of a command: all of them, or none.
pub(crate) fn are_profiles(paths: &[PathBuf]) -> Result<bool, Fault> {
    let count = paths.iter().filter(|path| is_profile(path)).count();
    if count > 0 && count < paths.len() {
        return Err(Fault::new("traces and profiles cannot be read together").help("use a command for each"));
    }
    Ok(count > 0)
}

/// Refuses a profile where a trace is wanted.
pub(crate) fn refuse(paths: &[PathBuf]) -> Result<(), Fault> {
    match paths.iter().find(|path| is_profile(path)) {
        Some(path) => {
            let shown = path.display();
            Err(Fault::new(format!("{shown} is JSON, and no trace of streamsan")).help(format!(
                "a profile of torch.profiler has no addresses: `streamsan run` finds races, `streamsan advise {shown}` says what bounds the program"
            )))
        }
        None => Ok(()),
    }
}

/// Reads profiles, and says what they show.
pub(crate) fn advise(arguments: &CheckArguments) -> Result<i32, Fault> {
    let options = &arguments.wanted;
    if !(options.select.is_empty() && options.ignore.is_empty() && arguments.assume_sync_before.is_empty())
        || arguments.write_baseline.is_some()
    {
        return Err(Fault::new(
            "a profile has no findings: --select, --ignore, --assume-sync-before and --write-baseline are for traces",
        ));
    }
    let format = Form::of(arguments.output_format)?;
    let files: Vec<(&Path, Form)> = arguments
        .outputs
        .iter()
        .map(|path| Form::of_file(path, arguments.force))
        .collect::<Result<_, _>>()?;
    let mut profiles: Vec<Read> = Vec::new();
    for path in &arguments.traces {
        let shown = path.display().to_string();
        match streamsan_import::read(path) {
            Ok(profile) => {
                let mut analysis = analyse(&profile);
                let sources = Files { directories: Vec::new() };
                analysis.find_lines(&|path| sources.text(path));
                profiles.push(Read { file: shown, profile, analysis });
            }
            Err(error) => {
                let empty = matches!(error, ImportError::Nothing { .. });
                let fault = fault(&shown, &error);
                if !empty {
                    return Err(fault);
                }
                output::error(&fault.to_string());
                return Ok(ExitStatus::NothingCaptured.code());
            }
        }
    }
    output::print(&format.write(&profiles));
    for (path, form) in files {
        std::fs::write(path, form.write(&profiles))
            .map_err(|error| Fault::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(ExitStatus::Clean.code())
}

fn fault(file: &str, error: &ImportError) -> Fault {
    let fault = match error {
        ImportError::Nothing { .. } => Fault::new(format!("{file}: {error}")),
        _ => Fault::new(format!("cannot read {file}: {error}")),
    };
    match error.help() {
        Some(help) => fault.help(help),
        None => fault,
    }
}

/// A profile that was read.
struct Read {
    file: String,
    profile: Profile,
    analysis: Analysis,
}

/// How an analysis is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Json,
    Html,
}

impl Form {
    fn of(format: OutputFormat) -> Result<Self, Fault> {
        match format {
            OutputFormat::Full => Ok(Self::Text),
            OutputFormat::Json => Ok(Self::Json),
            OutputFormat::Html => Ok(Self::Html),
            _ => {
                Err(Fault::new("of profiles there is no such report")
                    .help("--output-format full, json or html"))
            }
        }
    }

    fn of_file(path: &Path, force: bool) -> Result<(&Path, Self), Fault> {
        refuse_to_overwrite(path, force)?;
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Ok((path, Self::Json)),
            Some("txt") => Ok((path, Self::Text)),
            Some("html" | "htm") => Ok((path, Self::Html)),
            _ => Err(Fault::new(format!(
                "cannot write {}: of profiles there is no such report",
                path.display()
            ))
            .help("end the name in .html, .json or .txt")),
        }
    }

    fn write(self, read: &[Read]) -> String {
        match self {
            Self::Text => {
                let texts: Vec<String> =
                    read.iter().map(|one| streamsan_import::text(&one.file, &one.analysis)).collect();
                texts.join("\n")
            }
            Self::Json => {
                streamsan_import::json(TOOL, read.iter().map(|one| (one.file.as_str(), &one.analysis)))
            }
            Self::Html => {
                let all = read.iter().map(|one| (one.file.as_str(), &one.profile, &one.analysis));
                streamsan_import::html(TOOL, all)
            }
        }
    }
}
