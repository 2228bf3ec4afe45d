//! The events of the chosen blocks.

use super::marks::Marks;
use super::owners::Owners;
use std::collections::{HashMap, VecDeque};
use streamsan_trace::{
    Access, AccessMode, BlockId, Event, EventKind, LabelId, Log, MemorySpace, OpNumber, SiteId, StreamId,
};

/// How many events of a block are kept from its start, and how many from its end.
const HALF: usize = 12;

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It was handed out; its bytes belonged to another block before, which was freed then.
    HandedOut { before: Option<(BlockId, Option<OpNumber>)> },
    /// An operation, or the host, used it.
    Used { label: LabelId, mode: AccessMode },
    /// `record_stream`.
    RecordStream,
    /// A raw pointer was given away.
    Escaped { to: LabelId },
    /// The last reference went.
    Freed,
    /// It is held back until a stream has done what it holds.
    Guarded,
    /// All guards have passed.
    Done,
    /// Its bytes belong to another block now.
    HandedOn { to: BlockId },
}

/// One event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: OpNumber,
    pub(super) site: SiteId,
    /// The stream of it; `None` for the host.
    pub(super) stream: Option<StreamId>,
    pub(super) what: What,
}

/// A piece of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Event(Entry),
    LeftOut(u64),
}

/// The events of one block.
#[derive(Debug)]
pub(super) struct History {
    pub(super) block: BlockId,
    pub(super) space: MemorySpace,
    pub(super) address: u64,
    pub(super) size: u64,
    /// The stream it was allocated on, if it is the caching allocator's.
    pub(super) owner: Option<StreamId>,
    pieces: Vec<Piece>,
    kept: usize,
    tail: VecDeque<Entry>,
    handed_on: bool,
}

impl History {
    /// All that is kept, in order.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces.iter().copied().chain(self.tail.iter().map(|&entry| Piece::Event(entry)))
    }

    fn push(&mut self, entry: Entry, marks: &Marks<'_>) {
        if self.kept < HALF {
            self.kept += 1;
            self.pieces.push(Piece::Event(entry));
            return;
        }
        self.tail.push_back(entry);
        if self.tail.len() <= HALF {
            return;
        }
        let Some(old) = self.tail.pop_front() else { return };
        if marks.names(old.number) {
            self.pieces.push(Piece::Event(old));
        } else if let Some(Piece::LeftOut(count)) = self.pieces.last_mut() {
            *count += 1;
        } else {
            self.pieces.push(Piece::LeftOut(1));
        }
    }
}

/// The histories of the chosen blocks.
#[derive(Debug, Default)]
pub(super) struct Histories {
    /// In the order in which they were chosen. Blocks that were never handed out in this log are missing.
    pub(super) list: Vec<History>,
}

impl Histories {
    /// Reads the log once.
    pub(super) fn read(log: &dyn Log, chosen: &[BlockId], marks: &Marks<'_>) -> Self {
        let order: HashMap<BlockId, usize> =
            chosen.iter().enumerate().map(|(index, &block)| (block, index)).collect();
        let mut found = HashMap::<BlockId, History>::new();
        let mut owners = Owners::default();
        log.read(&mut |event, accesses| read_event(event, accesses, &order, &mut found, &mut owners, marks));
        let mut list: Vec<History> = found.into_values().collect();
        list.sort_by_key(|history| order[&history.block]);
        Self { list }
    }

    /// Blocks that the histories mention besides their own.
    pub(super) fn neighbours(&self) -> Vec<BlockId> {
        let events = self.list.iter().flat_map(History::pieces);
        let other = |piece| match piece {
            Piece::Event(Entry {
                what: What::HandedOut { before: Some((block, _)) } | What::HandedOn { to: block },
                ..
            }) => Some(block),
            _ => None,
        };
        events.filter_map(other).collect()
    }
}

fn read_event(
    event: &Event,
    accesses: &[Access],
    order: &HashMap<BlockId, usize>,
    found: &mut HashMap<BlockId, History>,
    owners: &mut Owners,
    marks: &Marks<'_>,
) {
    let entry = |stream, what| Entry { number: event.number, site: event.site, stream, what };
    let mut add = |block: BlockId, stream: Option<StreamId>, what| {
        if let Some(history) = found.get_mut(&block) {
            history.push(entry(stream, what), marks);
        }
    };
    match event.kind {
        EventKind::Alloc { block, stream, space, address, size } => {
            let taken = owners.alloc(block, space, address, size);
            for old in &taken {
                hand_on(found, old.block, entry(Some(stream), What::HandedOn { to: block }), marks);
            }
            if order.contains_key(&block) {
                let owner = matches!(space, MemorySpace::Cached(_)).then_some(stream);
                let before = taken.first().map(|old| (old.block, old.freed));
                let history = found.entry(block).or_insert_with(|| History {
                    block,
                    space,
                    address,
                    size,
                    owner,
                    pieces: Vec::new(),
                    kept: 0,
                    tail: VecDeque::new(),
                    handed_on: false,
                });
                history.push(entry(owner, What::HandedOut { before }), marks);
            }
        }
        EventKind::BlockSize { block, size } => {
            for old in owners.size(block, size) {
                hand_on(found, old.block, entry(None, What::HandedOn { to: block }), marks);
            }
            if let Some(history) = found.get_mut(&block) {
                history.size = size;
            }
        }
        EventKind::Op { stream, label, .. } => {
            for (block, mode) in touched(accesses) {
                add(block, Some(stream), What::Used { label, mode });
            }
        }
        EventKind::HostAccess { label, .. } => {
            for (block, mode) in touched(accesses) {
                add(block, None, What::Used { label, mode });
            }
        }
        EventKind::RecordStream { block, stream } => add(block, Some(stream), What::RecordStream),
        EventKind::Escape { block, label } => add(block, None, What::Escaped { to: label }),
        EventKind::FreeRequest { block } => {
            owners.free(block, event.number);
            let owner = found.get(&block).and_then(|history| history.owner);
            if let Some(history) = found.get_mut(&block) {
                history.push(entry(owner, What::Freed), marks);
            }
        }
        EventKind::FreeGuard { block, stream } => add(block, Some(stream), What::Guarded),
        EventKind::FreeDone { block } => add(block, None, What::Done),
        _ => {}
    }
}

/// The first block that takes bytes of `old` is said; one large block may be cut into thousands.
fn hand_on(found: &mut HashMap<BlockId, History>, old: BlockId, entry: Entry, marks: &Marks<'_>) {
    if let Some(history) = found.get_mut(&old).filter(|history| !history.handed_on) {
        history.handed_on = true;
        history.push(entry, marks);
    }
}

/// Each block once, with all that is done to it.
fn touched(accesses: &[Access]) -> impl Iterator<Item = (BlockId, AccessMode)> {
    accesses.iter().enumerate().filter_map(|(index, access)| {
        if accesses[..index].iter().any(|other| other.block == access.block) {
            return None;
        }
        let modes = accesses.iter().filter(|other| other.block == access.block).map(|other| other.mode);
        Some((access.block, modes.reduce(both)?))
    })
}

fn both(one: AccessMode, other: AccessMode) -> AccessMode {
    match (one, other) {
        _ if one == other => one,
        (AccessMode::Unknown, _) | (_, AccessMode::Unknown) => AccessMode::Unknown,
        _ => AccessMode::Update,
    }
}
