//! The command line.

use crate::graph::GraphArguments;
use crate::log::{LOG_HELP, LogArguments};
use crate::status::{ADVISE_HELP, CHECK_HELP, RUN_HELP};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use streamsan_check::Rule;
use streamsan_report::{ColorChoice, Format};

const EXAMPLES: &str = "\
Examples:
  streamsan demo                  a report in a second
  streamsan run train.py          record, then check
  streamsan check run.sstrace     check again, or what was recorded elsewhere
  streamsan explain SS101         what a rule means, with a fix";

/// Find missing synchronization between CUDA streams.
#[derive(Debug, Parser)]
#[command(
    name = "streamsan",
    bin_name = "streamsan",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and check it
    #[command(after_help = RUN_HELP)]
    Run(RunArguments),
    /// Check recorded traces
    #[command(after_help = CHECK_HELP)]
    Check(CheckArguments),
    /// Check recorded traces, and say what costs time or memory without need; or say what bounds a profile of torch.profiler
    #[command(after_help = ADVISE_HELP)]
    Advise(CheckArguments),
    /// Draw who waits for whom, or the operations around a finding
    #[command(after_help = "Exit status: 0, or 2 if there is nothing to draw.")]
    Graph(GraphArguments),
    /// Print the memory log: alloc, uses and free of a block, with the stream of each
    #[command(after_help = LOG_HELP)]
    Log(LogArguments),
    /// Explain a rule, or what cannot be seen
    #[command(after_help = "Exit status: 0, or 2 if there is no such page.")]
    Explain(ExplainArguments),
    /// Show a report on this machine, no GPU and no torch needed
    #[command(after_help = "Exit status: 0 if the example is judged as it should be, else 2.")]
    Demo,
    /// Say what can be recorded here, and why not
    #[command(after_help = "Exit status: 0 if `streamsan run` will work, else 2.")]
    Doctor,
    /// Run a stream program through the judge
    #[command(hide = true)]
    Sim(SimArguments),
    /// Print the events of a trace
    #[command(hide = true)]
    Dump(DumpArguments),
}

/// Run a program under the recorder, then check what it did.
#[derive(Debug, Args)]
#[command(override_usage = "\
streamsan run [OPTIONS] <SCRIPT> [ARGS]...      like `python SCRIPT ARGS`
       streamsan run [OPTIONS] -m <MODULE> [ARGS]...
       streamsan run [OPTIONS] -c <CODE> [ARGS]...
       streamsan run [OPTIONS] -- <COMMAND>...         another program that starts Python")]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub(crate) struct RunArguments {
    /// Where the program runs: `virtual` needs no GPU; `auto` takes a GPU if there is one and no option asks for the
    /// virtual device
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    pub(crate) device: Device,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    /// Write the report to a file too; the end of its name says how: .html .sarif .json .jsonl .xml .txt .perfetto.json
    #[arg(long = "report", value_name = "FILE", conflicts_with = "no_check")]
    pub(crate) reports: Vec<PathBuf>,
    /// Trace to write [default: streamsan-<SCRIPT>-<PID>.sstrace, with the process id of streamsan]
    #[arg(short = 'o', long = "trace", value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Record only
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Check while the program runs, and say each finding at once
    #[arg(long)]
    pub(crate) live: bool,
    /// End the program at the first error; implies --live
    #[arg(long, conflicts_with = "no_check")]
    pub(crate) halt_on_error: bool,
    /// Exit status if the program exits 0 and there are errors
    #[arg(long, value_name = "N", default_value_t = 66, value_parser = clap::value_parser!(u8))]
    pub(crate) error_exitcode: u8,
    /// Overwrite the files of --trace and --report
    #[arg(long)]
    pub(crate) force: bool,
    /// Memory of each virtual device, such as 8GiB [default: half of this machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) device_memory: Option<u64>,
    /// How many virtual devices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) device_count: Option<u32>,
    /// Protect all page-locked memory while copies are pending, not only what the program has asked the address of: accesses
    /// by extensions are then seen too
    #[arg(long)]
    pub(crate) protect_host_memory: bool,
    /// Do asynchronous copies as late as the program's waits allow: where a wait is missing, a wrong value can show
    #[arg(long)]
    pub(crate) delay_copies: bool,
    /// Run with --delay-copies, then again as if all were on one stream, and compare exit status, output and the values
    /// given to `streamsan.watch`; if they differ, a third time
    #[arg(long, conflicts_with_all = ["live", "halt_on_error", "no_check"])]
    pub(crate) one_stream: bool,
    /// After the check, run again with the first operation of each error late, to see whether a wrong value shows
    #[arg(long, conflicts_with_all = ["halt_on_error", "no_check", "one_stream"])]
    pub(crate) confirm: bool,
    /// Run a module, like `python -m MODULE ARGS`
    #[arg(short = 'm', value_name = "MODULE", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) module: Vec<OsString>,
    /// Run code, like `python -c CODE ARGS`
    #[arg(short = 'c', value_name = "CODE", num_args = 1.., allow_hyphen_values = true, conflicts_with = "module")]
    pub(crate) code: Vec<OsString>,
    /// Script and its arguments, or after `--` a command
    #[arg(
        value_name = "SCRIPT",
        trailing_var_arg = true,
        required_unless_present_any = ["module", "code"],
        conflicts_with_all = ["module", "code"]
    )]
    pub(crate) target: Vec<OsString>,
}

