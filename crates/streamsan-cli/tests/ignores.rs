//! Ignore comments in the sources of a trace.

mod support;

use support::Workplace;

/// SS101 on line 4; the source with what is put behind its last line.
fn said(comment: &str, options: &str) -> (i32, String, String) {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", support::BAD);
    workplace.write("program.sim", format!("{}{comment}\n", support::BAD.trim_end()));
    let said = workplace.run(&format!("check {options} run.sstrace"));
    (said.code, said.stdout, said.stderr)
}

#[test]
fn a_comment_hides_a_finding_and_the_report_says_so() {
    let (code, stdout, stderr) = said("  # streamsan: ignore[SS101] the loader waits", "");
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.starts_with("1 finding ignored; nothing else in what was seen"), "{stdout}");
    assert!(stdout.contains("  1 finding of SS101 at program.sim:4: the loader waits\n"), "{stdout}");
}

#[test]
fn a_comment_without_a_reason_hides_nothing_and_is_told_of() {
    let (code, stdout, stderr) = said("  # streamsan: ignore[SS101]", "");
    assert!(code == 1 && stdout.contains("error[SS101]"), "{stdout}");
    let expected = "warning: program.sim:4: this ignore has no reason, so it ignores nothing; \
                    write `# streamsan: ignore[SS101] why it is no hazard`\n";
    assert_eq!(stderr, expected);
}

#[test]
fn an_unused_comment_is_a_warning_at_its_line() {
    let (code, stdout, _) = said("  # streamsan: ignore[SS101, SS102] the loader waits", "");
    assert_eq!(code, 0, "{stdout}");
    let comment = "  # streamsan: ignore[SS103] nobody else writes";
    let (code, stdout, _) = said(comment, "");
    assert_eq!(code, 1);
    assert!(
        stdout.contains("warning[SS903]: this ignore leaves nothing out\n --> program.sim:4"),
        "{stdout}"
    );
    let (_, stdout, _) = said(comment, "--ignore SS903");
    assert!(!stdout.contains("SS903") && stdout.contains("1 finding not shown"), "{stdout}");
}
