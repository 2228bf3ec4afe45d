//! A trace and a report of one finding, to be changed by each test.

use streamsan_check::{
    Actor, Coverage, Finding, Fix, FixAction, Memory, Occurrences, OrderedUpTo, Place, Report, Rule,
};
use streamsan_trace::{
    AccessMode, AccessRange, Binding, BlockId, DeviceId, Event, EventKind, Frame, FrameId, FrameOrigin,
    Header, MemorySpace, OpKind, OpNumber, SiteId, StreamId, Subject, ThreadId, Trace, VisibleStream,
};

pub(super) const DEFAULT: StreamId = StreamId(0);
pub(super) const SIDE: StreamId = StreamId(1);
pub(super) const BLOCK: BlockId = BlockId(1);

/// A trace with its report.
pub(super) struct Case {
    pub(super) trace: Trace,
    pub(super) report: Report,
}

impl Case {
    /// The example of the design: `data.py:18` writes, `train.py:41` reads.
    pub(super) fn read_after_write() -> Self {
        let mut case = Self::without_findings();
        case.name_stream(SIDE, "side", 4);
        case.name_block(BLOCK, "x");
        let write = case.site("data.py", 18, 9, 42, "Loader.fill");
        let read = case.site("train.py", 41, 13, 28, "step");
        let reach = case.site("data.py", 9, 0, 0, "Loader.make");
        let alloc = case.site("data.py", 12, 0, 0, "Loader.make");
        let frame = case.trace.tables.sites[read.index()][0];
        case.visible(frame, SIDE, "self.side");
        case.visible(frame, SIDE, "side");
        let (memcpy, mul) = (case.string("memcpy HtoD"), case.string("aten::mul"));
        let place = |number, stream, site, label, access| Place {
            number: OpNumber(number),
            actor: Actor::Stream(stream),
            thread: ThreadId(0),
            kind: Some(OpKind::Kernel),
            site,
            forward_site: SiteId(0),
            label,
            access: Some(access),
        };
        case.report.findings.push(Finding {
            rule: Rule::Ss101,
            first: Some(place(1203, DEFAULT, write, memcpy, AccessMode::Write)),
            second: place(1207, SIDE, read, mul, AccessMode::Read),
            free: None,
            memory: Some(Memory {
                block: BLOCK,
                offset: 0,
                overlap: 4 << 20,
                size: 4 << 20,
                alloc_site: alloc,
                owner: Some(DEFAULT),
                device: Some(DeviceId(0)),
            }),
            old_memory: None,
            ordered_up_to: Some(OrderedUpTo {
                actor: Actor::Stream(DEFAULT),
                number: OpNumber(1188),
                site: reach,
                by_host: false,
            }),
            count: 312,
            occurrences: Occurrences::default(),
            fix: Some(Fix {
                actions: vec![FixAction::WaitStream {
                    waiter: SIDE,
                    awaited: DEFAULT,
                    waiter_is_current: true,
                }],
                frame: Some(frame),
                before: OpNumber(1207),
                names: case.trace.tables.visible_streams.clone(),
                names_at_first: case.trace.tables.visible_streams.clone(),
                verified: true,
                is_at_reuse: false,
            }),
            removed_by: None,
            removes: 0,
            notes: Vec::new(),
            advice: None,
            fingerprint: 0x9c1f_0042_0000_abcd,
            set_level: None,
        });
        case
    }

    /// A run in which nothing is wrong.
    pub(super) fn without_findings() -> Self {
        let trace = Trace {
            header: Header {
                directory: "/work/job".to_owned(),
                devices: 1,
                closed: true,
                ..Header::default()
            },
            ..Trace::default()
        };
        let coverage = Coverage {
            events: 50_000,
            last: OpNumber(0),
            operations: 48_120,
            opaque: 0,
            streams: 3,
            devices: 1,
            waits: 311,
            host_waits: 4,
            blocks: 90,
        };
        let report = Report {
            findings: Vec::new(),
            gaps: Vec::new(),
            coverage,
            hidden: 0,
            measures: None,
            ignored: Vec::new(),
        };
        let mut case = Self { trace, report };
        case.create_stream(DEFAULT, true);
        case.create_stream(SIDE, false);
        let space = MemorySpace::Cached(DeviceId(0));
        case.event(EventKind::Alloc {
            block: BLOCK,
            stream: DEFAULT,
            space,
            address: 0x7f00_0000,
            size: 4 << 20,
        });
        case
    }

