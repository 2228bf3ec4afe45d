//! What is to be run.

use super::python::Python;
use super::trace_name;
use crate::arguments::RunArguments;
use crate::fault::Fault;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A script, a module, code or a command, each with arguments.
#[derive(Debug)]
pub(super) enum Target {
    Script(Vec<OsString>),
    Module(Vec<OsString>),
    Code(Vec<OsString>),
    Command(Vec<OsString>),
}

impl Target {
    /// Sorts out the arguments. `all` is the whole command line: only there `--` can be seen.
    pub(super) fn new(arguments: &RunArguments, all: &[OsString]) -> Result<Self, Fault> {
        if !arguments.module.is_empty() {
            return Ok(Self::Module(arguments.module.clone()));
        }
        if !arguments.code.is_empty() {
            return Ok(Self::Code(arguments.code.clone()));
        }
        let words = arguments.target.clone();
        // What belongs to the program ends the command line, and a leading `--` was taken off.
        let before = all.len().checked_sub(words.len() + 1).and_then(|index| all.get(index));
        if before.is_some_and(|word| word == "--") {
            find_program(&words[0])?;
            return Ok(Self::Command(words));
        }
        check_script(Path::new(&words[0]))?;
        Ok(Self::Script(words))
    }

    /// Whether the interpreter of streamsan runs the target, so that its torch counts.
    pub(super) fn needs_torch(&self) -> bool {
        !matches!(self, Self::Command(_))
    }

    pub(super) fn command(&self, python: &Python) -> Command {
        let (mut command, rest) = match self {
            Self::Script(words) => (Command::new(python.executable()), words.as_slice()),
            Self::Module(words) => {
                let mut command = Command::new(python.executable());
                command.arg("-m");
                (command, words.as_slice())
            }
            Self::Code(words) => {
                let mut command = Command::new(python.executable());
                command.arg("-c");
                (command, words.as_slice())
            }
            Self::Command(words) => (Command::new(&words[0]), &words[1..]),
        };
        command.args(rest);
        command
    }

    /// The target's first word, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Code(_) => "-c".to_owned(),
            Self::Script(words) | Self::Module(words) | Self::Command(words) => {
                words[0].to_string_lossy().into_owned()
            }
        }
    }

    /// The trace to write if none is named. It carries our own process id: the program has none yet.
    pub(super) fn default_trace(&self) -> PathBuf {
        let name = self.name();
        let stem = match self {
            Self::Module(_) => name.as_str().into(),
            Self::Code(_) => "code".into(),
            _ => Path::new(&name).file_stem().unwrap_or(OsStr::new("run")).to_string_lossy(),
        };
        trace_name(&stem)
    }
}

fn check_script(path: &Path) -> Result<(), Fault> {
    let shown = path.display();
    let cannot = |what: &str| Fault::new(format!("cannot run {shown}: {what}"));
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() && path.join("__main__.py").is_file() => Ok(()),
        Ok(found) if found.is_dir() => {
            Err(cannot("it is a directory without a __main__.py").help("name a script in it"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let fault = cannot("there is no such script");
            if find_program(path.as_os_str()).is_ok() {
                return Err(fault.help(format!("for a command write: streamsan run -- {shown} ...")));
            }
            let directory = std::env::current_dir().unwrap_or_default();
            Err(fault.help(format!("the path is taken from {}", directory.display())))
        }
        Err(error) => Err(cannot(&error.to_string())),
    }
}

fn find_program(name: &OsStr) -> Result<PathBuf, Fault> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let shown = Path::new(name).display();
    if name.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(Fault::new(format!("cannot run {shown}: it is no program that can be executed")))
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path)).ok_or_else(
        || {
            Fault::new(format!("cannot run {shown}: there is no such command"))
                .help("for a script leave out the `--`: streamsan run SCRIPT")
        },
    )
}
