//! A trace that stays in its file.

use std::fs::File;
use std::path::Path;

use super::chunks::Span;
use super::error::ReadError;
use super::follow::open_file;
use super::merge::{Merge, Take};
use super::reading::Reading;
use crate::{Access, Event, EventKind, GapReason, Header, Log, OpNumber, SiteId, StringId, Tables, ThreadId};

/// A trace in its file: only the tables are in memory, events are read from the file each time.
///
/// The file is checked once, when it is opened; what is added to it afterwards is not seen. It may be one that is
/// still written: then the log ends at a number up to which all is there but what calls that have not returned will
/// write. Memory: the tables, 64 KiB
/// for each thread that has events around the same place of the log, and 64 bytes for each 256 KiB of the file.
///
/// ```
/// use streamsan_trace::file::{TraceFile, write};
/// use streamsan_trace::{Log, Trace};
/// let path = std::env::temp_dir().join(format!("streamsan-doc-{}.sstrace", std::process::id()));
/// write(&Trace::default(), &path)?;
/// let trace = TraceFile::open(&path)?;
/// let mut events = 0;
/// trace.read(&mut |_event, _accesses| events += 1);
/// assert_eq!(events, 1, "a gap: nobody closed this trace");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceFile {
    file: File,
    header: Header,
    tables: Tables,
    /// The chunks of records.
    spans: Vec<Span>,
    /// The last number that can be relied on.
    up_to: u64,
    /// How many events there are up to it.
    events: u64,
    /// What the log ends with if it is not whole.
    gaps: Vec<Event>,
}

impl TraceFile {
    /// Opens the trace at `path`, reads its tables, and checks all of it.
    ///
    /// A trace that was cut off, damaged, or not closed is kept as far as it can be relied on and gets a
    /// [`EventKind::Gap`] at its end that says so.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is no trace, has another version, or its header is not whole.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut reading = check(open_file(path)?, u64::MAX)?;
        // No recorder leaves damage: then there is nothing to wait for, and the damage is what is to be said.
        if !reading.collector.header.closed && reading.merge.missing > 0 && reading.damage().is_none() {
            // If the file is being written, a thread can have got on while the others' chunks were looked at. What
            // was written up to then is there by now; what is still missing is on its way, or lost in a crash.
            let up_to = reading.merge.last;
            reading = check(reading.into_parts().0, up_to)?;
        }
        let gaps = reading.gaps();
        let (up_to, events) = (reading.merge.last, reading.merge.events);
        let (file, collector, spans) = reading.into_parts();
        Ok(Self { file, header: collector.header, tables: collector.tables, spans, up_to, events, gaps })
    }

    /// How many events it has, gaps at the end among them.
    pub fn events(&self) -> u64 {
        self.events + self.gaps.len() as u64
    }
}

/// Reads all up to a number once.
fn check(file: File, up_to: u64) -> Result<Reading<File>, ReadError> {
    let mut reading = Reading::open_kept(file, up_to)?;
    reading.refresh(true)?;
    reading.run(true, |_, _, _| Ok(()));
    Ok(reading)
}

impl Log for TraceFile {
    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    /// If the file was changed since it was opened and makes no sense any more, a [`GapReason::Damaged`] without a
    /// detail stands for the rest.
    fn read(&self, each: &mut dyn FnMut(&Event, &[Access])) {
        let mut merge = Merge::default();
        for &span in &self.spans {
            merge.push(span);
        }
        let take = Take { up_to: self.up_to, complete: true };
        merge.run(&self.file, &self.tables, take, |event, accesses| {
            each(event, accesses);
            Ok(())
        });
        if merge.events < self.events {
            let kind = EventKind::Gap { reason: GapReason::Damaged, detail: StringId(0) };
            let number = OpNumber(merge.last_event.saturating_add(1));
            each(&Event { number, thread: ThreadId(0), site: SiteId(0), kind }, &[]);
        }
        for gap in &self.gaps {
            each(gap, &[]);
        }
    }
}
