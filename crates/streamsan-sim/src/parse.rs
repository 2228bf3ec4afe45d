//! The program language: lines to [`Program`].
//!
//! One statement a line, a comment after `#`:
//!
//! ```text
//! streams default, side, outer(blocking)      all streams; `default` is the legacy default stream
//! buffer x 4MiB                               device memory that lives as long as the program
//! pinned p 4MiB                               page-locked host memory
//! side: read x, y[0..64]; write z             an operation and its accesses: read, write, update
//! side: write x[0..4096 step 64 run 8]        only runs of bytes within a range
//! side: copy p -> x                           reads one, writes the other
//! side: launch                                work without accesses
//! side: collective read x; write y            an operation that is a collective
//! side: capture g / side: end g               what comes between is captured as nodes of a graph
//! side: replay g                              launches the graph
//! side: record e / side: wait e               events
//! side: alloc x 1MiB                          a block of the caching allocator, of fresh memory
//! side: alloc y 512KiB in x[0..512KiB]        … that gets (part of) the memory of a freed block
//! host: record_stream x outer                 outer is recorded for the block; it gets a guard at the free
//! host: free x                                the last reference goes; page-locked memory: cudaFreeHost
//! host: sync side / host: sync e / host: sync device
//! host: query side ready / host: query e pending
//! host: read p[0..64] / host: write p         the host touches page-locked memory
//! ```
//!
//! A new statement is one arm in [`Parser::statement`], [`Parser::stream_action`] or
//! [`Parser::host_action`].

use crate::annotations::{Annotations, Collector};
use crate::bytes::Bytes;
use crate::captures::Captures;
use crate::error::ProgramError;
use crate::lifetimes::Lifetimes;
use crate::pieces::{Parsed, bytes, name, operand, size, word};
use crate::program::{
    Access, Action, Buffer, BufferKind, Program, Step, Stream, StreamKind, Target, Within, Work,
};
use streamsan_trace::AccessMode;

/// Parses the lines of one program; the first line has number 1 and the file is called `path` in errors.
///
/// ```
/// let text = "streams default, side\nbuffer x 4KiB\ndefault: write x\nside: read x[0..16]\n";
/// let program = streamsan_sim::parse("example", text).unwrap();
/// assert_eq!(program.to_string(), text);
/// ```
///
/// # Errors
/// If a line cannot be understood, or names something that was not declared.
pub fn parse(path: &str, text: &str) -> Result<Program, ProgramError> {
    Ok(parse_lines(path, text, 1)?.0)
}

/// Parses lines that start at line `first` of a file, with their annotations.
pub(crate) fn parse_lines(
    path: &str,
    text: &str,
    first: u32,
) -> Result<(Program, Annotations), ProgramError> {
    let error = |line: u32, message: String| ProgramError { path: path.to_owned(), line, message };
    let mut parser = Parser::default();
    let mut collector = Collector::default();
    for (number, line) in (first..).zip(text.lines()) {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        if !code.trim().is_empty() {
            parser.statement(number, code.trim()).map_err(|message| error(number, message))?;
        }
        collector.comment(number, comment).map_err(|message| error(number, message))?;
    }
    let program = parser.program;
    if program.streams.is_empty() {
        return Err(error(first, "no streams: start with a line `streams default, side`".to_owned()));
    }
    let names: Vec<&str> = program.streams.iter().map(|stream| stream.name.as_str()).collect();
    let annotations = collector.finish(&names).map_err(|(line, message)| error(line, message))?;
    Ok((program, annotations))
}

/// Streams, and buffers, that a program may have: names are looked up one by one.
const MOST: usize = 4096;

/// Refuses one more.
fn few(count: usize, what: &str) -> Parsed<()> {
    if count < MOST { Ok(()) } else { Err(format!("more than {MOST} {what}: make the program smaller")) }
}

#[derive(Default)]
struct Parser {
    program: Program,
    lifetimes: Lifetimes,
    captures: Captures,
}

