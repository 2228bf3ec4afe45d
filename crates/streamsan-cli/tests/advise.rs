//! `streamsan advise`: what it prints, what it writes, and that it changes no exit status.

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use support::{BAD, GOOD, NOTHING, Workplace};

/// The second wait orders nothing new.
const TWICE: &str = "streams default, side\nbuffer x 4MiB\ndefault: write x\ndefault: record e\nside: wait e\nside: wait e\nside: read x\n";

#[test]
fn advice_comes_after_the_findings_and_does_not_count() {
    let workplace = Workplace::new();
    workplace.trace("twice.sstrace", TWICE);
    let said = workplace.run("advise twice.sstrace");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_snapshot!(said.stdout);
    let written = workplace.run("advise -o r.html -o r.sarif -o r.xml --output-format concise twice.sstrace");
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    let page = workplace.read("r.html");
    assert!(
        page.contains("longest chain: 2 of 2 operations") && page.contains("Take out program.sim:6"),
        "{page}"
    );
    let sarif: Value = serde_json::from_str(&workplace.read("r.sarif")).expect("it is JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["level"], "note");
    assert!(workplace.read("r.xml").contains("failures=\"0\""));
    let checked = workplace.run("check twice.sstrace");
    assert!(!checked.stdout.contains("SS703") && checked.code == 0, "{}", checked.stdout);
    workplace.trace("bad.sstrace", BAD);
    let said = workplace.run("advise bad.sstrace twice.sstrace --output-format concise");
    let at = |code: &str| said.stdout.find(code).unwrap_or_else(|| panic!("{}", said.stdout));
    assert!(at("error[SS101]") < at("note[SS703]"), "{}", said.stdout);
    assert_eq!(said.code, 1);
}

#[test]
fn exit_status_is_that_of_check() {
    let workplace = Workplace::new();
    for (name, program, options, code) in [
        ("good", GOOD, "", 0),
        ("bad", BAD, "", 1),
        ("nothing", NOTHING, "", 4),
        ("twice", TWICE, "--error-on-warning", 0),
        ("twice", TWICE, "--warn SS703 --error-on-warning", 1),
        ("twice", TWICE, "--error SS7", 1),
        ("bad", BAD, "--select SS7", 0),
    ] {
        workplace.trace("run.sstrace", program);
        let said = workplace.run(&format!("advise {options} run.sstrace"));
        assert_eq!(said.code, code, "{name} {options}: {}", said.stdout);
    }
}

#[test]
fn check_does_not_take_advice_for_a_clean_run() {
    let workplace = Workplace::new();
    workplace.trace("twice.sstrace", TWICE);
    workplace.refuses(
        "check --select SS7 twice.sstrace",
        "error: the rules that are left are advice, which `check` does not give\nhelp: streamsan advise, with the same options",
    );
    assert_eq!(workplace.run("check --select SS7,SS101 twice.sstrace").code, 0);
}

/// A comment for advice is judged where advice is given, and only there.
#[test]
fn a_comment_for_advice_is_used_by_advise() {
    let workplace = Workplace::new();
    workplace.trace("twice.sstrace", TWICE);
    let with = |line: &str, comment: &str| {
        let source =
            TWICE.replacen(&format!("{line}\nside: read"), &format!("{line} {comment}\nside: read"), 1);
        assert_ne!(source, TWICE);
        workplace.write("program.sim", source);
    };
    with("side: wait e", "# streamsan: ignore[SS703] said twice");
    let said = workplace.run("advise twice.sstrace");
    assert!(
        !said.stdout.contains("note[SS703]") && said.stdout.contains("1 finding ignored"),
        "{}",
        said.stdout
    );
    let said = workplace.run("check twice.sstrace");
    assert!(!said.stdout.contains("SS903"), "{}", said.stdout);
    with("side: wait e", "# streamsan: ignore[SS707] not here");
    assert!(workplace.run("advise twice.sstrace").stdout.contains("warning[SS903]"));
}

#[test]
fn json_says_what_to_take_out_and_what_was_counted() {
    let workplace = Workplace::new();
    workplace.trace("twice.sstrace", TWICE);
    let said = workplace.run("advise --output-format json twice.sstrace");
    let report: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let finding = &report["findings"][0];
    assert_eq!((finding["rule"].as_str(), finding["level"].as_str()), (Some("SS703"), Some("note")));
    assert_eq!(finding["fix"]["where"], "remove");
    assert_eq!(finding["fix"]["verified"], true);
    assert_eq!(finding["advice"]["executions"], 1);
}

/// What is missing from a trace may need what looks needless.
#[test]
fn advice_on_a_trace_with_gaps_is_not_confirmed() {
    let workplace = Workplace::new();
    workplace.trace("twice.sstrace", TWICE);
    let bytes = std::fs::read(workplace.path("twice.sstrace")).expect("it was written");
    workplace.write("cut.sstrace", &bytes[..bytes.len() - 1]);
    let whole = workplace.run("advise --output-format github twice.sstrace").stdout;
    assert!(whole.contains("checked: with"), "{whole}");
    let cut = workplace.run("advise --output-format github cut.sstrace").stdout;
    assert!(cut.contains("SS703") && !cut.contains("checked: with"), "{cut}");
    assert!(cut.contains("not confirmed: not all of this run was seen"), "{cut}");
    let json = workplace.run("advise --output-format json cut.sstrace").stdout;
    let report: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(report["findings"][0]["fix"]["verified"], false);
}
