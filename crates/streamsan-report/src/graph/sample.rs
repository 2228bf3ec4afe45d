//! Logs for tests of drawings: small ones written by hand, and long ones made while they are read.

use std::collections::HashMap;
use streamsan_check::{Config, Report, check};
use streamsan_trace::{
    Access, AccessMode, AccessRange, BlockId, DeviceId, Event, EventId, EventKind, Frame, FrameOrigin,
    Header, HostWaitHow, Log, MemorySpace, Observer, OpKind, OpNumber, ShapeId, SiteId, StreamId, StringId,
    Subject, Tables, ThreadId, Trace, WaitTarget,
};

pub(crate) const DEFAULT: StreamId = StreamId(1);
pub(crate) const SIDE: StreamId = StreamId(2);
pub(crate) const THIRD: StreamId = StreamId(3);

/// A trace that is written event by event.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) trace: Trace,
    records: u32,
    names: HashMap<&'static str, BlockId>,
}

impl Sample {
    /// Three streams, of which the first is the legacy default one.
    pub(crate) fn new() -> Self {
        let header = Header {
            directory: "/work/job".to_owned(),
            command: "train.py --fast".to_owned(),
            devices: 1,
            closed: true,
            ..Header::default()
        };
        let mut sample =
            Self { trace: Trace { header, ..Trace::default() }, records: 0, names: HashMap::new() };
        for (stream, name) in [(DEFAULT, ""), (SIDE, "side"), (THIRD, "third")] {
            let kind = EventKind::StreamCreate {
                stream,
                device: DeviceId(0),
                blocking: false,
                legacy_default: stream == DEFAULT,
                priority: 0,
            };
            sample.event(0, kind);
            if !name.is_empty() {
                sample.name(Subject::Stream(stream), name);
            }
        }
        sample
    }

    /// An event at a line of `train.py`; line 0: at no known place. Gives its number.
    pub(crate) fn event(&mut self, line: u32, kind: EventKind) -> OpNumber {
        let site = if line == 0 { SiteId(0) } else { self.site("/work/job/train.py", line) };
        let number = OpNumber(self.trace.events.len() as u64 + 1);
        self.trace.events.push(Event { number, thread: ThreadId(0), site, kind });
        number
    }

    pub(crate) fn site(&mut self, file: &str, line: u32) -> SiteId {
        let tables = &mut self.trace.tables;
        let (file, function) = (tables.intern_string(file), tables.intern_string("step"));
        let frame = Frame {
            file,
            function,
            line,
            end_line: line,
            column: 0,
            end_column: 0,
            origin: FrameOrigin::User,
        };
        let frame = tables.intern_frame(frame);
        tables.intern_site(vec![frame])
    }

    pub(crate) fn name(&mut self, subject: Subject, name: &str) {
        let name = self.trace.tables.intern_string(name);
        self.event(0, EventKind::Name { subject, name, by_user: true });
    }

    /// Hands out 64 bytes on the default stream.
    pub(crate) fn alloc(&mut self, line: u32, name: &'static str) -> BlockId {
        let block = BlockId(self.names.len() as u32 + 1);
        let address = 0x1000 * u64::from(block.0);
        self.alloc_at(line, name, DEFAULT, address)
    }

    /// Hands out 64 bytes at an address.
    pub(crate) fn alloc_at(
        &mut self,
        line: u32,
        name: &'static str,
        stream: StreamId,
        address: u64,
    ) -> BlockId {
        let block = BlockId(self.names.len() as u32 + 1);
        self.names.insert(name, block);
        let space = MemorySpace::Cached(DeviceId(0));
        self.event(line, EventKind::Alloc { block, stream, space, address, size: 64 });
        self.name(Subject::Block(block), name);
        block
    }

    pub(crate) fn free(&mut self, line: u32, block: BlockId) -> OpNumber {
        self.event(line, EventKind::FreeRequest { block })
    }

    pub(crate) fn op(
        &mut self,
        line: u32,
        stream: StreamId,
        label: &str,
        mode: AccessMode,
        block: BlockId,
    ) -> OpNumber {
        let accesses = self.trace.push_accesses(&[whole(block, mode)]);
        let label = self.trace.tables.intern_string(label);
        let kind = if label_is_copy(self.trace.tables.string(label)) {
            OpKind::CopyHostToDevice
        } else {
            OpKind::Kernel
        };
        self.event(line, EventKind::Op { stream, label, kind, forward_site: SiteId(0), accesses })
    }

