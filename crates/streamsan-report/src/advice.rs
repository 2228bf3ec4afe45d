//! The fix: code to paste if every stream has an expression where it goes, else words.

use crate::names::Names;
use crate::places::{Location, locate_frame};
use streamsan_check::{Fix, FixAction};
use streamsan_trace::{CaptureKind, StreamId, Trace};

/// A fix, ready to be written.
pub(crate) struct Advice<'a> {
    /// What to do, for people: "make `side` wait".
    pub(crate) words: String,
    /// The line of code, if it can be written.
    pub(crate) code: Option<String>,
    /// Before which line.
    pub(crate) place: Option<Location<'a>>,
    /// Whether it was checked.
    pub(crate) verified: bool,
}

impl<'a> Advice<'a> {
    pub(crate) fn new(fix: &Fix, trace: &'a Trace, names: &Names<'_>) -> Self {
        let place = fix.frame.and_then(|frame| locate_frame(trace, frame));
        let code = code(fix, trace, names);
        let words = words(fix, code.is_some(), trace, names);
        Self { words, code, place, verified: fix.verified }
    }

    /// `before train.py:41, make `side` wait: side.wait_stream(torch.cuda.default_stream())`.
    pub(crate) fn line(&self) -> String {
        let place = self.place.as_ref().map_or_else(|| "(2)".to_owned(), Location::line);
        match &self.code {
            Some(code) => format!("before {place}, {}: {code}", self.words),
            None => format!("before {place}, {}", self.words),
        }
    }

    /// What is known of the fix.
    pub(crate) fn standing(&self) -> &'static str {
        if self.verified {
            "checked: with the fixes of this report in place this finding is gone and nothing new appears"
        } else {
            "not confirmed: this may be only a part of what is missing; run again after the change"
        }
    }
}

fn words(fix: &Fix, has_code: bool, trace: &Trace, names: &Names<'_>) -> String {
    let sim = trace.header.capture == CaptureKind::Sim;
    match fix.action {
        FixAction::WaitStream { waiter, awaited, .. } if sim => {
            format!(
                "record an event in {} and let {} wait for it",
                names.stream(awaited),
                names.stream(waiter)
            )
        }
        FixAction::WaitStream { waiter, .. } if has_code => format!("make {} wait", names.stream(waiter)),
        FixAction::WaitStream { waiter, awaited, .. } => {
            let visible = |stream| fix.frame.is_some_and(|frame| names.expression(frame, stream).is_some());
            let spoken = |stream| {
                if visible(stream) { names.stream(stream) } else { names.stream_described(stream) }
            };
            format!("make {} wait for {}", spoken(waiter), spoken(awaited))
        }
        FixAction::SynchronizeStream { .. } if has_code => "let the host wait".to_owned(),
        FixAction::SynchronizeStream { awaited } => {
            format!("let the host wait for {}", names.stream_described(awaited))
        }
    }
}

fn code(fix: &Fix, trace: &Trace, names: &Names<'_>) -> Option<String> {
    if trace.header.capture == CaptureKind::Sim {
        return None;
    }
    let default = |stream: StreamId| {
        let argument = names.device_argument(stream);
        names.legacy_default(stream).map(|_| format!("torch.cuda.default_stream({argument})"))
    };
    let expression_for = |stream: StreamId| {
        default(stream).or_else(|| names.expression(fix.frame?, stream).map(str::to_owned))
    };
    match fix.action {
        FixAction::WaitStream { waiter, awaited, waiter_is_current } => {
            let awaited = expression_for(awaited)?;
            let current = waiter_is_current
                .then(|| format!("torch.cuda.current_stream({})", names.device_argument(waiter)));
            let waiter = expression_for(waiter).or(current)?;
            Some(format!("{waiter}.wait_stream({awaited})"))
        }
        FixAction::SynchronizeStream { awaited } => {
            Some(format!("{}.synchronize()", expression_for(awaited)?))
        }
    }
}
