//! The fix: code to paste if every stream has an expression where it goes, else words.

use crate::labels::{free_mark, second_mark};
use crate::names::Names;
use crate::numbers::{counted, grouped};
use crate::places::{Location, locate, locate_frame, locate_statement, primary_site};
use std::fmt::Write as _;
use streamsan_check::{Actor, Finding, Fix, FixAction, Report, Rule};
use streamsan_trace::{CaptureKind, Frame, FrameId, Log, OpKind, Reach, StreamId, VisibleStream};

/// A fix, ready to be written.
pub(crate) struct Advice<'a> {
    /// What to do, for people. Each once.
    steps: Vec<Step>,
    /// The code of all steps, one line each, if all of it can be written.
    pub(crate) code: Option<String>,
    /// Before which line.
    pub(crate) place: Option<Location<'a>>,
    /// Whether code before that line runs each time before what is there.
    is_reached: bool,
    /// The place if the line is not known.
    mark: &'static str,
    /// Whether it was checked.
    pub(crate) verified: bool,
    /// Other ways, with what they cost.
    pub(crate) alternatives: Vec<String>,
    /// Nothing can go between the two operations, as they are on one line: what to do about it.
    split: Option<String>,
    /// How many other findings are gone with this one.
    removes: usize,
    /// One wait does for several executions of the later operation: how many waits, and for how many.
    shared: Option<(u64, u64)>,
}

#[derive(PartialEq, Eq)]
struct Step {
    /// "make `side` wait".
    words: String,
    code: Option<String>,
}

/// What to do about a finding, in one line, if it is known.
pub fn fix_line(finding: &Finding, log: &dyn Log) -> Option<String> {
    let fix = finding.fix.as_ref()?;
    let blocks = [finding.memory, finding.old_memory].into_iter().flatten().map(|memory| memory.block);
    let names = Names::of_blocks(log, &blocks.collect());
    Some(crate::printable(&Advice::new(finding, fix, log, &names).line()))
}

impl<'a> Advice<'a> {
    pub(crate) fn new(finding: &Finding, fix: &Fix, log: &'a dyn Log, names: &Names<'_>) -> Self {
        let writer = Writer { finding, frame: fix.frame, bound: &fix.names, log, names };
        let mut steps: Vec<Step> = Vec::new();
        for action in &fix.actions {
            let step = writer.step(action);
            let same = |known: &&mut Step| match &step.code {
                Some(_) => known.code == step.code,
                None => *known == &step,
            };
            match steps.iter_mut().find(same) {
                // One expression may stand for several streams, as the variable of a loop does.
                Some(known) if known.words != step.words => {
                    "make each stream wait".clone_into(&mut known.words);
                }
                Some(_) => {}
                None => steps.push(step),
            }
        }
        let code: Option<Vec<&str>> = steps.iter().map(|step| step.code.as_deref()).collect();
        let split = split(finding, fix, log).map(|words| match writer.after_first(fix) {
            Some(after) if words == INSIDE && !frees_too_early(finding) => after,
            _ => words.to_owned(),
        });
        let reach =
            fix.frame.and_then(|frame| log.tables().placement(frame)).map(|placement| placement.reach);
        let is_reached = reach.is_none_or(Reach::is_after_line);
        let code = code.filter(|lines| split.is_none() && !lines.is_empty() && is_reached);
        let at_free = frees_too_early(finding) && !fix.is_at_reuse;
        let mark = if at_free { free_mark(finding) } else { second_mark(finding).unwrap_or("it") };
        Self {
            code: code.map(|lines| lines.join("\n")),
            steps,
            place: fix.frame.and_then(|frame| locate_statement(log, frame)),
            is_reached,
            mark,
            verified: fix.verified,
            alternatives: if split.is_some() { Vec::new() } else { writer.alternatives(fix) },
            shared: shared(finding, fix, log).filter(|_| split.is_none()),
            split,
            removes: finding.removes,
        }
    }

