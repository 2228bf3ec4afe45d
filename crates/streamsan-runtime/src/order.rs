//! Who is ordered after what: which waits are needed, and which are there already.
//!
//! The same vector clocks as the checker's (`streamsan-check`, `clock.rs`), kept apart on purpose: the checker
//! must be able to contradict the runtime.

use crate::backend::StreamIndex;
use std::sync::Arc;

/// A point in a stream: an operation and everything that is ordered before it.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) stream: StreamIndex,
    pub(crate) number: u64,
    others: Arc<Vec<u64>>,
}

impl Point {
    /// Whether waiting for this point also waits for another one. Of two equal points, one brings the other.
    pub(crate) fn brings(&self, other: &Self, first: bool) -> bool {
        if self.stream == other.stream {
            return self.number > other.number || self.number == other.number && first;
        }
        self.others.get(other.stream.0).is_some_and(|&known| known >= other.number)
    }
}

/// How far one chain knows each stream.
#[derive(Clone, Debug, Default)]
struct Known {
    others: Arc<Vec<u64>>,
}

impl Known {
    fn of(&self, stream: StreamIndex) -> u64 {
        self.others.get(stream.0).copied().unwrap_or(0)
    }

    fn learn(&mut self, point: &Point) {
        let known = Arc::make_mut(&mut self.others);
        known.resize(known.len().max(point.others.len()).max(point.stream.0 + 1), 0);
        for (mine, theirs) in known.iter_mut().zip(point.others.iter()) {
            *mine = (*mine).max(*theirs);
        }
        known[point.stream.0] = known[point.stream.0].max(point.number);
    }
}

/// The order among all streams and the host.
#[derive(Debug, Default)]
pub(crate) struct Order {
    streams: Vec<Known>,
    host: Known,
}

impl Order {
    pub(crate) fn add_stream(&mut self) {
        self.streams.push(Known::default());
    }

    /// Whether what the stream does next is ordered after the point: by its own order, by a wait, or because the
    /// host has seen it finish.
    pub(crate) fn is_after(&self, stream: StreamIndex, point: &Point) -> bool {
        stream == point.stream
            || self.streams[stream.0].of(point.stream) >= point.number
            || self.host_is_after(point)
    }

    /// Whether the host has seen the point pass.
    pub(crate) fn host_is_after(&self, point: &Point) -> bool {
        self.host.of(point.stream) >= point.number
    }

    /// The stream has been made to wait for the point.
    pub(crate) fn stream_learns(&mut self, stream: StreamIndex, point: &Point) {
        self.streams[stream.0].learn(point);
    }

    /// The host has seen the point pass.
    pub(crate) fn host_learns(&mut self, point: &Point) {
        self.host.learn(point);
    }

    /// The stream has been given an operation with this number.
    pub(crate) fn operation(&mut self, stream: StreamIndex, number: u64) -> Point {
        let others = Arc::clone(&self.streams[stream.0].others);
        Point { stream, number, others }
    }
}

/// Who still uses some memory: the last writer, and every reader since, one a stream.
///
/// One event for all readers would not do: a later reader's record would hide an earlier reader on another stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    writer: Option<Point>,
    readers: Vec<Point>,
}

impl Uses {
    /// What a reader has to come after.
    pub(crate) fn before_read(&self) -> impl Iterator<Item = &Point> {
        self.writer.iter()
    }

    /// What a writer, or a free, has to come after.
    pub(crate) fn before_write(&self) -> impl Iterator<Item = &Point> {
        self.readers.iter().chain(&self.writer)
    }

    pub(crate) fn read_by(&mut self, point: Point) {
        match self.readers.iter_mut().find(|known| known.stream == point.stream) {
            Some(known) => *known = point,
            None => self.readers.push(point),
        }
    }

    pub(crate) fn written_by(&mut self, point: Point) {
        self.readers.clear();
        self.writer = Some(point);
    }
}
