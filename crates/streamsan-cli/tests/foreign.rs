//! Files that are none of ours, where one of ours is expected: an error at once, whatever their length.

mod support;

use std::os::unix::fs::symlink;
use std::process::Command;
use support::Workplace;

const PROGRAM: &str =
    "streams default, side\nbuffer x 64\ndefault: write x\nhost: sync device\nside: read x\n";

fn pipe(workplace: &Workplace, name: &str) {
    let made = Command::new("mkfifo").arg(workplace.path(name)).status().expect("mkfifo is there");
    assert!(made.success());
}

#[test]
fn programs_are_read_from_regular_files_of_a_size_that_people_write() {
    let workplace = Workplace::new();
    pipe(&workplace, "pipe");
    symlink("/dev/zero", workplace.path("zero")).expect("a link can be made");
    std::fs::File::create(workplace.path("huge"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    workplace.write("bytes", b"\x7fELF\xff\xfe");
    let regular = "it is no regular file; name a markdown file with `sim` blocks";
    for (file, expected) in [
        ("pipe", regular),
        ("zero", regular),
        ("huge", "it has 1099511627776 bytes, and programs have up to 1048576"),
        ("bytes", "it is not UTF-8; name a markdown file with `sim` blocks"),
    ] {
        workplace.refuses(&format!("sim {file}"), &format!("error: cannot read {file}: {expected}"));
    }
}

#[test]
fn a_baseline_has_an_end() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", PROGRAM);
    symlink("/dev/zero", workplace.path("zero")).expect("a link can be made");
    workplace.refuses(
        "check --baseline zero run.sstrace",
        "error: cannot read the baseline zero: it is longer than any baseline\nhelp: --write-baseline zero writes it",
    );
}

#[test]
fn a_configuration_that_is_no_file_is_none() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", PROGRAM);
    pipe(&workplace, "pyproject.toml");
    assert_eq!(workplace.run("check run.sstrace").code, 0);
}
