//! The largest blocks of a run: where to start when there is no finding.

use super::text::{Table, clip};
use crate::names::Names;
use crate::numbers::{bytes, grouped};
use crate::places::locate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use streamsan_trace::{Access, BlockId, EventKind, Log, MemorySpace, SiteId, StreamId};

/// How many are shown.
const SHOWN: usize = 10;

/// A block that is among the largest.
#[derive(Debug)]
pub(super) struct Large {
    pub(super) block: BlockId,
    pub(super) size: u64,
    pub(super) owner: Option<StreamId>,
    /// Whether it is a plain allocation, which mostly is what torch's allocator cuts into blocks.
    raw: bool,
    pub(super) site: SiteId,
    pub(super) uses: u64,
    pub(super) streams: BTreeSet<StreamId>,
}

/// The largest blocks, largest first.
#[derive(Debug, Default)]
pub(super) struct Largest {
    pub(super) list: Vec<Large>,
    pub(super) blocks: u64,
}

impl Largest {
    /// Reads the log twice: who is large, then what is done with them.
    pub(super) fn of(log: &dyn Log) -> Self {
        let mut all = Self::default();
        let mut unsized_blocks = BTreeMap::<BlockId, Large>::new();
        log.read(&mut |event, _| match event.kind {
            EventKind::Alloc { block, stream, space, size, .. } => {
                all.blocks += 1;
                let owner = matches!(space, MemorySpace::Cached(_)).then_some(stream);
                let (site, streams) = (event.site, BTreeSet::new());
                let raw = matches!(space, MemorySpace::Device(_));
                let large = Large { block, size, owner, raw, site, uses: 0, streams };
                if size == 0 {
                    unsized_blocks.insert(block, large);
                } else {
                    all.add(large);
                }
            }
            EventKind::BlockSize { block, size } => {
                if let Some(large) = unsized_blocks.remove(&block) {
                    all.add(Large { size, ..large });
                }
            }
            EventKind::FreeRequest { block } => {
                unsized_blocks.remove(&block);
            }
            _ => {}
        });
        log.read(&mut |event, accesses| match event.kind {
            EventKind::Op { stream, .. } => all.used(accesses, Some(stream)),
            EventKind::HostAccess { .. } => all.used(accesses, None),
            _ => {}
        });
        all
    }

    fn add(&mut self, large: Large) {
        let place = self.list.partition_point(|other| (other.raw, large.size) <= (large.raw, other.size));
        if place < SHOWN {
            self.list.insert(place, large);
            self.list.truncate(SHOWN);
        }
    }

    fn used(&mut self, accesses: &[Access], stream: Option<StreamId>) {
        for large in &mut self.list {
            if accesses.iter().any(|access| access.block == large.block) {
                large.uses += 1;
                large.streams.extend(stream);
            }
        }
    }

    /// The blocks.
    pub(super) fn ids(&self) -> BTreeSet<BlockId> {
        self.list.iter().map(|large| large.block).collect()
    }

    /// For people.
    pub(super) fn text(&self, log: &dyn Log, names: &Names<'_>) -> String {
        if self.list.is_empty() {
            return "No memory was handed out in this trace.\n".to_owned();
        }
        let mut table = Table::new(&["block", "name", "size", "uses", "streams", "allocated at"]);
        for large in &self.list {
            let mut streams: Vec<_> =
                large.streams.iter().take(2).map(|&stream| clip(&names.stream_plain(stream), 12)).collect();
            if large.streams.len() > 2 {
                streams.push(format!("{} more", large.streams.len() - 2));
            }
            let name = names.block(large.block).unwrap_or_else(|| names.sort(large.block));
            let place = locate(log, large.site).map_or_else(String::new, |place| place.line());
            table.row(vec![
                format!("b{}", large.block.0),
                clip(name, 20),
                bytes(large.size),
                grouped(large.uses),
                streams.join(", "),
                place,
            ]);
        }
        let mut text = match self.blocks {
            count if count > self.list.len() as u64 => {
                format!("No findings. The {} largest of {} blocks:\n\n", self.list.len(), grouped(count))
            }
            _ => "No findings. The blocks of this trace:\n\n".to_owned(),
        };
        text.push_str(&table.text());
        let _ = writeln!(
            text,
            "\nThe log of one: --block b{}, or --tensor NAME (named by its code or by streamsan.name)",
            self.list[0].block.0
        );
        text
    }
}
