//! A program as text: the lines of a `sim` block. Parsing them gives the program back, line numbers
//! included if the program numbers its lines as they are printed.

use crate::bytes::Bytes;
use crate::program::{Access, Action, BufferKind, Program, StreamKind, Target, Work};
use std::fmt::{Display, Formatter, Result, Write as _};
use streamsan_trace::AccessMode;

impl Display for Program {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.write_str("streams ")?;
        for (index, stream) in self.streams.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let suffix = if stream.kind == StreamKind::Blocking { "(blocking)" } else { "" };
            write!(formatter, "{separator}{}{suffix}", stream.name)?;
        }
        writeln!(formatter)?;
        for buffer in &self.buffers {
            let statement = match buffer.kind {
                BufferKind::Device => "buffer",
                BufferKind::Pinned => "pinned",
                BufferKind::Cached { .. } => continue,
            };
            writeln!(formatter, "{statement} {} {}", buffer.name, size(buffer.size))?;
        }
        for step in 0..self.steps.len() {
            writeln!(formatter, "{}", self.step_text(step))?;
        }
        Ok(())
    }
}

/// A size with the largest unit that divides it.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes.is_multiple_of(unit) && bytes > 0 {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

impl Program {
    /// The line of one step, such as `side: wait e`.
    pub fn step_text(&self, step: usize) -> String {
        let stream = |index: &usize| self.streams[*index].name.as_str();
        let event = |index: &usize| self.events[*index].as_str();
        let graph = |index: &usize| self.graphs[*index].as_str();
        let buffer = |index: &usize| self.buffers[*index].name.as_str();
        match &self.steps[step].action {
            Action::Operation { stream: on, work: Work::Copy, accesses } => {
                let names: Vec<_> = accesses.iter().map(|access| self.access_text(access)).collect();
                format!("{}: copy {}", stream(on), names.join(" -> "))
            }
            Action::Operation { stream: on, work: Work::Kernel, accesses } if accesses.is_empty() => {
                format!("{}: launch", stream(on))
            }
            Action::Operation { stream: on, work: Work::Kernel, accesses } => {
                format!("{}: {}", stream(on), self.accesses_text(accesses))
            }
            Action::Operation { stream: on, work: Work::Collective, accesses } => {
                format!("{}: collective {}", stream(on), self.accesses_text(accesses))
            }
            Action::Capture { stream: on, graph: of } => format!("{}: capture {}", stream(on), graph(of)),
            Action::EndCapture { stream: on, graph: of } => format!("{}: end {}", stream(on), graph(of)),
            Action::Replay { stream: on, graph: of } => format!("{}: replay {}", stream(on), graph(of)),
            Action::HostAccess { accesses } => format!("host: {}", self.accesses_text(accesses)),
            Action::Allocate { buffer } => self.allocation_text(*buffer),
            Action::Free { buffer: freed } => format!("host: free {}", buffer(freed)),
            Action::RecordStream { buffer: used, stream: by } => {
                format!("host: record_stream {} {}", buffer(used), stream(by))
            }
            Action::Record { stream: on, event: what } => format!("{}: record {}", stream(on), event(what)),
            Action::Wait { stream: on, event: what } => format!("{}: wait {}", stream(on), event(what)),
            Action::Synchronize { target } => format!("host: sync {}", self.target_text(*target)),
            Action::Query { target, ready } => {
                let answer = if *ready { "ready" } else { "pending" };
                format!("host: query {} {answer}", self.target_text(*target))
            }
        }
    }

    fn accesses_text(&self, accesses: &[Access]) -> String {
        let mut text = String::new();
        let mut mode = None;
        for access in accesses {
            if mode == Some(access.mode) {
                text.push_str(", ");
            } else {
                text.push_str(if mode.is_some() { "; " } else { "" });
                text.push_str(verb(access.mode));
                text.push(' ');
                mode = Some(access.mode);
            }
            text.push_str(&self.access_text(access));
        }
        text
    }

    fn allocation_text(&self, buffer: usize) -> String {
        let new = &self.buffers[buffer];
        let BufferKind::Cached { owner, within } = new.kind else { return String::new() };
        let mut text = format!("{}: alloc {} {}", self.streams[owner].name, new.name, size(new.size));
        if let Some(within) = within {
            text.push_str(" in ");
            text.push_str(&self.buffers[within.buffer].name);
            if let Some(high) = within.high {
                let _ = write!(text, "[{}..{}]", size(within.low), size(high));
            }
        }
        text
    }

    fn target_text(&self, target: Target) -> &str {
        match target {
            Target::Stream(index) => &self.streams[index].name,
            Target::Event(index) => &self.events[index],
            Target::Device => "device",
        }
    }

    fn access_text(&self, access: &Access) -> String {
        let buffer = &self.buffers[access.buffer];
        match access.bytes {
            Bytes { low, high, runs: Some(runs) } => {
                format!("{}[{low}..{high} step {} run {}]", buffer.name, runs.step, runs.run)
            }
            Bytes { low: 0, high, runs: None } if high == buffer.size => buffer.name.clone(),
            Bytes { low, high, runs: None } => format!("{}[{low}..{high}]", buffer.name),
        }
    }
}

/// The verb that stands for an access mode.
pub(crate) fn verb(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Read => "read",
        AccessMode::Write => "write",
        AccessMode::Update | AccessMode::Unknown => "update",
    }
}