    /// ``before train.py:41, make `side` wait: side.wait_stream(torch.cuda.default_stream())``.
    ///
    /// Several steps have a line each.
    pub(crate) fn line(&self) -> String {
        if let Some(split) = &self.split {
            return split.clone();
        }
        let place = self.place.as_ref().map_or_else(|| self.mark.to_owned(), Location::line);
        let before = if self.is_reached { "before" } else { "each time before the expression at" };
        match self.steps.as_slice() {
            [Step { words, code: Some(code) }] => format!("{before} {place}, {words}: {code}"),
            [Step { words, code: None }] => format!("{before} {place}, {words}"),
            steps => {
                let mut text = format!("{before} {place}, all of these are needed:");
                for step in steps {
                    text.push('\n');
                    text.push_str(step.code.as_ref().unwrap_or(&step.words));
                }
                text
            }
        }
    }

    /// What is known of the fix.
    pub(crate) fn standing(&self) -> String {
        let standing = if self.split.is_some() {
            "not confirmed: run again after the change"
        } else if self.verified {
            "checked: with the fixes of this report in place this finding is gone and nothing new appears"
        } else {
            "not confirmed: this may be only a part of what is missing; run again after the change"
        };
        let mut standing = standing.to_owned();
        if let Some((waits, turns)) = self.shared {
            let enough = if waits == 1 {
                "1 is enough: after the last (1)".to_owned()
            } else {
                format!("{} are enough: each after the last (1) so far", grouped(waits))
            };
            let _ = write!(
                standing,
                "\nthere it waits {} times, and {enough}, before the code that repeats {}",
                grouped(turns),
                self.mark
            );
        }
        if self.removes > 0 {
            let more = counted(self.removes as u64, "more finding", "more findings");
            let _ = write!(standing, "\nthis wait alone also removes {more}");
        }
        standing
    }
}

/// The waits that are enough, and the executions of the later operation, if it is repeated without the first one, as in an
/// inner loop, and the fix goes to its line.
fn shared(finding: &Finding, fix: &Fix, log: &dyn Log) -> Option<(u64, u64)> {
    let occurrences = &finding.occurrences;
    let (frame, _) = log.tables().user_frame(finding.second.site)?;
    // In a comprehension the operation is repeated, and the line before it is not.
    let once = log.tables().placement(frame)?.reach == Reach::Once && fix.frame == Some(frame);
    let repeated = occurrences.waits < occurrences.turns && !occurrences.interleaved && once;
    (repeated && !frees_too_early(finding)).then_some((occurrences.waits, occurrences.turns))
}

/// ``gone with the fix before train.py:41 (of the finding at train.py:41, above)``, if that is so.
pub(crate) fn gone_with(finding: &Finding, report: &Report, log: &dyn Log) -> Option<String> {
    let root = report.findings.get(finding.removed_by?)?;
    let shown = locate(log, primary_site(root)).map_or_else(String::new, |at| format!(" at {}", at.line()));
    let place = root.fix.as_ref().and_then(|fix| locate_statement(log, fix.frame?));
    Some(match place {
        Some(place) => format!("gone with the fix before {} (of the finding{shown}, above)", place.line()),
        None => format!("gone with the fix of the finding{shown}, above"),
    })
}

const INSIDE: &str = "(1) is issued by this line too: split it and wait between the two parts";

/// What to do instead if a wait before the line comes too early: the line itself issues both operations.
fn split(finding: &Finding, fix: &Fix, log: &dyn Log) -> Option<&'static str> {
    let tables = log.tables();
    let statement = |site| tables.user_frame(site).and_then(|(frame, _)| tables.statement(frame));
    let first = locate(log, finding.first?.site)?;
    let second = locate(log, finding.second.site)?;
    let (first_line, second_line) = (statement(finding.first?.site)?, statement(finding.second.site)?);
    let place = tables.statement(fix.frame?)?;
    let mut stack = tables.stack(finding.first?.site);
    let inside = place.1 > 0 && stack.any(|(frame, _)| tables.statement(frame) == Some(place));
    if inside && !fix.verified && (frees_too_early(finding) || first_line != place) {
        return Some(INSIDE);
    }
    if first.frame.line == 0 || first_line != second_line || place != second_line {
        return None;
    }
    let with_host = matches!(finding.rule, Rule::Ss301 | Rule::Ss302 | Rule::Ss303);
    // What ends further left is evaluated first: then the pair is of two turns of a loop, and a wait before
    // the line comes between them.
    let end = |at: &Location<'_>| (at.frame.end_line, at.frame.end_column);
    let next_turn = first.frame.column > 0 && second.frame.column > 0 && end(&second) < end(&first);
    match (with_host, fix.verified) {
        (true, verified) if !(verified && next_turn) => Some(
            "both happen on this line: split it and wait between the two parts, or leave out `non_blocking=True`",
        ),
        (false, false) => Some("both happen on this line: split it and wait between the two parts"),
        _ => None,
    }
}

