//! The checker against the judge on random programs.
//!
//! Agreement: each pair that the checker gives can execute in either order, and if any pair can, the
//! checker gives one whose later operation is the earliest of all later operations. (After a first hazard
//! the checker may drop accesses that it covers, so later pairs can be missing.) Each pair must be of the
//! judge's kind: SS201 and SS202 are told apart. Uses after a free (SS204) must be the same. Of blocks that
//! were freed in use (SS203) each pair must be one of the judge's, and each use that the judge names must be
//! there with its first possible new owner, or another use that this new owner endangers, with it or with a
//! new owner before it (the checker keeps only the last of uses that follow each other, and gives each once).
//!
//! `STREAMSAN_RANDOM_PROGRAMS` says how many (of each of the three tests), `STREAMSAN_RANDOM_SEED` which is the first,
//! `STREAMSAN_RANDOM_THREADS` how many threads each test uses: else as many as the machine can run at once. What is found
//! does not depend on their number.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_sim::{
    Action, Found, Judge, Kind, Program, Work, parse, random, random_graphs, random_lifetimes, witness_text,
};

mod agreement;
use agreement::{checker_pairs, disagreement};

/// Programs per piece of work of one thread.
const PIECE: u64 = 1000;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`: set it to a number")),
        Err(_) => default,
    }
}

type Outcome = (Vec<Found>, Vec<Found>, Option<(Found, &'static str)>);

/// What both say of a program.
fn compare(judge: &mut Judge, program: &Program) -> Outcome {
    let (judged, checked) = (judge.judge(program).found, checker_pairs(program));
    let outcome = disagreement(&judged, &checked);
    (judged, checked, outcome)
}

/// A program that disagrees with as few steps, and accesses in them, as can be had by leaving out one at a time.
fn shrink(judge: &mut Judge, mut program: Program) -> Program {
    let mut step = 0;
    while step < program.steps.len() {
        let mut smaller = vec![program.clone()];
        smaller[0].steps.remove(step);
        for index in 0..program.accesses(step).len() {
            let mut without = program.clone();
            if let Action::Operation { accesses, work, .. } = &mut without.steps[step].action
                && accesses.len() > 1
            {
                accesses.remove(index);
                *work = Work::Kernel;
                smaller.push(without);
            }
        }
        // Without an allocation or a free the rest may be no program any more.
        let mut programs = smaller.iter().filter_map(|smaller| parse("", &smaller.to_string()).ok());
        match programs.find(|smaller| compare(judge, smaller).2.is_some()) {
            Some(smaller) => {
                program = smaller;
                step = 0;
            }
            None => step += 1,
        }
    }
    program
}

/// Writes the program, made small, to a file and says all there is to say.
fn explain(seed: u64, judge: &mut Judge, program: Program) -> String {
    let program = shrink(judge, program);
    let (judged, checked, outcome) = compare(judge, &program);
    let (found, what) = outcome.expect("only programs that disagree are explained");
    let pair = found.pair;
    let path = format!("{}/disagreement-{seed}.md", env!("CARGO_TARGET_TMPDIR"));
    let name = format!("seed {seed}");
    let file = format!("# {name}\n\n```sim\n{program}```\n");
    let mut text = match std::fs::write(&path, &file) {
        Ok(()) => format!("disagreement on seed {seed}: {what}\n"),
        Err(error) => format!("disagreement on seed {seed}: {what}\n(cannot write {path}: {error})\n"),
    };
    let step = |step: usize| program.step_text(step);
    let _ = write!(text, "  {:?}\n  (1) {}\n  (2) {}\n", found.kind, step(pair.first), step(pair.second));
    text.push_str(&witness_text(&program, pair, &path, &name));
    let _ = write!(text, "  judge:   {judged:?}\n  checker: {checked:?}\n\n{file}");
    text
}

/// Compares the two on as many programs as the settings say; pairs of so many kinds must be seen.
fn compare_all(generate: fn(u64) -> Program, kinds: usize) {
    let count = setting("STREAMSAN_RANDOM_PROGRAMS", 100_000);
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = setting("STREAMSAN_RANDOM_THREADS", available as u64);
    assert!(threads > 0, "STREAMSAN_RANDOM_THREADS is 0: set it to a positive number");
    let start = setting("STREAMSAN_RANDOM_SEED", 0);
    let next = AtomicU64::new(0);
    let (with, without) = (AtomicU64::new(0), AtomicU64::new(0));
    let (exact, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let by_kind = Mutex::new(BTreeMap::new());
    let work = || {
        let mut judge = Judge::default();
        let mut kinds_here: BTreeMap<Kind, u64> = BTreeMap::new();
        loop {
            let piece = next.fetch_add(PIECE, Ordering::Relaxed);
            if piece >= count || failures.load(Ordering::Relaxed) >= 3 {
                break;
            }
            for seed in piece..count.min(piece + PIECE) {
                let seed = start.wrapping_add(seed);
                let program = generate(seed);
                let verdict = judge.judge(&program);
                assert!(verdict.complete, "seed {seed} is too large for the judge");
                let checked = checker_pairs(&program);
                let exact_here = verdict.found == checked;
                let outcome = if verdict.found.is_empty() { &without } else { &with };
                outcome.fetch_add(1, Ordering::Relaxed);
                exact.fetch_add(u64::from(exact_here), Ordering::Relaxed);
                for found in &checked {
                    *kinds_here.entry(found.kind).or_default() += 1;
                }
                if disagreement(&verdict.found, &checked).is_some() {
                    eprintln!("{}", explain(seed, &mut judge, program));
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let mut all = by_kind.lock().expect("no thread panics");
        for (kind, number) in kinds_here {
            *all.entry(kind).or_default() += number;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
    });
    let (with, without) = (with.into_inner(), without.into_inner());
    let exact = exact.into_inner();
    let by_kind: BTreeMap<Kind, u64> = by_kind.into_inner().expect("no thread panics");
    eprintln!(
        "{with} programs with something wrong, {without} without; {exact} with the same list of pairs; \
         pairs of the checker: {by_kind:?}"
    );
    assert_eq!(failures.into_inner(), 0, "the checker and the judge disagree: see above");
    assert_eq!(with + without, count);
    // Programs of one kind only would prove nothing.
    assert!(count < 1000 || (with > count / 10 && without > count / 10));
    assert!(count < 1000 || by_kind.len() == kinds, "{by_kind:?}");
}

#[test]
fn the_checker_agrees_with_the_judge() {
    compare_all(random, 1);
}

#[test]
fn they_agree_on_lifetimes_and_host_memory() {
    compare_all(random_lifetimes, 7);
}

#[test]
fn they_agree_on_graphs() {
    compare_all(random_graphs, 5);
}
