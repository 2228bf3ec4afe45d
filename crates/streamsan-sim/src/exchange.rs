//! Programs in which another block gets a freed block's memory: what an allocator might have done.
//!
//! torch's caching allocator serves a request from freed blocks of the same stream and pool that are large
//! enough. Which one it takes depends on what else is free, so each is possible.

use crate::bytes::Bytes;
use crate::captures::Captures;
use crate::memory::Memory;
use crate::program::{Action, BufferKind, Program, Within};
use streamsan_trace::AccessMode;

/// One block that might have had another's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The freed block.
    pub(crate) old: usize,
    /// The block allocated after that.
    pub(crate) new: usize,
    /// The step with its first access: a launch, if it is a node's.
    pub(crate) access: usize,
}

/// All exchanges of a program: memory that was handed out again by then is left out, since what happens to
/// it is seen.
pub(crate) fn exchanges(program: &Program, memory: &Memory) -> Vec<Exchange> {
    let mut found = Vec::new();
    for (old, had) in memory.extents.iter().enumerate() {
        let (Some(owner), Some(freed)) = (program.buffers[old].owner(), had.freed) else { continue };
        for (new, gets) in memory.extents.iter().enumerate() {
            let (is, was) = (&program.buffers[new], &program.buffers[old]);
            let suits = is.owner() == Some(owner)
                && is.is_small() == was.is_small()
                && is.reserved() <= was.reserved()
                && gets.allocated > Some(freed);
            let (true, Some(access)) = (suits, memory.first_touch(new)) else { continue };
            let handed_out = memory.extents.iter().any(|other| {
                let time = other.allocated > Some(freed) && other.allocated < Some(access);
                time && other.start < had.end && had.start < other.end
            });
            if !handed_out {
                found.push(Exchange { old, new, access });
            }
        }
    }
    found
}

impl Exchange {
    /// The program in which it happens. All uses of the old block and the first of the new one are made to
    /// meet, since where in the memory the new block would lie is open.
    pub(crate) fn program(self, program: &Program) -> Program {
        let mut given = program.clone();
        if let BufferKind::Cached { within, .. } = &mut given.buffers[self.new].kind {
            *within = Some(Within { buffer: self.old, low: 0, high: None });
        }
        let nodes: Vec<usize> = match (Captures::of(program), &program.steps[self.access].action) {
            (Some(captures), &Action::Replay { graph, .. }) => {
                captures.nodes[graph].iter().map(|node| node.step).collect()
            }
            _ => Vec::new(),
        };
        for (index, step) in given.steps.iter_mut().enumerate() {
            let Action::Operation { accesses, .. } = &mut step.action else { continue };
            for access in accesses {
                let first = index == self.access || nodes.contains(&index);
                let meets = access.buffer == self.old || access.buffer == self.new && first;
                if meets {
                    access.mode = AccessMode::Write;
                    access.bytes = Bytes::interval(0, program.buffers[access.buffer].size);
                }
            }
        }
        given
    }
}