impl Parser {
    fn statement(&mut self, line: u32, text: &str) -> Parsed<()> {
        if let Some((actor, rest)) = text.split_once(':') {
            let rest = rest.trim();
            let action = match actor.trim() {
                "host" => self.host_action(rest)?,
                actor => {
                    let stream = self.stream(actor)?;
                    self.stream_action(line, stream, rest)?
                }
            };
            self.captures.step(&self.program, &action)?;
            self.program.steps.push(Step { line, action });
            return Ok(());
        }
        match word(text) {
            ("streams", rest) => self.streams(line, rest),
            ("buffer", rest) => self.buffer(line, "buffer", rest, BufferKind::Device).map(drop),
            ("pinned", rest) => self.buffer(line, "pinned", rest, BufferKind::Pinned).map(drop),
            _ => Err(format!(
                "cannot understand `{text}`: lines are `streams …`, `buffer …`, `pinned …`, `STREAM: …` and `host: …`"
            )),
        }
    }

    fn streams(&mut self, line: u32, text: &str) -> Parsed<()> {
        if !self.program.streams.is_empty() {
            return Err("a second `streams` line: name all streams in the first".to_owned());
        }
        for part in text.split(',').map(str::trim) {
            few(self.program.streams.len(), "streams")?;
            let (stream, kind) = match part.split_once('(') {
                None => (name(part)?, StreamKind::NonBlocking),
                Some((stream, kind)) if kind.trim_end() == "blocking)" => {
                    (name(stream)?, StreamKind::Blocking)
                }
                Some((_, kind)) => {
                    return Err(format!("`({kind}` is no kind of stream: the only one is `(blocking)`"));
                }
            };
            let kind = match (stream, kind) {
                ("default", StreamKind::NonBlocking) => StreamKind::LegacyDefault,
                ("default", _) => {
                    return Err(
                        "`default` is the legacy default stream: it is neither blocking nor non-blocking"
                            .to_owned(),
                    );
                }
                (_, kind) => kind,
            };
            if self.program.streams.iter().any(|known| known.name == stream) {
                return Err(format!("stream `{stream}` is declared twice: use another name"));
            }
            self.program.streams.push(Stream { name: stream.to_owned(), kind });
        }
        self.program.streams_line = line;
        Ok(())
    }

    fn buffer(&mut self, line: u32, statement: &str, text: &str, kind: BufferKind) -> Parsed<usize> {
        let (buffer, rest) = word(text);
        let buffer = name(buffer)?;
        few(self.program.buffers.len(), "buffers")?;
        if self.program.buffers.iter().any(|known| known.name == buffer) {
            return Err(format!("buffer `{buffer}` is declared twice: use another name"));
        }
        if rest.is_empty() {
            return Err(format!("buffer `{buffer}` has no size: write `{statement} {buffer} 4MiB`"));
        }
        let size = size(rest)?;
        if size == 0 {
            return Err(format!("buffer `{buffer}` is empty: give it at least one byte"));
        }
        self.program.buffers.push(Buffer { name: buffer.to_owned(), size, line, kind });
        Ok(self.program.buffers.len() - 1)
    }

    fn stream(&self, text: &str) -> Parsed<usize> {
        let found = self.program.streams.iter().position(|stream| stream.name == text);
        found.ok_or_else(|| format!("no stream is called `{text}`: add it to the `streams` line"))
    }

    /// Reads `x 4MiB`, `y 2MiB in x` or `y 1MiB in x[0..1MiB]`.
    fn allocation(&mut self, line: u32, owner: usize, text: &str) -> Parsed<Action> {
        let (request, place) = match text.split_once(" in ") {
            None => (text, None),
            Some((request, place)) => (request, Some(place.trim())),
        };
        let within = match place {
            None => None,
            Some(place) => {
                let (old, range) = operand(place)?;
                let buffer = self.known(old)?;
                let Bytes { low, high, runs } = range.map_or(Ok(Bytes::interval(0, 1)), bytes)?;
                if runs.is_some() {
                    return Err(format!("`{place}`: a block has no steps, write `{old}[lo..hi]`"));
                }
                Some(Within { buffer, low, high: range.map(|_| high) })
            }
        };
        let buffer = self.buffer(line, "S: alloc", request, BufferKind::Cached { owner, within })?;
        self.lifetimes.allocate(&self.program, buffer)?;
        Ok(Action::Allocate { buffer })
    }

