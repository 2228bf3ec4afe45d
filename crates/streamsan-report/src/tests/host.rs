//! Findings about the host and page-locked memory.

use super::fixture::{BLOCK, Case, SIDE};
use super::{full, rendered};
use crate::Format;
use insta::assert_snapshot;
use streamsan_check::{Actor, FixAction, OrderedUpTo, Rule};
use streamsan_trace::{AccessMode, AccessRange, DeviceId, EventKind, MemorySpace, OpKind, OpNumber, SiteId};

/// A copy on `side`, from or to page-locked memory, and the host at `line`.
fn host(rule: Rule, line: u32, (first, second): (AccessMode, AccessMode)) -> Case {
    let mut case = Case::read_after_write();
    for event in &mut case.trace.events {
        if let EventKind::Alloc { space, .. } = &mut event.kind {
            *space = MemorySpace::Pinned;
        }
    }
    let upload = first == AccessMode::Read;
    let (name, line_of_copy, end) = if upload { ("stage", 43, 44) } else { ("results", 42, 46) };
    case.rename_block(BLOCK, name);
    let copied = case.site("loop.py", line_of_copy, 9, end, "save");
    let touched = case.site("loop.py", line, 0, 0, "save");
    let alloc = case.site("loop.py", 6, 0, 0, "");
    let (label, kind) = if upload {
        ("memcpy HtoD", OpKind::CopyHostToDevice)
    } else {
        ("memcpy DtoH", OpKind::CopyDeviceToHost)
    };
    let label = case.string(label);
    case.event(EventKind::Op {
        stream: SIDE,
        label,
        kind,
        forward_site: SiteId(0),
        accesses: AccessRange::default(),
    });
    let number = case.trace.events.last().unwrap().number;
    for site in [copied, touched] {
        let frame = case.trace.tables.sites[site.index()][0];
        case.visible(frame, SIDE, "side");
        case.finding().fix.as_mut().unwrap().frame = Some(frame);
    }
    let empty = case.string("");
    let finding = case.finding();
    finding.rule = rule;
    finding.count = 1;
    finding.fix.as_mut().unwrap().actions = vec![FixAction::SynchronizeStream { awaited: SIDE }];
    let memory = finding.memory.as_mut().unwrap();
    (memory.alloc_site, memory.device) = (alloc, None::<DeviceId>);
    let place = finding.first.as_mut().unwrap();
    (place.number, place.actor, place.site) = (number, Actor::Stream(SIDE), copied);
    (place.label, place.access, place.kind) = (label, Some(first), Some(kind));
    let place = &mut finding.second;
    (place.number, place.actor, place.site) = (OpNumber(40), Actor::Host, touched);
    (place.label, place.access, place.kind) = (empty, Some(second), None);
    finding.ordered_up_to = Some(OrderedUpTo {
        actor: Actor::Stream(SIDE),
        number: OpNumber(0),
        site: SiteId(0),
        by_host: false,
    });
    case
}

const FILLED: (AccessMode, AccessMode) = (AccessMode::Write, AccessMode::Read);
const OVERWRITTEN: (AccessMode, AccessMode) = (AccessMode::Read, AccessMode::Write);

#[test]
fn read_before_the_copy_is_done() {
    assert_snapshot!(full(&host(Rule::Ss301, 44, FILLED)));
}

#[test]
fn overwritten_while_copied() {
    assert_snapshot!(full(&host(Rule::Ss302, 45, OVERWRITTEN)));
}

#[test]
fn freed_while_copied() {
    assert_snapshot!(full(&host(Rule::Ss303, 46, OVERWRITTEN)));
}

#[test]
fn other_work_than_copies_and_no_names() {
    let mut case = host(Rule::Ss301, 44, FILLED);
    case.trace.events.retain(|event| {
        !matches!(event.kind, EventKind::Name { subject: streamsan_trace::Subject::Block(_), .. })
    });
    case.finding().first.as_mut().unwrap().kind = Some(OpKind::Kernel);
    let text = full(&case);
    assert!(
        text.contains("the host reads a pinned buffer of 4.0 MiB before the kernel that fills it is done\n"),
        "{text}"
    );
    assert!(text.contains("(2) the host reads the pinned buffer (#40)"), "{text}");
}

#[test]
fn unknown_accesses() {
    let text = full(&host(Rule::Ss302, 45, (AccessMode::Unknown, AccessMode::Write)));
    assert!(text.contains("the host overwrites `results` while a copy may still use it\n"), "{text}");
    assert!(text.contains("(1) may use `results` on `side`"), "{text}");
}

#[test]
fn json_calls_the_host_a_stream() {
    let text = rendered(&host(Rule::Ss302, 45, OVERWRITTEN), Format::Json);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let finding = &document["findings"][0];
    assert_eq!(finding["second"]["stream"], "host");
    assert_eq!(finding["hazard"], "WAR");
    assert_eq!(finding["free"], serde_json::Value::Null);
    assert_eq!(finding["fix"]["insert"], "side.synchronize()");
    assert_eq!(finding["memory"]["owner"], serde_json::Value::Null);
    let freed = rendered(&host(Rule::Ss303, 46, OVERWRITTEN), Format::Json);
    let document: serde_json::Value = serde_json::from_str(&freed).unwrap();
    assert_eq!(document["findings"][0]["hazard"], serde_json::Value::Null);
}

#[test]
fn concise() {
    assert_snapshot!(rendered(&host(Rule::Ss301, 44, FILLED), Format::Concise));
}
