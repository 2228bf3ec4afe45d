//! Where a program's memory lies, and which accesses touch a common byte.
//!
//! What the program fixes, computed once: addresses, the moments of allocation and free, and for each *act*
//! the bytes it touches of memory that is alive. An act is a step, or a node in a launch of its graph; these are
//! counted on behind the steps. Order between acts is not known here.

use crate::bytes::Bytes;
use crate::captures::Captures;
use crate::judge::Pair;
use crate::program::{Action, BufferKind, Program, modes_conflict};
use streamsan_trace::AccessMode;

/// One buffer's place and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// First byte. Device and host memory are one space here: different memory has different addresses.
    pub(crate) start: u64,
    /// One past the last byte that the allocator set aside.
    pub(crate) end: u64,
    /// The step of the allocation, if it has one.
    pub(crate) allocated: Option<usize>,
    /// The step of the free.
    pub(crate) freed: Option<usize>,
}

/// One access with absolute addresses, to memory that is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) buffer: usize,
    pub(crate) mode: AccessMode,
    pub(crate) bytes: Bytes,
}

/// How two acts conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The buffer that the first act touches.
    pub(crate) old: usize,
    /// The buffer that the second act touches: another one if it got the memory of the first.
    pub(crate) new: usize,
    /// A common interval of addresses in which both touch a byte.
    pub(crate) low: u64,
    /// Its end.
    pub(crate) high: u64,
}

/// The memory of one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) extents: Vec<Extent>,
    /// By act, what it touches. The free of pinned memory counts as a write of all of it.
    pub(crate) touches: Vec<Vec<Touch>>,
    /// Acts behind the steps: the launch, and the step that captured the node.
    launched: Vec<(usize, usize)>,
    steps: usize,
    /// Accesses to freed blocks: step and buffer.
    pub(crate) dead: Vec<(usize, usize)>,
    /// Addresses at which a block begins or ends, sorted.
    cuts: Vec<u64>,
}

/// Where the first buffer lies; any place would do.
const FIRST_ADDRESS: u64 = 0x7000_0000_0000;
/// What separate allocations are aligned to.
const ALIGNMENT: u64 = 512;

impl Memory {
    pub(crate) fn new(program: &Program) -> Self {
        let mut memory = Self::default();
        let mut next = FIRST_ADDRESS;
        for buffer in &program.buffers {
            let within = match buffer.kind {
                BufferKind::Cached { within, .. } => within,
                BufferKind::Device | BufferKind::Pinned => None,
            };
            let start = within.map_or(next, |within| memory.extents[within.buffer].start + within.low);
            if within.is_none() {
                next += buffer.size.next_multiple_of(ALIGNMENT);
            }
            let end = start + buffer.reserved();
            memory.extents.push(Extent { start, end, allocated: None, freed: None });
        }
        let captures = Captures::of(program);
        memory.steps = program.steps.len();
        let mut launched = Vec::new();
        for (step, what) in program.steps.iter().enumerate() {
            match what.action {
                Action::Allocate { buffer } => memory.extents[buffer].allocated = Some(step),
                Action::Free { buffer } => memory.extents[buffer].freed = Some(step),
                Action::Replay { graph, .. } => {
                    for node in captures.iter().flat_map(|captures| &captures.nodes[graph]) {
                        memory.launched.push((step, node.step));
                        let touches = memory.touches_of(program, node.step, step);
                        launched.push(touches);
                    }
                }
                _ => {}
            }
            let inside = Captures::is_inside(captures.as_ref(), step);
            let touches = if inside { Vec::new() } else { memory.touches_of(program, step, step) };
            memory.touches.push(touches);
        }
        memory.touches.append(&mut launched);
        // Only blocks that share memory make generations.
        if program.buffers.iter().any(|buffer| matches!(buffer.kind, BufferKind::Cached { .. })) {
            memory.cuts.extend(memory.extents.iter().flat_map(|extent| [extent.start, extent.end]));
            memory.cuts.sort_unstable();
            memory.cuts.dedup();
        }
        memory
    }

    /// The step of an act: that of the launch for a node.
    pub(crate) fn step(&self, act: usize) -> usize {
        act.checked_sub(self.steps).map_or(act, |node| self.launched[node].0)
    }

    /// Two acts as steps: of two nodes of one launch those that captured them.
    pub(crate) fn pair(&self, first: usize, second: usize) -> Pair {
        let node = |act: usize| act.checked_sub(self.steps).map(|node| self.launched[node]);
        match (node(first), node(second)) {
            (Some((one, first)), Some((other, second))) if one == other => Pair { first, second },
            _ => Pair { first: self.step(first), second: self.step(second) },
        }
    }

    /// The first step at which a buffer is touched.
    pub(crate) fn first_touch(&self, buffer: usize) -> Option<usize> {
        let touching = |touches: &[Touch]| touches.iter().any(|touch| touch.buffer == buffer);
        let acts = self.touches.iter().enumerate().filter(|(_, touches)| touching(touches));
        acts.map(|(act, _)| self.step(act)).min()
    }

    /// What a step touches at a time.
    fn touches_of(&mut self, program: &Program, step: usize, time: usize) -> Vec<Touch> {
        if let Action::Free { buffer } = program.steps[step].action
            && program.buffers[buffer].kind == BufferKind::Pinned
        {
            let Extent { start, end, .. } = self.extents[buffer];
            return vec![Touch { buffer, mode: AccessMode::Write, bytes: Bytes::interval(start, end) }];
        }
        let mut touches = Vec::new();
        for access in program.accesses(step) {
            let extent = self.extents[access.buffer];
            if extent.freed.is_some() {
                self.dead.push((time, access.buffer));
            } else {
                let bytes = access.bytes.shifted(extent.start);
                touches.push(Touch { buffer: access.buffer, mode: access.mode, bytes });
            }
        }
        self.dead.dedup();
        touches
    }

    /// All conflicts of two acts, the first issued first. Bytes of different generations are given apart,
    /// since different guards hold them.
    pub(crate) fn conflicts(&self, first: usize, second: usize) -> Vec<Conflict> {
        let mut found = Vec::new();
        for one in &self.touches[first] {
            for other in &self.touches[second] {
                if !modes_conflict(one.mode, other.mode) || !one.bytes.overlaps(&other.bytes) {
                    continue;
                }
                let (old, new) = (one.buffer, other.buffer);
                if old == new {
                    found.push(Conflict { old, new, low: one.bytes.low, high: one.bytes.high });
                    continue;
                }
                for part in self.cuts.windows(2) {
                    let (low, high) = (part[0], part[1]);
                    let [ones, others] = [one, other].map(|touch| touch.bytes.between(low, high));
                    if ones.iter().any(|one| others.iter().any(|other| one.overlaps(other))) {
                        found.push(Conflict { old, new, low, high });
                    }
                }
            }
        }
        found
    }

    /// The freed blocks whose guards hold the new owner's accesses to the bytes of a conflict: those that had
    /// the bytes from the old owner on and gave them back before the new owner got them.
    pub(crate) fn generations(&self, conflict: Conflict) -> impl Iterator<Item = usize> {
        let (from, until) = (self.extents[conflict.old].allocated, self.extents[conflict.new].allocated);
        self.extents.iter().enumerate().filter_map(move |(buffer, extent)| {
            let had = extent.start <= conflict.low && conflict.high <= extent.end;
            let between = extent.allocated >= from && extent.freed < until && extent.freed.is_some();
            (conflict.old != conflict.new && had && between).then_some(buffer)
        })
    }
}
