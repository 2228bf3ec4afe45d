//! `streamsan dump`: the events of a trace, one line each.

use crate::arguments::DumpArguments;
use crate::fault::Fault;
use crate::{ExitStatus, output, reports};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use streamsan_report::{Names, Paths};
use streamsan_trace::{
    Access, AccessMode, BlockId, Event, EventKind, Log, MemorySpace, StreamId, Subject, WaitTarget,
};

pub(crate) fn dump(arguments: &DumpArguments) -> Result<i32, Fault> {
    let log = reports::read(&arguments.trace)?;
    let log = log.as_ref();
    let writer = Writer { log, names: Names::of_blocks(log, &named_blocks(log)) };
    let header = log.header();
    let mut text = format!(
        "# {:?} trace of process {}, {} devices, {}\n# command: {}\n# directory: {}\n# versions: {}\n",
        header.capture,
        header.pid,
        header.devices,
        if header.closed { "closed" } else { "not closed" },
        header.command,
        header.directory,
        header.versions
    );
    log.read(&mut |event, accesses| {
        writer.line(&mut text, event, accesses);
        if text.len() > 1 << 16 {
            output::print(&text);
            text.clear();
        }
    });
    output::print(&text);
    Ok(ExitStatus::Clean.code())
}

/// The blocks that have a name.
fn named_blocks(log: &dyn Log) -> BTreeSet<BlockId> {
    let mut named = BTreeSet::new();
    log.read(&mut |event, _| {
        if let EventKind::Name { subject: Subject::Block(block), .. } = event.kind {
            named.insert(block);
        }
    });
    named
}

struct Writer<'a> {
    log: &'a dyn Log,
    names: Names<'a>,
}

