//! Taking synchronization away from programs that are clean.
//!
//! Each record, wait, host wait, successful query and `record_stream` of each clean program of the repository is
//! left out in turn. The judge says whether it was needed; then the checker must find what has become possible,
//! and if it was not needed the checker must stay silent. `docs/mutations.md` has the counts.

use std::path::Path;
use streamsan_sim::{Action, Judge, Program, parse, parse_file};

mod agreement;
use agreement::{checker_pairs, disagreement};

const FOLDERS: [&str; 3] = ["tests/programs", "docs", "crates/streamsan-check/rule_docs"];

/// All clean programs, with the name of each.
fn clean_programs() -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder is there");
        let mut paths: Vec<_> =
            entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path).expect("a listed file can be read");
            let tests = parse_file(&name, &text).expect("programs.rs has checked the syntax");
            let clean = tests.into_iter().filter(|test| test.annotations.expectations.is_empty());
            programs.extend(clean.map(|test| (format!("{name}: {}", test.name), test.program)));
        }
    }
    programs
}

/// What is left out, if the step is synchronization.
fn mutation(action: &Action) -> Option<&'static str> {
    Some(match action {
        Action::Record { .. } => "event record",
        Action::Wait { .. } => "event wait",
        Action::Synchronize { .. } => "host wait",
        Action::Query { ready: true, .. } => "successful query",
        Action::RecordStream { .. } => "record_stream",
        _ => return None,
    })
}

#[test]
fn what_the_judge_needs_is_found_when_it_is_left_out() {
    let programs = clean_programs();
    let mut judge = Judge::default();
    let mut table: std::collections::BTreeMap<&str, [u64; 2]> = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    let mut refused = 0;
    for (name, program) in &programs {
        for step in 0..program.steps.len() {
            let Some(kind) = mutation(&program.steps[step].action) else { continue };
            let mut mutant = program.clone();
            mutant.steps.remove(step);
            // As text and back: indices of events and buffers stay in order.
            let mutant = match parse("mutant.md", &mutant.to_string()) {
                Ok(mutant) => mutant,
                // A capture that lacks an edge may be none any more.
                Err(_) if !program.graphs.is_empty() => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("leaving out synchronization leaves a program: {error}"),
            };
            let judged = judge.judge(&mutant).found;
            let checked = checker_pairs(&mutant);
            let row = table.entry(kind).or_default();
            row[0] += 1;
            row[1] += u64::from(!judged.is_empty());
            if let Some((_, what)) = disagreement(&judged, &checked) {
                wrong.push(format!("{name}, without step {}: {what}\n{mutant}", step + 1));
            }
        }
    }
    println!("{} clean programs, {refused} changes that a capture refuses", programs.len());
    for (kind, [all, needed]) in &table {
        println!("{kind}: {all} left out, {needed} were needed");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let needed: u64 = table.values().map(|row| row[1]).sum();
    assert!(needed > 50, "only {needed} mutations matter: the clean programs prove nothing");
}
