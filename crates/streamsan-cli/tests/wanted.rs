//! What is reported: levels, `pyproject.toml`, known findings, assumed waits.

mod support;

use support::{BAD, GOOD, WARNING, Workplace};

/// [`BAD`] with a line before it.
const MOVED: &str = "streams default, side\nbuffer x 4MiB\nbuffer y 4MiB\ndefault: write x\nside: read x\n";

/// The hazard of [`BAD`], and another one.
const TWO: &str = "streams default, side\nbuffer x 4MiB\ndefault: write x\nside: read x\nbuffer y 4MiB\ndefault: write y\nside: read y\n";

fn workplace(program: &str) -> Workplace {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", program);
    workplace
}

#[test]
fn levels_of_rules() {
    let workplace = workplace(BAD);
    workplace.trace("warning.sstrace", WARNING);
    for (arguments, code, said) in [
        ("--warn SS101 run.sstrace", 0, "warning[SS101]"),
        ("--warn SS1 --error unordered-read-after-write run.sstrace", 0, "warning[SS101]"),
        ("--error SS4 warning.sstrace", 1, "error[SS401]"),
        ("--warn SS101 --error-on-warning run.sstrace", 1, "warning[SS101]"),
    ] {
        let out = workplace.run(&format!("check --output-format concise {arguments}"));
        assert_eq!(out.code, code, "{arguments}: {}{}", out.stdout, out.stderr);
        assert!(out.stdout.contains(said), "{arguments}: {}", out.stdout);
    }
}

#[test]
fn project_says_what_is_wanted_and_the_command_line_wins() {
    let workplace = workplace(BAD);
    let configured = |table: &str| {
        workplace.write("pyproject.toml", format!("[project]\nname = 'job'\n\n[tool.streamsan]\n{table}\n"));
    };
    for (table, arguments, code) in [
        ("ignore = ['SS101']", "", 0),
        ("ignore = ['SS101']", "--ignore SS2", 1),
        ("select = ['SS4']", "", 0),
        ("select = ['SS4']", "--select SS1", 1),
        ("warn = ['SS1']", "", 0),
        ("warn = ['SS1']\nerror-on-warning = true", "", 1),
        ("warn = ['SS1']\nerror-on-warning = true", "--exit-zero", 0),
        ("warn = ['SS1']", "--error SS101", 1),
        ("per-file-ignores = { '*.sim' = ['SS1'] }", "", 0),
        ("per-file-ignores = { 'program.sim' = ['SS101'] }", "", 0),
        ("per-file-ignores = { 'other/**' = ['SS1'] }", "", 1),
    ] {
        configured(table);
        let said = workplace.run(&format!("check {arguments} run.sstrace"));
        assert_eq!(said.code, code, "{table} {arguments}: {}{}", said.stdout, said.stderr);
    }
    // From a folder below too.
    configured("ignore = ['SS101']");
    workplace.write("deep/er/x", "");
    let mut command = workplace.command("check ../../run.sstrace");
    command.current_dir(workplace.path("deep/er"));
    assert_eq!(workplace.said(command.output().unwrap()).code, 0);
    configured("igonre = ['SS101']");
    workplace.refuses(
        "check run.sstrace",
        "error: pyproject.toml:5: unknown key `igonre` in [tool.streamsan]\nhelp: did you mean `ignore`?",
    );
    workplace.write("x.py", "");
    workplace.refuses(
        "run --force x.py",
        "error: pyproject.toml:5: unknown key `igonre` in [tool.streamsan]\nhelp: did you mean `ignore`?",
    );
}