    fn stream_action(&mut self, line: u32, stream: usize, text: &str) -> Parsed<Action> {
        match word(text) {
            ("alloc", rest) => self.allocation(line, stream, rest),
            ("record", event) => Ok(Action::Record { stream, event: self.event(event)? }),
            ("wait", event) => Ok(Action::Wait { stream, event: self.event(event)? }),
            ("launch", "") => Ok(Action::Operation { stream, work: Work::Kernel, accesses: Vec::new() }),
            ("copy", rest) => {
                let Some((source, target)) = rest.split_once("->") else {
                    return Err(format!("`copy {rest}` has no target: write `copy x -> y`"));
                };
                let accesses =
                    vec![self.access(AccessMode::Read, source)?, self.access(AccessMode::Write, target)?];
                Ok(Action::Operation { stream, work: Work::Copy, accesses })
            }
            ("capture", graph) => Ok(Action::Capture { stream, graph: self.graph(graph)? }),
            ("end", graph) => Ok(Action::EndCapture { stream, graph: self.graph(graph)? }),
            ("replay", graph) => Ok(Action::Replay { stream, graph: self.graph(graph)? }),
            ("collective", rest) => {
                Ok(Action::Operation { stream, work: Work::Collective, accesses: self.accesses(rest)? })
            }
            ("read" | "write" | "update", _) => {
                Ok(Action::Operation { stream, work: Work::Kernel, accesses: self.accesses(text)? })
            }
            ("launch", rest) => {
                Err(format!("`launch` is not known with `{rest}`: it stands alone and touches no memory"))
            }
            (verb, _) => Err(format!(
                "`{verb}` is not known: a stream can read, write, update, copy, launch, record, wait, alloc, capture, end, replay and collective"
            )),
        }
    }

    /// Reads `read x, y[0..64]; write z`.
    fn accesses(&self, text: &str) -> Parsed<Vec<Access>> {
        let mut accesses = Vec::new();
        for group in text.split(';') {
            let (verb, operands) = word(group);
            let mode = match verb {
                "read" => AccessMode::Read,
                "write" => AccessMode::Write,
                "update" => AccessMode::Update,
                _ => return Err(format!("`{verb}` is no access: use read, write or update")),
            };
            for operand in operands.split(',') {
                accesses.push(self.access(mode, operand)?);
            }
        }
        Ok(accesses)
    }

    fn host_action(&mut self, text: &str) -> Parsed<Action> {
        match word(text) {
            ("sync", target) => Ok(Action::Synchronize { target: self.target(target)? }),
            ("query", rest) => {
                let (target, answer) = word(rest);
                let ready = match answer {
                    "ready" => true,
                    "pending" => false,
                    _ => {
                        return Err(format!(
                            "the answer of the query is missing: write `host: query {target} ready` or `… pending`"
                        ));
                    }
                };
                let target = self.target(target)?;
                if target == Target::Device {
                    return Err("a device cannot be queried: query a stream or an event".to_owned());
                }
                Ok(Action::Query { target, ready })
            }
            ("free", rest) => {
                let buffer = self.known(name(rest)?)?;
                self.lifetimes.free(&self.program, buffer)?;
                Ok(Action::Free { buffer })
            }
            ("record_stream", rest) => {
                let (buffer, stream) = word(rest);
                let buffer = self.known(buffer)?;
                let stream = self.stream(stream)?;
                self.lifetimes.record_stream(&self.program, buffer)?;
                Ok(Action::RecordStream { buffer, stream })
            }
            (verb @ ("read" | "write"), rest) => {
                let mode = if verb == "read" { AccessMode::Read } else { AccessMode::Write };
                let accesses: Vec<Access> =
                    rest.split(',').map(|operand| self.access(mode, operand)).collect::<Parsed<_>>()?;
                let device =
                    |access: &&Access| self.program.buffers[access.buffer].kind != BufferKind::Pinned;
                if let Some(access) = accesses.iter().find(device) {
                    let buffer = &self.program.buffers[access.buffer].name;
                    return Err(format!(
                        "the host cannot touch `{buffer}`, which is device memory: copy it to pinned memory"
                    ));
                }
                Ok(Action::HostAccess { accesses })
            }
            (verb, _) => Err(format!(
                "`{verb}` is not known: the host can sync, query, free, record_stream, read and write"
            )),
        }
    }

