//! Every `sim` block of `tests/programs`, of `docs` and of the rule pages: the checker must find what the comments
//! announce and nothing else, and the judge must agree with the comments.

use std::path::{Path, PathBuf};
use streamsan_check::{Actor, Config, Finding, Level, Rule, check};
use streamsan_sim::{
    Expectation, ExpectedLevel, Found as JudgeFound, Kind, Lowered, Test, judge, lower, parse_file,
    witness_text,
};

/// Where the repository is.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The markdown files of a folder, by name: path from the root of the repository, and content.
fn pages(folder: &str) -> Vec<(String, String)> {
    let directory = repository().join(folder);
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()))
        .map(|entry| entry.expect("the folder can be listed").file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        .collect();
    names.sort();
    let read = |name: String| {
        let path = format!("{folder}/{name}");
        let text = std::fs::read_to_string(directory.join(&name)).expect("a listed file can be read");
        (path, text)
    };
    names.into_iter().map(read).collect()
}

/// A finding as a test would announce it.
struct Found<'a> {
    rule: Rule,
    line: u32,
    after: Option<u32>,
    free: Option<u32>,
    missing: Option<(&'a str, &'a str)>,
}

impl<'a> Found<'a> {
    fn new(test: &'a Test, lowered: &Lowered, finding: &Finding) -> Self {
        let name = |actor: Actor| match actor {
            Actor::Stream(stream) => test.program.streams[stream.index()].name.as_str(),
            Actor::Host => "host",
        };
        Self {
            rule: finding.rule,
            line: lowered.line(finding.second.number).unwrap_or(0),
            // A use after a free has no earlier operation but the free.
            after: finding.first.or(finding.free).and_then(|first| lowered.line(first.number)),
            free: finding.free.and_then(|free| lowered.line(free.number)),
            missing: finding.first.map(|first| (name(first.actor), name(finding.second.actor))),
        }
    }

    fn is(&self, expected: &Expectation) -> bool {
        let level = match expected.level {
            ExpectedLevel::Error => Level::Error,
            ExpectedLevel::Warning => Level::Warning,
            ExpectedLevel::Advice => Level::Note,
        };
        let edge = expected.missing.as_ref().map(|(from, to)| (from.as_str(), to.as_str()));
        self.rule.code() == expected.rule
            && self.rule.level() == level
            && self.line == expected.line
            && (expected.after.is_none() || self.after == expected.after)
            && (expected.free.is_none() || self.free == expected.free)
            && (edge.is_none() || self.missing == edge)
    }

    fn describe(&self, test: &Test) -> String {
        let after = self.after.map_or(String::new(), |line| format!(" after line {line}"));
        let missing = self.missing.map_or(String::new(), |(from, to)| format!(", missing {from} -> {to}"));
        format!("{}:{}: found [{}]{after}{missing}", test.path, self.line, self.rule.code())
    }
}

/// What a rule is to the judge, if it is about a pair that the judge can see.
fn kind(code: &str) -> Option<Kind> {
    Some(match code {
        "SS101" | "SS102" | "SS103" | "SS501" | "SS502" | "SS601" | "SS602" => Kind::Order,
        "SS201" => Kind::UseBeforeAllocation,
        "SS202" => Kind::ReuseWhileInUse,
        "SS203" => Kind::FreedWhileInUse,
        "SS204" => Kind::UseAfterFree,
        "SS301" | "SS302" => Kind::Host,
        "SS303" => Kind::HostFree,
        _ => return None,
    })
}

/// Whether advice is looked for: where it is announced, and on the pages of its rules.
fn is_about_advice(test: &Test) -> bool {
    let announced = |expected: &Expectation| expected.level == ExpectedLevel::Advice;
    test.path.contains("/SS7") || test.annotations.expectations.iter().any(announced)
}

/// All that is wrong with one test.
fn run(test: &Test) -> Vec<String> {
    let mut wrong = Vec::new();
    let lowered = lower(&test.program, &test.path, &test.name);
    let config = Config { advise: is_about_advice(test), ..Config::default() };
    let report = check(&lowered.trace, &config);
    let mut expected: Vec<&Expectation> = test.annotations.expectations.iter().collect();
    for finding in &report.findings {
        let found = Found::new(test, &lowered, finding);
        match expected.iter().position(|expected| found.is(expected)) {
            Some(index) => drop(expected.swap_remove(index)),
            None => wrong.push(format!("{}, which no comment announces", found.describe(test))),
        }
    }
    for expected in expected {
        let after = expected.after.map_or(String::new(), |line| format!(" after line {line}"));
        wrong.push(format!(
            "{}:{}: [{}]{after} is announced but not found",
            test.path, expected.line, expected.rule
        ));
    }
    if !report.gaps.is_empty() {
        wrong.push(format!("{}:{}: the report has gaps: {:?}", test.path, test.line, report.gaps));
    }
    ask_the_judge(test, &mut wrong);
    wrong
}