#[test]
fn known_findings_are_hidden_and_only_those() {
    let workplace = workplace(BAD);
    let said = workplace.run("check --write-baseline known.json run.sstrace");
    assert_eq!((said.code, said.stderr.as_str()), (0, "note: known.json now holds 1 known finding\n"));
    let said = workplace.run("check --baseline known.json run.sstrace");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{}", said.stdout);
    assert!(
        said.stdout.starts_with("1 finding not shown (--ignore, --select, --baseline)"),
        "{}",
        said.stdout
    );
    // The same lines further down.
    workplace.trace("run.sstrace", MOVED);
    assert_eq!(workplace.run("check --baseline known.json run.sstrace").code, 0);
    // A new one of the same kind in the same file: it is the one that is shown.
    workplace.trace("run.sstrace", TWO);
    let said = workplace.run("check --baseline known.json --output-format concise run.sstrace");
    assert_eq!(said.code, 1, "{}", said.stdout);
    assert!(said.stdout.starts_with("program.sim:7: error[SS101]"), "{}", said.stdout);
    assert_eq!(said.stdout.matches("SS101").count(), 1, "{}", said.stdout);
    // Repaired.
    workplace.trace("run.sstrace", GOOD);
    let said = workplace.run("check --baseline known.json run.sstrace");
    assert_eq!(said.code, 0);
    assert_eq!(
        said.stderr,
        "note: known.json has findings that did not occur: SS101 program.sim:3 -> program.sim:4\nhelp: if they are repaired, renew it with --write-baseline known.json\n"
    );
    assert_eq!(workplace.run("check --baseline known.json --ignore SS101 run.sstrace").stderr, "");
    // A baseline may be renewed, anything else is somebody's.
    assert_eq!(workplace.run("check --write-baseline known.json run.sstrace").code, 0);
    workplace.refuses(
        "check --write-baseline program.sim run.sstrace",
        "error: program.sim exists\nhelp: choose another name, or overwrite it with --force",
    );
}

#[test]
fn baseline_of_the_project() {
    let workplace = workplace(BAD);
    workplace.write("pyproject.toml", "[tool.streamsan]\nbaseline = 'known.json'\n");
    workplace.refuses(
        "check run.sstrace",
        "error: cannot read the baseline known.json: no such file\nhelp: --write-baseline known.json writes it",
    );
    assert_eq!(workplace.run("check --no-baseline run.sstrace").code, 1);
    assert_eq!(workplace.run("check --no-baseline --write-baseline known.json run.sstrace").code, 0);
    assert_eq!(workplace.run("check run.sstrace").code, 0);
    assert_eq!(workplace.run("check --no-baseline run.sstrace").code, 1);
}

#[test]
fn baseline_that_is_none() {
    let workplace = workplace(BAD);
    workplace.run("check --write-baseline known.json run.sstrace");
    let good = workplace.read("known.json");
    // A file that this tool did not write is not to be overwritten.
    let foreign = "it is no baseline of streamsan; --write-baseline FILE writes one to another file";
    let own = "write it anew with --write-baseline known.json --force";
    for (from, to, expected) in [
        (good.as_str(), "", "1: EOF while parsing a value"),
        ("\"version\": 1", "\"version\": 7", "2: version 7 of the format is not known; this build knows 1"),
        (
            "\"fingerprint\"",
            "\"finger\"",
            "7: unknown field `finger`, expected one of `rule`, `fingerprint`, `places`",
        ),
        ("\"SS101\"", "\"SS999\"", "6: there is no rule `SS999`"),
        ("\"findings\": [", "\"findings\": ", "5: invalid type: map, expected a sequence"),
    ] {
        assert!(good.contains(from), "{from}: {good}");
        workplace.write("known.json", good.replacen(from, to, 1));
        workplace.refuses(
            "check --baseline known.json run.sstrace",
            &format!("error: known.json:{expected}\nhelp: {}", if to.is_empty() { foreign } else { own }),
        );
    }
}

