//! The recorder driven with call sequences as real torch makes them, and its file read back.

mod collectives;
mod feed;
mod file;
mod follow;
mod graphs;
mod host_memory;
mod late;
mod memory;
mod random;
mod ranges;

use std::ops::Deref;
use std::path::PathBuf;

use streamsan_trace::{CaptureKind, EventKind, MemorySpace, StreamId, Trace, file::read};
use tempfile::TempDir;

use crate::{Recorder, StartOptions};

/// A raw stream handle, as torch's pool gives them.
const SIDE: u64 = 0x5000;
/// A raw event handle.
const EVENT: u64 = 0x9000;
/// Where the device's memory starts.
const MEMORY: u64 = 0x7000_0000;

/// A recorder with a file of its own, one non-blocking stream, and a segment of device memory.
struct Recorded {
    recorder: Recorder,
    folder: TempDir,
}

impl Deref for Recorded {
    type Target = Recorder;

    fn deref(&self) -> &Recorder {
        &self.recorder
    }
}

impl Recorded {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StartOptions {
            path: folder.path().join("run.sstrace"),
            capture: CaptureKind::Virtual,
            devices: 2,
        };
        let recorder = Recorder::create(&options).unwrap();
        recorder.stream_created(SIDE, 0, false, 0);
        recorder.memory_allocated(MemorySpace::Device(streamsan_trace::DeviceId(0)), MEMORY, 1 << 21);
        Self { recorder, folder }
    }

    /// Like [`Self::start`], in a process where the torch layer is there.
    fn with_torch() -> Self {
        let recorded = Self::start();
        recorded.set_context(recorded.site(1), 0, 0);
        recorded
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run.sstrace")
    }

    fn finish(self) -> Trace {
        self.close();
        let trace = read(&self.path()).unwrap();
        let gaps = trace.events.iter().filter(|event| matches!(event.kind, EventKind::Gap { .. })).count();
        assert!(trace.header.closed, "closed, {gaps} gaps");
        trace
    }

    /// What was recorded after the set-up.
    fn kinds(self) -> Vec<EventKind> {
        self.finish().events.iter().map(|event| event.kind).skip(2).collect()
    }

    /// Makes a site that stands for `line`.
    fn site(&self, line: u32) -> u32 {
        let mut interner = self.interner();
        let frame = streamsan_trace::Frame { line, ..streamsan_trace::Frame::default() };
        let frame = interner.frame(&self.file, frame).unwrap();
        interner.site(&self.file, &[frame]).0
    }
}

/// The side stream of [`Recorded`].
const SIDE_ID: StreamId = StreamId(0);
/// The first stream used after it.
const DEFAULT_ID: StreamId = StreamId(1);
