//! Text as a stream program. Small programs are judged and checked, and both must agree.

use super::exercise::exercise;
use streamsan_sim::{Effort, Judge, Program, lower, parse};

/// States that the judge may visit: larger programs are not judged.
const STATES: u64 = 1 << 10;

/// Steps of programs that are judged.
const STEPS: usize = 16;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match parse("program", &text) {
        Ok(program) => {
            let written = program.to_string();
            let again = parse("program", &written).expect("a program that was written can be parsed");
            assert_eq!(again.to_string(), written, "a program is written in another way the second time");
            exercise(&lower(&program, "a.md", "test").trace);
            compare(&program);
        }
        Err(error) => {
            assert!(error.line >= 1 && !error.message.is_empty(), "{error:?}");
        }
    }
}

/// Sets the checker against the judge.
fn compare(program: &Program) {
    if program.steps.len() > STEPS {
        return;
    }
    let report = streamsan_check::check(&lower(program, "a.md", "test").trace, &Default::default());
    let verdict = Judge::new(Effort { states: STATES, schedules: 0, seed: 0 }).judge(program);
    // What could not be decided within the effort is said, and may differ.
    if !verdict.complete || !report.gaps.is_empty() {
        return;
    }
    let checked = agreement::checker_pairs(program);
    if let Some((found, what)) = agreement::disagreement(&verdict.found, &checked) {
        panic!(
            "disagreement on {found:?}: {what}\n{program}\njudge {:?}\nchecker {checked:?}",
            verdict.found
        );
    }
}

#[path = "../../crates/streamsan-check/tests/agreement/mod.rs"]
#[allow(unreachable_pub, dead_code)]
mod agreement;
