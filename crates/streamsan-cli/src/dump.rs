//! `streamsan dump`: the events of a trace, one line each.

use crate::arguments::DumpArguments;
use crate::fault::Fault;
use crate::{ExitStatus, output, reports};
use std::fmt::Write as _;
use streamsan_report::{Names, Paths};
use streamsan_trace::{
    AccessMode, AccessRange, BlockId, Event, EventKind, MemorySpace, StreamId, Subject, Trace, WaitTarget,
};

pub(crate) fn dump(arguments: &DumpArguments) -> Result<i32, Fault> {
    let trace = reports::read(&arguments.trace)?;
    let writer = Writer { trace: &trace, names: Names::new(&trace) };
    let header = &trace.header;
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
    for event in &trace.events {
        writer.line(&mut text, event);
        if text.len() > 1 << 16 {
            output::print(&text);
            text.clear();
        }
    }
    output::print(&text);
    Ok(ExitStatus::Clean.code())
}

struct Writer<'a> {
    trace: &'a Trace,
    names: Names<'a>,
}

impl Writer<'_> {
    fn line(&self, text: &mut String, event: &Event) {
        let what = self.what(&event.kind);
        let place = self.trace.tables.user_frame(event.site).map_or_else(String::new, |(_, frame)| {
            format!(
                "  {}:{}",
                Paths::new(self.trace).shorten(self.trace.tables.string(frame.file)),
                frame.line
            )
        });
        let number = event.number.to_string();
        let _ = writeln!(text, "{number:<8} t{:<3} {what}{place}", event.thread.0);
    }

    fn what(&self, kind: &EventKind) -> String {
        let string = |id| self.trace.tables.string(id);
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
            EventKind::HostWaitBegin { target } => format!("host-wait-begin {}", self.target(target)),
            EventKind::HostWait { target, observer, how } => {
                format!("host-wait {} {observer:?} {how:?}", self.target(target))
            }
            EventKind::Op { stream, label, kind, accesses, .. } => {
                format!("op {} {kind:?} {}{}", self.stream(stream), string(label), self.accesses(accesses))
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
            EventKind::HostAccess { label, accesses } => {
                format!("host-access {}{}", string(label), self.accesses(accesses))
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

    fn accesses(&self, range: AccessRange) -> String {
        let mut text = String::new();
        for access in self.trace.accesses(range) {
            let mode = match access.mode {
                AccessMode::Read => "read",
                AccessMode::Write => "write",
                AccessMode::Update => "update",
                AccessMode::Unknown => "unknown",
            };
            let strided = if self.trace.tables.shape(access.shape).is_some() { " strided" } else { "" };
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
