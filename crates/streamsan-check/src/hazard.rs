//! Hazards: conflicts without order, before they are grouped into findings.

use crate::clock::ChainId;
use crate::finding::Actor;
use crate::rules::Rule;
use streamsan_trace::{AccessMode, BlockId, OpNumber, SiteId};

/// Two events on overlapping bytes, at least one of which writes, with no order between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The rule it falls under.
    pub rule: Rule,
    /// The earlier event in issue order. For SS204 it is the free.
    pub first: OpNumber,
    /// The later event.
    pub second: OpNumber,
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
    pub(crate) freed: Option<(OpNumber, SiteId)>,
}

/// The rule for an unordered pair of accesses to one generation of memory.
pub(crate) fn order_rule(first: (Actor, AccessMode), second: (Actor, AccessMode)) -> Rule {
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
