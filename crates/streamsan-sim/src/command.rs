//! What the hidden command `streamsan sim` prints: the judge's word on the tests of a file, or one schedule.

use crate::error::ProgramError;
use crate::judge::{Kind, Pair, Verdict, judge, witness};
use crate::markdown::{Test, parse_file};
use crate::program::Program;
use crate::replay::{Replay, replay, schedule_text};
use std::fmt::Write as _;

/// Steps of a program that is judged: the judge notes for each two of them which came first.
const MOST_STEPS: usize = 2000;

/// The text for `streamsan sim PATH [--test NAME] [--schedule LIST]`, where `text` is the file's content.
/// A name matches if it is a test's name or its last header.
///
/// # Errors
/// If the file or the schedule has a mistake, if no test has that name, if a schedule is given for more than one
/// test, or if a program is too large.
pub fn describe(
    path: &str,
    text: &str,
    name: Option<&str>,
    schedule: Option<&[usize]>,
) -> Result<String, ProgramError> {
    let error = |message: String| ProgramError { path: path.to_owned(), line: 0, message };
    let tests = parse_file(path, text)?;
    let matches = |test: &&Test| {
        name.is_none_or(|name| test.name == name || test.name.rsplit(" / ").next() == Some(name))
    };
    let chosen: Vec<&Test> = tests.iter().filter(matches).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        return Err(error(if names.is_empty() {
            "no sim block in this file".to_owned()
        } else {
            format!("no test with that name; there are:\n  {}", names.join("\n  "))
        }));
    }
    if let Some(test) = chosen.iter().find(|test| test.program.steps.len() > MOST_STEPS) {
        return Err(error(format!(
            "`{}` has {} steps and the judge takes up to {MOST_STEPS}: make it smaller, or use --check",
            test.name,
            test.program.steps.len()
        )));
    }
    let mut out = String::new();
    match schedule {
        None => {
            for (index, test) in chosen.iter().enumerate() {
                if index > 0 {
                    out.push('\n');
                }
                verdict_text(&mut out, test, &judge(&test.program));
            }
        }
        Some(schedule) => {
            let [only] = chosen[..] else {
                return Err(error("a schedule is for one test: name it with --test".to_owned()));
            };
            let done = replay(&only.program, schedule).map_err(|mistake| error(mistake.to_string()))?;
            let _ = writeln!(out, "{}:{}: {}", only.path, only.line, only.name);
            replay_text(&mut out, &only.program, &done);
        }
    }
    Ok(out)
}

/// One step with its line.
fn step_text(program: &Program, step: usize) -> String {
    format!("line {:<4} {}", program.steps[step].line, program.step_text(step))
}

fn verdict_text(out: &mut String, test: &Test, verdict: &Verdict) {
    let program = &test.program;
    let _ = writeln!(out, "{}:{}: {}", test.path, test.line, test.name);
    let how = if verdict.complete {
        format!("all schedules ({} states)", verdict.states)
    } else {
        format!("{} schedules of many: pairs can be missing", verdict.schedules)
    };
    if verdict.unordered.is_empty() {
        let _ = writeln!(out, "  no conflicting operations can swap; {how}");
    } else {
        let count = verdict.unordered.len();
        let noun = if count == 1 { "pair" } else { "pairs" };
        let _ =
            writeln!(out, "  {count} {noun} of conflicting operations can execute in either order; {how}");
    }
    for pair in &verdict.unordered {
        let _ = writeln!(out, "  (1) {}", step_text(program, pair.first));
        let _ = writeln!(out, "  (2) {}", step_text(program, pair.second));
        out.push_str(&witness_text(program, *pair, &test.path, &test.name));
    }
    for found in &verdict.found {
        let what = match found.kind {
            Kind::UseAfterFree => "(1) frees what (2) touches",
            Kind::FreedWhileInUse => "the block of (2) could have had the memory that (1) still uses",
            Kind::UseBeforeAllocation => {
                "(2) does not wait for the stream that owns its block, which is after (1)"
            }
            Kind::ReuseWhileInUse => "the block of (1) was freed before its owner stream was after (1)",
            Kind::Order | Kind::Host | Kind::HostFree => continue,
        };
        let _ = writeln!(out, "  {what}:");
        let _ = writeln!(out, "  (1) {}", step_text(program, found.pair.first));
        let _ = writeln!(out, "  (2) {}", step_text(program, found.pair.second));
    }
}

/// Two commands that show a pair in either order; empty if the operations are ordered.
pub fn witness_text(program: &Program, pair: Pair, path: &str, name: &str) -> String {
    let mut out = String::new();
    if let Some((in_order, reversed)) = witness(program, pair) {
        for (what, schedule) in [("(1) first", in_order), ("(2) first", reversed)] {
            let list = schedule_text(&schedule);
            let _ = writeln!(out, "      {what}: streamsan sim {path} --test \"{name}\" --schedule {list}");
        }
    }
    out
}

fn replay_text(out: &mut String, program: &Program, replay: &Replay) {
    let _ = writeln!(out, "  operations in the order in which they executed:");
    for step in &replay.order {
        let _ = writeln!(out, "    {}", step_text(program, *step));
    }
    let _ = writeln!(out, "  schedule: {}", schedule_text(&replay.schedule));
}
