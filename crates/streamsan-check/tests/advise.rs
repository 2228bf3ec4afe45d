//! Advice against the judge: what it says may be taken out changes nothing that can happen; and what is counted.
//!
//! `STREAMSAN_RANDOM_PROGRAMS` says how many programs of each language, `STREAMSAN_RANDOM_SEED` which is the first.

use streamsan_check::{Advised, Config, Finding, HostWork, Measured, Measures, Report, Rule, check};
use streamsan_sim::{
    Action, Found, Judge, Lowered, Pair, Program, lower, parse, random, random_graphs, random_lifetimes,
};
use streamsan_trace::{Event, EventKind, GapReason, OpNumber, StringId};

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`: set it to a number")),
        Err(_) => default,
    }
}

fn advise(program: &Program) -> (Lowered, Report) {
    let lowered = lower(program, "advise.md", "");
    let report = check(&lowered.trace, &Config { advise: true, ..Config::default() });
    (lowered, report)
}

/// The steps that advice would take out.
fn steps(program: &Program, rule: Rule) -> Vec<usize> {
    let (lowered, report) = advise(program);
    let said = report.findings.iter().filter(|finding| finding.rule == rule);
    said.map(|finding: &Finding| {
        assert_eq!(finding.advice.as_ref().and_then(|advice| advice.verified), Some(true), "{finding:?}");
        lowered.step(finding.second.number).expect("advice is about a step of the program")
    })
    .collect()
}

/// What the judge finds without these steps, in the numbers of the program with them; `None` if the rest is no program.
fn judged_without(judge: &mut Judge, program: &Program, steps: &[usize]) -> Option<Vec<Found>> {
    let kept: Vec<usize> = (0..program.steps.len()).filter(|step| !steps.contains(step)).collect();
    let mut smaller = program.clone();
    smaller.steps = kept.iter().map(|&step| program.steps[step].clone()).collect();
    let smaller = parse("", &smaller.to_string()).ok()?;
    let before = |found: Found| Found {
        pair: Pair { first: kept[found.pair.first], second: kept[found.pair.second] },
        ..found
    };
    Some(judge.judge(&smaller).found.into_iter().map(before).collect())
}

/// Takes out what advice of one rule says, in random programs, and compares what the judge finds. `clean`: only in programs
/// in which it finds nothing. (After a hazard the checker drops accesses that it covers, so it may miss what comes later.)
fn nothing_new(rule: Rule, clean: bool, generate: fn(u64) -> Program, programs: u64) -> u64 {
    let mut judge = Judge::default();
    let mut taken = 0;
    let start = setting("STREAMSAN_RANDOM_SEED", 0);
    for seed in start..start + setting("STREAMSAN_RANDOM_PROGRAMS", programs) {
        let program = generate(seed);
        let steps = steps(&program, rule);
        if steps.is_empty() {
            continue;
        }
        let known = judge.judge(&program).found;
        if clean && !known.is_empty() {
            continue;
        }
        let Some(found) = judged_without(&mut judge, &program, &steps) else { continue };
        let new: Vec<&Found> = found.iter().filter(|found| !known.contains(found)).collect();
        assert!(new.is_empty(), "seed {seed}: without {steps:?} of\n{program}there is {new:?}");
        taken += steps.len() as u64;
    }
    taken
}

#[test]
fn redundant_waits_are_redundant_to_the_judge() {
    let taken = nothing_new(Rule::Ss703, false, random, 3000)
        + nothing_new(Rule::Ss703, false, random_lifetimes, 3000)
        + nothing_new(Rule::Ss703, false, random_graphs, 2000);
    println!("{taken} waits were taken out");
    assert!(taken > 200, "only {taken} waits were taken out");
}

#[test]
fn needless_records_are_needless_to_the_judge() {
    let taken = nothing_new(Rule::Ss707, true, random_lifetimes, 20_000);
    println!("{taken} calls were taken out");
    assert!(taken > 20, "only {taken} calls were taken out");
}

/// The other way: a wait that orders something is not called redundant, though nothing may need it.
#[test]
fn a_wait_that_orders_something_is_not_redundant() {
    let program = parse(
        "",
        "streams default, side\nbuffer x 64\nbuffer y 64\ndefault: write x\ndefault: record a\nside: wait a\ndefault: write y\ndefault: record b\nside: wait b\nside: read x\n",
    )
    .expect("the program is right");
    assert_eq!(steps(&program, Rule::Ss703), []);
    assert!(matches!(program.steps[2].action, Action::Wait { .. }));
}

/// Found by random programs: the wait orders nothing that the legacy default stream does not, but without any call `c` has
/// nothing to be waited for, and without one in the legacy default stream `a` does not come after `b`.
#[test]
fn a_wait_in_a_blocking_stream_may_be_all_that_holds_it_back() {
    let programs = [
        "streams default, c(blocking)\npinned p 64\nbuffer x 64\ndefault: copy p -> x\ndefault: record e\nc: wait e\nhost: sync c\nhost: free p\n",
        "streams default, a(blocking), b(blocking), c(blocking)\nbuffer x 64\nc: write x\nc: record e\ndefault: wait e\nb: write x\ndefault: wait e\na: read x\n",
    ];
    for text in programs {
        let program = parse("", text).expect("the program is right");
        assert_eq!(steps(&program, Rule::Ss703), [], "{text}");
    }
}

fn said(text: &str, rule: Rule) -> Vec<usize> {
    steps(&parse("", text).expect("the program is right"), rule)
}

/// Both collectives are in one stream here. That is their backend's choice, and `wait()` does more than to order.
#[test]
fn a_wait_for_a_collective_is_not_redundant() {
    let program = |work: &str| {
        let update = format!("{work}update");
        format!(
            "streams default, group\nbuffer x 64\nbuffer y 64\ngroup: {update} x\ngroup: record a\ngroup: {update} y\ngroup: record b\ndefault: wait b\ndefault: wait a\ndefault: read x\ndefault: read y\n"
        )
    };
    assert_eq!(said(&program(""), Rule::Ss703), [5]);
    assert_eq!(said(&program("collective "), Rule::Ss703), []);
    let later = program("collective ").replace("group: record a", "group: read x\ngroup: record a");
    assert_eq!(said(&later, Rule::Ss703), [6], "its event is for the read too");
}

/// What a helper does with the stream in another run is not known.
#[test]
fn a_call_for_a_tensor_that_the_stream_did_not_use_is_left_alone() {
    let program = |use_: &str| {
        format!(
            "streams default, side\ndefault: alloc x 4MiB\ndefault: write x\ndefault: record ready\nside: wait ready\n{use_}host: record_stream x side\nside: record done\ndefault: wait done\nhost: free x\n"
        )
    };
    assert_eq!(said(&program("side: read x\n"), Rule::Ss707), [5]);
    assert_eq!(said(&program(""), Rule::Ss707), []);
}

#[test]
fn what_was_not_seen_makes_advice_unsure() {
    let program = parse(
        "",
        "streams default, side\nbuffer x 64\ndefault: write x\ndefault: record e\nside: wait e\nside: wait e\nside: read x\n",
    )
    .expect("the program is right");
    for (reason, unseen) in [
        (None, false),
        (Some(GapReason::OpaqueKernel), true),
        (Some(GapReason::UnsupportedCall), true),
        (Some(GapReason::UnseenGraph), true),
        (Some(GapReason::Lost), true),
        (Some(GapReason::NotComputed), false),
    ] {
        let mut trace = lower(&program, "advise.md", "").trace;
        if let Some(reason) = reason {
            let last = *trace.events.last().expect("it has events");
            let kind = EventKind::Gap { reason, detail: StringId(0) };
            trace.events.push(Event { kind, number: OpNumber(last.number.0 + 1), ..last });
        }
        let report = check(&trace, &Config { advise: true, ..Config::default() });
        let advice: Vec<_> = report.findings.iter().filter_map(|finding| finding.advice.as_ref()).collect();
        assert_eq!(advice.len(), 1, "{reason:?}");
        assert_eq!(advice[0].unseen, unseen, "{reason:?}");
    }
}

fn measures(text: &str) -> Measures {
    let program = parse("", text).expect("the program is right");
    advise(&program).1.measures.expect("advice was asked for")
}

#[test]
fn the_longest_chain_follows_waits_and_the_host() {
    let apart = "streams default, side\nbuffer x 64\nbuffer y 64\ndefault: write x\ndefault: read x\nside: write y\nside: read y\nside: read y\n";
    let counted = measures(apart);
    assert_eq!((counted.operations, counted.longest), (5, 3));
    let waited = measures(&format!("{apart}side: record e\ndefault: wait e\ndefault: read x\n"));
    assert_eq!((waited.operations, waited.longest), (6, 4));
    let by_host = measures(&format!("{apart}host: sync side\ndefault: read x\n"));
    assert_eq!((by_host.operations, by_host.longest), (6, 4));
    assert_eq!((by_host.host_waits, by_host.waited_for, by_host.drained), (1, 3, 0));
    let early = measures(
        "streams default, side\nbuffer x 64\nbuffer y 64\ndefault: write x\ndefault: record e\ndefault: read x\nside: wait e\nside: read x\n",
    );
    assert_eq!((early.operations, early.longest), (3, 2), "what comes after the record does not count");
}

#[test]
fn copies_are_beside_what_they_are_not_ordered_with() {
    let counted = measures(
        "streams default, side\npinned p 1KiB\nbuffer x 1KiB\nbuffer y 1KiB\nside: copy p -> x\nside: record e\ndefault: wait e\ndefault: read x\nside: copy p -> y\n",
    );
    assert_eq!((counted.copies, counted.copied), (2, 2048));
    assert_eq!((counted.beside, counted.beside_bytes), (1, 1024), "only the second one");
    let later = measures(
        "streams default, side\npinned p 1KiB\nbuffer x 1KiB\nbuffer y 64\nside: copy p -> x\ndefault: write y\n",
    );
    assert_eq!(later.beside, 1, "work that is enqueued later counts too");
}

#[test]
fn memory_is_held_until_the_host_has_waited() {
    let counted = measures(
        "streams default, side\ndefault: alloc x 1MiB\ndefault: write x\ndefault: record e\nside: wait e\nside: read x\nhost: record_stream x side\nhost: free x\ndefault: alloc y 1MiB\nhost: sync side\n",
    );
    assert_eq!((counted.memory, counted.held), (1 << 20, 1 << 20));
}

/// What advice about a loop says whose body these steps are.
fn of_loop(declarations: &str, body: &str) -> Vec<Advised> {
    let text = format!("{declarations}{}", body.repeat(6));
    let program = parse("", &text).expect("the program is right");
    let mut lowered = lower(&program, "advise.md", "");
    let length = body.lines().count();
    let mut sites = vec![None; length];
    for index in 0..lowered.trace.events.len() {
        let event = lowered.trace.events[index];
        if let Some(step) = lowered.step(event.number) {
            lowered.trace.events[index].site = *sites[step % length].get_or_insert(event.site);
        }
    }
    let report = check(&lowered.trace, &Config { advise: true, ..Config::default() });
    report.findings.into_iter().filter_map(|finding| finding.advice.map(|advice| *advice)).collect()
}

/// A loop in which the host waits at the end of each turn for what these steps enqueue.
fn waits_for(steps: &str) -> Option<bool> {
    let declarations = "streams default\npinned p 64\nbuffer x 64\n";
    let said = of_loop(declarations, &format!("{steps}host: sync default\n"));
    assert_eq!(said.len(), 1, "{steps}{said:?}");
    assert_eq!(said[0].measured, Measured::HostSync(HostWork::Synchronize), "{steps}");
    said[0].verified
}

/// The host may read or refill page-locked memory through a pointer right after the wait, which the log does not have.
#[test]
fn a_wait_that_covers_a_copy_of_page_locked_memory_is_not_tried() {
    assert_eq!(waits_for("default: update x\n"), Some(true));
    assert_eq!(waits_for("default: update x\ndefault: copy x -> p\n"), None);
    assert_eq!(waits_for("default: copy p -> x\ndefault: update x\n"), None);
}
