//! A report of many hazards, in every format.
//!
//! `STREAMSAN_HAZARDS=100000 cargo test --release -p streamsan-report --test speed -- --nocapture` prints the times that
//! docs/benchmarks.md has.

use std::time::Instant;
use streamsan_check::{Config, check, hazards};
use streamsan_report::{Checked, Format, Options, Sources, render};
use streamsan_trace::{
    Access, AccessMode, BlockId, DeviceId, Event, EventKind, Frame, FrameOrigin, MemorySpace, OpKind,
    OpNumber, ShapeId, SiteId, StreamId, StringId, ThreadId, Trace,
};

const FORMATS: [Format; 9] = [
    Format::Full,
    Format::Concise,
    Format::Json,
    Format::JsonLines,
    Format::Sarif,
    Format::Github,
    Format::Junit,
    Format::Html,
    Format::Perfetto,
];

/// A file of many lines.
struct Lines(String);

impl Sources for Lines {
    fn text(&self, _: &str) -> Option<String> {
        Some(self.0.clone())
    }
}

/// One hazard after the other, each on memory of its own, on so many pairs of lines.
fn trace(count: usize, pairs: usize) -> Trace {
    let mut trace = Trace::default();
    let string = |trace: &mut Trace, text: &str| trace.tables.intern_string(text);
    let (file, function) = (string(&mut trace, "/job/train.py"), string(&mut trace, "step"));
    let label = string(&mut trace, "aten::mul");
    for line in 0..2 * pairs {
        trace.tables.frames.push(Frame {
            file,
            function,
            line: line as u32 + 1,
            end_line: line as u32 + 1,
            column: 5,
            end_column: 15,
            origin: FrameOrigin::User,
        });
        trace.tables.sites.push(vec![streamsan_trace::FrameId(line as u32)]);
    }
    "/job".clone_into(&mut trace.header.directory);
    let push = |trace: &mut Trace, site, kind| {
        let number = OpNumber(trace.events.len() as u64 + 1);
        trace.events.push(Event { number, thread: ThreadId(0), site: SiteId(site), kind });
    };
    for stream in [StreamId(0), StreamId(1)] {
        let legacy_default = stream.0 == 0;
        let device = DeviceId(0);
        push(
            &mut trace,
            0,
            EventKind::StreamCreate { stream, device, blocking: false, legacy_default, priority: 0 },
        );
    }
    for index in 0..count {
        let block = BlockId(index as u32 + 1);
        let (write, read) = (2 * (index % pairs) as u32 + 1, 2 * (index % pairs) as u32 + 2);
        let (space, address) = (MemorySpace::Cached(DeviceId(0)), 0x1000 * (index as u64 + 1));
        push(&mut trace, write, EventKind::Alloc { block, stream: StreamId(0), space, address, size: 512 });
        for (stream, mode, site) in [(0, AccessMode::Write, write), (1, AccessMode::Read, read)] {
            let accesses = trace.push_accesses(&[Access {
                block,
                mode,
                offset: 0,
                length: 512,
                shape: ShapeId(0),
                argument: StringId(0),
            }]);
            let kind = EventKind::Op {
                stream: StreamId(stream),
                label,
                kind: OpKind::Kernel,
                forward_site: SiteId(0),
                accesses,
            };
            push(&mut trace, site, kind);
        }
    }
    trace
}

#[test]
fn many_hazards() {
    let count = std::env::var("STREAMSAN_HAZARDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let text = Lines("    x = a.mul(b) + c\n".repeat(2 * count));
    for pairs in [20, 1_000.min(count)] {
        let trace = trace(count, pairs);
        assert_eq!(hazards(&trace).len(), count);
        let started = Instant::now();
        let report = check(&trace, &Config::default());
        println!("{count} hazards, {pairs} findings: checked in {:.2?}", started.elapsed());
        assert_eq!(report.findings.len(), pairs);
        let checked = Checked { file: "run.sstrace", log: &trace, report: &report };
        let options = Options { color: false, tool: "streamsan 0.1.0", limit: None, width: None };
        for format in FORMATS {
            let started = Instant::now();
            let written = render(format, &[checked], &text, &options);
            let took = started.elapsed();
            println!("  {format:?}: {took:.2?}, {} bytes", written.len());
            // Each place is there, however many there are.
            assert!(written.matches("SS101").count() >= pairs.min(20), "{format:?}");
        }
    }
}
