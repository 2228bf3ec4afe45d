//! SS406 for a line that is also called with a block of which nothing is known any more.

use streamsan_check::{Config, Rule, check};
use streamsan_trace::{
    BlockId, DeviceId, Event, EventKind, Frame, FrameOrigin, MemorySpace, OpNumber, SiteId, StreamId,
    ThreadId, Trace,
};

const OWNER: StreamId = StreamId(0);

struct Program {
    trace: Trace,
}

impl Program {
    fn event(&mut self, site: SiteId, kind: EventKind) {
        let number = OpNumber(self.trace.events.len() as u64 + 1);
        self.trace.events.push(Event { number, thread: ThreadId(0), site, kind });
    }

    fn block(&mut self, id: u32) {
        let space = MemorySpace::Cached(DeviceId(0));
        let kind = EventKind::Alloc { block: BlockId(id), stream: OWNER, space, address: 1 << 30, size: 512 };
        self.event(SiteId(0), kind);
        self.event(SiteId(0), EventKind::FreeRequest { block: BlockId(id) });
    }
}

#[test]
fn a_block_that_ended_long_ago_says_nothing_about_its_line() {
    let mut program = Program { trace: Trace::default() };
    let tables = &mut program.trace.tables;
    let (file, function) = (tables.intern_string("train.py"), tables.intern_string("step"));
    let frame =
        Frame { file, function, line: 7, end_line: 7, column: 0, end_column: 0, origin: FrameOrigin::User };
    let frame = tables.intern_frame(frame);
    let line = tables.intern_site(vec![frame]);
    let (device, priority) = (DeviceId(0), 0);
    let stream =
        EventKind::StreamCreate { stream: OWNER, device, blocking: true, legacy_default: false, priority };
    program.event(SiteId(0), stream);
    // So many that nothing is known of the first one.
    (1..40_000).for_each(|id| program.block(id));
    for block in [1, 39_999] {
        program.event(line, EventKind::RecordStream { block: BlockId(block), stream: OWNER });
    }
    let report = check(&program.trace, &Config::default());
    let found: Vec<(Rule, u64)> =
        report.findings.iter().map(|finding| (finding.rule, finding.count)).collect();
    assert_eq!(found, [(Rule::Ss406, 1)]);
}
