//! Random stream graphs on the CPU back end: what the declared order protects is what a serial run gives, and the
//! checker sees every declared edge; without any one of the waits it says so.
//!
//! `STREAMSAN_RUNTIME_PROGRAMS` and `STREAMSAN_RUNTIME_SEED` choose how many and which. `--features shuttle` as in `random_programs.rs`.

#[path = "random/scheduled.rs"]
mod scheduled;

use fastrand::Rng;
use scheduled::{PROGRAMS, delays, scheduled};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_check::{Config, check};
use streamsan_runtime::{CpuOptions, Device, Error, StreamGraph};
use streamsan_trace::{
    Access, AccessMode, BlockId, DeviceId, Event, EventKind, MemorySpace, OpNumber, ShapeId, SiteId,
    StringId, ThreadId, Trace,
};

/// Streams with what each comes after, by number, and how often each is given how many operations.
#[derive(Clone, Debug)]
struct Program {
    after: Vec<Vec<usize>>,
    /// Per round and stream.
    operations: Vec<Vec<usize>>,
}

fn program(random: &mut Rng) -> Program {
    let streams = random.usize(2..7);
    let mut names: Vec<usize> = (0..streams).collect();
    random.shuffle(&mut names);
    let mut after = vec![Vec::new(); streams];
    for (place, &stream) in names.iter().enumerate() {
        after[stream] = names[..place].iter().copied().filter(|_| random.u8(0..3) == 0).collect();
    }
    let operations =
        (0..random.usize(1..4)).map(|_| (0..streams).map(|_| random.usize(1..3)).collect()).collect();
    Program { after, operations }
}

fn graph(program: &Program) -> StreamGraph {
    let names: Vec<String> = (0..program.after.len()).map(|at| at.to_string()).collect();
    let after = |at: usize| program.after[at].iter().map(|&other| names[other].as_str()).collect();
    StreamGraph::new(names.iter().enumerate().map(|(at, name)| (name.as_str(), after(at)))).unwrap()
}

/// What a stream makes of its own value and those of the streams it comes after.
fn combined(own: u64, others: impl Iterator<Item = u64>) -> u64 {
    others.fold(own.wrapping_mul(31).wrapping_add(7), |sum, other| sum.wrapping_mul(131).wrapping_add(other))
}

type Values = Vec<Vec<u64>>;

fn serially(program: &Program) -> Values {
    let graph = graph(program);
    let mut before = vec![1; program.after.len()];
    let mut rounds = Values::new();
    for operations in &program.operations {
        let mut values = vec![0; before.len()];
        for name in graph.order() {
            let at: usize = name.parse().unwrap();
            values[at] = before[at];
            for _ in 0..operations[at] {
                values[at] = combined(values[at], program.after[at].iter().map(|&other| values[other]));
            }
        }
        before.clone_from(&values);
        rounds.push(values);
    }
    rounds
}

fn managed(program: &Program, device: &Device) -> Values {
    device.start_journal();
    let cells = |_: &Vec<usize>| program.after.iter().map(|_| AtomicU64::new(0)).collect();
    let rounds: Arc<Vec<Vec<AtomicU64>>> = Arc::new(program.operations.iter().map(cells).collect());
    let mut streams = graph(program).start(device).unwrap();
    for (round, operations) in program.operations.iter().enumerate() {
        streams
            .round(|name, stream| {
                let at: usize = name.parse().unwrap();
                for turn in 0..operations[at] {
                    let (rounds, after) = (Arc::clone(&rounds), program.after[at].clone());
                    stream.operation(&format!("{round} {at}")).run(move |_| {
                        let read = |round: usize, at: usize| rounds[round][at].load(Ordering::Relaxed);
                        let own = match (turn, round) {
                            (0, 0) => 1,
                            (0, _) => read(round - 1, at),
                            _ => read(round, at),
                        };
                        let value = combined(own, after.iter().map(|&other| read(round, other)));
                        rounds[round][at].store(value, Ordering::Relaxed);
                    })?;
                }
                Ok::<(), Error>(())
            })
            .unwrap();
    }
    device.synchronize().unwrap();
    let value = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
    rounds.iter().map(|round| round.iter().map(value).collect()).collect()
}

