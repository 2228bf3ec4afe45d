//! Which blocks are wanted.

use std::collections::{BTreeMap, BTreeSet};
use streamsan_check::Report;
use streamsan_trace::{BlockId, EventKind, Log, StringId, Subject};

/// How many blocks are written at most.
const BLOCKS: usize = 20;
/// How many names a message can choose from.
const NAMES: usize = 1000;

/// What the user wants to see. Without any of them: the blocks of the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// All blocks with this name.
    pub tensor: Option<String>,
    /// A block's id, or an address in it.
    pub block: Option<BlockQuery>,
    /// The blocks of one finding, counted from 0.
    pub finding: Option<usize>,
}

/// A block as people can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockQuery {
    /// The number that reports of memory show.
    Id(BlockId),
    /// An address, as of `data_ptr()`: all blocks that ever held this byte.
    Address(u64),
}

/// Nothing in the trace is what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// No block has the name. These names are known.
    Tensor(Vec<String>),
    /// No block has the id or holds the address.
    Block,
    /// There are only so many findings.
    Finding(usize),
    /// The finding is not about memory.
    NoMemory,
}

/// The blocks to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// In the order in which they are written.
    pub(super) blocks: Vec<BlockId>,
    /// How many more there are.
    pub(super) left_out: u64,
}

impl Chosen {
    fn add(&mut self, block: BlockId) {
        if self.blocks.contains(&block) {
        } else if self.blocks.len() < BLOCKS {
            self.blocks.push(block);
        } else {
            self.left_out += 1;
        }
    }
}

impl Selection {
    pub(super) fn choose(&self, log: &dyn Log, report: &Report) -> Result<Chosen, NotFound> {
        let mut chosen = Chosen::default();
        if let Some(name) = &self.tensor {
            by_name(log, name, &mut chosen)?;
        }
        if let Some(query) = self.block {
            by_query(log, query, &mut chosen)?;
        }
        if let Some(index) = self.finding {
            let finding = report.findings.get(index).ok_or(NotFound::Finding(report.findings.len()))?;
            let blocks = [finding.old_memory, finding.memory];
            blocks.into_iter().flatten().for_each(|memory| chosen.add(memory.block));
            if chosen.blocks.is_empty() {
                return Err(NotFound::NoMemory);
            }
        }
        if *self == Self::default() {
            for finding in &report.findings {
                let blocks = [finding.old_memory, finding.memory];
                blocks.into_iter().flatten().for_each(|memory| chosen.add(memory.block));
            }
        }
        Ok(chosen)
    }
}

fn by_name(log: &dyn Log, wanted: &str, chosen: &mut Chosen) -> Result<(), NotFound> {
    let mut known = BTreeSet::<StringId>::new();
    log.read(&mut |event, _| {
        if let EventKind::Name { subject: Subject::Block(block), name, .. } = event.kind {
            if log.tables().string(name) == wanted {
                chosen.add(block);
            } else if known.len() < NAMES {
                known.insert(name);
            }
        }
    });
    if chosen.blocks.is_empty() {
        return Err(NotFound::Tensor(
            known.iter().map(|&name| log.tables().string(name).to_owned()).collect(),
        ));
    }
    Ok(())
}

fn by_query(log: &dyn Log, query: BlockQuery, chosen: &mut Chosen) -> Result<(), NotFound> {
    // Blocks whose size is said later, and that start at or below the address.
    let mut starts = BTreeMap::<BlockId, u64>::new();
    log.read(&mut |event, _| match (event.kind, query) {
        (EventKind::Alloc { block, .. }, BlockQuery::Id(wanted)) if block == wanted => chosen.add(block),
        (EventKind::Alloc { block, address, size, .. }, BlockQuery::Address(wanted)) => {
            if wanted == address || wanted > address && wanted - address < size {
                chosen.add(block);
            } else if size == 0 && address < wanted {
                starts.insert(block, address);
            }
        }
        (EventKind::BlockSize { block, size }, BlockQuery::Address(wanted))
            if starts.remove(&block).is_some_and(|address| wanted - address < size) =>
        {
            chosen.add(block);
        }
        (EventKind::FreeRequest { block }, BlockQuery::Address(_)) => {
            starts.remove(&block);
        }
        _ => {}
    });
    if chosen.blocks.is_empty() { Err(NotFound::Block) } else { Ok(()) }
}
