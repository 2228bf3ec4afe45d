//! What a viewer of trace events relies on.

use super::fixture::{Case, SIDE};
use super::rendered;
use crate::Format;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_trace::{AccessRange, EventId, EventKind, OpKind, SiteId};

#[test]
fn every_arrow_joins_two_slices_and_no_slices_overlap() {
    let mut case = Case::read_after_write();
    case.use_stream(super::fixture::DEFAULT);
    case.event(EventKind::EventRecord { event: EventId(1), stream: super::fixture::DEFAULT });
    case.event(EventKind::EventWait { event: EventId(1), stream: SIDE });
    case.use_stream(SIDE);
    let label = case.string("evil\u{1b}[2J\"\n");
    case.event(EventKind::Op {
        stream: SIDE,
        label,
        kind: OpKind::Kernel,
        forward_site: SiteId(0),
        accesses: AccessRange::default(),
    });
    let numbers: Vec<_> = case.trace.events.iter().map(|event| event.number).collect();
    let finding = case.finding();
    (finding.first.as_mut().unwrap().number, finding.second.number) =
        (numbers[numbers.len() - 5], numbers[numbers.len() - 2]);
    let text = rendered(&case, Format::Perfetto);
    assert!(!text.contains('\u{1b}'));
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let events = document["traceEvents"].as_array().unwrap();
    let mut slices: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut arrows: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for event in events {
        let tid = event["tid"].as_u64().unwrap();
        match event["ph"].as_str().unwrap() {
            "X" => {
                assert_eq!(event["dur"], 1);
                assert!(slices.insert((tid, event["ts"].as_u64().unwrap())), "{event}");
            }
            "s" | "f" => arrows.entry(event["id"].as_u64().unwrap()).or_default().push(event),
            "M" if event["name"] == "thread_name" => {
                named.insert(tid);
            }
            "M" => {}
            other => panic!("{other}"),
        }
    }
    assert!(slices.iter().all(|(tid, _)| named.contains(tid)), "{text}");
    let kinds: Vec<_> = arrows.values().map(|ends| ends[0]["cat"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["order", "error"]);
    for ends in arrows.values() {
        assert_eq!((&ends[0]["ph"], &ends[1]["ph"], ends.len()), (&"s".into(), &"f".into(), 2));
        assert_eq!(ends[1]["bp"], "e");
        for end in ends {
            let place = (end["tid"].as_u64().unwrap(), end["ts"].as_u64().unwrap());
            assert!(slices.contains(&place), "{end} meets no slice");
        }
    }
    assert!(document["otherData"]["time"].as_str().unwrap().contains("durations are not known"));
}
