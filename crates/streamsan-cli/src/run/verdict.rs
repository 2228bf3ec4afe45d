//! After the program: read the trace, check, say what was found, choose the status.

use super::confirm::Suspect;
use super::traces::Traces;
use super::{End, nothing};
use crate::ExitStatus;
use crate::check::write_reports;
use crate::guard::quoted;
use crate::output::{colors_stderr, columns_stderr, eprint, say};
use crate::reports::{Judged, Look, read, render, say_mistakes};
use crate::wanted::Wanted;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use streamsan_check::{Gap, Level};
use streamsan_report::{ColorChoice, Format, tied};
use streamsan_trace::{CaptureKind, EventKind, GapReason, Header, Log, Tables};

/// How many findings are shown at the end of a run, where they push the program's own output away.
const SHOWN: usize = 20;

pub(super) fn with_check(
    traces: &Traces,
    end: End,
    error_exitcode: u8,
    color: ColorChoice,
    mut wanted: Wanted,
    reports: &[(PathBuf, Format)],
    suspects: &mut Vec<Suspect>,
) -> i32 {
    let check = |path: &Path| wanted.judge(path).map_err(|fault| fault.to_string());
    let mut judged = recorded(traces, end, check);
    let Some(first) = judged.first() else { return nothing(end) };
    let empty = |one: &Judged| one.report.coverage.operations == 0 && one.report.findings.is_empty();
    let outside = judged.iter().any(|one| is_outside_the_layer(&one.report.gaps, one.log.tables()));
    if judged.iter().all(empty) {
        return say_nothing(first.log.header(), &first.report.gaps, end, outside);
    }
    let incomplete = judged.iter().any(|one| is_incomplete(&one.report.gaps));
    // A launcher imports torch and does nothing with it.
    judged.retain(|one| !empty(one));
    say_end(end);
    say_mistakes(&judged);
    let failed = end.code() != 0;
    if failed && let Some(call) = judged.iter().find_map(refused) {
        say(&format!(
            "it may have failed because of streamsan, which does not model {call} yet; what it did until then was checked"
        ));
    }
    suspects.extend(judged.iter().flat_map(|one| Suspect::all(&one.report.findings, one.log.tables())));
    // The ranks of a job find the same.
    suspects.sort();
    suspects.dedup();
    let operations: u64 = judged.iter().map(|one| one.report.coverage.operations).sum();
    let errors = judged
        .iter()
        .any(|one| one.report.has_errors() || wanted.error_on_warning && one.report.has_warnings());
    let counts = counts(&judged);
    let status = match (end.code(), operations) {
        (0, 0) => ExitStatus::NothingCaptured.code(),
        (0, _) if errors => i32::from(error_exitcode),
        // What was seen is not all: nobody knows whether the rest is clean.
        (0, _) if outside || incomplete => ExitStatus::NothingCaptured.code(),
        (code, _) => code,
    };
    let files = judged.iter().map(|one| quoted(&one.file)).collect::<Vec<_>>().join(" ");
    let look = Look { color: colors_stderr(color), limit: Some(SHOWN), width: columns_stderr() };
    eprint(&format!("\n{}\n", render(&judged, Format::Full, look)));
    if outside {
        say(OUTSIDE);
    }
    wanted.say_idle();
    if let Err(fault) = write_reports(reports, &judged) {
        say(&fault.to_string());
    }
    let incomplete = if incomplete { " (events were lost, see above)" } else { "" };
    let until = if failed { "the program failed; until then: " } else { "" };
    say(&format!(
        "{until}{counts}{incomplete}. Again: {} (for programs: with --output-format json)",
        tied(&format!("streamsan check {files}"))
    ));
    status
}

/// Said if torch computed where nothing was computed.
const OUTSIDE: &str = "torch ran kernels in a thread or process that streamsan's torch layer did not see: they computed nothing, so the program's results are wrong (was Python started with -I or -E, or a thread from outside Python?)";

/// Whether torch launched a kernel where the torch layer was not installed: it was dropped, nothing was computed.
fn is_outside_the_layer(gaps: &[Gap], tables: &Tables) -> bool {
    let outside = |gap: &Gap| {
        gap.reason == GapReason::OpaqueKernel
            && tables.string(gap.detail).starts_with("torch kernel outside the torch layer")
    };
    gaps.iter().any(outside)
}