/// Check traces that were recorded before.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Traces to check, each for itself
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// How to write the report: for people (full, concise), programs (json, json-lines), other tools
    #[arg(long, value_enum, default_value_t = OutputFormat::Full, env = "STREAMSAN_OUTPUT_FORMAT", value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,
    /// Write the report to a file too; the end of its name says how: .html .sarif .json .jsonl .xml .txt .perfetto.json
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    /// Write all findings to a file of known ones, for --baseline
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Exit 0 even if errors were found
    #[arg(long, conflicts_with = "error_on_warning")]
    pub(crate) exit_zero: bool,
    /// Say what would remain if all devices were waited for before this line; may be repeated
    #[arg(long, value_name = "FILE:LINE", value_parser = parse_line)]
    pub(crate) assume_sync_before: Vec<(String, u32)>,
}

/// What is reported. Wins over `[tool.streamsan]` in pyproject.toml.
#[derive(Debug, Default, Args)]
pub(crate) struct WantedArguments {
    /// Report only these rules: codes, names, or the start of a code, such as SS1
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = parse_rules)]
    pub(crate) select: Vec<Rules>,
    /// Do not report these rules
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = parse_rules)]
    pub(crate) ignore: Vec<Rules>,
    /// Findings of these rules are errors
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = parse_rules)]
    pub(crate) error: Vec<Rules>,
    /// Findings of these rules are warnings
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = parse_rules)]
    pub(crate) warn: Vec<Rules>,
    /// Take warnings for errors when the exit status is chosen
    #[arg(long)]
    pub(crate) error_on_warning: bool,
    /// Do not report the findings in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Report them all, whatever pyproject.toml says
    #[arg(long, conflicts_with = "baseline")]
    pub(crate) no_baseline: bool,
}

/// Explain a rule.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// A rule's code or name, `rules` for a list, or `limits` for what cannot be seen
    #[arg(value_name = "RULE|rules|limits")]
    pub(crate) topic: String,
}

/// Run the programs of a markdown file through the judge.
#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Markdown file with `sim` blocks
    pub(crate) file: PathBuf,
    /// Only the program under this header
    #[arg(long, value_name = "NAME")]
    pub(crate) test: Option<String>,
    /// One schedule to execute
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) schedule: Option<Vec<usize>>,
    /// Check the programs instead of judging them
    #[arg(long, conflicts_with = "schedule")]
    pub(crate) check: bool,
}

