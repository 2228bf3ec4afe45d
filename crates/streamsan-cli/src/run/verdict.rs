//! After the program: read the trace, check, say what was found, choose the status.

use super::{End, nothing};
use crate::ExitStatus;
use crate::guard::quoted;
use crate::output::{colors_stderr, eprint, say};
use crate::reports::{Judged, read, render};
use std::fmt::Write as _;
use std::path::Path;
use streamsan_check::{Config, Level, Report};
use streamsan_report::{ColorChoice, Format};
use streamsan_trace::{EventKind, GapReason, Trace};

/// How many findings are shown at the end of a run, where they push the program's own output away.
const SHOWN: usize = 20;

pub(super) fn with_check(trace: &Path, end: End, error_exitcode: u8, color: ColorChoice) -> i32 {
    let check = |path: &Path| Judged::read(path, &Config::default()).map_err(|fault| fault.to_string());
    let Some(judged) = recorded(trace, end, check) else { return nothing(end) };
    let report = &judged.report;
    if report.coverage.operations == 0 && report.findings.is_empty() {
        return say_nothing(&judged.trace, end);
    }
    say_end(end);
    let counts = counts(report);
    // Such a call was answered with an error.
    let refused = report.gaps.iter().find(|gap| gap.reason == GapReason::UnsupportedCall);
    let refused = refused.map(|gap| judged.trace.tables.string(gap.detail).to_owned());
    let status = match (end.code(), report.coverage.operations) {
        (0, 0) => ExitStatus::NothingCaptured.code(),
        (0, _) if report.has_errors() => i32::from(error_exitcode),
        (code, _) => code,
    };
    eprint(&format!("\n{}\n", render(&[judged], Format::Full, colors_stderr(color), Some(SHOWN))));
    if end.code() != 0
        && let Some(call) = refused
    {
        say(&format!("the program may have failed because of streamsan, which does not model {call} yet"));
    }
    let again = format!("streamsan check {}", quoted(&trace.display().to_string()));
    say(&format!("{counts}. Again, or in another format: {again}"));
    status
}

pub(super) fn without_check(trace: &Path, end: End) -> i32 {
    let Some(recorded) = recorded(trace, end, |path| read(path).map_err(|fault| fault.to_string())) else {
        return nothing(end);
    };
    if !recorded.events.iter().any(|event| matches!(event.kind, EventKind::Op { .. })) {
        return say_nothing(&recorded, end);
    }
    say_end(end);
    say(&format!("recorded. Check it: streamsan check {}", quoted(&trace.display().to_string())));
    end.code()
}

/// Nothing was recorded: never taken for a clean result. A program that failed has said enough itself.
fn say_nothing(trace: &Trace, end: End) -> i32 {
    say_end(end);
    if end.code() != 0 {
        say("no CUDA operation was recorded before");
        return end.code();
    }
    let why = if trace.header.versions.is_empty() {
        "the program did not import torch"
    } else {
        "the program imported torch and put nothing on a CUDA device"
    };
    no_operation(&[
        why,
        "what child processes did is not recorded: start streamsan for the one that uses torch",
    ]);
    ExitStatus::NothingCaptured.code()
}

fn no_operation(notes: &[&str]) {
    let mut text = "\nerror: no CUDA operation was recorded, so nothing was checked\n".to_owned();
    for note in notes {
        let _ = writeln!(text, "  = note: {note}");
    }
    text.push_str("help: streamsan doctor\n");
    eprint(&text);
}

/// What was recorded, or nothing, with the reason said.
fn recorded<T>(trace: &Path, end: End, read: impl Fn(&Path) -> Result<T, String>) -> Option<T> {
    let outcome = if trace.exists() { Some(read(trace)) } else { None };
    match outcome {
        Some(Ok(value)) => return Some(value),
        Some(Err(message)) => {
            say_end(end);
            eprint(&format!("\n{message}\n"));
        }
        None => {
            say_end(end);
            no_operation(&[
                "the recorder did not start: the command is statically linked, or clears its environment",
                "name the Python program itself: streamsan run SCRIPT",
            ]);
        }
    }
    None
}

fn say_end(end: End) {
    match end {
        End::Exited(0) => {}
        End::Exited(code) => say(&format!("the program exited with status {code}, which is kept")),
        End::Signaled(signal) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("an unknown signal");
            say(&format!("the program was ended by {name} (status {}, which is kept)", end.code()));
        }
    }
}

fn counts(report: &Report) -> String {
    let count = |level| report.findings.iter().filter(|finding| finding.rule.level() == level).count();
    let spoken = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => "no hazards in what was seen".to_owned(),
        (0, warnings) => format!("{} and no errors, see above", spoken(warnings, "warning")),
        (errors, 0) => format!("{}, see above", spoken(errors, "error")),
        (errors, warnings) => {
            format!("{} and {}, see above", spoken(errors, "error"), spoken(warnings, "warning"))
        }
    }
}
