//! Random programs on the CPU back end, with delays, against the same programs run serially; the checker reads
//! what was done. With any one needed wait left out, the checker must say so.
//!
//! `STREAMSAN_RUNTIME_PROGRAMS` and `STREAMSAN_RUNTIME_SEED` choose how many and which. `--features shuttle` runs each in a
//! schedule that Shuttle draws, many times as fast.

#[path = "random/program.rs"]
mod program;
#[path = "random/scheduled.rs"]
mod scheduled;

use fastrand::Rng;
use program::{Arithmetic, Step, managed, program, serially};
use scheduled::{PROGRAMS, delays, scheduled};
use std::sync::{Arc, Mutex};
use streamsan_check::{Config, Level, check};
use streamsan_runtime::{Buffer, CpuOptions, Device, Stream};

/// `to[i] += from[i] * factor + 1`, by functions of the host.
struct Functions;

impl Arithmetic for Functions {
    fn filled(value: i64) -> i64 {
        value
    }

    fn combine(target: &mut [i64], source: &[i64], factor: i64) {
        for (target, source) in target.iter_mut().zip(source) {
            *target = target.wrapping_add(source.wrapping_mul(factor).wrapping_add(1));
        }
    }

    fn fill(&self, stream: &Stream, buffer: &mut Buffer<i64>, value: i64) {
        let mut fill = stream.operation("fill");
        let target = fill.write(buffer);
        fill.run(move |memory| memory.slice_mut(target).fill(value)).unwrap();
    }

    fn add(&self, stream: &Stream, from: &Buffer<i64>, to: &mut Buffer<i64>, factor: i64) {
        let mut add = stream.operation("add");
        let (source, target) = (add.read(from), add.update(to));
        add.run(move |memory| Self::combine(memory.slice_mut(target), memory.slice(source), factor)).unwrap();
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn errors(device: &Device) -> usize {
    let report = check(&device.journal().unwrap(), &Config::default());
    report.findings.iter().filter(|finding| finding.rule.level() == Level::Error).count()
}

#[test]
fn equal_to_serial_execution_and_clean() {
    let (programs, first) =
        (number("STREAMSAN_RUNTIME_PROGRAMS", PROGRAMS), number("STREAMSAN_RUNTIME_SEED", 0));
    for seed in first..first + programs {
        scheduled(seed, move || {
            let program = program(&mut Rng::with_seed(seed));
            let device = Device::cpu(&CpuOptions { delays: delays(seed), ..CpuOptions::default() });
            let (seen, _) = managed(&program, &device, &Functions);
            assert_eq!(seen, serially::<Functions>(&program), "seed {seed}: {program:#?}");
            let report = check(&device.journal().unwrap(), &Config::default());
            assert!(report.findings.is_empty(), "seed {seed}: {program:#?}\n{:#?}", report.findings);
        });
    }
}

#[test]
fn every_wait_is_needed() {
    let (programs, first) =
        (number("STREAMSAN_RUNTIME_PROGRAMS", PROGRAMS) / 10, number("STREAMSAN_RUNTIME_SEED", 0));
    let mut left_out = 0;
    for seed in first..first + programs {
        let mut program = program(&mut Rng::with_seed(seed));
        // Whether a dropped host buffer's copies have finished is a question of time, and the answer orders.
        program.steps.retain(|step| !matches!(step, Step::DropHost { .. }));
        let needed = Arc::new(Mutex::new(Vec::new()));
        let (program, found) = (Arc::new(program), Arc::clone(&needed));
        let whole = Arc::clone(&program);
        scheduled(seed, move || {
            let device = Device::cpu(&CpuOptions::default());
            let (_, early) = managed(&whole, &device, &Functions);
            *found.lock().unwrap() = (0..device.waits()).filter(|wait| !early.contains(wait)).collect();
        });
        for wait in needed.lock().unwrap().iter().copied() {
            let program = Arc::clone(&program);
            scheduled(seed, move || {
                let broken = Device::cpu(&CpuOptions::default());
                broken.leave_out_wait(wait);
                managed(&program, &broken, &Functions);
                assert!(errors(&broken) > 0, "seed {seed}, without wait {wait}: {program:#?}");
            });
            left_out += 1;
        }
    }
    println!("{left_out} waits left out of {programs} programs");
    assert!(left_out > programs, "too few waits to say anything: {left_out}");
}
