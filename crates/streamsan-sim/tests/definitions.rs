//! The judge against the second definition, and the schedules that it offers as proof.

use std::fmt::Write as _;
use streamsan_sim::{
    Effort, Judge, Pair, parse, random, random_graphs, random_lifetimes, reachability, replay, witness,
};

/// Whether `one` executes before `other`.
fn before(order: &[usize], one: usize, other: usize) -> bool {
    let place = |step| order.iter().position(|executed| *executed == step).expect("all operations execute");
    place(one) < place(other)
}

#[test]
fn the_judge_agrees_with_reachability() {
    let mut judge = Judge::default();
    let (mut unordered, mut ordered) = (0_u64, 0_u64);
    for seed in 0..100_000 {
        let program = random(seed);
        let verdict = judge.judge(&program);
        assert!(verdict.complete);
        let expected = reachability::unordered_pairs(&program);
        assert_eq!(verdict.unordered, expected, "seed {seed}\n{program}");
        unordered += u64::from(!expected.is_empty());
        ordered += u64::from(expected.is_empty());
    }
    assert!(unordered > 10_000 && ordered > 10_000, "{unordered} with a pair, {ordered} without");
}

#[test]
fn the_judge_agrees_with_reachability_on_lifetimes() {
    let mut judge = Judge::default();
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..100_000 {
        let program = random_lifetimes(seed);
        let verdict = judge.judge(&program);
        assert!(verdict.complete);
        assert_eq!(verdict.found, reachability::found(&program), "seed {seed}\n{program}");
        for found in verdict.found {
            *counts.entry(found.kind).or_insert(0_u64) += 1;
        }
    }
    assert!(counts.len() == 7 && counts.values().all(|&count| count > 1000), "{counts:?}");
}

#[test]
fn the_judge_agrees_with_reachability_on_graphs() {
    let mut judge = Judge::default();
    let (mut wrong, mut right) = (0_u64, 0_u64);
    for seed in 0..30_000 {
        let program = random_graphs(seed);
        let verdict = judge.judge(&program);
        assert!(verdict.complete, "seed {seed}");
        assert_eq!(verdict.found, reachability::found(&program), "seed {seed}\n{program}");
        wrong += u64::from(!verdict.found.is_empty());
        right += u64::from(verdict.found.is_empty());
    }
    assert!(wrong > 3_000 && right > 3_000, "{wrong} with something wrong, {right} without");
}

#[test]
fn every_pair_has_two_schedules_and_no_other_has() {
    for seed in 0..6_000 {
        let program = if seed % 2 == 0 { random(seed) } else { random_lifetimes(seed) };
        let unordered = reachability::unordered_pairs(&program);
        for second in 0..program.steps.len() {
            for first in (0..second)
                .filter(|&first| !program.accesses(first).is_empty() && !program.accesses(second).is_empty())
            {
                let pair = Pair { first, second };
                let found = witness(&program, pair);
                assert_eq!(found.is_some(), unordered.contains(&pair), "seed {seed} {pair:?}\n{program}");
                if let Some((in_order, reversed)) = found {
                    let run =
                        |schedule: &[usize]| replay(&program, schedule).expect("the schedule is legal").order;
                    assert!(before(&run(&in_order), first, second));
                    assert!(before(&run(&reversed), second, first));
                }
            }
        }
    }
}

#[test]
fn sampling_invents_nothing_and_says_that_it_is_incomplete() {
    let mut sampler = Judge::new(Effort { states: 0, schedules: 40, seed: 7 });
    for seed in 0..1_000 {
        let program = if seed % 2 == 0 { random(seed) } else { random_lifetimes(seed) };
        let verdict = sampler.judge(&program);
        assert!(!verdict.complete && verdict.schedules >= 40);
        let expected = reachability::found(&program);
        // Holding an operation back decides what owner streams overtake, so kinds are right too.
        assert!(verdict.found.iter().all(|found| expected.contains(found)), "seed {seed}\n{program}");
    }
}

#[test]
fn a_program_of_hundreds_of_operations_is_sampled() {
    let mut text = "streams a, b, c\nbuffer x 4KiB\n".to_owned();
    for round in 0..100 {
        let _ =
            write!(text, "a: write x\na: record e{round}\nb: wait e{round}\nb: read x\nb: record f{round}\n");
        let _ = write!(text, "a: wait f{round}\nc: read x\n");
    }
    let program = parse("large", &text).unwrap();
    let verdict = Judge::new(Effort { schedules: 20, ..Effort::default() }).judge(&program);
    assert!(!verdict.complete);
    assert_eq!(verdict.unordered, reachability::unordered_pairs(&program));
    assert_eq!(verdict.unordered.len(), 100 * 100);
}

#[test]
fn a_schedule_that_is_not_legal_is_refused() {
    let program =
        parse("p", "streams a, b\nbuffer x 4\na: write x\na: record e\nb: wait e\nb: read x\n").unwrap();
    let error = replay(&program, &[0, 2]).unwrap_err().to_string();
    assert_eq!(error, "choice 2 of the schedule is 2, which cannot act there: choose one of 0,1");
    assert!(replay(&program, &[7]).is_err());
    assert_eq!(replay(&program, &[]).unwrap().order, [0, 3]);
}