    /// `waiter` waits for what `awaited` has now. Gives the numbers of the record and of the wait.
    pub(crate) fn wait(&mut self, line: u32, waiter: StreamId, awaited: StreamId) -> (OpNumber, OpNumber) {
        self.records += 1;
        let event = EventId(self.records);
        let record = self.event(line, EventKind::EventRecord { event, stream: awaited });
        (record, self.event(line, EventKind::EventWait { event, stream: waiter }))
    }

    pub(crate) fn synchronize(&mut self, line: u32, stream: StreamId) -> OpNumber {
        let (target, observer, how) =
            (WaitTarget::Stream(stream), Observer::Program, HostWaitHow::Synchronize);
        self.event(line, EventKind::HostWait { target, observer, how })
    }

    pub(crate) fn check(&self) -> Report {
        check(&self.trace, &Config::default())
    }
}

fn label_is_copy(label: &str) -> bool {
    label.contains("copy")
}

fn whole(block: BlockId, mode: AccessMode) -> Access {
    Access { block, mode, offset: 0, length: 64, shape: ShapeId(0), argument: StringId(0) }
}

/// A long run that is made while it is read: in each turn `side` reads what the default stream wrote, and in
/// some turns the wait for it is missing.
#[derive(Debug)]
pub(crate) struct Long {
    header: Header,
    tables: Tables,
    turns: u64,
    /// In every so many turns the wait is missing.
    missing_each: u64,
    lines: u32,
    label: StringId,
}

impl Long {
    /// Four events a turn. The lines repeat after `lines` turns.
    pub(crate) fn new(turns: u64, missing_each: u64, lines: u32) -> Self {
        let mut sample = Sample::new();
        sample.trace.tables.sites.reserve(2 * lines as usize);
        let (file, function) = (
            sample.trace.tables.intern_string("/work/job/long.py"),
            sample.trace.tables.intern_string("turn"),
        );
        let tables = &mut sample.trace.tables;
        for line in 1..=2 * lines {
            let (end_line, origin) = (line, FrameOrigin::User);
            tables.frames.push(Frame { file, function, line, end_line, column: 0, end_column: 0, origin });
            tables.sites.push(vec![streamsan_trace::FrameId(tables.frames.len() as u32 - 1)]);
        }
        let label = tables.intern_string("aten::mul");
        Self { header: sample.trace.header, tables: sample.trace.tables, turns, missing_each, lines, label }
    }
}

impl Log for Long {
    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn read(&self, each: &mut dyn FnMut(&Event, &[Access])) {
        let mut number = 0;
        let first_site = self.tables.sites.len() as u32 - 2 * self.lines;
        let mut give = |site: u32, kind: EventKind, accesses: &[Access]| {
            number += 1;
            each(
                &Event { number: OpNumber(number), thread: ThreadId(0), site: SiteId(site), kind },
                accesses,
            );
        };
        for (stream, legacy_default) in [(DEFAULT, true), (SIDE, false)] {
            let kind = EventKind::StreamCreate {
                stream,
                device: DeviceId(0),
                blocking: false,
                legacy_default,
                priority: 0,
            };
            give(0, kind, &[]);
        }
        let (block, space) = (BlockId(1), MemorySpace::Cached(DeviceId(0)));
        give(0, EventKind::Alloc { block, stream: DEFAULT, space, address: 0x1000, size: 64 }, &[]);
        let op = |stream| EventKind::Op {
            stream,
            label: self.label,
            kind: OpKind::Kernel,
            forward_site: SiteId(0),
            accesses: AccessRange::default(),
        };
        for turn in 0..self.turns {
            let line = first_site + 2 * (turn % u64::from(self.lines)) as u32;
            give(line, op(DEFAULT), &[whole(block, AccessMode::Write)]);
            if turn % self.missing_each != self.missing_each - 1 {
                give(line, EventKind::EventRecord { event: EventId(1), stream: DEFAULT }, &[]);
                give(line, EventKind::EventWait { event: EventId(1), stream: SIDE }, &[]);
            }
            give(line + 1, op(SIDE), &[whole(block, AccessMode::Read)]);
            give(line + 1, EventKind::EventRecord { event: EventId(2), stream: SIDE }, &[]);
            give(line + 1, EventKind::EventWait { event: EventId(2), stream: DEFAULT }, &[]);
        }
    }
}
