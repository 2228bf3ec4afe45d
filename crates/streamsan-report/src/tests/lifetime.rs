//! Findings about memory that changes its owner.

use super::fixture::{BLOCK, Case, DEFAULT, SIDE};
use super::{full, rendered};
use crate::Format;
use insta::assert_snapshot;
use streamsan_check::{Actor, FixAction, Memory, Note, OrderedUpTo, Place, Rule};
use streamsan_trace::{
    AccessMode, BlockId, DeviceId, EventKind, FrameId, MemorySpace, OpNumber, SiteId, StreamId,
};

const NEW: BlockId = BlockId(2);
const COPY: StreamId = StreamId(2);

/// The example of the design: `chunk` is freed while `side` reads it, and default gets its block as `mask`.
fn reuse(rule: Rule) -> Case {
    let mut case = Case::read_after_write();
    case.rename_block(BLOCK, "chunk");
    allocate(&mut case, NEW, DEFAULT, "mask");
    let site = |case: &mut Case, line, column, end| case.site("loop.py", line, column, end, "steps");
    let (alloc, read) = (site(&mut case, 24, 9, 45), site(&mut case, 27, 24, 38));
    let (free, write) = (site(&mut case, 30, 9, 18), site(&mut case, 31, 16, 45));
    let frame = case.trace.tables.sites[free.index()][0];
    case.visible(frame, SIDE, "side");
    let used = case.trace.tables.sites[read.index()][0];
    case.visible(used, SIDE, "side");
    let (gemm, fill) = (case.string("aten::mm"), case.string("aten::zero_"));
    let mask =
        Memory { block: NEW, size: 1 << 20, alloc_site: write, ..case.finding().memory.take().unwrap() };
    let finding = case.finding();
    finding.rule = rule;
    finding.count = 4;
    finding.memory = Some(mask);
    finding.old_memory = Some(Memory { block: BLOCK, size: 4 << 20, alloc_site: alloc, ..mask });
    finding.first = Some(place(902, Actor::Stream(SIDE), read, Some(AccessMode::Read)));
    finding.first.as_mut().unwrap().label = gemm;
    finding.free = Some(place(904, Actor::Host, free, None));
    finding.second = place(905, Actor::Stream(DEFAULT), write, Some(AccessMode::Write));
    finding.second.label = fill;
    finding.ordered_up_to = Some(OrderedUpTo {
        actor: Actor::Stream(SIDE),
        number: OpNumber(0),
        site: SiteId(0),
        by_host: false,
    });
    wait(&mut case, &[(DEFAULT, SIDE, false)], frame);
    case
}

/// default was ordered after the old owner; `copy`, the new owner's stream, did not wait for default.
fn new_owner_did_not_wait() -> Case {
    let mut case = reuse(Rule::Ss201);
    case.create_stream(COPY, false);
    case.name_stream(COPY, "copy", 14);
    let finding = case.finding();
    finding.first.as_mut().unwrap().actor = Actor::Stream(DEFAULT);
    finding.ordered_up_to.as_mut().unwrap().actor = Actor::Stream(DEFAULT);
    finding.second.actor = Actor::Stream(COPY);
    let site = finding.second.site;
    let frame = case.trace.tables.sites[site.index()][0];
    case.visible(frame, COPY, "copy");
    wait(&mut case, &[(COPY, DEFAULT, true)], frame);
    case
}

fn place(number: u64, actor: Actor, site: SiteId, access: Option<AccessMode>) -> Place {
    let number = OpNumber(number);
    Place {
        number,
        actor,
        thread: streamsan_trace::ThreadId(0),
        kind: Some(streamsan_trace::OpKind::Kernel).filter(|_| access.is_some() && actor != Actor::Host),
        site,
        forward_site: SiteId(0),
        label: streamsan_trace::StringId(0),
        access,
    }
}

fn allocate(case: &mut Case, block: BlockId, stream: StreamId, name: &str) {
    let space = MemorySpace::Cached(DeviceId(0));
    case.event(EventKind::Alloc { block, stream, space, address: 0x7f00_0000, size: 1 << 20 });
    case.name_block(block, name);
}

fn wait(case: &mut Case, waits: &[(StreamId, StreamId, bool)], frame: FrameId) {
    let fix = case.finding().fix.as_mut().unwrap();
    fix.frame = Some(frame);
    fix.actions = waits
        .iter()
        .map(|&(waiter, awaited, waiter_is_current)| FixAction::WaitStream {
            waiter,
            awaited,
            waiter_is_current,
        })
        .collect();
}

#[test]
fn reused_while_in_use() {
    assert_snapshot!(full(&reuse(Rule::Ss202)));
}

#[test]
fn reused_while_written_without_names() {
    let mut case = reuse(Rule::Ss202);
    case.trace.events.retain(|event| !matches!(event.kind, EventKind::Name { .. }));
    case.keep_visible(0);
    case.use_stream(SIDE);
    let finding = case.finding();
    finding.first.as_mut().unwrap().access = Some(AccessMode::Write);
    finding.fix.as_mut().unwrap().verified = false;
    assert_snapshot!(full(&case));
}

