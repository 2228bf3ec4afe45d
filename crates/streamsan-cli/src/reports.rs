//! Reading traces, checking them, and giving the report crate its sources.

use crate::TOOL;
use crate::fault::Fault;
use crate::ignore_comments::{Mistake, Scanner};
use crate::output::error;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use streamsan_check::{Config, Region, Report};
use streamsan_report::{Checked, Format, Options, Paths, Sources};
use streamsan_trace::Log;

/// A trace that was read and checked.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) file: String,
    pub(crate) log: Box<dyn Log>,
    pub(crate) report: Report,
    /// Ignore comments in its sources that are not as they should be.
    pub(crate) mistakes: Vec<Mistake>,
}

impl Judged {
    /// Checks a log, with the ignore comments of its sources.
    pub(crate) fn of(file: String, log: Box<dyn Log>, config: &Config) -> Self {
        let mut config = config.clone();
        let asked_for = log.header().region.map(|(first, last)| Region { first, last });
        config.region = config.region.or(asked_for);
        let mut scanner = Scanner::default();
        let files = Files { directories: vec![log.header().directory.clone()] };
        config.ignores.comments.extend(scanner.new_ignores(log.tables(), &files).comments);
        let report = streamsan_check::check(log.as_ref(), &config);
        Self { file, log, report, mistakes: scanner.mistakes }
    }

    /// Its source files.
    pub(crate) fn files(&self) -> Files {
        Files::new([self.log.as_ref()])
    }

    fn checked(&self) -> Checked<'_> {
        Checked { file: &self.file, log: self.log.as_ref(), report: &self.report }
    }
}

/// Reads a trace.
pub(crate) fn read(path: &Path) -> Result<Box<dyn Log>, Fault> {
    let trace = streamsan_trace::file::read(path)
        .map_err(|error| Fault::new(format!("cannot read {}: {error}", path.display())))?;
    Ok(Box::new(trace))
}

/// How a report looks besides its format.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    pub(crate) color: bool,
    /// How many findings are shown in full.
    pub(crate) limit: Option<usize>,
    /// Columns of the terminal, if there is one.
    pub(crate) width: Option<usize>,
}

/// The report as text.
pub(crate) fn render(judged: &[Judged], format: Format, look: Look) -> String {
    let Look { color, limit, width } = look;
    let checked: Vec<_> = judged.iter().map(Judged::checked).collect();
    let files = Files::new(judged.iter().map(|one| one.log.as_ref()));
    streamsan_report::render(format, &checked, &files, &Options { color, tool: TOOL, limit, width })
}

/// Says which ignore comments are not as they should be.
pub(crate) fn say_mistakes(judged: &[Judged]) {
    let mut said = std::collections::BTreeSet::new();
    for one in judged {
        let files = Paths::new(one.log.as_ref());
        for mistake in &one.mistakes {
            let text =
                format!("warning: {}:{}: {}", files.shorten(&mistake.file), mistake.line, mistake.message);
            // The ranks of a job run the same files.
            if said.insert(text.clone()) {
                error(&text);
            }
        }
    }
}

/// The last lines of a full report.
pub(crate) fn summary(judged: &[Judged]) -> String {
    streamsan_report::summary(&judged.iter().map(Judged::checked).collect::<Vec<_>>(), None)
}

fn slashes(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Bytes of a source file: nobody writes more.
const MOST_SOURCE: u64 = 16 << 20;

/// Source files on this machine; relative paths are tried from where the program ran.
pub(crate) struct Files {
    pub(crate) directories: Vec<String>,
}

impl Files {
    /// The source files of some logs.
    pub(crate) fn new<'a>(logs: impl IntoIterator<Item = &'a dyn Log>) -> Self {
        Self { directories: logs.into_iter().map(|log| log.header().directory.clone()).collect() }
    }
}

impl Sources for Files {
    fn repository_path(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let is_root = |folder: &&Path| folder.join(".git").exists();
        if let Some(root) = path.ancestors().skip(1).find(is_root)
            && path.exists()
        {
            return path.strip_prefix(root).ok().map(slashes);
        }
        // A trace of another machine: the end of the path that is a file of the repository here.
        let here = std::env::current_dir().ok()?;
        let root = here.ancestors().find(is_root)?;
        let mut parts = path.components();
        while parts.next().is_some() {
            let rest = parts.as_path();
            if !rest.as_os_str().is_empty() && root.join(rest).is_file() {
                return Some(slashes(rest));
            }
        }
        None
    }

    fn text(&self, path: &str) -> Option<String> {
        // `<string>`, `<frozen importlib>` and the like are no files.
        if path.starts_with('<') {
            return None;
        }
        let below = self.directories.iter().map(|directory| Path::new(directory).join(path));
        let candidates = below.chain([PathBuf::from(path)]);
        // A trace can name anything: files of the kernel are empty, until they are read, and some never end.
        let is_source =
            |metadata: Metadata| metadata.is_file() && (1..=MOST_SOURCE).contains(&metadata.len());
        let readable = |path: &PathBuf| path.metadata().is_ok_and(is_source);
        // One byte that is not UTF-8 must not hide the line.
        candidates.filter(readable).find_map(|path| std::fs::read(path).ok()).map(|bytes| {
            match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }
        })
    }
}