/// Compares the comments, not the checker, with the judge.
fn ask_the_judge(test: &Test, wrong: &mut Vec<String>) {
    let verdict = judge(&test.program);
    let line = |step: usize| test.program.steps[step].line;
    let matches = |found: &JudgeFound, expected: &Expectation| {
        Some(found.kind) == kind(&expected.rule)
            && line(found.pair.second) == expected.line
            && expected.after.is_none_or(|after| line(found.pair.first) == after)
    };
    let announced: Vec<_> =
        test.annotations.expectations.iter().filter(|expected| kind(&expected.rule).is_some()).collect();
    for expected in &announced {
        if !verdict.found.iter().any(|found| matches(found, expected)) {
            wrong.push(format!(
                "{}:{}: disagreement: [{}] is announced, but the judge does not find it",
                test.path, expected.line, expected.rule
            ));
        }
    }
    if announced.is_empty() {
        for found in &verdict.found {
            wrong.push(format!(
                "{}:{}: disagreement: nothing is announced, but this is {:?} with line {}:\n{}",
                test.path,
                line(found.pair.second),
                found.kind,
                line(found.pair.first),
                witness_text(&test.program, found.pair, &test.path, &test.name)
            ));
        }
    }
    if !verdict.complete {
        wrong.push(format!("{}:{}: too large for the judge to try all schedules", test.path, test.line));
    }
}

fn fail_if_any(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn programs_give_what_their_comments_announce() {
    let mut wrong = Vec::new();
    let documents = pages("docs").into_iter().filter(|(_, text)| text.contains("```sim"));
    for (path, text) in pages("tests/programs").into_iter().chain(documents) {
        match parse_file(&path, &text) {
            Ok(tests) if tests.is_empty() => wrong.push(format!("{path}: no sim block")),
            Ok(tests) => wrong.extend(tests.iter().flat_map(run)),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    fail_if_any(&wrong);
}

/// Sections of a rule page, in order.
const SECTIONS: [&str; 7] =
    ["What it finds", "Why it matters", "Example", "Fix", "How it is found", "When it is wrong", "See also"];

#[test]
fn rule_pages_have_all_sections_and_are_named_after_their_rule() {
    let mut wrong = Vec::new();
    for (path, text) in pages("crates/streamsan-check/rule_docs") {
        let code = path.rsplit('/').next().unwrap_or("").trim_end_matches(".md");
        let Some(rule) = Rule::parse(code) else {
            wrong.push(format!("{path}: no rule has this code"));
            continue;
        };
        if text.lines().next() != Some(&format!("# {} ({code})", rule.name())) {
            wrong.push(format!("{path}:1: the first line must be `# {} ({code})`", rule.name()));
        }
        let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if sections != SECTIONS {
            wrong.push(format!("{path}: the sections are {sections:?}, they must be {SECTIONS:?}"));
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn rule_pages_show_a_program_that_goes_wrong_and_one_that_does_not() {
    let mut wrong = Vec::new();
    for (path, text) in pages("crates/streamsan-check/rule_docs") {
        let tests = match parse_file(&path, &text) {
            Ok(tests) => tests,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        wrong.extend(tests.iter().flat_map(run));
        let code = path.rsplit('/').next().unwrap_or("").trim_end_matches(".md");
        let about_the_tool = code.starts_with("SS9");
        // One host thread without objects has neither; a program has no loops and no pageable memory.
        let not_in_a_program =
            ["SS405", "SS407", "SS701", "SS702", "SS704", "SS705", "SS706"].contains(&code);
        let section = |name: &'static str| tests.iter().filter(move |test| test.name.contains(name));
        let announces = |test: &Test| {
            let explanation = Rule::parse(code).is_some_and(|rule| rule.level() == Level::Note);
            let own = test.annotations.expectations.iter().any(|expected| expected.rule == code);
            own || (explanation && explains(test, code))
        };
        if !about_the_tool && !not_in_a_program && !section("/ Example").any(announces) {
            wrong.push(format!("{path}: no sim block under Example announces [{code}]"));
        }
        if !about_the_tool && section("/ Fix").count() == 0 {
            wrong.push(format!("{path}: no sim block under Fix"));
        }
        if section("/ Fix").any(|test| !test.annotations.expectations.is_empty()) {
            wrong.push(format!("{path}: a sim block under Fix announces a finding, but a fix is clean"));
        }
    }
    fail_if_any(&wrong);
}

/// Whether a finding of the program has the note that this page is about.
fn explains(test: &Test, code: &str) -> bool {
    let report = check(&lower(&test.program, "page.md", &test.name).trace, &Config::default());
    let mut notes = report.findings.iter().flat_map(|finding| &finding.notes);
    notes.any(|note| note.rule().is_some_and(|rule| rule.code() == code))
}

/// The runner itself: it must notice each way in which a test can be wrong.
#[test]
fn a_wrong_comment_fails() {
    let outcome = |lines: &str| {
        let text = format!("# A\n\n```sim\nstreams default, side\nbuffer x 64\n{lines}```\n");
        run(&parse_file("a.md", &text).expect("the program is well-formed")[0]).join("\n")
    };
    let bad = "default: write x # (1)\nside: read x";
    assert_eq!(outcome(&format!("{bad} # error: [SS101] after (1), missing default -> side\n")), "");
    for comment in [
        "",
        "# error: [SS102] after (1)",
        "# warning: [SS101] after (1)",
        "# error: [SS101] after (1), missing side -> default",
        "# error: [SS101] # error: [SS101]",
    ] {
        assert!(outcome(&format!("{bad} {comment}\n")).contains("a.md:7: "), "`{comment}` passes");
    }
    let ordered = "default: write x # (1)\nhost: sync default\nside: read x # error: [SS101] after (1)\n";
    let wrong = outcome(ordered);
    assert!(
        wrong.contains("announced but not found") && wrong.contains("the judge does not find it"),
        "{wrong}"
    );
}
