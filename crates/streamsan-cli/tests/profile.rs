//! `streamsan advise PROFILE`: profiles of torch.profiler, and the page on them.

mod support;

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use support::{GOOD, Workplace};

const NAMES: [&str; 3] = ["loader_compute_bad.json", "prefetcher.json", "activation_offload.json.gz"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with the recorded profiles, and a source of one, where the page has them.
fn workplace() -> Workplace {
    let workplace = Workplace::new();
    let example = "examples/loader_compute/bad.py";
    workplace.write(example, fs::read(root().join(example)).expect("it is there"));
    for name in NAMES {
        let path = format!("tests/traces/profiles/{name}");
        workplace.write(&path, fs::read(root().join(&path)).expect("it is there"));
    }
    workplace
}

#[test]
fn page_shows_what_is_printed() {
    let path = root().join("docs/profiles.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let mut made = String::new();
    let mut rest = page.as_str();
    let mut count = 0;
    while let Some((before, after)) = rest.split_once("<!-- run: streamsan ") {
        let (command, after) = after.split_once(" -->\n```text\n").expect("a block follows");
        let (_, after) = after.split_once("```\n").expect("the block ends");
        let said = workplace().run(command);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""));
        let _ = write!(made, "{before}<!-- run: streamsan {command} -->\n```text\n{}```\n", said.stdout);
        rest = after;
        count += 1;
    }
    made.push_str(rest);
    assert!(count > 0);
    if std::env::var_os("STREAMSAN_BLESS").is_some() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let page = fs::read_to_string(&path).expect("the page is there");
    assert!(page == made, "docs/profiles.md is old: STREAMSAN_BLESS=1 cargo test -p streamsan-cli");
}

#[test]
fn commands_of_the_page_run() {
    let page = fs::read_to_string(root().join("docs/profiles.md")).expect("the page is there");
    let (_, commands) = page.split_once("```sh\n").expect("there are commands");
    let (commands, rest) = commands.split_once("```").expect("they end");
    assert!(!rest.contains("```sh"), "one block is looked at");
    let workplace = workplace();
    let packed =
        fs::read(root().join("tests/traces/profiles/activation_offload.json.gz")).expect("it is there");
    workplace.write("profile.json.gz", packed);
    for command in commands.lines() {
        let said = workplace.run(command.strip_prefix("streamsan ").expect("it is ours"));
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{command}");
        assert!(!said.stdout.is_empty(), "{command}");
    }
    assert!(workplace.read("profile.html").contains("</html>"));
}

#[test]
fn several_at_once_and_into_files() {
    let workplace = workplace();
    let files = NAMES.map(|name| format!("tests/traces/profiles/{name}")).join(" ");
    let said = workplace.run(&format!("advise --output-format json -o r.txt -o r.json -o r.html {files}"));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_eq!(said.stdout, workplace.read("r.json"));
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let profiles = document["profiles"].as_array().expect("there is a list");
    let read: Vec<&str> = profiles.iter().filter_map(|profile| profile["file"].as_str()).collect();
    assert_eq!(read.join(" "), files);
    assert_eq!(workplace.read("r.txt").matches("\nBound by ").count(), 3);
    let page = workplace.read("r.html");
    assert_eq!(page.matches("<section>").count(), 3);
    assert!(page.contains("<div>stream 33</div>") && page.contains("Bound by the host: "), "{page}");
    workplace.refuses(
        &format!("advise -o r.txt {files}"),
        "error: r.txt exists\nhelp: choose another name, or overwrite it with --force",
    );
}

#[test]
fn what_does_not_go_is_said() {
    let workplace = workplace();
    workplace.trace("run.sstrace", GOOD);
    let profile = "tests/traces/profiles/prefetcher.json";
    workplace.refuses(
        &format!("advise run.sstrace {profile}"),
        "error: traces and profiles cannot be read together\nhelp: use a command for each",
    );
    workplace.refuses(
        &format!("check {profile}"),
        &format!(
            "error: {profile} is JSON, and no trace of streamsan\nhelp: a profile of torch.profiler has no addresses: `streamsan run` finds races, `streamsan advise {profile}` says what bounds the program"
        ),
    );
    workplace.refuses(
        &format!("advise --output-format sarif {profile}"),
        "error: of profiles there is no such report\nhelp: --output-format full, json or html",
    );
    workplace.refuses(
        &format!("advise -o r.xml {profile}"),
        "error: cannot write r.xml: of profiles there is no such report\nhelp: end the name in .html, .json or .txt",
    );
    workplace.refuses(
        &format!("advise --select SS7 {profile}"),
        "error: a profile has no findings: --select, --ignore, --assume-sync-before and --write-baseline are for traces",
    );
    workplace.write("cut.json", &workplace.read(profile)[..1000]);
    let said = workplace.run("advise cut.json");
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    assert!(
        said.stderr.starts_with(
            "error: cannot read cut.json: the file ends in the middle of the profile, at byte 1000\nhelp: "
        ),
        "{}",
        said.stderr
    );
    workplace.write("empty.json", "{\"traceEvents\": []}");
    let said = workplace.run("advise empty.json");
    assert_eq!((said.code, said.stdout.as_str()), (4, ""));
    assert!(
        said.stderr
            .starts_with("error: empty.json: nothing ran on a GPU in this profile\nhelp: record with "),
        "{}",
        said.stderr
    );
}
