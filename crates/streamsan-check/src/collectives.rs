//! Which events stand for the end of a collective.
//!
//! A backend of `torch.distributed` records an event in the stream of a collective when it has enqueued it, and
//! `work.wait()` makes the current stream wait for that. Which stream it is, and so what such a wait orders besides, is the
//! backend's choice and changes with its version; and `work.wait()` raises what went wrong and lets go of the tensors. So it
//! is never called needless, nor a wait of a stream for itself.

use crate::edges::Line;
use rustc_hash::FxHashMap;
use streamsan_trace::{Event, EventId, EventKind, OpKind, SiteId, StreamId, Tables};

/// The last collective of a stream.
#[derive(Clone, Copy, Debug)]
struct Collective {
    site: SiteId,
    /// Whether nothing came after it in its stream.
    is_last: bool,
}

/// What was recorded after collectives.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    streams: FxHashMap<StreamId, Collective>,
    /// Events that were recorded last at the end of a collective, and where, if not in the same call.
    ends: FxHashMap<EventId, Option<SiteId>>,
}

impl Collectives {
    /// Takes the next event of the log.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event) {
        let is_collective = matches!(event.kind, EventKind::Op { kind: OpKind::Collective, .. });
        if is_collective || !self.streams.is_empty() || !self.ends.is_empty() {
            self.note(event);
        }
    }

    fn note(&mut self, event: &Event) {
        let site = event.site;
        match event.kind {
            EventKind::Op { stream, kind: OpKind::Collective, .. } => {
                self.streams.insert(stream, Collective { site, is_last: true });
            }
            EventKind::Op { stream, .. } | EventKind::GraphLaunch { stream, .. } => {
                if let Some(collective) = self.streams.get_mut(&stream) {
                    collective.is_last = false;
                }
            }
            EventKind::EventRecord { event, stream } => match self.streams.get(&stream) {
                // Some copy their result to where it was asked for before they record.
                Some(collective) if collective.site == site && site != SiteId(0) => {
                    self.ends.insert(event, None);
                }
                Some(Collective { is_last: true, .. }) => {
                    self.ends.insert(event, Some(site));
                }
                _ => {
                    self.ends.remove(&event);
                }
            },
            EventKind::EventDestroy { event } => {
                self.ends.remove(&event);
            }
            EventKind::StreamDestroy { stream } => {
                self.streams.remove(&stream);
            }
            _ => {}
        }
    }

    /// Whether a wait for the event is one for a collective. `wait_stream` records an event of its own: then the wait is for
    /// the stream, whatever it did last.
    pub(crate) fn ends_with(&self, event: EventId, waits_at: SiteId, tables: &Tables) -> bool {
        match self.ends.get(&event) {
            None => false,
            Some(None) => true,
            Some(&Some(recorded)) => Line::of(recorded, tables) != Line::of(waits_at, tables),
        }
    }
}
