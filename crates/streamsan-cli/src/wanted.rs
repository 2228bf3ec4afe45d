//! What is to be reported: options of the command line over `[tool.streamsan]` of the project.

use crate::arguments::{Rules, WantedArguments};
use crate::baseline::Baseline;
use crate::config::{self, Settings};
use crate::fault::Fault;
use crate::output;
use crate::reports::{Files, Judged, read};
use std::path::{Path, PathBuf};
use streamsan_check::{Assumed, Config, IgnoreFiles, Level, Rule};
use streamsan_report::{Paths, Sources};
use streamsan_trace::{FrameOrigin, Log};

/// What is to be reported, and what is known already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    settings: Settings,
    config: Config,
    baseline: Option<(PathBuf, Baseline)>,
    /// Whether warnings are as bad as errors.
    pub(crate) error_on_warning: bool,
    assume: Vec<(String, u32)>,
}

impl Wanted {
    /// Reads the configuration of the project in which the command runs, and the baseline.
    pub(crate) fn new(arguments: &WantedArguments, assume: &[(String, u32)]) -> Result<Self, Fault> {
        let here = std::env::current_dir()
            .map_err(|error| Fault::new(format!("cannot find out the current directory: {error}")))?;
        let settings = config::find(&here)?;
        let or = |given: &[Rules], configured: &[Rules]| {
            if given.is_empty() { configured.to_vec() } else { given.to_vec() }
        };
        let select = or(&arguments.select, &settings.select);
        let ignore = or(&arguments.ignore, &settings.ignore);
        let named = |rule: Rule, list: &[Rules]| list.iter().any(|rules| rules.0.contains(&rule));
        let left_out = |rule| !select.is_empty() && !named(rule, &select) || named(rule, &ignore);
        let mut levels = Vec::new();
        for (rules, level) in [
            (&settings.error, Level::Error),
            (&settings.warn, Level::Warning),
            (&arguments.error, Level::Error),
            (&arguments.warn, Level::Warning),
        ] {
            levels.extend(rules.iter().flat_map(|rules| &rules.0).map(|&rule| (rule, level)));
        }
        let config = Config {
            ignore: Rule::all().filter(|&rule| left_out(rule)).collect(),
            levels,
            ..Config::default()
        };
        let file = arguments.baseline.clone().or_else(|| settings.baseline.clone());
        let baseline = match file.filter(|_| !arguments.no_baseline) {
            Some(path) => {
                let path = path.strip_prefix(&here).map_or(path.clone(), Path::to_owned);
                Some((path.clone(), Baseline::read(&path)?))
            }
            None => None,
        };
        let error_on_warning = arguments.error_on_warning || settings.error_on_warning;
        Ok(Self { settings, config, baseline, error_on_warning, assume: assume.to_vec() })
    }

    /// Everything is reported, some rules with other levels than their own.
    pub(crate) fn with_levels(levels: Vec<(Rule, Level)>) -> Self {
        Self { config: Config { levels, ..Config::default() }, ..Self::default() }
    }

    /// Gives advice too, or not.
    pub(crate) fn advising(mut self, advise: bool) -> Self {
        self.config.advise = advise;
        self
    }

    /// Whether no rule is left but advice.
    pub(crate) fn is_for_advice(&self) -> bool {
        Rule::all().filter(|rule| !self.config.ignore.contains(rule)).all(Rule::is_advice)
    }

    /// Does not read the baseline: it is about to be written.
    pub(crate) fn without_baseline(mut self) -> Self {
        self.baseline = None;
        self
    }

    /// Reads and checks one trace, and takes out what is known.
    pub(crate) fn judge(&mut self, path: &Path) -> Result<Judged, Fault> {
        let log = read(path)?;
        let mut config = self.config.clone();
        config.ignores.files = self.ignored_files(log.as_ref());
        config.assume = self
            .assume
            .iter()
            .map(|(file, line)| assumed(file, *line, log.as_ref()))
            .collect::<Result<_, _>>()?;
        let mut judged = Judged::of(path.display().to_string(), log, &config);
        if let Some((_, baseline)) = &mut self.baseline {
            let files = judged.files();
            baseline.hide(&mut judged.report, judged.log.as_ref(), &files);
        }
        Ok(judged)
    }

    /// Rules and levels.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Takes out of a report what is known.
    pub(crate) fn hide_known(&mut self, report: &mut streamsan_check::Report, log: &dyn Log) {
        if let Some((_, baseline)) = &mut self.baseline {
            baseline.hide(report, log, &Files::new([log]));
        }
    }

    /// Says which known findings did not occur.
    pub(crate) fn say_idle(&self) {
        let Some((path, baseline)) = &self.baseline else { return };
        let idle = baseline.idle(|rule| !self.config.ignore.contains(&rule));
        let [first, rest @ ..] = idle.as_slice() else { return };
        let more = match rest.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let path = path.display();
        output::error(&format!(
            "note: {path} has findings that did not occur: {first}{more}\nhelp: if they are repaired, renew it with --write-baseline {path}"
        ));
    }

    /// `per-file-ignores` with the files of a trace that the patterns stand for.
    pub(crate) fn ignored_files(&self, log: &dyn Log) -> Vec<IgnoreFiles> {
        if self.settings.per_file_ignores.is_empty() {
            return Vec::new();
        }
        let tables = log.tables();
        let user = tables.frames.iter().filter(|frame| frame.origin == FrameOrigin::User);
        let files: std::collections::BTreeSet<&str> = user.map(|frame| tables.string(frame.file)).collect();
        let run = Files::new([log]);
        let directory = Path::new(&log.header().directory);
        self.settings
            .per_file_ignores
            .iter()
            .map(|entry| IgnoreFiles {
                pattern: entry.pattern().to_owned(),
                rules: entry.rules.clone(),
                files: files
                    .iter()
                    .filter(|file| {
                        let whole = directory.join(file);
                        let below = whole.strip_prefix(&self.settings.folder).ok();
                        let below = below.map(|path| path.display().to_string());
                        // A trace of another machine has other folders.
                        let path = below
                            .or_else(|| run.repository_path(&whole.display().to_string()))
                            .unwrap_or_else(|| Paths::new(log).shorten(file).to_owned());
                        entry.covers(&path)
                    })
                    .map(|file| (*file).to_owned())
                    .collect(),
            })
            .collect()
    }
}

/// The line as the trace names it.
fn assumed(file: &str, line: u32, log: &dyn Log) -> Result<Assumed, Fault> {
    let tables = log.tables();
    let wanted = file.strip_prefix("./").unwrap_or(file);
    let is_file =
        |path: &str| path == wanted || path.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('/'));
    let mut lines = std::collections::BTreeSet::new();
    for frame in &tables.frames {
        let path = tables.string(frame.file);
        if is_file(path) {
            if frame.line == line {
                return Ok(Assumed { file: path.to_owned(), line });
            }
            lines.insert(frame.line);
        }
    }
    let fault =
        Fault::new(format!("--assume-sync-before {file}:{line}: nothing in the trace was called from there"));
    let near: Vec<String> = {
        let mut near: Vec<u32> = lines.into_iter().filter(|&other| other > 0).collect();
        near.sort_by_key(|other| other.abs_diff(line));
        near.truncate(5);
        near.sort_unstable();
        near.iter().map(u32::to_string).collect()
    };
    Err(match near.as_slice() {
        [] => fault.help("name a file as a report shows it; --output-format concise lists places"),
        near => fault.help(format!("lines of {file} in the trace: {}", near.join(", "))),
    })
}