impl Writer<'_> {
    fn line(&self, text: &mut String, event: &Event, accesses: &[Access]) {
        let what = self.what(&event.kind, accesses);
        let place = self.log.tables().user_frame(event.site).map_or_else(String::new, |(_, frame)| {
            format!("  {}:{}", Paths::new(self.log).shorten(self.log.tables().string(frame.file)), frame.line)
        });
        let number = event.number.to_string();
        let _ = writeln!(text, "{number:<8} t{:<3} {what}{place}", event.thread.0);
    }

    fn what(&self, kind: &EventKind, touched: &[Access]) -> String {
        let string = |id| self.log.tables().string(id);
        match *kind {
            EventKind::StreamCreate { stream, device, blocking, legacy_default, priority } => {
                let sort = match (legacy_default, blocking) {
                    (true, _) => "legacy default",
                    (false, true) => "blocking",
                    (false, false) => "non-blocking",
                };
                let stream = self.stream(stream);
                format!("stream-create {stream} device {} {sort} priority {priority}", device.0)
            }
            EventKind::StreamDestroy { stream } => format!("stream-destroy {}", self.stream(stream)),
            EventKind::EventRecord { event, stream } => {
                format!("event-record e{} in {}", event.0, self.stream(stream))
            }
            EventKind::EventWait { event, stream } => {
                format!("event-wait {} for e{}", self.stream(stream), event.0)
            }
            EventKind::EventDestroy { event } => format!("event-destroy e{}", event.0),
            EventKind::HostWaitBegin { target } => format!("host-wait-begin {}", self.target(target)),
            EventKind::HostWait { target, observer, how } => {
                format!("host-wait {} {observer:?} {how:?}", self.target(target))
            }
            EventKind::Op { stream, label, kind, .. } => {
                format!("op {} {kind:?} {}{}", self.stream(stream), string(label), self.accesses(touched))
            }
            EventKind::Alloc { block, stream, space, address: _, size } => {
                let (block, space) = (self.block(block), space_text(space));
                format!("alloc {block} {space}, {size} bytes, owner {}", self.stream(stream))
            }
            EventKind::BlockSize { block, size } => format!("block-size {} {size} bytes", self.block(block)),
            EventKind::FreeRequest { block } => format!("free {}", self.block(block)),
            EventKind::FreeGuard { block, stream } => {
                format!("free-guard {} by {}", self.block(block), self.stream(stream))
            }
            EventKind::FreeDone { block } => format!("free-done {}", self.block(block)),
            EventKind::HostAccess { label, .. } => {
                format!("host-access {}{}", string(label), self.accesses(touched))
            }
            EventKind::Escape { block, label } => {
                format!("escape {} to {}", self.block(block), string(label))
            }
            EventKind::RecordStream { block, stream } => {
                format!("record-stream {} for {}", self.block(block), self.stream(stream))
            }
            EventKind::StreamObject { stream, object, sharers } => {
                format!("stream-object {} object {object}, sharers {sharers}", self.stream(stream))
            }
            EventKind::Name { subject, name, by_user } => {
                let subject = match subject {
                    Subject::Stream(stream) => format!("stream s{}", stream.0),
                    Subject::Block(block) => format!("block b{}", block.0),
                };
                format!("name {subject} {}{}", string(name), if by_user { " by user" } else { "" })
            }
            EventKind::RangeBegin { kind, label } => format!("range-begin {kind:?} {}", string(label)),
            EventKind::RangeEnd { kind } => format!("range-end {kind:?}"),
            EventKind::CaptureBegin { graph, stream } => {
                format!("capture-begin g{} in {}", graph.0, self.stream(stream))
            }
            EventKind::CaptureEnd { graph, stream, valid } => {
                let outcome = if valid { "" } else { ", invalid" };
                format!("capture-end g{} in {}{outcome}", graph.0, self.stream(stream))
            }
            EventKind::GraphInstantiate { graph, executable } => {
                format!("graph-instantiate x{} of g{}", executable.0, graph.0)
            }
            EventKind::GraphLaunch { executable, stream, label } => {
                format!("graph-launch {} x{} {}", self.stream(stream), executable.0, string(label))
            }
            EventKind::GraphDestroy { graph } => format!("graph-destroy g{}", graph.0),
            EventKind::ExecutableDestroy { executable } => format!("executable-destroy x{}", executable.0),
            EventKind::GraphMemory { block } => format!("graph-memory {}", self.block(block)),
            EventKind::Gap { reason, detail } => format!("gap {reason:?} {}", string(detail)),
        }
    }

    /// Name and id: the ids tell generations apart.
    fn stream(&self, stream: StreamId) -> String {
        format!("{}/s{}", self.names.stream_plain(stream), stream.0)
    }

    fn block(&self, block: BlockId) -> String {
        match self.names.block(block) {
            Some(name) => format!("{name}/b{}", block.0),
            None => format!("b{}", block.0),
        }
    }

    fn target(&self, target: WaitTarget) -> String {
        match target {
            WaitTarget::Event(event) => format!("e{}", event.0),
            WaitTarget::Stream(stream) => self.stream(stream),
            WaitTarget::Device(device) => format!("device {}", device.0),
        }
    }

    fn accesses(&self, accesses: &[Access]) -> String {
        let mut text = String::new();
        for access in accesses {
            let mode = match access.mode {
                AccessMode::Read => "read",
                AccessMode::Write => "write",
                AccessMode::Update => "update",
                AccessMode::Unknown => "unknown",
            };
            let strided = if self.log.tables().shape(access.shape).is_some() { " strided" } else { "" };
            let block = self.block(access.block);
            let _ = write!(text, ", {mode} {block}[{}..{}]{strided}", access.offset, access.end());
        }
        text
    }
}

fn space_text(space: MemorySpace) -> String {
    match space {
        MemorySpace::Cached(device) => format!("cached on device {}", device.0),
        MemorySpace::Device(device) => format!("on device {}", device.0),
        MemorySpace::Pinned => "pinned".to_owned(),
        MemorySpace::Pageable => "pageable".to_owned(),
    }
}
