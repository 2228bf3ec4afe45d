//! A part of a trace as a trace of its own.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::write::write_bytes;
use crate::{AccessRange, EventKind, Log, OpNumber, Trace};

/// Writes the log up to `last` to a file that must not exist, with the region from `first` on marked as what was asked
/// for. All of it is kept: what came before decides what is ordered.
///
/// Memory: the whole file.
///
/// # Errors
///
/// If the file exists or cannot be written.
pub fn write_excerpt(log: &dyn Log, first: OpNumber, last: OpNumber, path: &Path) -> io::Result<()> {
    let mut header = log.header().clone();
    (header.region, header.closed) = (Some((first, last)), true);
    let mut excerpt = Trace { header, tables: log.tables().clone(), ..Trace::default() };
    log.read(&mut |event, accesses| {
        if event.number > last {
            return;
        }
        let mut event = *event;
        let range =
            if accesses.is_empty() { AccessRange::default() } else { excerpt.push_accesses(accesses) };
        if let EventKind::Op { accesses, .. } | EventKind::HostAccess { accesses, .. } = &mut event.kind {
            *accesses = range;
        }
        excerpt.events.push(event);
    });
    let bytes = write_bytes(&excerpt)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(&bytes)
}
