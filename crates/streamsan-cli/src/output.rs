//! Writing to the terminal. A reader that went away (`| head`) is no error.

use std::io::{IsTerminal, Write};
use streamsan_report::ColorChoice;

/// Writes to standard output.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error.
pub(crate) fn eprint(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a message and a line feed to standard error.
pub(crate) fn error(message: &str) {
    eprint(&format!("{message}\n"));
}

/// Writes a line that shares the terminal with the watched program.
pub(crate) fn say(message: &str) {
    eprint(&format!("streamsan> {message}\n"));
}

/// Whether to colour what goes to standard output.
pub(crate) fn colors_stdout(choice: ColorChoice) -> bool {
    choice.enabled(std::io::stdout().is_terminal(), variable)
}

/// Whether to colour what goes to standard error.
pub(crate) fn colors_stderr(choice: ColorChoice) -> bool {
    choice.enabled(std::io::stderr().is_terminal(), variable)
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
