//! A bug in streamsan is said to be one.

use crate::{ExitStatus, TOOL, output};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex};

/// Runs `body`; a panic becomes a message that can be reported, and exit status 2.
pub(crate) fn guarded(args: &[OsString], body: impl FnOnce() -> i32) -> i32 {
    let details = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&details);
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if let Ok(mut details) = sink.lock() {
            *details = panic.to_string();
        }
    }));
    let outcome = catch_unwind(AssertUnwindSafe(body));
    // The hook is the process's; Python may have its own.
    set_hook(before);
    outcome.unwrap_or_else(|_| {
        let details = details.lock().map(|details| details.clone()).unwrap_or_default();
        output::error(&message(&details, args));
        ExitStatus::Usage.code()
    })
}

fn message(details: &str, args: &[OsString]) -> String {
    let command: Vec<String> = args.iter().map(|argument| quoted(&argument.to_string_lossy())).collect();
    format!(
        "error: this is a bug in streamsan, not in your program\n  version: {TOOL}\n  command: {}\n  details: {}\nhelp: please report these lines, with the trace if there is one",
        command.join(" "),
        details.replace('\n', " ")
    )
}

/// An argument as a shell would take it.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@%+".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{guarded, message, quoted};
    use std::ffi::OsString;

    #[test]
    fn panic_becomes_status_2() {
        assert_eq!(guarded(&[], || panic!("a broken invariant")), 2);
        assert_eq!(guarded(&[], || 7), 7);
    }

    #[test]
    fn message_has_version_and_command() {
        let args = ["streamsan", "check", "my run.sstrace"].map(OsString::from);
        let text = message("panicked at x.rs:1:\nboom", &args);
        assert!(text.starts_with("error: this is a bug in streamsan"), "{text}");
        assert!(text.contains("version: streamsan 0."), "{text}");
        assert!(text.contains("command: streamsan check 'my run.sstrace'\n"), "{text}");
        assert!(text.contains("panicked at x.rs:1: boom"), "{text}");
    }

    #[test]
    fn quotes_as_a_shell_needs() {
        assert_eq!([quoted("a.py"), quoted(""), quoted("it's")], ["a.py", "''", r"'it'\''s'"]);
    }
}
