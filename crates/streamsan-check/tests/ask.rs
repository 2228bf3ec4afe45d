//! What a live check answers before an operation is what it finds when the operation comes, and asking changes nothing.

use std::collections::BTreeSet;
use streamsan_check::{Config, Finding, LiveCheck, Question, Rule, hazards};
use streamsan_sim::{Program, lower, random, random_graphs, random_lifetimes};
use streamsan_trace::{EventKind, Log, OpNumber};

/// The earlier event of a finding: the operation, or the free of memory that is used after it.
fn first(finding: &Finding) -> (Rule, OpNumber) {
    let place = finding.first.or(finding.free).expect("two events");
    (same(finding.rule), place.number)
}

/// Of the bytes that a graph reads and those that it writes an operation is told once, a question for each access.
fn same(rule: Rule) -> Rule {
    if rule == Rule::Ss501 { Rule::Ss502 } else { rule }
}

/// Asks before each access of each operation. Gives how many operations had a hazard.
fn compare(seed: u64, program: &Program) -> usize {
    let lowered = lower(program, "random.md", "");
    let log = &lowered.trace;
    let expected = hazards(log);
    let [mut asked, mut left_alone] = [(); 2].map(|()| LiveCheck::new(Config::default()));
    let mut found = 0;
    let mut captured = false;
    log.read(&mut |event, accesses| {
        match event.kind {
            EventKind::CaptureBegin { .. } => captured = true,
            EventKind::CaptureEnd { .. } => captured = false,
            _ => {}
        }
        if captured {
            if let (EventKind::Op { stream, label, .. }, [access, ..]) = (event.kind, accesses) {
                let question = Question { stream, thread: event.thread, site: event.site, label, access };
                assert_eq!(asked.ask(&question, log.tables()), [], "seed {seed}: a node does not run now");
            }
        } else if let EventKind::Op { stream, label, .. } = event.kind {
            let mut answers = BTreeSet::new();
            for access in accesses {
                let question = Question { stream, thread: event.thread, site: event.site, label, access };
                answers.extend(asked.ask(&question, log.tables()).iter().map(first));
            }
            let pairs = expected.iter().filter(|hazard| hazard.second == event.number);
            let pairs: BTreeSet<_> = pairs
                .filter(|hazard| hazard.rule != Rule::Ss203)
                .map(|hazard| (same(hazard.rule), hazard.first))
                .collect();
            found += usize::from(!pairs.is_empty());
            assert_eq!(answers, pairs, "seed {seed}, before {}:\n{program}", event.number);
        }
        asked.event(event, accesses, log.tables());
        left_alone.event(event, accesses, log.tables());
    });
    assert_eq!(asked.report(log.tables()), left_alone.report(log.tables()), "seed {seed}:\n{program}");
    found
}

#[test]
fn an_answer_is_what_is_found_when_the_operation_comes() {
    let mut found = 0;
    for seed in 0..4_000 {
        found += compare(seed, &random(seed)) + compare(seed, &random_lifetimes(seed));
        found += compare(seed, &random_graphs(seed));
    }
    assert!(found > 2_000, "{found} operations with a hazard prove little");
}
