//! The descriptor of the trace file, in a process whose program may close any descriptor and get its number for a file
//! of its own.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{self, Path, PathBuf};

/// Where the descriptor goes: above what programs use and close, and below the usual limit of 1024.
const HIGH: libc::c_int = 900;

/// A file that is checked before each use to be the one that was made.
#[derive(Debug)]
pub struct Descriptor {
    /// Never closed without a check: its number may be the program's by then.
    file: ManuallyDrop<File>,
    /// Absolute, since the program may change its folder.
    path: PathBuf,
    identity: Identity,
}

/// Device and inode. The file is mapped as long as it is written, so its inode is not given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl Descriptor {
    /// Makes a file, which must not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = moved_up(OpenOptions::new().read(true).write(true).create_new(true).open(path)?);
        let identity = Identity::from(&file.metadata()?);
        Ok(Self { file: ManuallyDrop::new(file), path: path::absolute(path)?, identity })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, opened again by its path if the program closed it.
    ///
    /// # Errors
    ///
    /// If it was closed and is not to be had at its path.
    pub fn file(&mut self) -> io::Result<&File> {
        if !self.is_ours() {
            let file =
                OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(&self.path)?;
            if Identity::from(&file.metadata()?) != self.identity {
                return Err(io::ErrorKind::NotFound.into());
            }
            // What the number stands for now is not ours to close.
            self.file = ManuallyDrop::new(moved_up(file));
        }
        Ok(&self.file)
    }

    /// Whether the number still stands for the trace, and for writing: the program may have opened it for reading.
    fn is_ours(&self) -> bool {
        // SAFETY: a plain system call; a number that is not open is an error.
        let flags = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_GETFL) };
        flags >= 0
            && flags & libc::O_ACCMODE == libc::O_RDWR
            && self.file.metadata().is_ok_and(|metadata| Identity::from(&metadata) == self.identity)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: not used after.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// The same file under a high number, if there is one left.
fn moved_up(file: File) -> File {
    // SAFETY: a plain system call on a descriptor that is open.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    if high < 0 {
        return file;
    }
    // SAFETY: the number was made just now, for this.
    unsafe { File::from_raw_fd(high) }
}