    /// The event with this name, which is made at its first mention.
    fn event(&mut self, text: &str) -> Parsed<usize> {
        let event = name(text)?;
        if self.program.streams.iter().any(|stream| stream.name == event) {
            return Err(format!("`{event}` is a stream: an event needs a name of its own"));
        }
        let events = &mut self.program.events;
        Ok(events.iter().position(|known| known == event).unwrap_or_else(|| {
            events.push(event.to_owned());
            events.len() - 1
        }))
    }

    /// The graph with this name, which is made at its first mention.
    fn graph(&mut self, text: &str) -> Parsed<usize> {
        let graph = name(text)?;
        let graphs = &mut self.program.graphs;
        Ok(graphs.iter().position(|known| known == graph).unwrap_or_else(|| {
            graphs.push(graph.to_owned());
            graphs.len() - 1
        }))
    }

    fn target(&mut self, text: &str) -> Parsed<Target> {
        if text == "device" {
            return Ok(Target::Device);
        }
        match self.program.streams.iter().position(|stream| stream.name == text) {
            Some(stream) => Ok(Target::Stream(stream)),
            None => Ok(Target::Event(self.event(text)?)),
        }
    }

    /// The buffer with this name.
    fn known(&self, buffer: &str) -> Parsed<usize> {
        let found = self.program.buffers.iter().position(|known| known.name == buffer);
        found.ok_or_else(|| format!("no buffer is called `{buffer}`: add `buffer {buffer} 4MiB` above"))
    }

