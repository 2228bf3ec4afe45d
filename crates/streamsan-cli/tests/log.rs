//! `streamsan log`: alloc, uses and free of a block, and which of them lack an order.

mod support;

use insta::assert_snapshot;
use std::fmt::Write as _;
use support::{BAD, GOOD, NOTHING, Workplace};

/// A block that goes back to its allocator while another stream reads it, and comes back as another tensor.
const REUSED: &str = "\
streams default, side
default: alloc chunk 4MiB
default: write chunk
default: record filled
side: wait filled
side: read chunk
host: free chunk
default: alloc next 4MiB in chunk
default: write next
";

#[test]
fn the_blocks_of_the_findings_with_the_mismatch_marked() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", BAD);
    let said = workplace.run("log run.sstrace");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_snapshot!(said.stdout);
}

#[test]
fn a_block_that_is_handed_on_is_followed() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", REUSED);
    let said = workplace.run("log run.sstrace");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{}", said.stdout);
    assert_snapshot!(said.stdout);
}

#[test]
fn as_json() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", REUSED);
    let said = workplace.run("log run.sstrace --finding F1 --output-format json").stdout;
    let document: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(document["format_version"], 1);
    let blocks = document["blocks"].as_array().expect("a list");
    let names: Vec<_> = blocks.iter().map(|block| block["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chunk", "next"]);
    let missing = &blocks[1]["events"][1]["not_ordered"][0];
    assert_eq!((missing["finding"].as_str(), missing["rule"].as_str()), (Some("F1"), Some("SS202")));
    assert_eq!(missing["after"], blocks[0]["events"][2]["number"]);
    assert_eq!(blocks[1]["events"][0]["other_block"], blocks[0]["block"]);
}

#[test]
fn one_block_by_name_id_and_address() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", REUSED);
    let named = workplace.run("log run.sstrace --tensor chunk").stdout;
    assert!(named.starts_with("`chunk`, 4.0 MiB, block b") && !named.contains("`next`,"), "{named}");
    let heading = named.lines().next().unwrap();
    let after = |word: &str| heading.split(word).nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(workplace.run(&format!("log run.sstrace --block {}", after("block "))).stdout, named);
    // Both tensors were at this address.
    let both = workplace.run(&format!("log run.sstrace --block {}", after(" at "))).stdout;
    assert!(both.starts_with(&named) && both.contains("\n`next`, 4.0 MiB"), "{both}");
}

#[test]
fn long_histories_are_cut_and_keep_what_findings_name() {
    let workplace = Workplace::new();
    let mut program = "streams default, side\nbuffer x 4MiB\n".to_owned();
    let mut reads = |count| (0..count).for_each(|_| program.push_str("default: read x\n"));
    reads(40);
    program.push_str("side: write x\n");
    let mut reads = |count| (0..count).for_each(|_| program.push_str("side: read x\n"));
    reads(40);
    workplace.trace("run.sstrace", &program);
    let said = workplace.run("log run.sstrace").stdout;
    assert!(said.lines().count() < 50, "{said}");
    assert_eq!(said.matches(" events left out …\n").count(), 2, "{said}");
    assert_eq!(said.matches("    <-- not ordered after #").count(), 1, "{said}");
}

#[test]
fn without_findings_the_largest_blocks() {
    let workplace = Workplace::new();
    workplace.trace("run.sstrace", GOOD);
    assert_snapshot!(workplace.run("log run.sstrace").stdout);
    let mut program = "streams default\n".to_owned();
    for index in 1..=12 {
        let _ = writeln!(program, "buffer x{index} {index}MiB");
    }
    workplace.trace("many.sstrace", &program);
    let said = workplace.run("log many.sstrace").stdout;
    assert!(said.starts_with("No findings. The 10 largest of 12 blocks:\n"), "{said}");
    assert!(said.contains("  x12 ") && said.contains("  x3 ") && !said.contains("  x2 "), "{said}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let workplace = Workplace::new();
    workplace.trace("bad.sstrace", REUSED);
    workplace.trace("good.sstrace", NOTHING);
    workplace.refuses(
        "log bad.sstrace --tensor chunks",
        "error: no memory is named 'chunks'\nhelp: did you mean --tensor 'chunk'?",
    );
    workplace.refuses(
        "log bad.sstrace --tensor weights",
        "error: no memory is named 'weights'\nhelp: names are: chunk, next",
    );
    workplace.refuses(
        "log bad.sstrace --block b77",
        "error: this trace has no block b77\nhelp: without options the blocks of the findings are shown",
    );
    workplace.refuses(
        "log bad.sstrace --block 0x10",
        "error: no block of this trace held the address 0x10\nhelp: addresses are those of the recorded run: tensor.data_ptr()",
    );
    workplace.refuses(
        "log bad.sstrace --finding F3",
        "error: there is no finding F3\nhelp: this trace has one: --finding F1",
    );
    workplace.refuses(
        "log good.sstrace --finding F1",
        "error: there is no finding F1\nhelp: this trace has no findings; without --finding the largest blocks are listed",
    );
}
