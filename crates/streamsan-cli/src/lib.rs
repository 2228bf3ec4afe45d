//! The `streamsan` command: arguments, files, processes, exit codes.
//!
//! [`main`] takes the arguments and gives the exit status; it never panics and never exits the process
//! itself, so that Python can call it. Everything that touches files, the environment or processes is here;
//! what a trace means and how a report reads is not.

mod arguments;
mod baseline;
mod check;
mod config;
mod demo;
mod doctor;
mod dump;
mod environment;
mod explain;
mod fault;
mod gpu;
mod graph;
mod guard;
mod ignore_comments;
pub mod library;
pub mod live;
mod log;
mod nearest;
mod output;
mod profile;
mod reports;
mod run;
mod sim;
mod status;
pub mod texts;
mod wanted;

pub use ignore_comments::Mistake;
pub use status::ExitStatus;

use arguments::{Arguments, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use fault::Fault;
use std::ffi::OsString;

/// Name and version, as reports carry them.
pub(crate) const TOOL: &str = concat!("streamsan ", env!("CARGO_PKG_VERSION"));

/// Runs the command. `args` starts with the program's name. Gives the exit status.
#[allow(clippy::needless_pass_by_value)] // The arguments are the caller's to give away, as `args_os` has them.
pub fn main(args: Vec<OsString>) -> i32 {
    guard::guarded(&args, || start(&args))
}

fn start(args: &[OsString]) -> i32 {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => {
            output::error(&unknown_command(&error, args).to_string());
            return ExitStatus::Usage.code();
        }
        Err(mut error) => {
            // It would say that `--` makes a value of an option; here `--` is followed by a command.
            error.remove(ContextKind::Suggested);
            // Help and version are no mistakes. A closed pipe is nothing to complain about.
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::Usage.code() } else { 0 };
        }
    };
    let color = arguments.color.into();
    let outcome = match arguments.command {
        Command::Run(arguments) => run::run(&arguments, args, color),
        Command::Check(arguments) => check::check(&arguments, false, color),
        Command::Advise(arguments) => check::check(&arguments, true, color),
        Command::Graph(arguments) => graph::graph(&arguments),
        Command::Log(arguments) => log::log(&arguments, color),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Demo => demo::demo(color),
        Command::Doctor => Ok(doctor::doctor()),
        Command::Sim(arguments) => sim::sim(&arguments),
        Command::Dump(arguments) => dump::dump(&arguments),
    };
    outcome.unwrap_or_else(|fault: Fault| {
        output::error(&fault.to_string());
        ExitStatus::Usage.code()
    })
}

/// A first word that is no command: a script, or a slip.
fn unknown_command(error: &clap::Error, args: &[OsString]) -> Fault {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return Fault::new("unrecognized subcommand").help("streamsan --help");
    };
    let fault = Fault::new(format!("unrecognized subcommand '{word}'"));
    let rest: Vec<String> = args
        .iter()
        .skip_while(|argument| argument.to_str() != Some(word))
        .map(|argument| guard::quoted(&argument.to_string_lossy()))
        .collect();
    let is_script = std::path::Path::new(word).extension().is_some_and(|extension| extension == "py");
    if is_script || std::path::Path::new(word).is_file() {
        return fault.help(format!("did you mean: streamsan run {}", rest.join(" ")));
    }
    let commands = Arguments::command();
    let names =
        commands.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    match nearest::nearest(word, names) {
        Some(near) => fault.help(format!("did you mean `streamsan {near}`?")),
        None => fault.help("`streamsan --help` lists the commands"),
    }
}
