//! What the program says of itself: ranges, and what a kernel that nobody knows touches.

use std::os::unix::ffi::OsStrExt;

use streamsan_trace::file::record::range_kind;
use streamsan_trace::{EventKind, OpKind};

use crate::Recorder;
use crate::exports::{resolve, slice, with};
use crate::table::RawAccess;

impl Recorder {
    pub(crate) fn range_began(&self, kind: u32, label: u32) {
        let Some(kind) = u8::try_from(kind).ok().and_then(range_kind) else { return };
        let mut thread = self.begin();
        let label = self.counts.checked_string(label);
        thread.emit(&self.file, &EventKind::RangeBegin { kind, label }, &[]);
    }

    pub(crate) fn range_ended(&self, kind: u32) {
        let Some(kind) = u8::try_from(kind).ok().and_then(range_kind) else { return };
        let mut thread = self.begin();
        thread.emit(&self.file, &EventKind::RangeEnd { kind }, &[]);
    }

    /// From now on launches of this thread that no operator accounts for touch these bytes; `None` ends that.
    /// Returns how many such launches there were since the last call.
    pub(crate) fn annotate(&self, accesses: Option<&[RawAccess]>) -> u64 {
        let mut thread = self.thread();
        thread.annotation = accesses.map(<[RawAccess]>::to_vec);
        std::mem::take(&mut thread.annotated)
    }

    /// A kernel was launched whose accesses the program has told.
    pub(crate) fn annotated_launch(&self, stream: u64, device: u32, kernel_name: &str) {
        let mut thread = self.begin();
        let Some(raw) = thread.annotation.take() else { return };
        let label = self.string(kernel_name);
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        let mut accesses = std::mem::take(&mut thread.accesses);
        accesses.clear();
        resolve(&known, &self.counts, &raw, &mut accesses);
        drop(known);
        self.put_operation(&mut thread, stream, label, OpKind::Kernel, false, &accesses);
        thread.accesses = accesses;
        thread.annotation = Some(raw);
        thread.annotated += 1;
    }

    /// Writes what the calling thread holds back; returns the last number given out.
    pub(crate) fn settled(&self) -> u64 {
        drop(self.begin());
        self.file.last_number()
    }
}

pub unsafe extern "C" fn range_begin(kind: u32, label: u32) {
    with(|recorder| recorder.range_began(kind, label));
}

pub unsafe extern "C" fn range_end(kind: u32) {
    with(|recorder| recorder.range_ended(kind));
}

pub unsafe extern "C" fn annotate(active: u32, accesses: *const RawAccess, count: usize) -> u64 {
    // SAFETY: the table's contract.
    let accesses = unsafe { slice(accesses, count) };
    with(|recorder| recorder.annotate((active != 0).then_some(accesses)))
}

pub unsafe extern "C" fn settle() -> u64 {
    with(Recorder::settled)
}

pub unsafe extern "C" fn trace_path(target: *mut u8, capacity: usize) -> usize {
    with(|recorder| {
        let path = recorder.file.path();
        let bytes = path.as_os_str().as_bytes();
        if !target.is_null() && bytes.len() <= capacity {
            // SAFETY: the table's contract: `target` has room for `capacity` bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) }
        }
        bytes.len()
    })
}
