//! `streamsan graph`: drawings of a run.

use crate::arguments::WantedArguments;
use crate::check::refuse_to_overwrite;
use crate::fault::Fault;
use crate::reports::{Judged, read};
use crate::wanted::Wanted;
use crate::{ExitStatus, nearest, output};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use streamsan_report::Checked;
use streamsan_report::drawing::{self, Language, Selection, TooMany};
use streamsan_trace::{Log, OpNumber, StreamId};

/// Draw who waits for whom, a finding, or the operations of a run.
#[derive(Debug, Args)]
pub(crate) struct GraphArguments {
    /// The trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The operations that decide one finding, such as F1
    #[arg(long, value_name = "ID", value_parser = parse_finding)]
    finding: Option<usize>,
    /// How to write it [default: by the end of FILE, else svg]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// File to write, .svg or .dot [default: standard output]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    /// All operations of this stream, as dot; may be repeated
    #[arg(long = "stream", value_name = "NAME")]
    streams: Vec<String>,
    /// All operations from one number to another, as dot
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], value_parser = parse_number)]
    between: Option<Vec<u64>>,
    /// Only operations at most N edges away from those of --finding, or from the ends of --between; as dot
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Svg,
    Dot,
}

pub(crate) fn graph(arguments: &GraphArguments) -> Result<i32, Fault> {
    let whole = !arguments.streams.is_empty() || arguments.between.is_some() || arguments.depth.is_some();
    let language = language(arguments, whole)?;
    if let Some(path) = &arguments.output {
        refuse_to_overwrite(path, arguments.force)?;
    } else if matches!(language, Language::Svg) && std::io::stdout().is_terminal() {
        return Err(
            Fault::new("a picture cannot be shown in a terminal").help("add -o graph.svg, or --format dot")
        );
    }
    if arguments.depth.is_some() && arguments.finding.is_none() && arguments.between.is_none() {
        return Err(Fault::new("--depth counts from a finding or a range")
            .help("add --finding F1, or --between FROM TO"));
    }
    let text = if whole {
        operations(arguments)?
    } else if let Some(index) = arguments.finding {
        let judged = judge(arguments)?;
        let checked = Checked { file: &judged.file, log: judged.log.as_ref(), report: &judged.report };
        drawing::finding(&checked, index, language)
            .ok_or_else(|| no_finding(index, judged.report.findings.len()))?
    } else {
        drawing::streams(read(&arguments.trace)?.as_ref(), language)
    };
    match &arguments.output {
        None => output::print(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Fault::new(format!("cannot write {}: {error}", path.display())))?,
    }
    Ok(ExitStatus::Clean.code())
}

/// Checks the trace as `streamsan check` does in this place, so that findings have the same numbers.
fn judge(arguments: &GraphArguments) -> Result<Judged, Fault> {
    Wanted::new(&WantedArguments::default(), &[])?.judge(&arguments.trace)
}

fn operations(arguments: &GraphArguments) -> Result<String, Fault> {
    let between = match arguments.between.as_deref() {
        Some(&[from, to]) if from <= to => Some((OpNumber(from), OpNumber(to))),
        Some(&[from, to]) => {
            return Err(Fault::new(format!("--between {from} {to} holds nothing"))
                .help(format!("--between {to} {from}")));
        }
        _ => None,
    };
    let mut seeds: Vec<OpNumber> = between.into_iter().flat_map(|(from, to)| [from, to]).collect();
    let judged = judge(arguments)?;
    let log = judged.log.as_ref();
    if let Some(index) = arguments.finding {
        seeds = drawing::operations_of(&judged.report, index);
        if seeds.is_empty() {
            return Err(no_finding(index, judged.report.findings.len()));
        }
    }
    // The ends of a range say where to start; with a depth it may go beyond them.
    let range = if arguments.depth.is_some() { None } else { between };
    let streams = named_streams(&arguments.streams, log)?;
    let selection = Selection { streams, between: range, depth: arguments.depth, seeds };
    drawing::operations(log, Some(&judged.report), &selection).map_err(|TooMany(count)| {
        Fault::new(format!("{count} operations and waits are too many for one drawing"))
            .help("narrow it: --between FROM TO, --stream NAME, or --finding F1 --depth 3")
    })
}

fn language(arguments: &GraphArguments, whole: bool) -> Result<Language, Fault> {
    let by_name = arguments.output.as_deref().and_then(|path| path.extension()?.to_str());
    let format = match (arguments.format, by_name) {
        (Some(format), _) => format,
        (None, Some("dot" | "gv")) => Format::Dot,
        (None, Some("svg")) => Format::Svg,
        (None, Some(_)) => {
            let shown = arguments.output.as_deref().unwrap_or(Path::new("")).display();
            return Err(Fault::new(format!("cannot tell the format of {shown} from its name"))
                .help("end the name in .svg or .dot"));
        }
        (None, None) if whole => Format::Dot,
        (None, None) => Format::Svg,
    };
    match format {
        Format::Svg if whole => Err(Fault::new("--stream, --between and --depth are drawn as dot only")
            .help("--format dot, then: dot -Tsvg FILE.dot -o FILE.svg")),
        Format::Svg => Ok(Language::Svg),
        Format::Dot => Ok(Language::Dot),
    }
}

fn named_streams(wanted: &[String], log: &dyn Log) -> Result<Vec<StreamId>, Fault> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let known = drawing::stream_names(log);
    let find = |name: &String| {
        let found = known.iter().find(|(_, known)| known == name).map(|(stream, _)| *stream);
        found.ok_or_else(|| {
            let names = || known.iter().map(|(_, name)| name.as_str());
            let help = match nearest::nearest(name, names()) {
                Some(near) => format!("did you mean --stream '{near}'?"),
                None => format!("the streams are: {}", names().collect::<Vec<_>>().join(", ")),
            };
            Fault::new(format!("no stream is named '{name}'")).help(help)
        })
    };
    wanted.iter().map(find).collect()
}

fn no_finding(index: usize, count: usize) -> Fault {
    let fault = Fault::new(format!("there is no finding F{}", index + 1));
    match count {
        0 => fault.help("this trace has no findings; without --finding the streams are drawn"),
        1 => fault.help("this trace has one: --finding F1"),
        _ => fault.help(format!("this trace has {count}: F1 to F{count}")),
    }
}

/// `F1`, as an index from 0.
fn parse_finding(text: &str) -> Result<usize, String> {
    let digits = text.strip_prefix(['F', 'f']).unwrap_or(text);
    match digits.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ => Err("write it as in the report, such as F1".to_owned()),
    }
}

/// `1207` or `#1207`.
fn parse_number(text: &str) -> Result<u64, String> {
    text.trim_start_matches('#').parse().map_err(|_| "write it as in the report, such as 1207".to_owned())
}
