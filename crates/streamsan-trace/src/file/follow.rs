//! Reads a trace while it is written.
//!
//! Event numbers come from one counter of the recorded process, so the log is complete up to a number when all
//! smaller ones are there. The recorder writes every number that it takes, also those of calls that came to nothing.
//! A number is missing for a while: until a host wait returns, or until the thread that took it makes its next call
//! (the recorder waits for a callback that tells whose the call is). Greater numbers are held back as long.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytemuck::{Zeroable, bytes_of_mut};

use super::chunks::Damage;
use super::error::ReadError;
use super::layout::{FILE_MAGIC, FileHeader};
use super::reading::Reading;
use super::source::Source;
use crate::{Access, Event, Header, OpNumber, Tables};

/// Reads a trace while this or another process writes it: each event once, in the order of their numbers.
///
/// It keeps the tables and no events. The file is never mapped and never written.
///
/// ```
/// use streamsan_trace::file::Follower;
/// let mut follower = Follower::open("not-there-yet.sstrace".as_ref())?;
/// let events = follower.advance(&mut |_tables, event, _accesses| println!("{}", event.number))?;
/// assert_eq!(events, 0);
/// # Ok::<(), streamsan_trace::file::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    opened: Option<File>,
    reading: Option<Reading<File>>,
    closed: bool,
    finished: bool,
}

impl Follower {
    /// Follows the trace at `path`, which need not be there yet.
    ///
    /// # Errors
    ///
    /// If something else than a trace is there.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut follower =
            Self { path: path.to_owned(), opened: None, reading: None, closed: false, finished: false };
        follower.begin()?;
        Ok(follower)
    }

    /// What the trace says of itself, once it is there. Texts may come later.
    pub fn header(&self) -> Option<&Header> {
        self.reading.as_ref().map(|reading| &reading.collector.header)
    }

    /// The interned things so far, once the trace is there.
    pub fn tables(&self) -> Option<&Tables> {
        self.reading.as_ref().map(|reading| &reading.collector.tables)
    }

    /// Whether the recorder had closed the trace when [`advance`](Self::advance) was called last: then that call
    /// took all but what missing numbers hold back, and [`finish`](Self::finish) can follow.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Up to which number everything was taken.
    pub fn last(&self) -> OpNumber {
        OpNumber(self.reading.as_ref().map_or(0, |reading| reading.merge.last))
    }

    /// Takes what was added since the last call, up to the first number that is missing, and says how many events
    /// these were. Every string, frame, site and shape that an event names is in the tables handed over with it.
    ///
    /// # Errors
    ///
    /// If the file is no trace, was replaced or written anew, cannot be read, or is damaged; what lies before the
    /// damage was handed over. The same damage is reported again by the next call.
    pub fn advance(&mut self, each: &mut dyn FnMut(&Tables, &Event, &[Access])) -> Result<u64, ReadError> {
        if self.finished || !self.begin()? {
            return Ok(0);
        }
        let Some(reading) = &mut self.reading else { return Ok(0) };
        if is_other(reading.source(), &self.path)? {
            return Err(ReadError::Replaced);
        }
        let before = reading.merge.events;
        reading.refresh(false)?;
        self.closed = reading.collector.header.closed;
        reading.run(false, |tables, event, accesses| {
            each(tables, event, accesses);
            Ok(())
        });
        match reading.damage() {
            Some(Damage { offset, what }) => Err(ReadError::Damaged { offset, what }),
            None => Ok(reading.merge.events - before),
        }
    }

    /// Takes all that is left, as when the whole file is read: missing numbers hold nothing back, and gaps at the end
    /// say what is not there. To be called when nothing is written any more; later calls take nothing.
    ///
    /// # Errors
    ///
    /// If there is no trace, or it was written anew. Damage is no error here: it becomes a gap.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Tables, &Event, &[Access])) -> Result<u64, ReadError> {
        if self.finished {
            return Ok(0);
        }
        if !self.begin()? {
            let file = match self.opened.take() {
                Some(file) => file,
                None => open_file(&self.path)?,
            };
            self.reading = Some(Reading::open(file)?);
        }
        let Some(reading) = &mut self.reading else { return Ok(0) };
        let before = reading.merge.events;
        reading.refresh(true)?;
        reading.run(true, |tables, event, accesses| {
            each(tables, event, accesses);
            Ok(())
        });
        let gaps = reading.gaps();
        for gap in &gaps {
            each(&reading.collector.tables, gap, &[]);
        }
        self.finished = true;
        Ok(reading.merge.events - before + gaps.len() as u64)
    }

    /// Whether the trace is there; reads its header when it is.
    fn begin(&mut self) -> Result<bool, ReadError> {
        if self.reading.is_some() {
            return Ok(true);
        }
        let file = match self.opened.take() {
            Some(file) => file,
            None => match open_file(&self.path) {
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                file => file?,
            },
        };
        if header_is_written(&file)? {
            self.reading = Some(Reading::open(file)?);
            return Ok(true);
        }
        self.opened = Some(file);
        Ok(false)
    }
}

/// Opens a regular file. A pipe would wait for somebody to write, and a device has no end.
pub(super) fn open_file(path: &Path) -> Result<File, ReadError> {
    let regular = |metadata: Metadata| {
        if metadata.is_dir() {
            Err(ReadError::Directory)
        } else if metadata.is_file() {
            Ok(())
        } else {
            Err(ReadError::NotAFile)
        }
    };
    regular(fs::metadata(path)?)?;
    let file = File::open(path)?;
    regular(file.metadata()?)?;
    Ok(file)
}

/// Whether the header is there: the recorder stores where the last chunk ends when all else is written. What starts
/// otherwise than a trace is looked at too, and refused.
fn header_is_written(file: &File) -> Result<bool, ReadError> {
    let mut header = FileHeader::zeroed();
    let count = Source::read_at(file, 0, bytes_of_mut(&mut header))?;
    let start = &bytes_of_mut(&mut header)[..count];
    let begun = start.len().min(FILE_MAGIC.len());
    if start[..begun].iter().all(|&byte| byte == 0) {
        return Ok(false);
    }
    Ok(start[..begun] != FILE_MAGIC[..begun] || header.end != 0)
}

/// Whether another file than the one that is open is at the path. None at all is no other.
fn is_other(file: &File, path: &Path) -> Result<bool, ReadError> {
    let Ok(there) = fs::metadata(path) else { return Ok(false) };
    let open = file.metadata()?;
    Ok((open.dev(), open.ino()) != (there.dev(), there.ino()))
}
