//! The checker against the judge on random programs.
//!
//! Agreement: each pair that the checker gives can execute in either order, and if any pair can, the
//! checker gives one whose later operation is the earliest of all later operations. (After a first hazard
//! the checker may drop accesses that it covers, so later pairs can be missing.)
//!
//! `STREAMSAN_RANDOM_PROGRAMS` says how many, `STREAMSAN_RANDOM_SEED` which is the first.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_check::hazards;
use streamsan_sim::{Action, Judge, Pair, Program, lower, random, witness_text};

/// Programs per piece of work of one thread.
const PIECE: u64 = 1000;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`: set it to a number")),
        Err(_) => default,
    }
}

/// The checker's pairs as steps of the program, sorted as the judge's are.
fn checker_pairs(program: &Program) -> Vec<Pair> {
    let lowered = lower(program, "random.md", "");
    let mut pairs: Vec<Pair> = hazards(&lowered.trace)
        .iter()
        .map(|hazard| {
            let step = |number| lowered.step(number).expect("a hazard is between operations of the program");
            Pair { first: step(hazard.first), second: step(hazard.second) }
        })
        .collect();
    pairs.sort_by_key(|pair| (pair.second, pair.first));
    pairs.dedup();
    pairs
}

/// How the two differ, if they do: the pair to look at and what is wrong with it.
fn disagreement(judged: &[Pair], checked: &[Pair]) -> Option<(Pair, &'static str)> {
    if let Some(pair) = checked.iter().find(|pair| !judged.contains(pair)) {
        return Some((*pair, "the checker gives this pair, but it cannot swap"));
    }
    let earliest = judged.first()?;
    let found = checked.iter().any(|pair| pair.second == earliest.second);
    (!found)
        .then_some((*earliest, "this pair can swap, but the checker gives none with this later operation"))
}

/// What both say of a program.
fn compare(judge: &mut Judge, program: &Program) -> (Vec<Pair>, Vec<Pair>, Option<(Pair, &'static str)>) {
    let (judged, checked) = (judge.judge(program).unordered, checker_pairs(program));
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
            if let Action::Operation { accesses, copy, .. } = &mut without.steps[step].action
                && accesses.len() > 1
            {
                accesses.remove(index);
                *copy = false;
                smaller.push(without);
            }
        }
        match smaller.into_iter().find(|smaller| compare(judge, smaller).2.is_some()) {
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
    let (pair, what) = outcome.expect("only programs that disagree are explained");
    let path = format!("{}/disagreement-{seed}.md", env!("CARGO_TARGET_TMPDIR"));
    let name = format!("seed {seed}");
    let file = format!("# {name}\n\n```sim\n{program}```\n");
    let mut text = match std::fs::write(&path, &file) {
        Ok(()) => format!("disagreement on seed {seed}: {what}\n"),
        Err(error) => format!("disagreement on seed {seed}: {what}\n(cannot write {path}: {error})\n"),
    };
    let step = |step: usize| program.step_text(step);
    let _ = write!(text, "  (1) {}\n  (2) {}\n", step(pair.first), step(pair.second));
    text.push_str(&witness_text(&program, pair, &path, &name));
    let _ = write!(text, "  judge:   {judged:?}\n  checker: {checked:?}\n\n{file}");
    text
}

#[test]
fn the_checker_agrees_with_the_judge() {
    let count = setting("STREAMSAN_RANDOM_PROGRAMS", 100_000);
    let start = setting("STREAMSAN_RANDOM_SEED", 0);
    let next = AtomicU64::new(0);
    let (with, without) = (AtomicU64::new(0), AtomicU64::new(0));
    let (exact, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut judge = Judge::default();
        loop {
            let piece = next.fetch_add(PIECE, Ordering::Relaxed);
            if piece >= count || failures.load(Ordering::Relaxed) >= 3 {
                return;
            }
            for seed in piece..count.min(piece + PIECE) {
                let seed = start.wrapping_add(seed);
                let program = random(seed);
                let verdict = judge.judge(&program);
                assert!(verdict.complete, "seed {seed} is too large for the judge");
                let checked = checker_pairs(&program);
                let exact_here = verdict.unordered == checked;
                let kind = if verdict.unordered.is_empty() { &without } else { &with };
                kind.fetch_add(1, Ordering::Relaxed);
                exact.fetch_add(u64::from(exact_here), Ordering::Relaxed);
                if disagreement(&verdict.unordered, &checked).is_some() {
                    eprintln!("{}", explain(seed, &mut judge, program));
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
    });
    let (with, without) = (with.into_inner(), without.into_inner());
    let exact = exact.into_inner();
    eprintln!(
        "{with} programs with an unordered pair, {without} without; {exact} with the same list of pairs"
    );
    assert_eq!(failures.into_inner(), 0, "the checker and the judge disagree: see above");
    assert_eq!(with + without, count);
    // Programs of one kind only would prove nothing.
    assert!(count < 1000 || (with > count / 10 && without > count / 10));
}
