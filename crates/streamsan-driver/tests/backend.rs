//! The runtime's back end for GPUs on the virtual device: random programs and pipelines give what they give when run
//! serially, also with copies that are late; the recorder sees them, and the checker finds nothing in them, and
//! something when any needed wait is left out. Each run is a process of its own, with both libraries in it.
//!
//! `STREAMSAN_RUNTIME_PROGRAMS` and `STREAMSAN_RUNTIME_SEED` choose how many and which.

#[path = "backend/child.rs"]
mod child;
#[path = "../../streamsan-runtime/tests/random/program.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use streamsan_check::{Config, Report, check};
use streamsan_trace::EventKind;
use tempfile::TempDir;

/// Starts this file's [`child`] with both libraries.
struct Runs {
    folder: TempDir,
}

impl Runs {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::os::unix::fs::symlink(built("libstreamsan_driver.so"), folder.path().join("libcuda.so.1"))
            .unwrap();
        Self { folder }
    }

    /// Runs a role with environment variables; gives its last line, and what it recorded.
    fn run(&self, role: &str, variables: &[(&str, &str)]) -> (String, PathBuf) {
        let trace = self.folder.path().join("run.sstrace");
        let _ = std::fs::remove_file(&trace);
        let output = self.command(role, variables, &trace);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{role} {variables:?}:\n{text}\n{errors}");
        let answer = text.lines().find_map(|line| line.strip_prefix("answer: "));
        (answer.unwrap_or_else(|| panic!("{role} did not run:\n{text}")).to_owned(), trace)
    }

    fn command(&self, role: &str, variables: &[(&str, &str)], trace: &Path) -> Output {
        let inherited = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        Command::new(std::env::current_exe().unwrap())
            .args(["child::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", built("libstreamsan_device.so"))
            .env("LD_LIBRARY_PATH", format!("{}:{inherited}", self.folder.path().display()))
            .env("STREAMSAN_TRACE", trace)
            .env("STREAMSAN_TEST_ROLE", role)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }
}

