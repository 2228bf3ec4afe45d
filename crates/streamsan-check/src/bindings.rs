//! Which expressions for streams are right at an event.
//!
//! The recorder looks expressions up when a frame is met for the first time. They are right there up to the first
//! operation of the same call, which comes after its allocations. Later they are if nothing can have given them another
//! stream: the torch layer says so of each ([`Binding`]), from the code.
//!
//! What it can miss: a frame that is met first by a call of which there is no event.

use rustc_hash::FxHashMap;
use streamsan_trace::{
    Binding, Event, EventKind, FrameId, FrameOrigin, OpNumber, SiteId, StreamId, StringId, Subject, Tables,
    ThreadId, VisibleStream,
};

/// A call that has just begun.
#[derive(Debug)]
struct Open {
    thread: ThreadId,
    site: SiteId,
    /// The frames that were met by it.
    frames: Vec<FrameId>,
}

/// What was seen of frames and names so far.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// Call stacks that were met.
    met: Vec<bool>,
    /// The first event in each frame and the last of the same call.
    first: FxHashMap<FrameId, (OpNumber, OpNumber)>,
    /// The call in which a frame was met last, as long as it has issued no operation.
    open: Option<Open>,
    /// The stream that has a name from the code; none if several have it.
    named: FxHashMap<StringId, Option<StreamId>>,
}

impl Bindings {
    /// Takes the next event of the log.
    pub(crate) fn event(&mut self, event: &Event, tables: &Tables) {
        if self.open.as_ref().is_some_and(|open| open.thread == event.thread) {
            self.proceed(event);
        }
        if event.site != SiteId(0) && self.met.get(event.site.0 as usize) != Some(&true) {
            self.meet(event, tables);
        }
        if let EventKind::Name { subject: Subject::Stream(stream), name, by_user: false } = event.kind {
            let known = self.named.entry(name).or_insert(Some(stream));
            if *known != Some(stream) {
                *known = None;
            }
        }
    }

    #[cold]
    fn meet(&mut self, event: &Event, tables: &Tables) {
        let index = event.site.0 as usize;
        if index >= tables.sites.len() {
            return;
        }
        if self.met.len() <= index {
            self.met.resize(tables.sites.len(), false);
        }
        self.met[index] = true;
        let mut frames = Vec::new();
        for (frame, _) in tables.stack(event.site) {
            self.first.entry(frame).or_insert_with(|| {
                frames.push(frame);
                (event.number, event.number)
            });
        }
        let is_operation = matches!(event.kind, EventKind::Op { .. });
        self.open = (!frames.is_empty() && !is_operation).then_some(Open {
            thread: event.thread,
            site: event.site,
            frames,
        });
    }

    /// The next event of the thread of the open call.
    #[cold]
    fn proceed(&mut self, event: &Event) {
        let Some(open) = self.open.take_if(|open| open.site == event.site) else {
            self.open = None;
            return;
        };
        for frame in &open.frames {
            if let Some((_, last)) = self.first.get_mut(frame) {
                *last = event.number;
            }
        }
        if !matches!(event.kind, EventKind::Op { .. }) {
            self.open = Some(open);
        }
    }

    /// The expressions for these streams that are right at an event, in the user's frames of its call stack.
    pub(crate) fn at(
        &self,
        number: OpNumber,
        site: SiteId,
        streams: &[StreamId],
        tables: &Tables,
    ) -> Vec<VisibleStream> {
        let users = tables.stack(site).filter(|(_, frame)| frame.origin == FrameOrigin::User);
        let frames: Vec<FrameId> = users.map(|(id, _)| id).collect();
        let here = |visible: &&VisibleStream| {
            streams.contains(&visible.stream)
                && frames.contains(&visible.frame)
                && self.holds(visible, number)
        };
        tables.visible_streams.iter().filter(here).copied().collect()
    }

    fn holds(&self, visible: &VisibleStream, at: OpNumber) -> bool {
        match visible.binding {
            Binding::Lasting => true,
            Binding::Created if self.named.get(&visible.expression) == Some(&Some(visible.stream)) => true,
            Binding::Created | Binding::Momentary => {
                self.first.get(&visible.frame).is_some_and(|&(first, last)| first <= at && at <= last)
            }
        }
    }
}