#[test]
fn the_next_tensor_of_the_same_name() {
    let mut case = reuse(Rule::Ss202);
    case.rename_block(NEW, "chunk");
    case.finding().first.as_mut().unwrap().access = Some(AccessMode::Unknown);
    let text = full(&case);
    assert!(
        text.contains("memory of `chunk` reused on the default stream while `side` may still use it\n"),
        "{text}"
    );
    assert!(
        text.contains("(3) overwrites the same block, now the next `chunk`, on the default stream"),
        "{text}"
    );
    assert!(text.contains("(1) may use `chunk` on `side`"), "{text}");
}

#[test]
fn several_users() {
    let mut case = reuse(Rule::Ss202);
    case.create_stream(COPY, false);
    case.name_stream(COPY, "copy", 14);
    let frame = case.finding().fix.as_ref().unwrap().frame.unwrap();
    case.visible(frame, COPY, "copy");
    let used = case.finding().first.as_ref().unwrap().site;
    let used = case.trace.tables.sites[used.index()][0];
    case.visible(used, COPY, "copy");
    wait(&mut case, &[(DEFAULT, SIDE, false), (DEFAULT, COPY, false)], frame);
    assert_snapshot!(full(&case));
    let json: serde_json::Value = serde_json::from_str(&rendered(&case, Format::Json)).unwrap();
    assert_eq!(
        json["findings"][0]["fix"]["insert"],
        "torch.cuda.default_stream().wait_stream(side)\ntorch.cuda.default_stream().wait_stream(copy)"
    );
}

#[test]
fn only_an_opposite_wait_after_the_use_is_worth_a_note() {
    let mut case = reuse(Rule::Ss202);
    let site = case.site("loop.py", 26, 0, 0, "steps");
    for (wait, said) in [(901, false), (903, true)] {
        case.finding().notes = vec![Note::OppositeWait { wait: OpNumber(wait), site }];
        assert_eq!(full(&case).contains("the opposite wait exists"), said);
    }
}

#[test]
fn freed_in_use_but_lucky() {
    assert_snapshot!(full(&reuse(Rule::Ss203)));
}

#[test]
fn new_owner_is_too_early() {
    assert_snapshot!(full(&new_owner_did_not_wait()));
}

#[test]
fn used_after_free() {
    let mut case = reuse(Rule::Ss204);
    let finding = case.finding();
    (finding.first, finding.fix, finding.count) = (None, None, 1);
    finding.memory = finding.old_memory;
    finding.second.access = Some(AccessMode::Read);
    assert_snapshot!(full(&case));
}

#[test]
fn used_after_cuda_free() {
    let mut case = reuse(Rule::Ss204);
    for event in &mut case.trace.events {
        if let EventKind::Alloc { space, .. } = &mut event.kind {
            *space = MemorySpace::Device(DeviceId(0));
        }
    }
    let finding = case.finding();
    (finding.first, finding.fix, finding.memory) = (None, None, finding.old_memory);
    let text = full(&case);
    assert!(text.contains("(1) frees `chunk` (#904)"), "{text}");
    assert!(!text.contains("allocator"), "{text}");
}

#[test]
fn freed_at_an_unknown_place() {
    let mut case = reuse(Rule::Ss203);
    let finding = case.finding();
    finding.free.as_mut().unwrap().site = SiteId(0);
    finding.fix.as_mut().unwrap().frame = None;
    let text = full(&case);
    assert!(
        text.contains(
            "(2) last reference gone, block returned to the allocator of the default stream (#904), at an unknown place"
        ),
        "{text}"
    );
    assert!(
        text.contains("help: before (2), make the default stream wait for the stream named `side`"),
        "{text}"
    );
}

#[test]
fn record_stream_only_where_the_name_stands_for_the_tensor() {
    let mut elsewhere = reuse(Rule::Ss202);
    let site = elsewhere.site("loop.py", 24, 9, 45, "make_chunk");
    elsewhere.finding().old_memory.as_mut().unwrap().alloc_site = site;
    let mut spoken = reuse(Rule::Ss202);
    spoken.rename_block(BLOCK, "the chunk");
    for case in [elsewhere, spoken] {
        let text = full(&case);
        assert!(!text.contains(".record_stream("), "{text}");
    }
}

#[test]
fn concise() {
    let text: String = [reuse(Rule::Ss202), reuse(Rule::Ss203), new_owner_did_not_wait()]
        .iter()
        .map(|case| rendered(case, Format::Concise))
        .collect();
    assert_snapshot!(text);
}

#[test]
fn json() {
    let text = rendered(&reuse(Rule::Ss202), Format::Json);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&document["findings"][0]).unwrap());
}
