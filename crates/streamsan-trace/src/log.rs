//! A log as a source of events, wherever it is kept.

use crate::{Access, Event, EventKind, Header, Tables, Trace};

/// A log that can be read from its beginning, any number of times.
///
/// What reads a log keeps no event of it, so that a long run needs no more memory than a short one.
///
/// ```
/// use streamsan_trace::{Log, Trace};
/// let mut events = 0;
/// Log::read(&Trace::default(), &mut |_, _| events += 1);
/// assert_eq!(events, 0);
/// ```
pub trait Log: std::fmt::Debug {
    /// What the log says of itself.
    fn header(&self) -> &Header;

    /// The interned things that its events refer to.
    fn tables(&self) -> &Tables;

    /// Hands over all events in the order of their numbers, each with its accesses.
    ///
    /// Access ranges inside the events have no meaning here: the slice is what belongs to the event.
    fn read(&self, each: &mut dyn FnMut(&Event, &[Access]));
}

impl Log for Trace {
    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn read(&self, each: &mut dyn FnMut(&Event, &[Access])) {
        for event in &self.events {
            let accesses = match event.kind {
                EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } => {
                    self.accesses(accesses)
                }
                _ => &[],
            };
            each(event, accesses);
        }
    }
}