    fn access(&self, mode: AccessMode, text: &str) -> Parsed<Access> {
        let text = text.trim();
        let (buffer, range) = operand(text)?;
        let index = self.known(buffer)?;
        self.lifetimes.touch(&self.program, index)?;
        let whole = self.program.buffers[index].size;
        let bytes = range.map_or(Ok(Bytes::interval(0, whole)), bytes)?;
        if bytes.high > whole {
            return Err(format!("`{text}` ends after the {whole} bytes of `{buffer}`"));
        }
        Ok(Access { buffer: index, mode, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn every_statement_is_read_and_printed_again() {
        let text = "streams default, side, outer(blocking)\nbuffer x 4MiB\nbuffer y 100\ndefault: write x\n\
                    side: read x, y[8..16]; write y[16..64 step 16 run 4]\nouter: update x[0..1024]\n\
                    side: copy x[0..8] -> y[0..8]\nside: record e\nouter: wait e\nouter: launch\nhost: sync side\nhost: sync e\n\
                    host: sync device\nhost: query e ready\nhost: query outer pending\nside: alloc a 2MiB\n\
                    side: write a\nhost: record_stream a outer\nhost: free a\nside: alloc b 1MiB in a\n\
                    side: alloc c 600 in a[1MiB..2MiB]\nouter: copy b[0..8] -> p\nhost: read p[0..4]\n\
                    host: write p, p[0..4]\nhost: free p\n";
        let text = text.replacen("buffer y", "pinned p 64\nbuffer y", 1);
        assert_eq!(parse("p", &text).unwrap().to_string(), text);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (line, part) in [
            ("streams c", "second `streams` line"),
            ("buffer x 8", "declared twice"),
            ("buffer z", "has no size"),
            ("buffer z 0", "is empty"),
            ("buffer z 4Kib", "`Kib` is no unit"),
            ("buffer z 99999999999999999999", "is no size"),
            ("buffer z 4000000GiB", "is no size"),
            ("buffer host 4", "meaning of its own"),
            ("d: read x", "no stream is called `d`"),
            ("a: read q", "no buffer is called `q`"),
            ("a: read", "no buffer is called ``"),
            ("a: read x[", "closing"),
            ("a: read x[]", "is no range"),
            ("a: read x[4..4]", "holds no byte"),
            ("a: read x[0..65]", "ends after the 64 bytes"),
            ("a: read x[0..64 step 4]", "is no range"),
            ("a: read x[0..64 step 4 run 4]", "shorter than the step"),
            ("a: read x[0..17 step 8 run 4]", "the last run ends at 20"),
            ("a: read x; jump x", "`jump` is no access"),
            ("a: copy x", "has no target"),
            ("a: jump x", "`jump` is not known"),
            ("a: launch x", "`launch` is not known with `x`"),
            ("a: record", "is no name"),
            ("a: record b", "is a stream"),
            ("host: free x", "lives as long as the program"),
            ("host: free", "is no name"),
            ("host: jump", "`jump` is not known"),
            ("host: read x", "device memory"),
            ("host: record_stream x a", "has no owner stream"),
            ("a: alloc z", "has no size"),
            ("a: alloc z 4 in q", "no buffer is called `q`"),
            ("a: alloc z 4 in x", "no block of the caching allocator"),
            ("a: alloc z 4 in x[0..64 step 8 run 4]", "has no steps"),
            ("host: query e", "the answer of the query is missing"),
            ("host: query device ready", "cannot be queried"),
            ("nonsense", "cannot understand"),
            ("a: read x # error: [SS101] after (2)", "no line has label (2)"),
            ("a: read x # error: SS101", "cannot read expectation"),
            ("a: read x # eror: [SS101]", "looks like an expectation"),
            ("a: read x # (1)", "label (1) is on line 3 already"),
            ("a: read x # error: [SS101] after (1), missing a -> q", "no stream of this program"),
        ] {
            let text = format!("streams a, b\nbuffer x 64\nb: write x # (1)\n{line}\n");
            let error = parse("p", &text).expect_err(line).to_string();
            assert!(error.starts_with("p:4: ") && error.contains(part), "{line}: {error}");
        }
        assert_eq!(parse("p", "").unwrap_err().line, 1);
    }

    #[test]
    fn lifetimes_are_checked() {
        for (line, part) in [
            ("a: alloc z 4 in y", "`y` has not been freed"),
            ("b: alloc z 4 in x", "belongs to stream `a`"),
            ("a: alloc z 3KiB in x", "does not fit"),
            ("a: alloc z 1KiB in x[512..1KiB]", "does not fit"),
            ("a: alloc z 4 in x[4..1KiB]", "multiple of 512"),
            ("a: alloc z 4 in x[0..4KiB]", "ends after the 2048 bytes"),
            ("a: alloc z 4 in w[0..512]", "`v` has that memory"),
            ("host: free x", "`x` was freed before"),
            ("host: record_stream x b", "`x` was freed before"),
            ("host: free p", "`p` was freed before"),
            ("host: read p", "`p` was freed before"),
            ("b: copy y -> p", "`p` was freed before"),
        ] {
            let text = format!(
                "streams a, b\npinned p 64\na: alloc x 2000\na: alloc y 64\nhost: free x\nhost: free p\n\
                 a: alloc w 1KiB\nhost: free w\na: alloc v 8 in w[0..512]\na: read x\n{line}\n"
            );
            let error = parse("p", &text).expect_err(line).to_string();
            assert!(error.starts_with("p:11: ") && error.contains(part), "{line}: {error}");
        }
    }
}
