//! `streamsan log`: what happened to the memory of a run.

use crate::arguments::WantedArguments;
use crate::fault::Fault;
use crate::wanted::Wanted;
use crate::{ExitStatus, TOOL, nearest, output};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use streamsan_report::memory_log::{BlockQuery, Language, NotFound, Selection, memory_log};
use streamsan_report::{Checked, ColorChoice, Options};
use streamsan_trace::BlockId;

pub(crate) const LOG_HELP: &str = "\
Without --finding, --tensor and --block: the blocks of all findings, or the largest blocks if there is none.
A long history is cut in the middle; what findings name is always there.

Exit status: 0, or 2 if there is no such block.";

/// Print what happened to blocks of memory, a line for each event.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// The trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The blocks with this name: a variable of the program, or given by `streamsan.name`
    #[arg(long, value_name = "NAME", group = "which")]
    tensor: Option<String>,
    /// One block, such as b17; or an address, such as 0x7f0012340000: all blocks that ever held it
    #[arg(long, value_name = "BLOCK|ADDRESS", value_parser = parse_block, group = "which")]
    block: Option<BlockQuery>,
    /// The blocks of one finding, such as F1
    #[arg(long, value_name = "ID", value_parser = parse_finding, group = "which")]
    finding: Option<usize>,
    /// How to write it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn log(arguments: &LogArguments, color: ColorChoice) -> Result<i32, Fault> {
    // As `streamsan check` does in this place, so that findings have the same numbers.
    let judged = Wanted::new(&WantedArguments::default(), &[])?.judge(&arguments.trace)?;
    let checked = Checked { file: &judged.file, log: judged.log.as_ref(), report: &judged.report };
    let selection =
        Selection { tensor: arguments.tensor.clone(), block: arguments.block, finding: arguments.finding };
    let language = match arguments.output_format {
        Format::Text => Language::Text,
        Format::Json => Language::Json,
    };
    let options = Options {
        color: output::colors_stdout(color),
        tool: TOOL,
        limit: None,
        width: output::columns_stdout(),
    };
    let text = memory_log(&checked, &selection, language, &options)
        .map_err(|reason| not_found(&selection, &reason))?;
    output::print(&text);
    Ok(ExitStatus::Clean.code())
}

fn not_found(selection: &Selection, reason: &NotFound) -> Fault {
    let name = selection.tensor.as_deref().unwrap_or_default();
    let number = selection.finding.map_or(0, |index| index + 1);
    match reason {
        NotFound::Tensor(known) if known.is_empty() => {
            Fault::new(format!("no memory is named '{name}'; no memory of this trace has a name"))
                .help("--block b17, or without options")
        }
        NotFound::Tensor(known) => {
            let fault = Fault::new(format!("no memory is named '{name}'"));
            if let Some(near) = nearest::nearest(name, known.iter().map(String::as_str)) {
                return fault.help(format!("did you mean --tensor '{near}'?"));
            }
            let more = if known.len() > 12 { ", …" } else { "" };
            let some: Vec<_> = known.iter().take(12).map(String::as_str).collect();
            fault.help(format!("names are: {}{more}", some.join(", ")))
        }
        NotFound::Block => match selection.block {
            Some(BlockQuery::Address(address)) => {
                Fault::new(format!("no block of this trace held the address {address:#x}"))
                    .help("addresses are those of the recorded run: tensor.data_ptr()")
            }
            Some(BlockQuery::Id(BlockId(id))) => Fault::new(format!("this trace has no block b{id}"))
                .help("without options the blocks of the findings are shown"),
            None => Fault::new("there is no such block"),
        },
        NotFound::Finding(0) => Fault::new(format!("there is no finding F{number}"))
            .help("this trace has no findings; without --finding the largest blocks are listed"),
        NotFound::Finding(1) => {
            Fault::new(format!("there is no finding F{number}")).help("this trace has one: --finding F1")
        }
        NotFound::Finding(count) => Fault::new(format!("there is no finding F{number}"))
            .help(format!("this trace has {count}: F1 to F{count}")),
        NotFound::NoMemory => Fault::new(format!("finding F{number} is not about memory"))
            .help("without --finding the blocks of all findings are shown"),
    }
}

/// `b17`, `17`, or `0x7f0012340000`.
fn parse_block(text: &str) -> Result<BlockQuery, String> {
    let wrong = || "write it as in the log, such as b17, or as an address, such as 0x7f0012340000".to_owned();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).map(BlockQuery::Address).map_err(|_| wrong());
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    match digits.parse::<u64>() {
        // Python prints addresses in decimal; there are no so many blocks.
        Ok(number) => {
            Ok(u32::try_from(number).map_or(BlockQuery::Address(number), |id| BlockQuery::Id(BlockId(id))))
        }
        Err(_) => Err(wrong()),
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
