//! Hazards: conflicts without order, before they are grouped into findings.

use crate::clock::ChainId;
use crate::finding::Actor;
use crate::ignores::RangeSet;
use crate::rules::Rule;
use crate::shadow::Touch;
use streamsan_trace::{AccessMode, BlockId, Event, EventKind, LabelId, OpKind, OpNumber, SiteId, ThreadId};

/// What a report says of an event, kept with its accesses so that the log need not be searched for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The host thread that made the call.
    pub thread: ThreadId,
    /// The call stack.
    pub site: SiteId,
    /// For an operation of backward: the call stack of its forward operation. For a node of a graph that was launched:
    /// the call stack that captured it. Else the empty stack.
    pub forward_site: SiteId,
    /// The operation's name.
    pub label: LabelId,
    /// What sort of work it is; `None` for what the host does itself.
    pub kind: Option<OpKind>,
    /// The ignores around it.
    pub(crate) ranges: RangeSet,
}

impl Origin {
    /// The origin of an event with these ignores around it.
    pub(crate) fn of(event: &Event, ranges: RangeSet) -> Self {
        let (kind, label, forward_site) = match event.kind {
            EventKind::Op { kind, label, forward_site, .. } => (Some(kind), label, forward_site),
            EventKind::GraphLaunch { label, .. } => (Some(OpKind::GraphLaunch), label, SiteId(0)),
            EventKind::HostAccess { label, .. } => (None, label, SiteId(0)),
            _ => (None, LabelId::default(), SiteId(0)),
        };
        Self { thread: event.thread, site: event.site, forward_site, label, kind, ranges }
    }
}

/// Two events on overlapping bytes, at least one of which writes, with no order between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The rule it falls under.
    pub rule: Rule,
    /// The earlier event in issue order. For SS204 it is the free.
    pub first: OpNumber,
    /// The later event.
    pub second: OpNumber,
    /// Where the earlier one comes from.
    pub first_origin: Origin,
    /// Where the later one comes from.
    pub second_origin: Origin,
    /// Who does the earlier one.
    pub first_actor: Actor,
    /// Who does the later one.
    pub second_actor: Actor,
    /// How the earlier one touches the bytes.
    pub first_mode: AccessMode,
    /// How the later one touches the bytes.
    pub second_mode: AccessMode,
    /// The block that the later one touches.
    pub block: BlockId,
    /// Lifetime rules: the block that the earlier one touched, of an older generation.
    pub old_block: Option<BlockId>,
    /// Where the later access starts in the block, in bytes.
    pub offset: u64,
    /// Length in bytes of the common bounding interval.
    pub overlap: u64,
    /// The last event of the first actor that is ordered before the second event; 0 if none is.
    pub ordered_up_to: OpNumber,
    pub(crate) first_chain: ChainId,
    /// Lifetime rules: where the old block was freed.
    pub(crate) freed: Option<(OpNumber, Origin)>,
}

/// The rule for an unordered pair of accesses to one generation of memory: with a graph or a collective there are other
/// remedies than between two operations.
pub(crate) fn pair_rule((first_actor, first): (Actor, &Touch), (actor, second): (Actor, &Touch)) -> Rule {
    let is = |touch: &Touch, kind| touch.origin.kind == Some(kind);
    let graph = [second, first].into_iter().find(|touch| is(touch, OpKind::GraphLaunch));
    match graph {
        _ if actor == Actor::Host => {}
        Some(node) if node.mode == AccessMode::Read => return Rule::Ss501,
        Some(_) => return Rule::Ss502,
        None if is(first, OpKind::Collective) || is(second, OpKind::Collective) => return Rule::Ss601,
        None => {}
    }
    order_rule((first_actor, first.mode), (actor, second.mode))
}

fn order_rule(first: (Actor, AccessMode), second: (Actor, AccessMode)) -> Rule {
    match (first, second) {
        ((_, first), (Actor::Host, second)) => {
            if second.writes() || !first.writes() {
                Rule::Ss302
            } else {
                Rule::Ss301
            }
        }
        ((_, AccessMode::Read), _) => Rule::Ss102,
        (_, (_, second)) if second.reads() => Rule::Ss101,
        _ => Rule::Ss103,
    }
}
