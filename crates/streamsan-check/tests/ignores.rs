//! What is not to be reported, and regions: which hazards are left out, how that is counted, what is unused.

use streamsan_check::{
    Config, Finding, IgnoreComment, IgnoreFiles, IgnoreSource, Ignores, LiveCheck, Region, Report, Rule,
    check,
};
use streamsan_trace::{EventKind, Log, OpNumber, RangeKind, ThreadId, Trace};

/// Two hazards: SS101 on lines 3 and 4, SS102 on lines 4 and 5. Line 6 has none.
const PROGRAM: &str = "streams default, side
buffer x 4MiB
default: write x
side: read x
default: write x
default: read x
";

fn trace(program: &str) -> Trace {
    let program = streamsan_sim::parse("program.sim", program).expect("the program is right");
    streamsan_sim::lower(&program, "program.sim", "test").trace
}

fn comment(line: u32, rules: &[Rule]) -> Ignores {
    let comment =
        IgnoreComment { file: "program.sim".into(), line, rules: rules.to_vec(), reason: "a reason".into() };
    Ignores { comments: vec![comment], files: Vec::new() }
}

fn with(ignores: Ignores) -> Report {
    check(&trace(PROGRAM), &Config { ignores, ..Config::default() })
}

fn rules(findings: &[Finding]) -> Vec<Rule> {
    findings.iter().map(|finding| finding.rule).collect()
}

/// Number of the operation on this line.
fn operation(trace: &Trace, line: u32) -> OpNumber {
    let is_there = |event: &&streamsan_trace::Event| {
        let frame = trace.tables.user_frame(event.site);
        matches!(event.kind, EventKind::Op { .. }) && frame.is_some_and(|(_, frame)| frame.line == line)
    };
    trace.events.iter().find(is_there).expect("there is an operation").number
}

/// The trace with an ignore around the events `from..=to`, in the thread of all events.
fn ranged(from: OpNumber, to: OpNumber, label: &str) -> Trace {
    let mut trace = trace(PROGRAM);
    let label = trace.tables.intern_string(label);
    let kind = RangeKind::Ignore;
    let mut events = Vec::new();
    for event in std::mem::take(&mut trace.events) {
        let mut marked = |kind, number: u64| {
            events.push(streamsan_trace::Event { number: OpNumber(number), kind, ..event });
        };
        let number = event.number.0 * 3;
        if event.number == from {
            marked(EventKind::RangeBegin { kind, label }, number - 1);
        }
        marked(event.kind, number);
        if event.number == to {
            marked(EventKind::RangeEnd { kind }, number + 1);
        }
    }
    trace.events = events;
    trace
}

#[test]
fn a_comment_on_either_line_hides_what_it_names() {
    assert_eq!(rules(&with(Ignores::default()).findings), [Rule::Ss101, Rule::Ss102]);
    assert_eq!(rules(&with(comment(3, &[Rule::Ss101])).findings), [Rule::Ss102]);
    assert_eq!(rules(&with(comment(4, &[Rule::Ss101])).findings), [Rule::Ss102]);
    assert_eq!(rules(&with(comment(5, &[Rule::Ss102])).findings), [Rule::Ss101]);
    let both = with(comment(4, &[Rule::Ss101, Rule::Ss102]));
    assert!(both.findings.is_empty());
    let [ignored] = both.ignored.as_slice() else { panic!("{:?}", both.ignored) };
    assert_eq!((ignored.findings, ignored.hazards, ignored.reason.as_str()), (2, 2, "a reason"));
    assert_eq!(ignored.source, IgnoreSource::Comment { file: "program.sim".into(), line: 4 });
}

#[test]
fn what_remains_has_a_fix_that_holds() {
    let report = with(comment(3, &[Rule::Ss101]));
    assert!(report.findings[0].fix.as_ref().unwrap().verified, "{:?}", report.findings);
}

#[test]
fn an_ignore_that_hides_nothing_is_unused_if_its_line_ran() {
    let report = with(comment(6, &[Rule::Ss101]));
    assert_eq!(rules(&report.findings), [Rule::Ss101, Rule::Ss102, Rule::Ss903]);
    let trace = trace(PROGRAM);
    assert_eq!(report.findings[2].second.number, operation(&trace, 6));
    assert_eq!(rules(&with(comment(7, &[Rule::Ss101])).findings), [Rule::Ss101, Rule::Ss102]);
    let other = with(comment(4, &[Rule::Ss103]));
    assert_eq!(rules(&other.findings), [Rule::Ss101, Rule::Ss102, Rule::Ss903]);
    let accepted = with(comment(6, &[Rule::Ss101, Rule::Ss903]));
    assert_eq!(rules(&accepted.findings), [Rule::Ss101, Rule::Ss102]);
    let config =
        Config { ignore: vec![Rule::Ss903], ignores: comment(6, &[Rule::Ss101]), ..Config::default() };
    assert_eq!(rules(&check(&trace, &config).findings), [Rule::Ss101, Rule::Ss102]);
}

