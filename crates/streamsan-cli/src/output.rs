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

/// Writes a message that shares the terminal with the watched program. On a terminal it is broken between words; elsewhere
/// it is one line, for `grep`.
pub(crate) fn say(message: &str) {
    const MARK: &str = "streamsan> ";
    const FURTHER: &str = "  ";
    let Some(width) = columns_stderr() else {
        return eprint(&format!("{MARK}{}\n", streamsan_report::folded(message, usize::MAX)));
    };
    let text = streamsan_report::folded(message, width.saturating_sub(MARK.len() + FURTHER.len()));
    let lines = text.lines().enumerate();
    let said = lines.map(|(index, line)| format!("{MARK}{}{line}\n", if index > 0 { FURTHER } else { "" }));
    eprint(&said.collect::<String>());
}

/// Columns of the terminal that standard output goes to; `None`: it goes elsewhere.
pub(crate) fn columns_stdout() -> Option<usize> {
    columns(std::io::stdout())
}

/// Columns of the terminal that standard error goes to; `None`: it goes elsewhere.
pub(crate) fn columns_stderr() -> Option<usize> {
    columns(std::io::stderr())
}

fn columns(stream: impl std::os::fd::AsFd) -> Option<usize> {
    // A terminal that does not know its size says 0.
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0)?;
    Some(usize::from(size.ws_col).max(40))
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