/// A call that was answered with an error because it is not modelled.
fn refused(judged: &Judged) -> Option<String> {
    // On a GPU such a call is made all the same.
    if judged.log.header().capture == CaptureKind::Cuda {
        return None;
    }
    let gap = judged.report.gaps.iter().find(|gap| gap.reason == GapReason::UnsupportedCall)?;
    Some(judged.log.tables().string(gap.detail).to_owned())
}

pub(super) fn without_check(traces: &Traces, end: End) -> i32 {
    let read = |path: &Path| {
        let log = read(path).map_err(|fault| fault.to_string())?;
        let (operations, gaps) = seen(log.as_ref());
        Ok((path.display().to_string(), log, operations, gaps))
    };
    let mut recorded = recorded(traces, end, read);
    let Some((_, log, _, gaps)) = recorded.first() else { return nothing(end) };
    if recorded.iter().all(|(_, _, operations, _)| *operations == 0) {
        return say_nothing(log.header(), gaps, end, is_outside_the_layer(gaps, log.tables()));
    }
    let incomplete = recorded.iter().any(|(_, _, _, gaps)| is_incomplete(gaps));
    recorded.retain(|(_, _, operations, _)| *operations > 0);
    say_end(end);
    let files = recorded.iter().map(|(file, ..)| quoted(file)).collect::<Vec<_>>().join(" ");
    let lost = if incomplete { ", but events were lost" } else { "" };
    say(&format!("recorded{lost}. Check it: {}", tied(&format!("streamsan check {files}"))));
    if incomplete && end.code() == 0 { ExitStatus::NothingCaptured.code() } else { end.code() }
}

/// Whether a part is missing: the disk was full, or the file is damaged. A trace that was not closed holds all that
/// happened until the program was killed.
pub(crate) fn is_incomplete(gaps: &[Gap]) -> bool {
    gaps.iter().any(|gap| matches!(gap.reason, GapReason::Lost | GapReason::Damaged))
}

/// Operations and gaps of a log that is not checked.
fn seen(log: &dyn Log) -> (u64, Vec<Gap>) {
    let (mut operations, mut gaps) = (0, Vec::new());
    log.read(&mut |event, _| match event.kind {
        EventKind::Op { .. } | EventKind::GraphLaunch { .. } => operations += 1,
        EventKind::Gap { reason, detail } => {
            let known = |gap: &&mut Gap| (gap.reason, gap.detail) == (reason, detail);
            match gaps.iter_mut().find(known) {
                Some(gap) => gap.count += 1,
                None => gaps.push(Gap { reason, detail, count: 1, first: event.number }),
            }
        }
        _ => {}
    });
    (operations, gaps)
}

/// Nothing was recorded: never taken for a clean result. A program that failed has said enough itself.
fn say_nothing(header: &Header, gaps: &[Gap], end: End, outside: bool) -> i32 {
    say_end(end);
    if end.code() != 0 {
        say("no CUDA operation was recorded before");
        return end.code();
    }
    let why = if gaps.iter().any(|gap| gap.reason == GapReason::Lost) {
        "the trace could not be written from the start: the disk is full, its file was closed or moved, or streamsan failed"
    } else if outside {
        OUTSIDE
    } else if header.versions.is_empty() {
        "the program did not import torch"
    } else {
        "the program imported torch and put nothing on a CUDA device"
    };
    no_operation(&[
        why,
        "what a child does after a fork is not recorded; processes that are started anew are",
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

/// What was recorded. Where there is nothing, or it cannot be read, the reason is said.
fn recorded<T>(traces: &Traces, end: End, mut read: impl FnMut(&Path) -> Result<T, String>) -> Vec<T> {
    let paths = traces.found();
    let mut values = Vec::new();
    let mut messages = Vec::new();
    for path in &paths {
        match read(path) {
            Ok(value) => values.push(value),
            Err(message) => messages.push(message),
        }
    }
    if paths.is_empty() || values.is_empty() {
        say_end(end);
    }
    for message in messages {
        eprint(&format!("\n{message}\n"));
    }
    if paths.is_empty() {
        no_operation(&[
            "no CUDA code was loaded (the program did not import torch), or recording could not start: then it said so above",
            "a command that is statically linked or clears its environment cannot be recorded: name the Python program itself",
        ]);
    }
    values
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

fn counts(judged: &[Judged]) -> String {
    let count = |level| {
        let findings = judged.iter().flat_map(|one| &one.report.findings);
        findings.filter(|finding| finding.level() == level).count()
    };
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
