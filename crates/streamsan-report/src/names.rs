//! What streams and memory are called. Never a handle, never an address.

use crate::numbers::bytes;
use crate::places::{in_parentheses, locate};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_check::{Actor, Memory, Report};
use streamsan_trace::{
    BlockId, DeviceId, EventKind, FrameId, Log, MemorySpace, SiteId, StreamId, Subject, VisibleStream,
    WaitTarget,
};

/// Names of the streams and blocks of one trace.
#[derive(Debug)]
pub struct Names<'a> {
    log: &'a dyn Log,
    streams: BTreeMap<StreamId, Stream>,
    blocks: BTreeMap<BlockId, Named>,
    spaces: BTreeMap<BlockId, MemorySpace>,
    several_devices: bool,
    /// How many streams have a number.
    numbered: usize,
}

#[derive(Debug, Default)]
struct Stream {
    /// Its place in the order of first use, from 1, default streams left out.
    number: usize,
    name: Option<Named>,
    /// Where it got its name. torch creates its streams by the dozen, so their creation says nothing.
    created: SiteId,
    device: DeviceId,
    legacy_default: bool,
    /// Whether another stream in use has the same name.
    shared_name: bool,
}

#[derive(Debug)]
struct Named {
    text: String,
    by_user: bool,
}

impl<'a> Names<'a> {
    /// Collects the names that the findings of a report need.
    pub fn new(log: &'a dyn Log, report: &Report) -> Self {
        let memories = report.findings.iter().flat_map(|finding| [finding.memory, finding.old_memory]);
        Self::of_blocks(log, &memories.flatten().map(|memory| memory.block).collect())
    }

    /// Collects the names of all streams and of these blocks.
    pub fn of_blocks(log: &'a dyn Log, wanted: &BTreeSet<BlockId>) -> Self {
        let mut names = Self {
            log,
            streams: BTreeMap::new(),
            blocks: BTreeMap::new(),
            spaces: BTreeMap::new(),
            several_devices: log.header().devices > 1,
            numbered: 0,
        };
        log.read(&mut |event, _| match event.kind {
            EventKind::StreamCreate { stream, device, legacy_default, .. } => {
                let entry = names.streams.entry(stream).or_default();
                (entry.device, entry.legacy_default) = (device, legacy_default);
                names.several_devices |= device.0 > 0;
            }
            EventKind::EventRecord { stream, .. }
            | EventKind::EventWait { stream, .. }
            | EventKind::Op { stream, .. }
            | EventKind::GraphLaunch { stream, .. }
            | EventKind::HostWait { target: WaitTarget::Stream(stream), .. } => names.used(stream),
            EventKind::Alloc { block, space, .. } if wanted.contains(&block) => {
                names.spaces.insert(block, space);
            }
            EventKind::Name { subject, name, by_user } => {
                let given = Named { text: log.tables().string(name).to_owned(), by_user };
                match subject {
                    Subject::Stream(stream) => {
                        names.used(stream);
                        let entry = names.streams.entry(stream).or_default();
                        if entry.name.is_none() && locate(log, event.site).is_some() {
                            entry.created = event.site;
                        }
                        keep(&mut entry.name, given);
                    }
                    Subject::Block(block) if !wanted.contains(&block) => {}
                    Subject::Block(block) => {
                        let mut known = names.blocks.remove(&block);
                        keep(&mut known, given);
                        names.blocks.extend(known.map(|name| (block, name)));
                    }
                }
            }
            _ => {}
        });
        names.borrow_names_from_code();
        names.find_shared_names();
        names
    }

    /// Gives streams without a name an expression that stands for them and for no other stream.
    fn borrow_names_from_code(&mut self) {
        let log = self.log;
        let tables = &log.tables();
        let mut streams_of = BTreeMap::<&str, BTreeSet<StreamId>>::new();
        for visible in &tables.visible_streams {
            let text = tables.string(visible.expression);
            if text.is_empty() {
                continue;
            }
            streams_of.entry(text).or_default().insert(visible.stream);
        }
        let mut best = BTreeMap::<StreamId, &str>::new();
        for (&expression, streams) in &streams_of {
            if let (1, Some(&stream)) = (streams.len(), streams.first()) {
                let known = best.entry(stream).or_insert(expression);
                if clumsiness(expression) < clumsiness(known) {
                    *known = expression;
                }
            }
        }
        for (stream, expression) in best {
            if let Some(entry) = self.streams.get_mut(&stream).filter(|entry| entry.name.is_none()) {
                keep(&mut entry.name, Named { text: expression.to_owned(), by_user: false });
            }
        }
    }

    fn used(&mut self, stream: StreamId) {
        let entry = self.streams.entry(stream).or_default();
        if entry.number == 0 && !entry.legacy_default {
            self.numbered += 1;
            entry.number = self.numbered;
        }
    }

    fn find_shared_names(&mut self) {
        let mut counts = BTreeMap::<String, usize>::new();
        for stream in self.streams.values() {
            if let Some(name) = &stream.name {
                *counts.entry(name.text.clone()).or_default() += 1;
            }
        }
        for stream in self.streams.values_mut() {
            stream.shared_name = stream.name.as_ref().is_some_and(|name| counts[&name.text] > 1);
        }
    }

    /// A stream without quotes, for diagrams and JSON: `side`, `default`, `stream 3`.
    pub fn stream_plain(&self, stream: StreamId) -> String {
        let Some(entry) = self.streams.get(&stream) else { return format!("stream id {}", stream.0) };
        match &entry.name {
            _ if entry.legacy_default && self.several_devices => {
                format!("default of device {}", entry.device.0)
            }
            _ if entry.legacy_default => "default".to_owned(),
            Some(name) if entry.shared_name => format!("{} (stream {})", name.text, entry.number),
            Some(name) => name.text.clone(),
            None if entry.number == 0 => "unused stream".to_owned(),
            None => format!("stream {}", entry.number),
        }
    }

