//! SS701 and SS705: copies from and to ordinary memory, and page-locking again and again.
//!
//! A copy whose host side lies in no page-locked block goes through a buffer of the driver's: an upload returns when its
//! source has been staged, a download when it is done, whatever `non_blocking` says. Up to 64 KiB that is cheap, and a copy
//! that is made once would not pay for page-locking its memory: only larger ones in a loop count.

use super::lines::{LOOP, Lines};
use super::{Draft, Had, Seen};
use crate::edges::Line;
use crate::finding::{Actor, Advised, Measured, Memory};
use crate::rules::Rule;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use streamsan_trace::{Access, AccessMode, BlockId, EventKind, MemorySpace, OpKind, Tables};

/// CUDA copies up to so many bytes from ordinary memory without holding the host.
const SMALL: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Page-locked blocks, and where each starts.
    pinned: FxHashMap<BlockId, u64>,
    /// What the system has locked, by address: where it ends, and its block. torch hands the same memory out again.
    locked: BTreeMap<u64, (u64, BlockId)>,
    pageable: BTreeMap<(Line, bool), (Had, u64, Option<Memory>)>,
    taken: BTreeMap<Line, Taken>,
}

/// Page-locked memory that a line takes.
#[derive(Debug, Default)]
struct Taken {
    had: Had,
    bytes: u64,
    /// How often it had to be locked first.
    locks: u64,
}

/// What a copy between host and device moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) up: bool,
    pub(super) pinned: bool,
    pub(super) bytes: u64,
    /// The block on the device.
    pub(super) block: BlockId,
}

impl Copies {
    pub(super) fn touches_page_locked(&self, accesses: &[Access]) -> bool {
        accesses.iter().any(|access| self.pinned.contains_key(&access.block))
    }

    /// The transfer that an operation is, if it is one.
    pub(super) fn transfer(&self, kind: OpKind, accesses: &[Access], tables: &Tables) -> Option<Transfer> {
        let up = match kind {
            OpKind::CopyHostToDevice => true,
            OpKind::CopyDeviceToHost => false,
            _ => return None,
        };
        let pinned = self.touches_page_locked(accesses);
        let mode = if up { AccessMode::Write } else { AccessMode::Read };
        let is_devices = |access: &&Access| access.mode == mode && !self.pinned.contains_key(&access.block);
        let mut found = accesses.iter().filter(is_devices);
        let block = found.clone().next().map_or(BlockId(0), |access| access.block);
        let bytes = found.by_ref().map(|access| touched(access, tables)).sum();
        Some(Transfer { up, pinned, bytes, block })
    }

    pub(super) fn event(&mut self, seen: &Seen<'_>, transfer: Option<Transfer>) {
        match seen.event.kind {
            EventKind::Alloc { block, space: MemorySpace::Pinned, address, size, .. } => {
                self.pinned.insert(block, address);
                let new = self.lock(block, address, size);
                // What a library takes while it works, and calls back in between, is not taken in a turn of a loop.
                if seen.counts && seen.begins && size >= SMALL && seen.is_users() {
                    let taken = self.taken.entry(seen.line).or_default();
                    taken.had.executions += 1;
                    taken.had.add(seen, Actor::Host);
                    taken.bytes += size;
                    taken.locks += u64::from(new);
                }
            }
            EventKind::FreeRequest { block } => {
                if let Some(address) = self.pinned.remove(&block)
                    && self.locked.get(&address).is_some_and(|&(_, locked)| locked == block)
                {
                    self.locked.remove(&address);
                }
            }
            EventKind::Op { stream, .. } if seen.counts => {
                let large = transfer.filter(|one| !one.pinned && one.bytes > SMALL);
                let Some(transfer) = large.filter(|_| seen.is_users()) else { return };
                let (had, bytes, memory) = self.pageable.entry((seen.line, transfer.up)).or_default();
                had.executions += 1;
                had.add(seen, Actor::Stream(stream));
                *bytes += transfer.bytes;
                if memory.is_none() {
                    *memory = seen.memory(transfer.block, transfer.bytes);
                }
            }
            _ => {}
        }
    }

    /// Page-locked memory appears; whether the system had to lock it.
    fn lock(&mut self, block: BlockId, address: u64, size: u64) -> bool {
        let before = self.locked.range(..=address).next_back();
        if before.is_some_and(|(_, &(end, _))| address.saturating_add(size) <= end) {
            return false;
        }
        self.locked.insert(address, (address.saturating_add(size), block));
        true
    }

    /// Whether the line is one that this is said of.
    pub(super) fn says(&self, line: Line, lines: &Lines) -> bool {
        [true, false]
            .iter()
            .any(|&up| self.pageable.get(&(line, up)).is_some_and(|(had, ..)| is_loop(had, line, lines)))
    }

    pub(super) fn drafts(&self, lines: &Lines) -> Vec<Draft> {
        let pageable = self.pageable.iter().filter(|((line, _), (had, ..))| is_loop(had, *line, lines));
        let pageable = pageable.filter_map(|(&(_, up), (had, bytes, memory))| {
            draft(Rule::Ss701, had, (had.count, *bytes), *memory, Measured::PageableCopy { up })
        });
        let taken = self.taken.iter().filter(|(line, taken)| is_loop(&taken.had, **line, lines));
        let taken = taken.filter_map(|(_, Taken { had, bytes, locks })| {
            draft(Rule::Ss705, had, (*locks, *bytes), None, Measured::PinInLoop)
        });
        pageable.chain(taken).collect()
    }
}

fn is_loop(had: &Had, line: Line, lines: &Lines) -> bool {
    had.count >= LOOP && lines.turns(line) >= LOOP
}

fn draft(
    rule: Rule,
    had: &Had,
    (operations, bytes): (u64, u64),
    memory: Option<Memory>,
    measured: Measured,
) -> Option<Draft> {
    let (event, origin, actor) = had.first?;
    Some(Draft {
        rule,
        event,
        origin,
        actor,
        memory,
        count: had.count,
        occurrences: had.occurrences.clone(),
        advised: Advised {
            executions: had.executions,
            operations,
            bytes,
            measured,
            verified: None,
            unseen: false,
        },
        trial: None,
    })
}

/// Bytes of an access, without the holes of a strided one.
pub(super) fn touched(access: &Access, tables: &Tables) -> u64 {
    tables.shape(access.shape).map_or(access.length, |shape| {
        let steps = shape.dimensions.iter().map(|dimension| dimension.size);
        steps.fold(shape.run, u64::saturating_mul)
    })
}
