//! The table on data of its own; and `docs/versions.md`, which is made from the built-in one.

use super::{Standing, Suite, Versions};
use std::fmt::Write as _;

const SOME: &str = r#"{
  "python_checked": ["3.10", "3.12"],
  "known_not_to_work": [{"torch_from": "2.15", "python_to": "3.10", "why": "there are no packages"}],
  "free_threaded": "it has no lock",
  "python_notes": [{"python_to": "3.10", "note": "no columns"}],
  "tested": [
    {"torch": "2.11.0", "cuda": "13.0", "python": "3.10.13", "suites": {
      "python": {"passed": 8, "failed": 0, "skipped": 1, "failures": [], "commit": "c", "date": "d"},
      "torch": {"passed": 30, "failed": 0, "skipped": 0, "failures": [], "commit": "c", "date": "d"}}},
    {"torch": "2.15.0", "cuda": "13.2", "python": "3.12.1", "suites": {
      "torch": {"passed": 29, "failed": 1, "skipped": 0, "failures": ["a::b"], "commit": "c", "date": "d"}}}
  ]
}"#;

fn standing(torch: &str, python: &str) -> Standing {
    serde_json::from_str::<Versions>(SOME).unwrap().standing(torch, python, false)
}

#[test]
fn what_was_tested_counts_without_build_and_repair_numbers() {
    assert_eq!(standing("2.11.0+cu130", "3.10.2"), Standing::Tested(vec![]));
    assert_eq!(standing("2.11.1", "3.10.13"), Standing::Tested(vec![]));
    assert_eq!(standing("2.15.0", "3.12.9"), Standing::Tested(vec!["a::b".to_owned()]));
}

#[test]
fn what_was_not_tested_says_where_it_stands() {
    let likely = |why: &str| Standing::Likely(why.to_owned());
    let unknown = |why: &str| Standing::Unknown(why.to_owned());
    assert_eq!(
        standing("2.13.0", "3.11.4"),
        likely("torch 2.13.0 lies between tested ones, and Python 3.11.4 lies between tested ones")
    );
    assert_eq!(
        standing("2.11.0", "3.12.1"),
        likely("torch 2.11.0 was tested with others, and Python 3.12.1 was tested with others")
    );
    assert_eq!(
        standing("2.16.0a0+gitabc", "3.12.1"),
        unknown("torch 2.16.0a0+gitabc is newer than any that was tested (2.15.0)")
    );
    assert_eq!(
        standing("2.9.1", "3.12.1"),
        unknown("torch 2.9.1 is older than any that was tested (2.11.0)")
    );
    assert_eq!(
        standing("2.15.0", "3.14.0rc1"),
        unknown("Python 3.14.0rc1 is newer than any that was tested (3.12.1)")
    );
    assert_eq!(standing("main", "3.12.1"), unknown("this is no version that is known"));
    assert_eq!(standing("", ""), unknown("this is no version that is known"));
}

#[test]
fn what_does_not_work_says_why() {
    let why = Standing::DoesNotWork("there are no packages".to_owned());
    assert_eq!(standing("2.15.0", "3.10.13"), why);
    assert_eq!(standing("3.0.0", "3.9.1"), why);
    let versions: Versions = serde_json::from_str(SOME).unwrap();
    let free = versions.standing("2.11.0", "3.10.13", true);
    assert_eq!(free, Standing::DoesNotWork("it has no lock".to_owned()));
    assert_eq!(versions.notes("3.10.13").collect::<Vec<_>>(), ["no columns"]);
    assert_eq!(versions.notes("3.11.0").count(), 0);
}

#[test]
fn the_table_has_a_cell_for_each_pair() {
    let versions: Versions = serde_json::from_str(SOME).unwrap();
    let expected = "  torch   CUDA  Python 3.10  Python 3.12\n  \
                    2.11.0  13.0  38 of 38     untested\n  \
                    2.15.0  13.2  no           29 of 30\n  \
                    no: there are no packages\n";
    assert_eq!(versions.table(), expected);
}

#[test]
fn the_built_in_data_is_sound() {
    let versions = Versions::built_in();
    assert!(!versions.tested.is_empty(), "nothing was tested: scripts/test_versions.py --write");
    for tested in &versions.tested {
        let names = tested.suites.keys().map(String::as_str).collect::<Vec<_>>();
        assert!(names.iter().all(|name| WORDS.iter().any(|(known, _)| known == name)), "{names:?}");
        for suite in tested.suites.values() {
            assert_eq!(suite.failed as usize, suite.failures.len(), "{suite:?}");
        }
        assert!(tested.counts().1 > 0, "{tested:?}");
    }
}

/// The suites that `scripts/test_versions.py` runs.
const WORDS: [(&str, &str); 5] = [
    ("python", "the package, the commands, the documents"),
    ("basics", "a part of `torch`: the scripts with their findings, streams, `torch.compile`"),
    ("torch", "programs on the virtual device"),
    ("innocent", "ordinary programs that must be clean"),
    ("corpus", "scripts of others' reports, with what is to be found in them"),
];

fn page(versions: &Versions) -> String {
    let mut page = include_str!("page.md").to_owned();
    let rows = versions.grid();
    for (index, row) in rows.iter().enumerate() {
        let _ = writeln!(page, "| {} |", row.join(" | "));
        if index == 0 {
            let _ = writeln!(page, "|{}", " --- |".repeat(row.len()));
        }
    }
    page.push('\n');
    for obstacle in &versions.known_not_to_work {
        let _ = writeln!(page, "- no: {}.", obstacle.why);
    }
    let _ = writeln!(page, "- {}.", versions.free_threaded);
    for note in &versions.python_notes {
        let _ = writeln!(page, "- {}.", note.note);
    }
    page.push_str("\n## What ran\n\n");
    for (name, words) in WORDS {
        let _ = writeln!(page, "- `{name}`: {words}.");
    }
    page.push_str("\n| torch | Python | suite | passed | failed | skipped | commit | date |\n");
    let _ = writeln!(page, "|{}", " --- |".repeat(8));
    for tested in &versions.tested {
        for (name, _) in WORDS {
            if let Some(suite) = tested.suites.get(name) {
                let Suite { passed, failed, skipped, commit, date, .. } = suite;
                let pair = format!("{} | {}", tested.torch, tested.python);
                let _ = writeln!(
                    page,
                    "| {pair} | {name} | {passed} | {failed} | {skipped} | {commit} | {date} |"
                );
            }
        }
    }
    let failures: Vec<String> = versions
        .tested
        .iter()
        .flat_map(|tested| tested.suites.values().map(move |suite| (tested, suite)))
        .flat_map(|(tested, suite)| suite.failures.iter().map(move |failure| (tested, failure)))
        .map(|(tested, failure)| format!("- torch {}, Python {}: `{failure}`\n", tested.torch, tested.python))
        .collect();
    if !failures.is_empty() {
        page.push_str("\nFailed:\n\n");
        page.extend(failures);
    }
    page
}

/// Rewritten by `STREAMSAN_BLESS=1 cargo test -p streamsan-cli`.
#[test]
fn the_page_of_versions_is_current() {
    let page = page(&Versions::built_in());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/versions.md");
    if std::env::var_os("STREAMSAN_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(current == page, "docs/versions.md is old: STREAMSAN_BLESS=1 cargo test -p streamsan-cli");
}
