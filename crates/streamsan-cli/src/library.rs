//! What the Python module needs of the command: checking files and writing reports, without a terminal.

use crate::arguments::{Rules, parse_rules};
use crate::config;
use crate::ignore_comments::Mistake;
use crate::reports::{Judged, Look, render};
use std::path::{Path, PathBuf};
use streamsan_check::{Config, Level, Region, Rule};
use streamsan_report::Format;
use streamsan_trace::file::{ReadError, TraceFile};
use streamsan_trace::{Log, OpNumber};

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Report only these rules: codes, names, or the start of a code. None: all.
    pub select: Vec<String>,
    /// Do not report these rules.
    pub ignore: Vec<String>,
    /// The first and the last event of the part that is reported on.
    pub region: Option<(u64, u64)>,
    /// Whether the levels of rules (`error`, `warn`) are those of the project in which the process runs.
    pub configured: bool,
    /// Whether advice is given too (SS7).
    pub advice: bool,
}

/// Why nothing was checked.
#[derive(Debug)]
pub enum CheckError {
    /// A word that is no rule.
    Rule(String),
    /// The settings of the project are not as they should be.
    Settings(String),
    /// A file that cannot be read.
    Read(PathBuf, ReadError),
}

/// Traces that were checked.
#[derive(Debug)]
pub struct Checks(Vec<Judged>);

impl Checks {
    /// Checks files, each for itself.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a rule is none.
    pub fn of_files(paths: &[PathBuf], request: &Request) -> Result<Self, CheckError> {
        let config = request.config()?;
        let judge = |path: &PathBuf| {
            let log = TraceFile::open(path).map_err(|error| CheckError::Read(path.clone(), error))?;
            Ok(Judged::of(path.display().to_string(), Box::new(log) as Box<dyn Log>, &config))
        };
        Ok(Self(paths.iter().map(judge).collect::<Result<_, _>>()?))
    }

    /// The report, without colours.
    pub fn render(&self, format: Format) -> String {
        render(&self.0, format, Look::default())
    }

    /// The last lines of the full report.
    pub fn summary(&self) -> String {
        crate::reports::summary(&self.0)
    }

    /// Ignore comments that are not as they should be.
    pub fn mistakes(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter().flat_map(|one| &one.mistakes)
    }
}

impl Request {
    fn config(&self) -> Result<Config, CheckError> {
        let (select, ignore) = (rules(&self.select)?, rules(&self.ignore)?);
        let left_out = |rule| !select.is_empty() && !select.contains(&rule) || ignore.contains(&rule);
        let region = self.region.map(|(first, last)| Region { first: OpNumber(first), last: OpNumber(last) });
        let levels = if self.configured { levels().map_err(CheckError::Settings)? } else { Vec::new() };
        Ok(Config {
            levels,
            ignore: Rule::all().filter(|&rule| left_out(rule)).collect(),
            region,
            advise: self.advice,
            ..Config::default()
        })
    }
}

/// The levels that the project in which the process runs sets for rules: `error` and `warn` of `[tool.streamsan]`.
///
/// # Errors
///
/// What is wrong with the file, with its line.
pub(crate) fn levels() -> Result<Vec<(Rule, Level)>, String> {
    let here =
        std::env::current_dir().map_err(|error| format!("cannot find out the current directory: {error}"))?;
    let settings = config::find(&here).map_err(|fault| fault.plain())?;
    let of = |rules: &[Rules], level| -> Vec<(Rule, Level)> {
        rules.iter().flat_map(|rules| &rules.0).map(|&rule| (rule, level)).collect()
    };
    Ok([of(&settings.error, Level::Error), of(&settings.warn, Level::Warning)].concat())
}

fn rules(words: &[String]) -> Result<Vec<Rule>, CheckError> {
    let mut rules = Vec::new();
    for word in words {
        let found = parse_rules(word).map_err(|error| CheckError::Rule(format!("{word:?}: {error}")))?;
        rules.extend(found.0);
    }
    Ok(rules)
}

/// Writes the trace of a stream program (`docs/programs.md`), for those who have none at hand.
///
/// # Errors
///
/// What is wrong with the program, or with the file.
pub fn write_program(name: &str, text: &str, path: &Path) -> Result<(), ProgramError> {
    let program =
        streamsan_sim::parse(name, text).map_err(|error| ProgramError::Program(error.to_string()))?;
    let mut trace = streamsan_sim::lower(&program, name, "simulated").trace;
    trace.header.directory = path
        .parent()
        .and_then(|folder| std::path::absolute(folder).ok())
        .unwrap_or_default()
        .display()
        .to_string();
    streamsan_trace::file::write(&trace, path).map_err(ProgramError::Write)
}

/// Why no trace was written.
#[derive(Debug)]
pub enum ProgramError {
    /// The program is not one.
    Program(String),
    /// The file cannot be written.
    Write(std::io::Error),
}