/// Whether the free has to wait, rather than the later operation.
fn frees_too_early(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::Ss202 | Rule::Ss203)
}

/// Writes the steps of one fix.
struct Writer<'a> {
    finding: &'a Finding,
    /// Where the code goes.
    frame: Option<FrameId>,
    /// Expressions for streams that are right there.
    bound: &'a [VisibleStream],
    log: &'a dyn Log,
    names: &'a Names<'a>,
}

impl Writer<'_> {
    fn is_sim(&self) -> bool {
        self.log.header().capture == CaptureKind::Sim
    }

    /// Whether the first operation is a collective, whose stream has no name in the program.
    fn is_after_collective(&self) -> bool {
        let collective = self.finding.first.is_some_and(|first| first.kind == Some(OpKind::Collective));
        collective && matches!(self.finding.rule, Rule::Ss601 | Rule::Ss602)
    }

    fn step(&self, action: &FixAction) -> Step {
        let code = self.code(action);
        Step { words: self.words(action, code.is_some()), code }
    }

    /// ``(1) happens inside this line: after its call at hooks.py:14, make the default stream wait: …``, for a hook or another
    /// function that the line calls: nobody can split a library's call.
    fn after_first(&self, fix: &Fix) -> Option<String> {
        let site = self.finding.first?.site;
        let (frame, _) = self.log.tables().user_frame(site)?;
        let [FixAction::WaitStream { waiter, awaited, .. }] = *fix.actions.as_slice() else { return None };
        let there = Writer { frame: Some(frame), bound: &fix.names_at_first, ..*self };
        // Which stream is current after (1) is not known: (1) may stand in a block of its stream.
        let action = FixAction::WaitStream { waiter, awaited, waiter_is_current: false };
        let Step { words, code } = there.step(&action);
        let place = locate_frame(self.log, frame)?.line();
        let code = code.map_or_else(String::new, |code| format!(": {code}"));
        Some(format!("(1) happens inside this line: after its call at {place}, {words}{code}"))
    }

    fn words(&self, action: &FixAction, has_code: bool) -> String {
        let names = self.names;
        let visible =
            |stream| self.frame.is_some_and(|frame| names.expression(self.bound, frame, stream).is_some());
        let spoken = |stream| {
            if self.is_sim() || visible(stream) {
                names.stream(stream)
            } else {
                names.stream_described(stream)
            }
        };
        match *action {
            FixAction::WaitStream { waiter, awaited, .. } if self.is_sim() => {
                format!("record an event in {} and let {} wait for it", spoken(awaited), spoken(waiter))
            }
            FixAction::WaitStream { waiter, .. } if !has_code && self.is_after_collective() => {
                let wait = "call `work.wait()` of the collective at (1)";
                format!("{wait} where {} is the current stream", spoken(waiter))
            }
            FixAction::WaitStream { .. } if has_code && frees_too_early(self.finding) => {
                "make the owner stream wait".to_owned()
            }
            FixAction::WaitStream { waiter, .. } if has_code => format!("make {} wait", names.stream(waiter)),
            FixAction::WaitStream { waiter, awaited, .. } => {
                format!("make {} wait for {}", spoken(waiter), spoken(awaited))
            }
            FixAction::SynchronizeStream { .. } if has_code => "let the host wait".to_owned(),
            FixAction::SynchronizeStream { awaited } => format!("let the host wait for {}", spoken(awaited)),
        }
    }

    fn code(&self, action: &FixAction) -> Option<String> {
        if self.is_sim() {
            return None;
        }
        match *action {
            FixAction::WaitStream { waiter, awaited, waiter_is_current } => {
                let awaited = self.expression(awaited)?;
                let current = waiter_is_current
                    .then(|| format!("torch.cuda.current_stream({})", self.names.device_argument(waiter)));
                let named = self.expression(waiter);
                // One name for both: a parameter that is the one stream in one call and the other in the next.
                if named.as_ref() == Some(&awaited) {
                    return None;
                }
                let waiter = named.or(current)?;
                Some(format!("{waiter}.wait_stream({awaited})"))
            }
            FixAction::SynchronizeStream { awaited } => {
                Some(format!("{}.synchronize()", self.expression(awaited)?))
            }
        }
    }

    /// A stream where the fix goes.
    fn expression(&self, stream: StreamId) -> Option<String> {
        self.expression_in(self.bound, self.frame, stream)
    }

    fn expression_in(
        &self,
        names: &[VisibleStream],
        frame: Option<FrameId>,
        stream: StreamId,
    ) -> Option<String> {
        match self.names.legacy_default(stream) {
            Some(_) => Some(format!("torch.cuda.default_stream({})", self.names.device_argument(stream))),
            None => self.names.expression(names, frame?, stream).map(str::to_owned),
        }
    }

    fn alternatives(&self, fix: &Fix) -> Vec<String> {
        let mut alternatives = Vec::new();
        match self.finding.rule {
            Rule::Ss202 | Rule::Ss203 => alternatives.extend(self.record_stream(fix)),
            Rule::Ss301 | Rule::Ss302 | Rule::Ss303 => alternatives.extend(self.event(fix)),
            _ => {}
        }
        alternatives
    }

    /// `record_stream` with its cost, if the tensor has a name where the fix goes.
    fn record_stream(&self, fix: &Fix) -> Option<String> {
        if self.is_sim() {
            return None;
        }
        let old = self.finding.old_memory?;
        let tensor = self.names.block_expression(old.block)?;
        let (_, assigned) = self.log.tables().user_frame(old.alloc_site)?;
        // The tensor is known by its name from its allocation on: the place is the use, where it surely is.
        let first = self.finding.first?;
        let same_function =
            |frame: &Frame| (frame.file, frame.function) == (assigned.file, assigned.function);
        let (frame, _) = self.log.tables().stack(first.site).find(|(_, frame)| same_function(frame))?;
        let place = locate_frame(self.log, frame)?.line();
        let mut calls: Vec<String> = Vec::new();
        let mut passed: Vec<String> = Vec::new();
        for action in &fix.actions {
            let FixAction::WaitStream { awaited, .. } = *action else { continue };
            let call = format!(
                "{tensor}.record_stream({})",
                self.expression_in(&fix.names_at_first, Some(frame), awaited)?
            );
            if !calls.contains(&call) {
                calls.push(call);
                passed.push(self.names.stream(awaited));
            }
        }
        if calls.is_empty() {
            return None;
        }
        let (calls, passed) = (calls.join("; "), passed.join(" and "));
        let works = if fix.actions.len() > 1 { "also work" } else { "also works" };
        Some(format!(
            "`{calls}` right after {place} {works}; torch then keeps the block until it sees that {passed} got this far, so more memory is in use"
        ))
    }

    /// An event waits for less than the whole stream.
    fn event(&self, fix: &Fix) -> Option<String> {
        let first = self.finding.first?;
        let Actor::Stream(stream) = first.actor else { return None };
        let frame = self.log.tables().user_frame(first.site).map(|(frame, _)| frame);
        let expression = self.expression_in(&fix.names_at_first, frame, stream).filter(|_| !self.is_sim());
        let (stream, here) = (self.names.stream(stream), second_mark(self.finding)?);
        Some(match expression {
            Some(expression) => format!(
                "an event waits for less than all of {stream}: `event = {expression}.record_event()` right after (1), `event.synchronize()` before {here}"
            ),
            None => format!(
                "an event waits for less than all of {stream}: record it right after (1), synchronize it before {here}"
            ),
        })
    }
}