    pub(super) fn finding(&mut self) -> &mut Finding {
        &mut self.report.findings[0]
    }

    pub(super) fn event(&mut self, kind: EventKind) {
        self.event_at(SiteId(0), kind);
    }

    fn event_at(&mut self, site: SiteId, kind: EventKind) {
        let number = OpNumber(self.trace.events.len() as u64 + 1);
        self.trace.events.push(Event { number, thread: ThreadId(0), site, kind });
        self.report.coverage.last = number;
    }

    pub(super) fn create_stream(&mut self, stream: StreamId, legacy_default: bool) {
        let device = DeviceId(0);
        self.event(EventKind::StreamCreate { stream, device, blocking: false, legacy_default, priority: 0 });
    }

    pub(super) fn use_stream(&mut self, stream: StreamId) {
        let label = self.string("aten::mul");
        self.event(EventKind::Op {
            stream,
            label,
            kind: OpKind::Kernel,
            forward_site: SiteId(0),
            accesses: AccessRange::default(),
        });
    }

    pub(super) fn name_stream(&mut self, stream: StreamId, name: &str, line: u32) {
        let (name, site) = (self.string(name), self.site("train.py", line, 0, 0, ""));
        self.event_at(site, EventKind::Name { subject: Subject::Stream(stream), name, by_user: false });
    }

    pub(super) fn name_block(&mut self, block: BlockId, name: &str) {
        let name = self.string(name);
        self.event(EventKind::Name { subject: Subject::Block(block), name, by_user: false });
    }

    /// Takes the names of a block away and gives it one.
    pub(super) fn rename_block(&mut self, block: BlockId, name: &str) {
        let text = self.string(name);
        let mut named = false;
        for event in &mut self.trace.events {
            if let EventKind::Name { subject: Subject::Block(subject), name, .. } = &mut event.kind
                && *subject == block
            {
                (*name, named) = (text, true);
            }
        }
        assert!(named, "the block had a name");
    }

    /// Keeps only the first of the expressions for streams.
    pub(super) fn keep_visible(&mut self, count: usize) {
        self.trace.tables.visible_streams.truncate(count);
        for fix in self.report.findings.iter_mut().filter_map(|finding| finding.fix.as_mut()) {
            fix.names.truncate(count);
            fix.names_at_first.truncate(count);
        }
    }

    pub(super) fn visible(&mut self, frame: FrameId, stream: StreamId, expression: &str) {
        let expression = self.string(expression);
        let visible = VisibleStream { frame, stream, expression, binding: Binding::Lasting };
        self.trace.tables.visible_streams.push(visible);
        for fix in self.report.findings.iter_mut().filter_map(|finding| finding.fix.as_mut()) {
            fix.names.push(visible);
            fix.names_at_first.push(visible);
        }
    }

    pub(super) fn string(&mut self, text: &str) -> streamsan_trace::StringId {
        self.trace.tables.intern_string(text)
    }

    /// A stack of a torch frame and the user's frame, innermost first. Column 0: not known.
    pub(super) fn site(
        &mut self,
        file: &str,
        line: u32,
        column: u32,
        end_column: u32,
        function: &str,
    ) -> SiteId {
        let file = self.string(&format!("/work/job/{file}"));
        let function = self.string(function);
        let torch = self.string("/usr/lib/python3/site-packages/torch/_tensor.py");
        let user =
            Frame { file, function, line, end_line: line, column, end_column, origin: FrameOrigin::User };
        let library = Frame { file: torch, line: 33, origin: FrameOrigin::Library, ..Frame::default() };
        let user = self.trace.tables.intern_frame(user);
        let library = self.trace.tables.intern_frame(library);
        self.trace.tables.intern_site(vec![user, library])
    }
}