/// Print the events of a trace, one line each.
#[derive(Debug, Args)]
pub(crate) struct DumpArguments {
    /// The trace
    pub(crate) trace: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    Auto,
    Virtual,
    Cuda,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Full,
    Concise,
    Json,
    JsonLines,
    Sarif,
    Github,
    Junit,
    Html,
    Perfetto,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Full => Self::Full,
            OutputFormat::Concise => Self::Concise,
            OutputFormat::Json => Self::Json,
            OutputFormat::JsonLines => Self::JsonLines,
            OutputFormat::Sarif => Self::Sarif,
            OutputFormat::Github => Self::Github,
            OutputFormat::Junit => Self::Junit,
            OutputFormat::Html => Self::Html,
            OutputFormat::Perfetto => Self::Perfetto,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// The rules that one word stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules(pub(crate) Vec<Rule>);

/// A code, a name, or the start of a code.
pub(crate) fn parse_rules(text: &str) -> Result<Rules, String> {
    if let Some(rule) = Rule::parse(text) {
        return Ok(Rules(vec![rule]));
    }
    let upper = text.to_ascii_uppercase();
    let family: Vec<Rule> =
        Rule::all().filter(|rule| upper.len() >= 3 && rule.code().starts_with(&upper)).collect();
    if family.is_empty() {
        return Err("no such rule; `streamsan explain rules` lists them".to_owned());
    }
    Ok(Rules(family))
}

/// `train.py:41`.
fn parse_line(text: &str) -> Result<(String, u32), String> {
    let parts = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    match parts {
        Some((file, line)) if !file.is_empty() && line > 0 => Ok((file.to_owned(), line)),
        _ => Err("write it as train.py:41".to_owned()),
    }
}

/// `8GiB`, `512MiB`, `2G`, or bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err("write it as 512MiB or 8GiB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write it as 512MiB or 8GiB".to_owned())?;
    match number.checked_shl(shift).filter(|size| size >> shift == number) {
        Some(0) => Err("a device without memory is of no use".to_owned()),
        Some(size) => Ok(size),
        None => Err("more bytes than there are addresses".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Command, parse_rules, parse_size};
    use clap::{CommandFactory, Parser};

    #[test]
    fn definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn all_after_the_script_belongs_to_the_program() {
        let parse = |line: &str| match Arguments::parse_from(line.split(' ')).command {
            Command::Run(run) => (run.module, run.target, run.force),
            other => panic!("{other:?}"),
        };
        let none: Vec<std::ffi::OsString> = Vec::new();
        let words = |text: &str| text.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
        assert_eq!(
            parse("streamsan run --force train.py --force -o x -- y -m z"),
            (none.clone(), words("train.py --force -o x -- y -m z"), true)
        );
        assert_eq!(
            parse("streamsan run -m a.b --force -- x"),
            (words("a.b --force -- x"), none.clone(), false)
        );
        assert_eq!(
            parse("streamsan run -- torchrun --force"),
            (none.clone(), words("torchrun --force"), false)
        );
        assert_eq!(parse("streamsan run -- a -- b"), (none, words("a -- b"), false));
        match Arguments::parse_from(["streamsan", "run", "-c", "a b", "--force", "-m"]).command {
            Command::Run(run) => assert_eq!((run.code.len(), run.force, run.module.len()), (3, false, 0)),
            other => panic!("{other:?}"),
        }
        assert!(Arguments::try_parse_from(["streamsan", "run"]).is_err());
        assert!(Arguments::try_parse_from(["streamsan", "run", "--wrong", "train.py"]).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("8GiB"), Ok(8 << 30));
        assert_eq!(parse_size("512 MiB"), Ok(512 << 20));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in ["", "0", "GiB", "8 apples", "-1", "99999999999TiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_by_code_name_and_family() {
        assert_eq!(parse_rules("ss101").unwrap().0.len(), 1);
        assert_eq!(parse_rules("self-wait").unwrap().0.len(), 1);
        assert_eq!(parse_rules("SS1").unwrap().0.len(), 3);
        assert!(parse_rules("SS").is_err() && parse_rules("SS777").is_err() && parse_rules("").is_err());
    }
}
