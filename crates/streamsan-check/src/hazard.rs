//! Hazards: conflicts without order, before they are grouped into findings.

use crate::clock::ChainId;
use crate::finding::Actor;
use crate::rules::Rule;
use streamsan_trace::{AccessMode, BlockId, OpNumber};

/// Two events on overlapping bytes, at least one of which writes, with no order between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The rule it falls under.
    pub rule: Rule,
    /// The earlier event in issue order.
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
    /// Where the later access starts in the block, in bytes.
    pub offset: u64,
    /// Length in bytes of the common bounding interval.
    pub overlap: u64,
    /// The last event of the first actor that is ordered before the second event; 0 if none is.
    pub ordered_up_to: OpNumber,
    pub(crate) first_chain: ChainId,
}

/// The rule for an unordered pair of device accesses.
pub(crate) fn order_rule(first: AccessMode, second: AccessMode) -> Rule {
    if !first.writes() {
        Rule::Ss102
    } else if second.reads() {
        Rule::Ss101
    } else {
        Rule::Ss103
    }
}
