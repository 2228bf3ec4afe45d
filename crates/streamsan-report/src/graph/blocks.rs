//! What happened to the memory of the findings: handed out, used, freed, handed on.

use super::Point;
use std::collections::{HashMap, HashSet, VecDeque};
use streamsan_check::Finding;
use streamsan_trace::{Access, AccessMode, BlockId, EventKind};

/// How many blocks have their history kept.
const BLOCKS: usize = 60;
/// How many events of a block are kept from its start, and how many from its end.
const HALF: usize = 10;

/// One event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Where.
    pub(crate) point: Point,
    /// How an operation touches it.
    pub(crate) access: Option<AccessMode>,
}

/// The events of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// The block.
    pub(crate) block: BlockId,
    /// Indexes of the findings about it.
    pub(crate) findings: Vec<usize>,
    /// The first.
    pub(crate) head: Vec<Use>,
    /// How many are missing between the first and the last.
    pub(crate) left_out: u64,
    /// The last.
    pub(crate) tail: VecDeque<Use>,
}

/// The histories of the blocks of the first findings.
#[derive(Debug)]
pub(crate) struct Histories {
    /// In the order of the findings.
    pub(crate) list: Vec<History>,
    index: HashMap<BlockId, usize>,
    named: HashSet<BlockId>,
}

impl History {
    fn push(&mut self, new: Use) {
        if self.head.len() < HALF {
            self.head.push(new);
            return;
        }
        if self.tail.len() == HALF {
            self.tail.pop_front();
            self.left_out += 1;
        }
        self.tail.push_back(new);
    }
}

impl Histories {
    pub(crate) fn new(findings: &[Finding]) -> Self {
        let mut all = Self { list: Vec::new(), index: HashMap::new(), named: HashSet::new() };
        for (number, finding) in findings.iter().enumerate() {
            for memory in [finding.old_memory, finding.memory].into_iter().flatten() {
                all.named.insert(memory.block);
                let known = all.index.get(&memory.block).copied();
                let place = known.or_else(|| (all.list.len() < BLOCKS).then_some(all.list.len()));
                let Some(place) = place else { continue };
                if place == all.list.len() {
                    all.index.insert(memory.block, place);
                    all.list.push(History {
                        block: memory.block,
                        findings: Vec::new(),
                        head: Vec::new(),
                        left_out: 0,
                        tail: VecDeque::new(),
                    });
                }
                let list = &mut all.list[place].findings;
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
        all
    }

    /// Whether a finding is about the block.
    pub(crate) fn wants(&self, block: BlockId) -> bool {
        self.named.contains(&block)
    }

    pub(crate) fn event(&mut self, point: &Point, accesses: &[Access]) {
        if self.index.is_empty() {
            return;
        }
        let mut add = |block: BlockId, access: Option<AccessMode>| {
            if let Some(&place) = self.index.get(&block) {
                self.list[place].push(Use { point: *point, access });
            }
        };
        match point.what {
            EventKind::Alloc { block, .. }
            | EventKind::FreeRequest { block }
            | EventKind::FreeGuard { block, .. }
            | EventKind::RecordStream { block, .. } => add(block, None),
            EventKind::Op { .. } | EventKind::HostAccess { .. } => {
                for (index, access) in accesses.iter().enumerate() {
                    // An operation that reads and writes a block has two accesses; it is said once.
                    if accesses[..index].iter().any(|other| other.block == access.block) {
                        continue;
                    }
                    let modes = accesses.iter().filter(|other| other.block == access.block);
                    add(access.block, modes.map(|other| other.mode).reduce(both));
                }
            }
            _ => {}
        }
    }
}

fn both(one: AccessMode, other: AccessMode) -> AccessMode {
    match (one, other) {
        _ if one == other => one,
        (AccessMode::Unknown, _) | (_, AccessMode::Unknown) => AccessMode::Unknown,
        _ => AccessMode::Update,
    }
}
