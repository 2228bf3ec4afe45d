//! Stream capture: which streams give nodes to which graph, and what a program may not do meanwhile.
//!
//! The rules are CUDA's. A call that breaks one fails and makes the capture invalid: it then has to be ended, which
//! gives no graph.

mod calls;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::errors::Code;
use crate::graphs::{Graph, Node, Work};
use crate::streams::{State, Stream, with_stream};

pub use rules::{Mode, unsafe_call};

/// A capture under way.
#[derive(Debug)]
pub struct Capture {
    /// The graph that it adds to.
    pub graph: u64,
    origin: Stream,
    mode: Mode,
    thread: u64,
    valid: bool,
    /// The streams of the capture, and after which nodes the next work of each comes.
    tails: HashMap<Stream, Vec<u64>>,
    /// Each stream's nodes as last shown to the program, which may read them until its next call.
    shown: HashMap<Stream, Vec<u64>>,
}

/// A capture that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The graph, or why there is none.
    pub made: Result<u64, Code>,
    /// The graph of a capture that failed, to be dropped after the lock is given back.
    _gone: Option<Graph>,
}

/// All captures under way.
#[derive(Debug, Default)]
pub struct Captures {
    by_number: HashMap<u64, Capture>,
    streams: HashMap<Stream, u64>,
    last: u64,
}

/// A record of an event in a capturing stream: it stands for nodes.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The capture.
    pub capture: u64,
    /// The nodes.
    pub nodes: Vec<u64>,
}

/// How many captures are under way. Read by the torch layer before each operator.
#[unsafe(no_mangle)]
static streamsan_captures: AtomicU32 = AtomicU32::new(0);

/// Whether a capture is under way. If not, nothing of this module concerns a call.
pub fn any() -> bool {
    streamsan_captures.load(Ordering::Relaxed) != 0
}

/// The stream, if it captures.
pub fn of_stream(handle: u64) -> Result<Option<Stream>, Code> {
    if !any() {
        return Ok(None);
    }
    let (stream, capture) = with_stream(handle, State::check_use)?;
    Ok(capture?.map(|_| stream))
}

/// Gives work to a capturing stream as a node of its graph; None if the stream does not capture, and is to do the work.
pub fn add(handle: u64, work: impl FnOnce() -> Work) -> Result<Option<Stream>, Code> {
    if !any() {
        return Ok(None);
    }
    let (stream, added) = with_stream(handle, |state, stream| state.add_node(stream, work))?;
    Ok(added?.map(|_| stream))
}

impl Captures {
    /// The capture with this number, if it is under way.
    pub fn get(&self, number: u64) -> Option<&Capture> {
        self.by_number.get(&number)
    }

    /// The capture that a stream belongs to.
    pub fn of(&self, stream: Stream) -> Option<(u64, &Capture)> {
        let number = *self.streams.get(&stream)?;
        self.by_number.get(&number).map(|capture| (number, capture))
    }

    /// Makes captures invalid.
    fn invalidate(&mut self, which: impl Fn(u64, &Capture) -> bool) -> bool {
        let mut found = false;
        for (&number, capture) in &mut self.by_number {
            if which(number, capture) {
                capture.valid = false;
                found = true;
            }
        }
        found
    }
}

impl Capture {
    /// Whether nothing has made it invalid.
    pub fn is_valid(&self) -> bool {
        self.valid
    }
}

impl State {
    /// Begins a capture; `graph` is a new one, or one to add to after `tail`.
    pub fn begin_capture(
        &mut self,
        stream: Stream,
        mode: Mode,
        thread: u64,
        existing: Option<(u64, Vec<u64>)>,
    ) -> Result<u64, Code> {
        if self.captures.of(stream).is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let (graph, tail) = if let Some((graph, tail)) = existing {
            let known = self.graphs.by_handle.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
            if known.capturing || tail.iter().any(|&node| known.find(node).is_none()) {
                return Err(Code::INVALID_VALUE);
            }
            known.capturing = true;
            (graph, tail)
        } else {
            let graph = self.new_handle();
            self.graphs.by_handle.insert(graph, Graph { capturing: true, ..Graph::default() });
            (graph, Vec::new())
        };
        self.captures.last += 1;
        let number = self.captures.last;
        let tails = HashMap::from([(stream, tail)]);
        let capture =
            Capture { graph, origin: stream, mode, thread, valid: true, tails, shown: HashMap::new() };
        self.captures.by_number.insert(number, capture);
        self.captures.streams.insert(stream, number);
        streamsan_captures.fetch_add(1, Ordering::Relaxed);
        Ok(graph)
    }

