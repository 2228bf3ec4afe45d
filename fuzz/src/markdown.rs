//! Text as a markdown file with stream programs. Its programs are found and shown, under a schedule too.

use streamsan_sim::{describe, parse_file};

/// Steps of programs that are shown: the judge tries all their schedules.
const STEPS: usize = 8;

pub(crate) fn run(input: &[u8]) {
    // The first bytes are a schedule.
    let (schedule, text) = input.split_at(input.len().min(4));
    let schedule: Vec<usize> =
        schedule.iter().map(|&step| if step == u8::MAX { usize::MAX } else { usize::from(step) }).collect();
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().count().max(1);
    match parse_file("a.md", &text) {
        Ok(tests) => {
            for test in &tests {
                assert!(test.line >= 1 && test.line as usize <= lines, "{}: line {}", test.name, test.line);
                let steps = test.program.steps.iter().map(|step| step.line as usize);
                assert!(steps.into_iter().all(|line| line > test.line as usize && line <= lines));
            }
            let small = tests.iter().all(|test| test.program.steps.len() <= STEPS);
            if let Some(first) = tests.first() {
                let _ = describe("a.md", &text, Some(&first.name), Some(&schedule));
                if small {
                    describe("a.md", &text, None, None).expect("programs that can be parsed can be judged");
                }
            }
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line as usize <= lines, "{error:?} of {lines} lines");
            assert!(!error.message.is_empty());
        }
    }
}