    /// A stream within a sentence: `` `side` ``, `the default stream`, `stream 3`.
    pub fn stream(&self, stream: StreamId) -> String {
        match self.streams.get(&stream) {
            Some(Stream { legacy_default: false, name: Some(name), number, shared_name, .. }) => {
                let which = if *shared_name { format!(" (stream {number})") } else { String::new() };
                format!("`{}`{which}", name.text)
            }
            Some(entry) if entry.legacy_default && self.several_devices => {
                format!("the default stream of device {}", entry.device.0)
            }
            Some(entry) if entry.legacy_default => "the default stream".to_owned(),
            _ => self.stream_plain(stream),
        }
    }

    /// A stream that code cannot name: "the stream named `copy` (created at loader.py:14)".
    pub(crate) fn stream_described(&self, stream: StreamId) -> String {
        match self.streams.get(&stream) {
            Some(entry) if !entry.legacy_default => {
                let spoken = self.stream(stream);
                let named = if entry.name.is_some() { format!("the stream named {spoken}") } else { spoken };
                let created = in_parentheses(self.log, entry.created).replace('(', "(created at ");
                format!("{named}{created}")
            }
            _ => self.stream(stream),
        }
    }

    /// The best of these expressions for a stream in one frame.
    pub(crate) fn expression(
        &self,
        names: &[VisibleStream],
        frame: FrameId,
        stream: StreamId,
    ) -> Option<&'a str> {
        let tables = self.log.tables();
        let here = names.iter().filter(|name| (name.frame, name.stream) == (frame, stream));
        here.map(|name| tables.string(name.expression))
            .filter(|text| !text.is_empty())
            .min_by_key(|text| clumsiness(text))
    }

    /// The legacy default stream's device, if the stream is one; and whether code must name the device.
    pub(crate) fn legacy_default(&self, stream: StreamId) -> Option<DeviceId> {
        self.streams.get(&stream).filter(|entry| entry.legacy_default).map(|entry| entry.device)
    }

    /// The argument of `torch.cuda.default_stream` and its like: the device if there are several.
    pub(crate) fn device_argument(&self, stream: StreamId) -> String {
        match self.streams.get(&stream) {
            Some(entry) if self.several_devices => entry.device.0.to_string(),
            _ => String::new(),
        }
    }

    pub(crate) fn actor_plain(&self, actor: Actor) -> String {
        match actor {
            Actor::Stream(stream) => self.stream_plain(stream),
            Actor::Host => "host".to_owned(),
        }
    }

    pub(crate) fn actor(&self, actor: Actor) -> String {
        match actor {
            Actor::Stream(stream) => self.stream(stream),
            Actor::Host => "the host".to_owned(),
        }
    }

    /// A block's name, if it has one.
    pub fn block(&self, block: BlockId) -> Option<&str> {
        self.blocks.get(&block).map(|name| name.text.as_str())
    }

    /// The expression that a block was assigned to in the code, such as `chunk` or `self.buffer`.
    pub(crate) fn block_expression(&self, block: BlockId) -> Option<&str> {
        let name = self.blocks.get(&block).filter(|name| !name.by_user)?;
        let starts = name.text.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let rest = |other: char| other.is_alphanumeric() || matches!(other, '_' | '.' | '[' | ']');
        (starts && name.text.chars().all(rest)).then_some(&*name.text)
    }

    /// Whether a block comes from torch's caching allocator.
    pub(crate) fn is_cached(&self, block: BlockId) -> bool {
        matches!(self.spaces.get(&block), Some(MemorySpace::Cached(_)))
    }

    /// What sort of thing a block without a name is.
    pub(crate) fn sort(&self, block: BlockId) -> &'static str {
        match self.spaces.get(&block) {
            Some(MemorySpace::Cached(_)) => "tensor",
            Some(MemorySpace::Device(_)) => "device buffer",
            Some(MemorySpace::Pinned) => "pinned buffer",
            Some(MemorySpace::Pageable) => "host buffer",
            None => "piece of memory",
        }
    }

    /// Memory in a headline: `` `x` ``, `a tensor of 4.0 MiB`, `a tensor`.
    pub(crate) fn memory_spoken(&self, memory: &Memory) -> String {
        match (self.block(memory.block), memory.size) {
            (Some(name), _) => format!("`{name}`"),
            (None, 0) => format!("a {}", self.sort(memory.block)),
            (None, size) => format!("a {} of {}", self.sort(memory.block), bytes(size)),
        }
    }

    /// Memory mentioned again: `` `x` ``, `the tensor`.
    pub(crate) fn memory_again(&self, memory: &Memory) -> String {
        self.block(memory.block)
            .map_or_else(|| format!("the {}", self.sort(memory.block)), |name| format!("`{name}`"))
    }
}

/// The user's last word counts, else the first name from the code.
fn keep(known: &mut Option<Named>, new: Named) {
    // `_` is what code calls a thing that it will not call by name.
    let empty = new.text.is_empty() || new.text == "_";
    if !empty && (known.is_none() || new.by_user) {
        *known = Some(new);
    }
}

/// Orders expressions: a plain name before an attribute or an index, then the shortest, then the first.
fn clumsiness(expression: &str) -> (bool, usize, &str) {
    (expression.contains(['.', '[', '(']), expression.chars().count(), expression)
}
