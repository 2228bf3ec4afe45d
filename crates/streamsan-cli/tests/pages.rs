//! Commands that print: help, rules, limits, demo, doctor, dump; and `docs/cli.md`, which is made from them.

mod support;

use insta::assert_snapshot;
use std::fmt::Write as _;
use support::{BAD, Workplace};

#[test]
fn demo_finds_one_error_and_then_none() {
    let said = Workplace::new().run("demo");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_snapshot!(said.stdout);
}

#[test]
fn explains() {
    let workplace = Workplace::new();
    for topic in ["SS101", "ss101", "unordered-read-after-write"] {
        let said = workplace.run(&format!("explain {topic}"));
        assert_eq!(said.code, 0);
        assert!(said.stdout.contains("## What it finds"), "{}", said.stdout);
    }
    let rules = workplace.run("explain rules").stdout;
    assert!(rules.contains("SS403  self-wait                    warning  "), "{rules}");
    assert!(workplace.run("explain limits").stdout.starts_with("# What streamsan does not see\n"));
    for page in ["SS101", "SS302", "SS901"] {
        let said = workplace.run(&format!("explain {page}")).stdout;
        assert!(!said.contains("<!--") && !said.contains("-->") && !said.contains("\n\n\n"), "{said}");
        let before =
            said.matches("As a stream program (the language: docs/programs.md):\n\n```sim\n").count();
        assert_eq!(before, usize::from(said.contains("```sim")), "{said}");
    }
    workplace.refuses(
        "explain limit",
        "error: there is no rule limit\nhelp: did you mean `streamsan explain limits`?",
    );
    workplace.refuses(
        "explain SS1011",
        "error: there is no rule SS1011\nhelp: did you mean `streamsan explain SS101`?",
    );
    workplace.refuses(
        "explain SS888",
        "error: there is no rule SS888\nhelp: `streamsan explain rules` lists them",
    );
}

#[test]
fn doctor_names_every_obstacle() {
    let workplace = Workplace::new();
    workplace.fact("torch_cuda=13.0", "torch_cuda=");
    std::fs::remove_file(workplace.path("package/_startup/sitecustomize.py")).unwrap();
    let said = workplace.run("doctor");
    assert_eq!((said.code, said.stderr.as_str()), (2, ""));
    for expected in [
        "  torch           2.11.0+cu130 (without CUDA)  <- see below\n",
        "error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is a CPU-only build\n",
        "error: this installation of streamsan is incomplete: there is no DIR/package/_startup/sitecustomize.py\n",
        "\n`streamsan run` does not work here yet; `streamsan check` and `streamsan demo` do.\n",
    ] {
        assert!(said.stdout.contains(expected), "{}", said.stdout);
    }
}

#[test]
fn doctor_says_where_versions_stand() {
    let said = |from: &str, to: &str| {
        let workplace = Workplace::new();
        workplace.fact(from, to);
        workplace.run("doctor").stdout
    };
    let usual = said("torch=2.11.0+cu130", "torch=2.11.0+cu130");
    for expected in [
        "\nTested with this streamsan (tests that passed, of those that ran):\n\n  torch   CUDA  Python 3.10  ",
        "\nYours, torch 2.11.0+cu130 with Python 3.11.2: ",
    ] {
        assert!(usual.contains(expected), "{usual}");
    }
    let newer = said("torch=2.11.0+cu130", "torch=9.1.0");
    assert!(
        newer.contains("\nYours, torch 9.1.0 with Python 3.11.2: not tested, and it may not work: "),
        "{newer}"
    );
    let old = said("python=3.11.2", "python=3.10.4");
    assert!(old.contains("\nPython 3.10 does not keep columns: "), "{old}");
    let free = said("machine=x86_64", "machine=x86_64\nfree_threaded=1");
    assert!(free.contains(": known not to work: Python without a global interpreter lock"), "{free}");
}

#[test]
fn dump_has_a_line_for_each_event() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let said = workplace.run("dump run.sstrace");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_snapshot!(said.stdout);
}

#[test]
fn sim_judges_and_checks() {
    let workplace = Workplace::new();
    workplace.write("program.md", format!("# Upload\n\n```sim\n{BAD}```\n"));
    let said = workplace.run("sim program.md");
    assert!(said.stdout.contains("1 pair of conflicting operations"), "{}{}", said.stdout, said.stderr);
    assert!(workplace.run("sim --check program.md").stdout.contains("error[SS101]"));
    workplace
        .refuses("sim missing.md", "error: cannot read missing.md: No such file or directory (os error 2)");
}

#[test]
fn version() {
    let said = Workplace::new().run("--version");
    assert_eq!((said.code, said.stdout), (0, format!("streamsan {}\n", env!("CARGO_PKG_VERSION"))));
}

/// `docs/cli.md` is what `--help` says. Rewritten by `STREAMSAN_BLESS=1 cargo test -p streamsan-cli`.
#[test]
fn page_of_the_command_line_is_current() {
    let workplace = Workplace::new();
    let mut page = include_str!("support/cli.md").to_owned();
    for command in ["", "run", "check", "advise", "graph", "log", "explain", "demo", "doctor"] {
        let said = workplace.run(format!("{command} --help").trim());
        assert_eq!(said.code, 0);
        let title = format!("streamsan {command}");
        let _ = write!(page, "\n## {}\n\n```text\n{}\n```\n", title.trim(), said.stdout.trim_end());
    }
    // Trailing blanks are clap's.
    let page: String = page.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if std::env::var_os("STREAMSAN_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(current == page, "docs/cli.md is old: STREAMSAN_BLESS=1 cargo test -p streamsan-cli");
}
