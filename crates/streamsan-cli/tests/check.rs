//! `streamsan check`: statuses, formats, files, and every way a trace can be wrong.

mod support;

use insta::assert_snapshot;
use support::{BAD, GOOD, NOTHING, WARNING, Workplace};

#[test]
fn status_says_what_was_found() {
    let workplace = Workplace::new();
    for (name, program) in [("bad", BAD), ("good", GOOD), ("warning", WARNING), ("nothing", NOTHING)] {
        workplace.trace(&format!("{name}.sstrace"), program);
    }
    let cases = [
        ("bad.sstrace", 1),
        ("good.sstrace", 0),
        ("warning.sstrace", 0),
        ("nothing.sstrace", 4),
        ("--exit-zero bad.sstrace", 0),
        ("--exit-zero nothing.sstrace", 4),
        ("--error-on-warning warning.sstrace", 1),
        ("--error-on-warning good.sstrace", 0),
        ("--ignore SS101 bad.sstrace", 0),
        ("--ignore SS4,unordered-read-after-write bad.sstrace", 0),
        ("--select SS4 bad.sstrace", 0),
        ("--select SS1 bad.sstrace", 1),
        ("--select SS1 --ignore ss101 bad.sstrace", 0),
        ("good.sstrace bad.sstrace", 1),
        ("good.sstrace nothing.sstrace", 4),
    ];
    for (arguments, code) in cases {
        let said = workplace.run(&format!("check {arguments}"));
        assert_eq!((said.code, said.stderr.as_str()), (code, ""), "check {arguments}\n{}", said.stdout);
    }
}

#[test]
fn findings_that_are_left_out_are_counted() {
    let workplace = Workplace::new();
    workplace.trace("bad.sstrace", BAD);
    for options in ["--ignore SS101", "--select SS4"] {
        for format in ["full", "concise"] {
            let said = workplace.run(&format!("check {options} --output-format {format} bad.sstrace")).stdout;
            assert!(
                said.starts_with("1 finding not shown (--ignore, --select, --baseline); nothing else"),
                "{said}"
            );
            assert!(!said.contains("No hazards"), "{said}");
        }
    }
}

#[test]
fn full_report_shows_the_source() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    assert_snapshot!(workplace.run("check run.sstrace").stdout);
}

#[test]
fn nothing_recorded_is_not_clean() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", NOTHING);
    assert_snapshot!(workplace.run("check run.sstrace").stdout);
}

#[test]
fn formats() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let concise = workplace.run("check --output-format concise run.sstrace").stdout;
    assert_eq!(
        concise.lines().next(),
        Some(
            "program.sim:4: error[SS101] unordered read-after-write on `x`: default #7 (program.sim:3) -> side #8"
        )
    );
    let json = workplace.run("check --output-format json run.sstrace").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&json["format_version"], &json["findings"][0]["rule"]), (&1.into(), &"SS101".into()));
    let by_variable =
        workplace.command("check run.sstrace").env("STREAMSAN_OUTPUT_FORMAT", "concise").output();
    assert_eq!(workplace.said(by_variable.unwrap()).stdout, concise);
}

#[test]
fn output_files() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let said = workplace.run("check run.sstrace -o report.json -o report.txt");
    assert_eq!(said.code, 1);
    assert_eq!(workplace.read("report.txt"), said.stdout);
    assert!(workplace.read("report.json").starts_with("{\n  \"format_version\": 1,"));
    workplace.refuses(
        "check run.sstrace -o report.txt",
        "error: report.txt exists\nhelp: choose another name, or overwrite it with --force",
    );
    assert_eq!(workplace.run("check run.sstrace -o report.txt --force").code, 1);
    workplace.refuses(
        "check run.sstrace -o report.pdf",
        "error: cannot tell the format of report.pdf from its name\nhelp: end the name in .html, .sarif, .json, .jsonl, .xml (JUnit), .perfetto.json or .txt",
    );
    workplace.refuses(
        "check run.sstrace -o no/report.txt",
        "error: cannot write no/report.txt: there is no folder no\nhelp: mkdir -p no",
    );
}

#[test]
fn colours_only_if_asked() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    assert!(!workplace.run("check run.sstrace").stdout.contains('\u{1b}'));
    assert!(workplace.run("check --color always run.sstrace").stdout.contains("\u{1b}["));
    assert!(workplace.run("--color always check run.sstrace").stdout.contains("\u{1b}["));
}

#[test]
fn wrong_files() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let whole = std::fs::read(workplace.path("run.sstrace")).unwrap();
    workplace.write("folder/x", "");
    workplace.write("empty", "");
    workplace.write("text", "a shopping list, long enough to be taken for a header\n".repeat(200));
    workplace.write("header-cut", &whole[..100]);
    let mut version = whole.clone();
    version[8] = 99;
    workplace.write("version", version);
    let cases = [
        ("missing", "no such file"),
        ("folder", "it is a directory; name a .sstrace file"),
        ("empty", "the file is empty; was the recorded program stopped before it began?"),
        ("text", "it is not a streamsan trace (it does not start with SSTRACE)"),
        ("header-cut", "the file is cut off at byte 100, inside its header of 4096 bytes"),
        ("version", "it has version 99 of the format and this build reads up to 1; use a newer streamsan"),
    ];
    for (file, expected) in cases {
        workplace.refuses(&format!("check {file}"), &format!("error: cannot read {file}: {expected}"));
        workplace.refuses(&format!("dump {file}"), &format!("error: cannot read {file}: {expected}"));
    }
}

#[test]
fn cut_file_is_checked_as_far_as_it_goes() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let whole = std::fs::read(workplace.path("run.sstrace")).unwrap();
    // Whatever is left, there is a report or an error, and it is not "clean".
    for length in (0..whole.len()).step_by(97) {
        workplace.write("cut.sstrace", &whole[..length]);
        let said = workplace.run("check cut.sstrace");
        assert!(
            [1, 2, 4].contains(&said.code),
            "{length} of {}: {}\n{}",
            whole.len(),
            said.code,
            said.stdout
        );
        if said.code != 2 {
            assert!(said.stdout.contains("(SS901)"), "{length} of {}: {}", whole.len(), said.stdout);
        }
    }
}

#[test]
fn wrong_arguments() {
    let workplace = Workplace::new();
    for (arguments, expected) in [
        ("check", "error: the following required arguments were not provided:\n  <TRACE>..."),
        ("check --select SS777 x", "error: invalid value 'SS777' for '--select <RULES>': no such rule"),
        ("check --exit-zero --error-on-warning x", "error: the argument '--exit-zero' cannot be used with"),
        ("check --output-format pdf x", "error: invalid value 'pdf' for '--output-format <FORMAT>'"),
        ("chekc x", "error: unrecognized subcommand 'chekc'\nhelp: did you mean `streamsan check`?\n"),
        (
            "frobnicate",
            "error: unrecognized subcommand 'frobnicate'\nhelp: `streamsan --help` lists the commands\n",
        ),
        (
            "train.py --lr 3",
            "error: unrecognized subcommand 'train.py'\nhelp: did you mean: streamsan run train.py --lr 3\n",
        ),
    ] {
        let said = workplace.run(arguments);
        assert!(said.stderr.starts_with(expected), "{}", said.stderr);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    }
}

#[test]
fn closed_pipe_is_no_error() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let mut child = workplace.command("check run.sstrace").spawn().unwrap();
    drop(child.stdout.take());
    let said = workplace.said(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (1, ""));
}
