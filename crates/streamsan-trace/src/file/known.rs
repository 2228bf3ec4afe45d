//! Whether the ids of an event are ones that the trace has introduced.

use crate::{
    Access, BlockId, DeviceId, Event, EventId, EventKind, ExecutableId, GraphId, SiteId, StreamId, StringId,
    Subject, Tables, WaitTarget,
};

/// Ids that no table gives are accepted up to this, and up to as many more as there were records before. So a few
/// damaged bytes cannot make whoever keeps a list by id reserve gigabytes.
pub(super) const SMALL_ID: u32 = 1 << 16;

/// The ids that are known at one place of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub tables: &'a Tables,
    /// Greatest id of a stream, event, block, device, graph or executable.
    pub limit: u32,
}

impl<'a> Known<'a> {
    /// What is known after `records` records.
    pub fn after(records: u64, tables: &'a Tables) -> Self {
        Self { tables, limit: u32::try_from(records).unwrap_or(u32::MAX).saturating_add(SMALL_ID) }
    }

    fn site(&self, id: SiteId) -> bool {
        id.index() < self.tables.sites.len()
    }

    fn string(&self, id: StringId) -> bool {
        id.index() < self.tables.strings.len()
    }

    fn stream(&self, id: StreamId) -> bool {
        id.0 <= self.limit
    }

    fn block(&self, id: BlockId) -> bool {
        id.0 <= self.limit
    }

    fn cuda_event(&self, id: EventId) -> bool {
        id.0 <= self.limit
    }

    fn device(&self, id: DeviceId) -> bool {
        id.0 <= self.limit
    }

    fn graph(&self, id: GraphId) -> bool {
        id.0 <= self.limit
    }

    fn executable(&self, id: ExecutableId) -> bool {
        id.0 <= self.limit
    }

    fn target(&self, target: WaitTarget) -> bool {
        match target {
            WaitTarget::Event(id) => self.cuda_event(id),
            WaitTarget::Stream(id) => self.stream(id),
            WaitTarget::Device(id) => self.device(id),
        }
    }

    /// Whether an access names known things and bytes that can exist.
    pub fn access(&self, access: &Access) -> bool {
        self.block(access.block)
            && access.length >= 1
            && access.offset.checked_add(access.length).is_some()
            && access.shape.index() < self.tables.shapes.len()
            && self.string(access.argument)
    }

    /// Whether an event names known things only.
    pub fn event(&self, event: &Event) -> bool {
        self.site(event.site)
            && match event.kind {
                EventKind::StreamCreate { stream, device, .. } => self.stream(stream) && self.device(device),
                EventKind::StreamDestroy { stream } | EventKind::StreamObject { stream, .. } => {
                    self.stream(stream)
                }
                EventKind::EventRecord { event, stream } | EventKind::EventWait { event, stream } => {
                    self.cuda_event(event) && self.stream(stream)
                }
                EventKind::EventDestroy { event } => self.cuda_event(event),
                EventKind::HostWaitBegin { target } | EventKind::HostWait { target, .. } => {
                    self.target(target)
                }
                EventKind::Op { stream, label, forward_site, .. } => {
                    self.stream(stream) && self.string(label) && self.site(forward_site)
                }
                EventKind::Alloc { block, stream, address, size, .. } => {
                    self.block(block) && self.stream(stream) && address.checked_add(size).is_some()
                }
                EventKind::BlockSize { block, .. }
                | EventKind::FreeRequest { block }
                | EventKind::GraphMemory { block }
                | EventKind::FreeDone { block } => self.block(block),
                EventKind::FreeGuard { block, stream } | EventKind::RecordStream { block, stream } => {
                    self.block(block) && self.stream(stream)
                }
                EventKind::HostAccess { label, .. } | EventKind::RangeBegin { label, .. } => {
                    self.string(label)
                }
                EventKind::RangeEnd { .. } => true,
                EventKind::Escape { block, label } => self.block(block) && self.string(label),
                EventKind::Name { subject, name, .. } => {
                    self.string(name)
                        && match subject {
                            Subject::Stream(id) => self.stream(id),
                            Subject::Block(id) => self.block(id),
                        }
                }
                EventKind::CaptureBegin { graph, stream } | EventKind::CaptureEnd { graph, stream, .. } => {
                    self.graph(graph) && self.stream(stream)
                }
                EventKind::GraphInstantiate { graph, executable } => {
                    self.graph(graph) && self.executable(executable)
                }
                EventKind::GraphLaunch { executable, stream, label } => {
                    self.executable(executable) && self.stream(stream) && self.string(label)
                }
                EventKind::GraphDestroy { graph } => self.graph(graph),
                EventKind::ExecutableDestroy { executable } => self.executable(executable),
                EventKind::Gap { detail, .. } => self.string(detail),
            }
    }
}
