//! `streamsan run --live`: findings are said while the program runs, and can end it.

mod support;

use std::time::{Duration, Instant};
use support::{BAD, GOOD, Said, Workplace};

fn run(program: &str, rest: &str, options: &str) -> Said {
    let workplace = Workplace::new();
    workplace.trace("recorded", program);
    // It appears at once, as the trace of a process does.
    workplace.write("train.py", format!("cp recorded new; mv new \"$STREAMSAN_TRACE\"\n{rest}\n"));
    workplace.run(&format!("run {options} -o run.sstrace train.py"))
}

#[test]
fn a_finding_is_said_while_the_program_runs() {
    let said = run(BAD, "sleep 1; echo the program ends >&2", "--live");
    assert_eq!(said.code, 66, "{}", said.stderr);
    let live = "streamsan> program.sim:4: error[SS101] unordered read-after-write on `x`: default #";
    let fix = "streamsan>   fix, not verified yet: before program.sim:4, record an event";
    let at = |text: &str| said.stderr.find(text).unwrap_or_else(|| panic!("no {text} in {}", said.stderr));
    assert!(at(live) < at(fix) && at(fix) < at("the program ends"), "{}", said.stderr);
    assert!(at("the program ends") < at("\nerror[SS101]"), "{}", said.stderr);
}

#[test]
fn the_program_is_ended_at_the_first_error() {
    let start = Instant::now();
    let said = run(BAD, "exec sleep 600", "--halt-on-error");
    assert!(start.elapsed() < Duration::from_secs(300), "it ran on");
    assert_eq!(said.code, 66, "{}", said.stderr);
    assert!(said.stderr.contains("streamsan> ending the program at the first error (--halt-on-error)\n"));
    assert!(said.stderr.contains("\nerror[SS101]"), "{}", said.stderr);
    assert!(!said.stderr.contains("SIGTERM"), "{}", said.stderr);
}

#[test]
fn a_clean_program_is_left_alone() {
    let said = run(GOOD, "sleep 0.3; exit 3", "--halt-on-error");
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(!said.stderr.contains("ending the program"), "{}", said.stderr);
}

#[test]
fn what_is_no_trace_is_said_once_and_the_program_goes_on() {
    let workplace = Workplace::new();
    workplace.write("train.py", "echo something else > \"$STREAMSAN_TRACE\"; sleep 0.4; echo done");
    let said = workplace.run("run --live -o run.sstrace train.py");
    assert_eq!(said.stdout, "done\n");
    assert_eq!(said.stderr.matches("cannot check run.sstrace live: it is not a streamsan trace").count(), 1);
}

#[test]
fn what_is_not_wanted_does_not_end_the_program() {
    let configured = [
        "[tool.streamsan]\nignore = [\"SS101\"]\n",
        "[tool.streamsan]\nwarn = [\"SS101\"]\n",
        "[tool.streamsan.per-file-ignores]\n\"*.sim\" = [\"SS101\"]\n",
    ];
    for text in configured {
        let workplace = Workplace::new();
        workplace.trace("recorded", BAD);
        workplace.write("pyproject.toml", text);
        workplace.write("train.py", "cp recorded new; mv new \"$STREAMSAN_TRACE\"; sleep 0.5; exit 3");
        let said = workplace.run("run --halt-on-error -o run.sstrace train.py");
        assert_eq!(said.code, 3, "{text}{}", said.stderr);
        assert!(!said.stderr.contains("ending the program"), "{text}{}", said.stderr);
    }
}