/// The journal, with the values that the operations read and write as blocks of memory: the runtime is not told of
/// them, the checker is.
fn with_values(program: &Program, journal: &Trace) -> Trace {
    let streams = program.after.len();
    let block = |round: usize, at: usize| BlockId(u32::try_from(round * streams + at).unwrap() + 1);
    let mut trace = journal.clone();
    trace.events.clear();
    let push = |trace: &mut Trace, site: SiteId, kind: EventKind| {
        let number = OpNumber(trace.events.len() as u64 + 1);
        trace.events.push(Event { number, thread: ThreadId(0), site, kind });
    };
    let mut created = BTreeSet::new();
    for event in &journal.events {
        let mut kind = event.kind;
        if let EventKind::Op { stream, label, kind: what, forward_site, .. } = event.kind {
            let label_text = journal.tables.string(label).to_owned();
            let (round, at) = label_text.split_once(' ').unwrap();
            let (round, at): (usize, usize) = (round.parse().unwrap(), at.parse().unwrap());
            let own = block(round, at);
            if created.insert(own) {
                let (space, address) = (MemorySpace::Cached(DeviceId(0)), u64::from(own.0) << 12);
                push(
                    &mut trace,
                    event.site,
                    EventKind::Alloc { block: own, stream, space, address, size: 8 },
                );
            }
            let access = |block, mode| Access {
                block,
                mode,
                offset: 0,
                length: 8,
                shape: ShapeId(0),
                argument: StringId(0),
            };
            let mut accesses = vec![access(own, AccessMode::Update)];
            accesses
                .extend(program.after[at].iter().map(|&other| access(block(round, other), AccessMode::Read)));
            let accesses = trace.push_accesses(&accesses);
            kind = EventKind::Op { stream, label, kind: what, forward_site, accesses };
        }
        push(&mut trace, event.site, kind);
    }
    trace
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn equal_to_serial_execution_and_clean() {
    let first = number("STREAMSAN_RUNTIME_SEED", 0);
    for seed in first..first + number("STREAMSAN_RUNTIME_PROGRAMS", PROGRAMS) {
        scheduled(seed, move || {
            let program = program(&mut Rng::with_seed(seed));
            let device = Device::cpu(&CpuOptions { delays: delays(seed), ..CpuOptions::default() });
            assert_eq!(managed(&program, &device), serially(&program), "seed {seed}: {program:#?}");
            let report = check(&with_values(&program, &device.journal().unwrap()), &Config::default());
            assert!(report.findings.is_empty(), "seed {seed}: {program:#?}\n{:#?}", report.findings);
        });
    }
}

#[test]
fn every_wait_is_needed() {
    let first = number("STREAMSAN_RUNTIME_SEED", 0);
    let programs = number("STREAMSAN_RUNTIME_PROGRAMS", PROGRAMS) / 5;
    let mut left_out = 0;
    for seed in first..first + programs {
        let program = Arc::new(program(&mut Rng::with_seed(seed)));
        let needed = Arc::new(AtomicU64::new(0));
        let (whole, waits) = (Arc::clone(&program), Arc::clone(&needed));
        scheduled(seed, move || {
            let device = Device::cpu(&CpuOptions::default());
            managed(&whole, &device);
            waits.store(device.waits(), Ordering::Relaxed);
        });
        for wait in 0..needed.load(Ordering::Relaxed) {
            let program = Arc::clone(&program);
            scheduled(seed, move || {
                let broken = Device::cpu(&CpuOptions::default());
                broken.leave_out_wait(wait);
                managed(&program, &broken);
                let trace = with_values(&program, &broken.journal().unwrap());
                let report = check(&trace, &Config::default());
                assert!(report.has_errors(), "seed {seed}, without wait {wait}: {program:#?}");
            });
            left_out += 1;
        }
    }
    println!("{left_out} waits left out of {programs} graphs");
    assert!(left_out > programs, "too few waits to say anything: {left_out}");
}