    /// Ends the capture that began in `stream`. Fails if it goes on.
    pub fn end_capture(&mut self, stream: Stream, thread: u64) -> Result<Ended, Code> {
        let (number, capture) = self.captures.of(stream).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream {
            self.captures.invalidate(|other, _| other == number);
            return Err(Code::CAPTURE_UNMATCHED);
        }
        if capture.mode != Mode::Relaxed && capture.thread != thread {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        let outcome = self.outcome(capture);
        self.finish_capture(number, outcome).ok_or(Code::ILLEGAL_STATE)
    }

    /// A stream is about to be destroyed: a capture that began in it is given up, one that it joined becomes invalid.
    pub fn give_up_capture(&mut self, stream: Stream) -> Option<Ended> {
        let (number, capture) = self.captures.of(stream)?;
        if capture.origin == stream {
            return self.finish_capture(number, Err(Code::CAPTURE_INVALIDATED));
        }
        self.captures.invalidate(|other, _| other == number);
        None
    }

    fn finish_capture(&mut self, number: u64, outcome: Result<(), Code>) -> Option<Ended> {
        let capture = self.captures.by_number.remove(&number)?;
        self.captures.streams.retain(|_, of| *of != number);
        streamsan_captures.fetch_sub(1, Ordering::Relaxed);
        if let Some(graph) = self.graphs.by_handle.get_mut(&capture.graph) {
            graph.capturing = false;
        }
        Some(match outcome {
            Ok(()) => Ended { made: Ok(capture.graph), _gone: None },
            Err(code) => Ended { made: Err(code), _gone: self.graphs.by_handle.remove(&capture.graph) },
        })
    }

    /// Whether a capture can end with a graph: all streams that did something have been waited for.
    fn outcome(&self, capture: &Capture) -> Result<(), Code> {
        if !capture.valid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        let graph = self.graphs.graph(capture.graph).map_err(|_| Code::CAPTURE_INVALIDATED)?;
        let end = capture.tails.get(&capture.origin).map_or(&[][..], Vec::as_slice);
        let tails = capture.tails.values().flatten().copied();
        if graph.leads_to(tails, end) { Ok(()) } else { Err(Code::CAPTURE_UNJOINED) }
    }

    /// Adds work of a stream to its capture's graph: the node's handle; None if the stream does not capture.
    pub fn add_node(&mut self, stream: Stream, work: impl FnOnce() -> Work) -> Result<Option<u64>, Code> {
        let Some(number) = self.check_use(stream)? else { return Ok(None) };
        let handle = self.new_handle();
        let capture = self.captures.by_number.get_mut(&number).ok_or(Code::UNKNOWN)?;
        let tail = capture.tails.entry(stream).or_default();
        let dependencies = std::mem::replace(tail, vec![handle]);
        let graph = self.graphs.by_handle.get_mut(&capture.graph).ok_or(Code::CAPTURE_INVALIDATED)?;
        graph.nodes.push(Arc::new(Node { handle, dependencies, work: work() }));
        Ok(Some(handle))
    }

    /// What an event recorded in this stream now stands for; None if the stream does not capture.
    pub fn record_captured(&mut self, stream: Stream) -> Result<Option<Captured>, Code> {
        let Some(capture) = self.check_use(stream)? else { return Ok(None) };
        let tails = self.captures.get(capture).and_then(|capture| capture.tails.get(&stream));
        Ok(Some(Captured { capture, nodes: tails.cloned().unwrap_or_default() }))
    }

    /// A stream waits for an event that may be recorded in a capture. Says whether the wait was one between nodes.
    pub fn wait_captured(
        &mut self,
        stream: Stream,
        recorded: Option<&Captured>,
        ever_recorded: bool,
    ) -> Result<bool, Code> {
        let own = self.check_use(stream)?;
        let Some(recorded) = recorded else {
            let Some(own) = own else { return Ok(false) };
            if !ever_recorded {
                return Ok(true);
            }
            self.captures.invalidate(|number, _| number == own);
            return Err(Code::CAPTURE_ISOLATION);
        };
        match self.captures.get(recorded.capture) {
            // As an H200 answers: tests/conformance/captures_h200.txt.
            None => return Err(Code::INVALID_VALUE),
            Some(capture) if !capture.valid => return Err(Code::CAPTURE_INVALIDATED),
            Some(_) => {}
        }
        if own.is_some_and(|own| own != recorded.capture) {
            self.captures.invalidate(|number, _| Some(number) == own || number == recorded.capture);
            return Err(Code::CAPTURE_MERGE);
        }
        if stream.handle == 0 {
            self.captures.invalidate(|number, _| number == recorded.capture);
            return Err(Code::CAPTURE_IMPLICIT);
        }
        self.captures.streams.insert(stream, recorded.capture);
        if let Some(capture) = self.captures.by_number.get_mut(&recorded.capture) {
            let tail = capture.tails.entry(stream).or_default();
            for &node in &recorded.nodes {
                if !tail.contains(&node) {
                    tail.push(node);
                }
            }
        }
        Ok(true)
    }

    /// The nodes after which the next work of a capturing stream comes, kept where the program may read them.
    pub fn show_tail(&mut self, stream: Stream) -> Option<&[u64]> {
        let number = self.captures.streams.get(&stream)?;
        let capture = self.captures.by_number.get_mut(number)?;
        let tail = capture.tails.get(&stream).cloned().unwrap_or_default();
        let shown = capture.shown.entry(stream).or_default();
        *shown = tail;
        Some(shown)
    }

    /// Puts nodes in the place of those, or beside those, after which the next work of a capturing stream comes.
    pub fn change_tail(&mut self, stream: Stream, nodes: Vec<u64>, replace: bool) -> Result<(), Code> {
        let number = self.check_use(stream)?.ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.by_number.get_mut(&number).ok_or(Code::UNKNOWN)?;
        let graph = self.graphs.graph(capture.graph)?;
        if nodes.iter().any(|&node| graph.find(node).is_none()) {
            return Err(Code::INVALID_VALUE);
        }
        let tail = capture.tails.entry(stream).or_default();
        if replace {
            tail.clear();
        }
        for node in nodes {
            if !tail.contains(&node) {
                tail.push(node);
            }
        }
        Ok(())
    }
}