#[test]
fn what_would_remain() {
    let workplace = workplace(TWO);
    for (arguments, code, left) in [
        ("", 1, 2),
        ("--assume-sync-before program.sim:4", 1, 1),
        ("--assume-sync-before program.sim:4 --assume-sync-before program.sim:7", 0, 0),
        // Too early for the first, and for the second.
        ("--assume-sync-before program.sim:3", 1, 2),
    ] {
        let said = workplace.run(&format!("check --output-format concise {arguments} run.sstrace"));
        assert_eq!(
            (said.code, said.stdout.matches("error[").count()),
            (code, left),
            "{arguments} {}",
            said.stdout
        );
    }
    let said = workplace.run("check --assume-sync-before program.sim:99 run.sstrace");
    assert_eq!(said.code, 2);
    assert!(said.stderr.starts_with("error: --assume-sync-before program.sim:99: nothing in the trace was called from there\nhelp: lines of program.sim in the trace: "), "{}", said.stderr);
    let said = workplace.run("check --assume-sync-before train.py run.sstrace");
    assert!(said.stderr.contains("write it as train.py:41"), "{}", said.stderr);
}

#[test]
fn report_files_of_a_run() {
    let workplace = workplace(BAD);
    // What the "program" leaves behind is the trace.
    workplace.write("job.py", "cp run.sstrace \"$STREAMSAN_TRACE\"\n");
    let said = workplace.run("run -o out.sstrace --report r.json --report r.sarif --report r.html job.py");
    assert_eq!(said.code, 66, "{}", said.stderr);
    assert!(workplace.read("r.json").contains("\"rule\": \"SS101\""));
    assert!(workplace.read("r.sarif").contains("\"version\": \"2.1.0\""));
    assert!(workplace.read("r.html").contains("SS101"));
    let again = |options: &str| workplace.run(&format!("run --force -o out.sstrace {options} job.py"));
    assert_eq!(again("--ignore SS101").code, 0);
    assert_eq!(again("--warn SS101").code, 0);
    assert_eq!(again("--warn SS101 --error-on-warning").code, 66);
    assert_eq!(workplace.run("check run.sstrace --write-baseline known.json").code, 0);
    assert_eq!(again("--baseline known.json").code, 0);
    workplace.refuses(
        "run -o x.sstrace --report r.json job.py",
        "error: r.json exists\nhelp: choose another name, or overwrite it with --force",
    );
    workplace.refuses(
        "run -o x.sstrace --report r.doc job.py",
        "error: cannot tell the format of r.doc from its name\nhelp: end the name in .html, .sarif, .json, .jsonl, .xml (JUnit), .perfetto.json or .txt",
    );
    workplace.refuses(
        "check run.sstrace -o n.json -o n.json",
        "error: n.json is named twice\nhelp: name each file once",
    );
}

#[test]
fn every_format_is_written_twice_with_the_same_bytes() {
    let workplace = workplace(TWO);
    std::fs::copy(workplace.path("run.sstrace"), workplace.path("again.sstrace")).unwrap();
    workplace.refuses(
        "check run.sstrace run.sstrace",
        "error: run.sstrace is named twice\nhelp: name each trace once",
    );
    for format in ["full", "concise", "json", "json-lines", "sarif", "github", "junit", "html", "perfetto"] {
        let write = || workplace.run(&format!("check --output-format {format} run.sstrace again.sstrace"));
        let (one, two) = (write(), write());
        assert_eq!((one.code, one.stdout.is_empty(), one.stderr.as_str()), (1, false, ""), "{format}");
        assert!(one.stdout == two.stdout, "{format}");
    }
}

#[test]
fn paths_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let workplace = workplace(BAD);
    let name = std::ffi::OsStr::from_bytes(b"r\xff\n.sstrace");
    std::fs::copy(workplace.path("run.sstrace"), workplace.path("").join(name)).unwrap();
    for format in ["full", "concise", "json", "json-lines", "sarif", "github", "junit", "html", "perfetto"] {
        let mut command = workplace.command(&format!("check --output-format {format}"));
        let said = workplace.said(command.arg(name).output().unwrap());
        assert_eq!((said.code, said.stderr.as_str()), (1, ""), "{format}: {}", said.stdout);
    }
}
