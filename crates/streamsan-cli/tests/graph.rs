//! `streamsan graph`: what is drawn, and what is said where nothing can be.

mod support;

use support::{BAD, GOOD, Workplace};

#[test]
fn streams_findings_and_operations_are_drawn() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let streams = workplace.run("graph run.sstrace");
    assert_eq!((streams.code, streams.stderr.as_str()), (0, ""));
    assert!(
        streams.stdout.starts_with("<svg ") && streams.stdout.contains("role=\"img\""),
        "{}",
        streams.stdout
    );
    let finding = workplace.run("graph run.sstrace --finding F1").stdout;
    assert!(finding.contains("<title>F1 SS101 ") && finding.contains("class=\"missing\""), "{finding}");
    for arguments in
        ["--format dot", "--finding f1 --format dot", "--finding F1 --depth 2", "--between 1 1000"]
    {
        let said = workplace.run(&format!("graph run.sstrace {arguments}"));
        assert!(
            said.code == 0 && said.stdout.starts_with("digraph streamsan {"),
            "{arguments}: {}",
            said.stdout
        );
        assert!(said.stdout.ends_with("}\n"));
    }
}

#[test]
fn a_file_says_its_format_by_its_name() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    for (name, start) in [("a.svg", "<svg "), ("a.dot", "digraph "), ("a.gv", "digraph ")] {
        let said = workplace.run(&format!("graph run.sstrace -o {name}"));
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "", ""));
        assert!(std::fs::read_to_string(workplace.path(name)).unwrap().starts_with(start));
    }
    assert_eq!(workplace.run("graph run.sstrace -o a.svg").code, 2, "nothing is overwritten");
    assert_eq!(workplace.run("graph run.sstrace -o a.svg --force").code, 0);
    workplace.refuses(
        "graph run.sstrace -o a.png",
        "error: cannot tell the format of a.png from its name\nhelp: end the name in .svg or .dot",
    );
}

#[test]
fn what_cannot_be_drawn_is_said_with_what_can() {
    let workplace = Workplace::new();
    workplace.trace("bad.sstrace", BAD);
    workplace.trace("good.sstrace", GOOD);
    workplace.refuses(
        "graph bad.sstrace --finding F2",
        "error: there is no finding F2\nhelp: this trace has one: --finding F1",
    );
    workplace.refuses(
        "graph good.sstrace --finding F1",
        "error: there is no finding F1\nhelp: this trace has no findings; without --finding the streams are drawn",
    );
    workplace.refuses(
        "graph bad.sstrace --depth 2",
        "error: --depth counts from a finding or a range\nhelp: add --finding F1, or --between FROM TO",
    );
    workplace.refuses(
        "graph bad.sstrace --between 9 3",
        "error: --between 9 3 holds nothing\nhelp: --between 3 9",
    );
    workplace.refuses(
        "graph bad.sstrace --between 3 9 --format svg",
        "error: --stream, --between and --depth are drawn as dot only\nhelp: --format dot, then: dot -Tsvg FILE.dot -o FILE.svg",
    );
}