#[test]
fn a_file_is_ignored_as_a_whole() {
    let files = |file: &str, rules: &[Rule]| Ignores {
        comments: Vec::new(),
        files: vec![IgnoreFiles { pattern: "*.sim".into(), files: vec![file.into()], rules: rules.to_vec() }],
    };
    assert_eq!(rules(&with(files("program.sim", &[Rule::Ss102])).findings), [Rule::Ss101]);
    assert_eq!(rules(&with(files("other.sim", &[Rule::Ss102])).findings), [Rule::Ss101, Rule::Ss102]);
    let unused = with(files("program.sim", &[Rule::Ss406]));
    assert_eq!(rules(&unused.findings), [Rule::Ss101, Rule::Ss102, Rule::Ss903]);
}

#[test]
fn a_range_hides_hazards_of_which_either_operation_is_in_it() {
    let plain = trace(PROGRAM);
    let (written, read, end) = (operation(&plain, 3), operation(&plain, 4), operation(&plain, 6));
    let found = |from, to, label: &str| {
        let report = check(&ranged(from, to, label), &Config::default());
        (rules(&report.findings), report.ignored)
    };
    assert_eq!(found(written, written, "SS101 why").0, [Rule::Ss102]);
    assert_eq!(found(read, read, "SS101 why").0, [Rule::Ss102]);
    assert_eq!(found(read, read, "SS101,SS102 why").0, []);
    assert_eq!(found(end, end, "SS101 why").0, [Rule::Ss101, Rule::Ss102, Rule::Ss903]);
    let (_, ignored) = found(read, end, "unordered-read-after-write it waits");
    assert_eq!((ignored[0].findings, ignored[0].reason.as_str()), (1, "it waits"));
    assert_eq!(ignored[0].rules, [Rule::Ss101]);
}

#[test]
fn a_range_is_for_its_thread() {
    let plain = trace(PROGRAM);
    let mut other = ranged(operation(&plain, 3), operation(&plain, 6), "SS101,SS102 why");
    for event in &mut other.events {
        if matches!(event.kind, EventKind::RangeBegin { .. } | EventKind::RangeEnd { .. }) {
            event.thread = ThreadId(7);
        }
    }
    let report = check(&other, &Config::default());
    assert_eq!(rules(&report.findings), [Rule::Ss101, Rule::Ss102, Rule::Ss903]);
}

#[test]
fn a_region_has_the_hazards_that_end_in_it() {
    let trace = trace(PROGRAM);
    let within = |first, last| {
        let region = Some(Region { first: operation(&trace, first), last: operation(&trace, last) });
        check(&trace, &Config { region, ..Config::default() })
    };
    assert_eq!(rules(&within(4, 4).findings), [Rule::Ss101]);
    assert_eq!(rules(&within(5, 6).findings), [Rule::Ss102]);
    assert_eq!(rules(&within(6, 6).findings), []);
    assert_eq!(within(4, 5).coverage.operations, 2);
    assert_eq!(within(3, 6).findings, check(&trace, &Config::default()).findings);
}

#[test]
fn a_pattern_that_is_told_again_with_more_files_is_one_ignore() {
    let trace = trace(PROGRAM);
    let mut live = LiveCheck::new(Config::default());
    for files in
        [vec![], vec!["other.sim".to_owned()], vec!["other.sim".to_owned(), "program.sim".to_owned()]]
    {
        let files = IgnoreFiles { pattern: "*.sim".into(), files, rules: vec![Rule::Ss101] };
        live.add_ignores(&Ignores { comments: Vec::new(), files: vec![files.clone(), files] });
    }
    trace.read(&mut |event, accesses| live.event(event, accesses, &trace.tables));
    let report = live.report(&trace.tables);
    assert_eq!(rules(&report.findings), [Rule::Ss102]);
    // The same lines twice in a configuration are two.
    let hidden: Vec<(u64, u64)> = report.ignored.iter().map(|one| (one.findings, one.hazards)).collect();
    assert_eq!(hidden, [(1, 1), (1, 1)]);
}

#[test]
fn a_live_check_takes_ignores_on_the_way_and_finds_again_what_is_forgotten() {
    let twice = PROGRAM.to_owned() + "default: write x\nside: read x\n";
    let trace = trace(&twice);
    let mut live = LiveCheck::new(Config::default());
    live.add_ignores(&comment(4, &[Rule::Ss101]));
    let mut seen = Vec::new();
    trace.read(&mut |event, accesses| {
        live.event(event, accesses, &trace.tables);
        seen.extend(live.new_findings().iter().map(|finding| finding.rule));
    });
    assert_eq!(seen, [Rule::Ss102, Rule::Ss102, Rule::Ss101]);
    assert!(live.new_findings().is_empty());
    live.forget_findings();
    assert!(live.new_findings().is_empty() && live.report(&trace.tables).findings.is_empty());
}
