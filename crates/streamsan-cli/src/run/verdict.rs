//! After the program: read the trace, check, say what was found, choose the status.

use super::{End, nothing};
use crate::guard::quoted;
use crate::output::{colors_stderr, eprint, say};
use crate::reports::{Judged, read, render};
use std::path::Path;
use streamsan_check::{Config, Level, Report};
use streamsan_report::{ColorChoice, Format};
use streamsan_trace::GapReason;

pub(super) fn with_check(trace: &Path, end: End, error_exitcode: u8, color: ColorChoice) -> i32 {
    say_end(end);
    let Some(judged) =
        recorded(trace, |path| Judged::read(path, &Config::default()).map_err(|fault| fault.to_string()))
    else {
        return nothing(end);
    };
    let report = &judged.report;
    let (operations, errors) = (report.coverage.operations, report.has_errors());
    let counts = counts(report);
    // Such a call was answered with an error.
    let refused = report.gaps.iter().find(|gap| gap.reason == GapReason::UnsupportedCall);
    let refused = refused.map(|gap| judged.trace.tables.string(gap.detail).to_owned());
    eprint(&format!("\n{}\n", render(&[judged], Format::Full, colors_stderr(color))));
    let again = format!("streamsan check {}", quoted(&trace.display().to_string()));
    if operations == 0 {
        say("nothing was recorded, so this is no clean result");
        return nothing(end);
    }
    if end.code() != 0
        && let Some(call) = refused
    {
        say(&format!("the program may have failed because of streamsan, which does not model {call} yet"));
    }
    say(&format!("{counts}. Again, or in another format: {again}"));
    match end.code() {
        0 if errors => i32::from(error_exitcode),
        code => code,
    }
}

pub(super) fn without_check(trace: &Path, end: End) -> i32 {
    say_end(end);
    let Some(recorded) = recorded(trace, |path| read(path).map_err(|fault| fault.to_string())) else {
        return nothing(end);
    };
    let is_operation =
        |event: &streamsan_trace::Event| matches!(event.kind, streamsan_trace::EventKind::Op { .. });
    if !recorded.events.iter().any(is_operation) {
        say("no CUDA operation was recorded. What can be the reason: streamsan doctor");
        return nothing(end);
    }
    say(&format!("recorded. Check it: streamsan check {}", quoted(&trace.display().to_string())));
    end.code()
}

/// What was recorded, or nothing, with the reason said.
fn recorded<T>(trace: &Path, read: impl Fn(&Path) -> Result<T, String>) -> Option<T> {
    if !trace.exists() {
        eprint(
            "\nerror: no CUDA operation was recorded\n  \
             = note: the program never started the recorder: it did not load torch's CUDA runtime,\n          \
             or did so only in child processes that were started with another environment\nhelp: streamsan doctor\n\n",
        );
        return None;
    }
    match read(trace) {
        Ok(value) => Some(value),
        Err(message) => {
            eprint(&format!("\n{message}\n"));
            None
        }
    }
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
