//! What is kept of a log that goes by, so that findings can be told: names, and how streams came about.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use streamsan_trace::{
    Access, BlockId, Event, EventKind, Header, Log, OpNumber, StreamId, StringId, Subject, Tables,
};

/// Blocks that were freed and whose names are kept.
const FREED: usize = 1 << 14;

/// Events that names come from. As many as there are streams and blocks in use, and some blocks more.
#[derive(Debug, Default)]
pub(super) struct Known {
    streams: Vec<Event>,
    used: HashSet<StreamId>,
    named: HashSet<(StreamId, StringId)>,
    blocks: HashMap<BlockId, Vec<Event>>,
    /// Freed blocks, the oldest first.
    freed: VecDeque<BlockId>,
}

impl Known {
    /// Takes the next event of the log.
    pub(super) fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::StreamCreate { .. } => self.streams.push(*event),
            EventKind::EventRecord { stream, .. }
            | EventKind::EventWait { stream, .. }
            | EventKind::Op { stream, .. }
            | EventKind::GraphLaunch { stream, .. } => {
                let is_first = self.used.insert(stream);
                self.streams.extend(is_first.then_some(*event));
            }
            EventKind::Name { subject: Subject::Stream(stream), name, .. } => {
                let is_new = self.named.insert((stream, name));
                self.streams.extend(is_new.then_some(*event));
            }
            EventKind::Alloc { block, .. } | EventKind::Name { subject: Subject::Block(block), .. } => {
                let known = self.blocks.entry(block).or_default();
                // The same name in each turn of a loop is one.
                if !known.iter().any(|known| known.kind == event.kind) {
                    known.push(*event);
                }
            }
            EventKind::FreeRequest { block } => {
                self.freed.push_back(block);
                if self.freed.len() > FREED
                    && let Some(oldest) = self.freed.pop_front()
                {
                    self.blocks.remove(&oldest);
                }
            }
            _ => {}
        }
    }
}

/// A log of the kept events alone.
#[derive(Debug)]
pub(super) struct View<'a> {
    header: &'a Header,
    tables: &'a Tables,
    events: BTreeMap<OpNumber, Event>,
}

impl<'a> View<'a> {
    /// What is known of all streams and of these blocks.
    pub(super) fn new(
        header: &'a Header,
        tables: &'a Tables,
        known: &Known,
        blocks: &BTreeSet<BlockId>,
    ) -> Self {
        let of_blocks = blocks.iter().filter_map(|block| known.blocks.get(block)).flatten();
        let events = known.streams.iter().chain(of_blocks).map(|event| (event.number, *event)).collect();
        Self { header, tables, events }
    }
}

impl Log for View<'_> {
    fn header(&self) -> &Header {
        self.header
    }

    fn tables(&self) -> &Tables {
        self.tables
    }

    fn read(&self, each: &mut dyn FnMut(&Event, &[Access])) {
        for event in self.events.values() {
            each(event, &[]);
        }
    }
}
