//! What is said of profiles that were recorded on an H200.

mod support;

use insta::assert_snapshot;
use std::io::Read;
use support::recorded;

fn said(name: &str) -> String {
    let profile = streamsan_import::read(&recorded(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = streamsan_import::text(name, &streamsan_import::analyse(&profile));
    assert!(text.lines().count() <= 40, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    text
}

#[test]
fn loader_compute() {
    assert_snapshot!(said("loader_compute_bad.json"));
}

#[test]
fn prefetcher() {
    assert_snapshot!(said("prefetcher.json"));
}

#[test]
fn activation_offload_packed_and_without_stacks() {
    assert_snapshot!(said("activation_offload.json.gz"));
}

#[test]
fn order_of_the_file_does_not_matter() {
    let mut packed =
        flate2::read::GzDecoder::new(std::fs::File::open(recorded("activation_offload.json.gz")).unwrap());
    let mut text = String::new();
    packed.read_to_string(&mut text).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array_mut().unwrap();
    let count = events.len();
    // 7 and the number have no common divisor: each comes once.
    assert_ne!(count % 7, 0);
    let mixed = (0..count).map(|index| events[index * 7 % count].clone()).collect();
    document["traceEvents"] = serde_json::Value::Array(mixed);
    let analysis = support::analysis(document.to_string().as_bytes()).unwrap();
    let said = streamsan_import::text("activation_offload.json.gz", &analysis);
    assert_eq!(said, self::said("activation_offload.json.gz"));
}