/// A library beside this test's program.
fn built(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn report(trace: &Path) -> Report {
    let trace = streamsan_trace::file::read(trace).unwrap();
    assert!(trace.events.iter().any(|event| matches!(event.kind, EventKind::Op { .. })), "nothing recorded");
    check(&trace, &Config::default())
}

/// Runs a role whole, then with each needed wait left out.
fn each_wait_is_needed(runs: &Runs, role: &str, variables: &[(&str, &str)]) -> u64 {
    let (needed, trace) = runs.run(role, variables);
    let found = report(&trace);
    assert!(found.findings.is_empty(), "{role} {variables:?}: {:#?}", found.findings);
    let needed: Vec<&str> = needed.split_whitespace().collect();
    for wait in &needed {
        let broken = [variables, &[("STREAMSAN_TEST_LEFT_OUT", wait)]].concat();
        let (_, trace) = runs.run(role, &broken);
        assert!(report(&trace).has_errors(), "{role} {variables:?}, without wait {wait}");
    }
    needed.len() as u64
}

#[test]
fn random_programs_are_right_and_clean() {
    let runs = Runs::new();
    let programs = number("STREAMSAN_RUNTIME_PROGRAMS", 300).to_string();
    let seed = number("STREAMSAN_RUNTIME_SEED", 0).to_string();
    for late in ["0", "1"] {
        let variables = [
            ("STREAMSAN_TEST_SEED", seed.as_str()),
            ("STREAMSAN_TEST_PROGRAMS", &programs),
            ("STREAMSAN_DELAY_COPIES", late),
        ];
        let (_, trace) = runs.run("programs", &variables);
        let found = report(&trace);
        assert!(found.findings.is_empty(), "{:#?}", found.findings);
        assert!(found.gaps.is_empty(), "{:#?}", found.gaps);
    }
}

#[test]
fn every_wait_of_a_program_is_needed() {
    let runs = Runs::new();
    let (programs, first) =
        (number("STREAMSAN_RUNTIME_PROGRAMS", 300) / 30, number("STREAMSAN_RUNTIME_SEED", 0));
    let mut left_out = 0;
    for seed in first..first + programs {
        let seed = seed.to_string();
        left_out += each_wait_is_needed(&runs, "program", &[("STREAMSAN_TEST_SEED", &seed)]);
    }
    println!("{left_out} waits left out of {programs} programs");
    assert!(left_out > programs, "too few waits to say anything: {left_out}");
}

#[test]
fn every_wait_of_a_pipeline_is_needed() {
    let runs = Runs::new();
    for slots in ["1", "2", "3"] {
        assert!(each_wait_is_needed(&runs, "pipeline", &[("STREAMSAN_TEST_SLOTS", slots)]) > 5);
    }
}

/// A wrong value where a wait is missing and copies are late.
#[test]
fn a_missing_wait_shows_as_a_wrong_value() {
    let runs = Runs::new();
    let variables = [("STREAMSAN_DELAY_COPIES", "1"), ("STREAMSAN_TEST_LEFT_OUT", "0")];
    assert_eq!(runs.run("values", &variables).0, "old");
    assert_eq!(runs.run("values", &variables[..1]).0, "new");
}

#[test]
fn the_callers_context_is_left_alone() {
    let (answer, _) = Runs::new().run("context", &[("STREAMSAN_DEVICE_COUNT", "2")]);
    assert_eq!(answer, "left alone");
}

/// An operation is in its stream, and whatever follows waits for it, although no event could be recorded behind it.
#[test]
fn what_has_no_event_is_waited_for_all_the_same() {
    let runs = Runs::new();
    for call in 1..8 {
        let fault = format!("cuEventRecord:{call}:999");
        for variables in [
            vec![("STREAMSAN_DRIVER_FAULT", fault.as_str())],
            vec![("STREAMSAN_DRIVER_FAULT", fault.as_str()), ("STREAMSAN_DELAY_COPIES", "1")],
        ] {
            let (_, trace) = runs.run("unrecorded", &variables);
            let found = report(&trace);
            assert!(found.findings.is_empty(), "{variables:?}: {:#?}", found.findings);
        }
    }
    let all = [("STREAMSAN_DRIVER_FAULT", "cuEventCreate:1+:2"), ("STREAMSAN_DELAY_COPIES", "1")];
    let found = report(&runs.run("unrecorded", &all).1);
    assert!(found.findings.is_empty(), "{:#?}", found.findings);
}

#[test]
fn memory_that_runs_out_in_a_run_costs_slots_and_no_item() {
    let runs = Runs::new();
    // Three slots, then the first buffer of the function.
    for (fault, slots) in
        [("cuMemAlloc_v2:4:2", "2"), ("cuMemAlloc_v2:3:2", "2"), ("cuMemHostAlloc:5:2", "2")]
    {
        let (answer, trace) = runs.run("short", &[("STREAMSAN_DRIVER_FAULT", fault)]);
        assert_eq!(answer, slots, "{fault}");
        let found = report(&trace);
        assert!(found.findings.is_empty(), "{fault}: {:#?}", found.findings);
    }
}

#[test]
fn failures_of_the_driver_are_said() {
    let runs = Runs::new();
    for (fault, said) in [
        ("cuMemAlloc_v2:1+:2", "out of device memory: 64 bytes wanted"),
        ("cuMemHostAlloc:1+:2", "out of page-locked host memory: 64 bytes wanted"),
        ("cuMemHostRegister_v2:1:1", "80 bytes of host memory cannot be page-locked: invalid argument: "),
        ("cuMemHostRegister_v2:1:2", "out of page-locked host memory: 80 bytes wanted"),
        ("cuMemcpyAsync:1:719", "operation `copy` in stream `s` failed: "),
        ("cuStreamCreate:1:999", "operation `creation` in stream `s` failed: unknown error"),
    ] {
        let (answer, _) = runs.run("failures", &[("STREAMSAN_DRIVER_FAULT", fault)]);
        assert!(answer.starts_with(said), "{fault}: {answer}");
    }
}
