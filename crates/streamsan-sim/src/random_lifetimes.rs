//! Random programs with blocks that are freed and handed out again, and with page-locked memory.

use crate::bytes::Bytes;
use crate::memory::Memory;
use crate::program::{Access, Action, Buffer, BufferKind, GRANULE, Program, Within, Work};
use crate::random::{Generator, streams};
use fastrand::Rng;
use streamsan_trace::AccessMode;

/// The program of a seed: always the same for the same seed, another one than [`crate::random`] gives.
pub fn random_lifetimes(seed: u64) -> Program {
    let mut random = Rng::with_seed(seed ^ 0x05EE_D0F1_1FE7_14E5);
    let mut program = Program { streams: streams(&mut random), streams_line: 1, ..Program::default() };
    let declared = random.usize(0..=2);
    let pinned = random.u8(..3) == 0;
    for index in 0..declared {
        let kind = if index == 0 && pinned { BufferKind::Pinned } else { BufferKind::Device };
        let size = [32, 64, 4096][random.usize(..3)];
        program.buffers.push(Buffer { name: format!("b{index}"), size, line: 2 + index as u32, kind });
    }
    // Few owners, so that memory comes back to where it is wanted.
    let owners = random.usize(1..=2);
    let generator = Generator { line: 2 + declared as u32, random, program, events: Vec::new() };
    let mut lives = Lives { generator, alive: (0..declared).collect(), freed: Vec::new(), owners };
    lives.fill();
    lives.generator.program
}

struct Lives {
    generator: Generator,
    alive: Vec<usize>,
    /// Cached blocks that were freed.
    freed: Vec<usize>,
    owners: usize,
}

impl Lives {
    fn fill(&mut self) {
        let operations = self.generator.random.usize(4..=12);
        let density = [0, 20, 60, 120][self.generator.random.usize(..4)];
        let care = [0, 100, 200, 245, 252][self.generator.random.usize(..5)];
        let churn = [60, 100, 160][self.generator.random.usize(..3)];
        // How likely a free forgets nothing, in 256ths per stream.
        let records = [0, 100, 240][self.generator.random.usize(..3)];
        let mut busy = [false; 4];
        self.allocate();
        for _ in 0..operations {
            while self.generator.random.u32(..256) < density {
                self.generator.synchronization();
            }
            while self.generator.random.u32(..256) < churn {
                self.change(records, care);
            }
            if self.alive.is_empty() && (self.freed.is_empty() || self.generator.random.u8(..8) > 0) {
                self.allocate();
            }
            if self.generator.random.u8(..6) == 0 && self.host_access() {
                continue;
            }
            let stream = self.generator.stream();
            for (other, busy) in busy.iter_mut().enumerate() {
                if *busy && other != stream && self.generator.random.u32(..256) < care {
                    self.generator.wait_for(stream, other);
                    *busy = self.generator.random.bool();
                }
            }
            busy[stream] = true;
            let operation = self.operation(stream);
            self.generator.push(operation);
        }
    }

    fn change(&mut self, records: u32, care: u32) {
        match self.generator.random.u8(..8) {
            0..=2 => self.allocate(),
            3..=6 => self.free(records, care),
            _ => {
                let cached: Vec<usize> = self.cached().collect();
                if let Some(&buffer) = pick(&mut self.generator.random, &cached) {
                    let stream = self.generator.stream();
                    self.generator.push(Action::RecordStream { buffer, stream });
                }
            }
        }
    }

    /// Cached blocks that are alive.
    fn cached(&self) -> impl Iterator<Item = usize> {
        let buffers = &self.generator.program.buffers;
        self.alive.iter().copied().filter(|&buffer| buffers[buffer].owner().is_some())
    }

    fn free(&mut self, records: u32, care: u32) {
        let buffers = &self.generator.program.buffers;
        let can: Vec<usize> =
            self.alive.iter().copied().filter(|&buffer| buffers[buffer].kind != BufferKind::Device).collect();
        let Some(&buffer) = pick(&mut self.generator.random, &can) else { return };
        if let Some(owner) = self.generator.program.buffers[buffer].owner() {
            for stream in 0..self.generator.program.streams.len() {
                if self.generator.random.u32(..256) < records {
                    self.generator.push(Action::RecordStream { buffer, stream });
                } else if stream != owner && self.generator.random.u32(..512) < care {
                    self.generator.wait_for(owner, stream);
                }
            }
            self.freed.push(buffer);
        }
        self.alive.retain(|&other| other != buffer);
        self.generator.push(Action::Free { buffer });
    }

    fn allocate(&mut self) {
        let size = [500, 512, 512, 1024, 2048, 3 << 20][self.generator.random.usize(..6)];
        let within = self.place(size);
        let owner = match within {
            Some(within) => self.generator.program.buffers[within.buffer].owner().unwrap_or(0),
            None => self.generator.random.usize(..self.owners.min(self.generator.program.streams.len())),
        };
        let kind = BufferKind::Cached { owner, within };
        let buffer = self.generator.program.buffers.len();
        let line = self.generator.line;
        self.generator.program.buffers.push(Buffer { name: format!("b{buffer}"), size, line, kind });
        self.alive.push(buffer);
        self.generator.push(Action::Allocate { buffer });
    }

    /// Freed memory of this size, more often than not if there is any.
    fn place(&mut self, size: u64) -> Option<Within> {
        let program = &self.generator.program;
        let random = &mut self.generator.random;
        if random.u8(..8) == 0 {
            return None;
        }
        let old = *pick(random, &self.freed)?;
        let reserved = program.buffers[old].reserved();
        let rounded = size.next_multiple_of(GRANULE);
        let free = reserved.checked_sub(rounded)?;
        let low = if random.bool() { 0 } else { random.u64(..=(free / GRANULE).min(4)) * GRANULE };
        let high = (low > 0 || random.bool()).then(|| if random.bool() { low + rounded } else { reserved });
        let extents = Memory::new(program).extents;
        let start = extents[old].start + low;
        let taken = self.alive.iter().any(|&other| {
            program.buffers[other].owner().is_some()
                && extents[other].start < start + rounded
                && start < extents[other].end
        });
        (!taken).then_some(Within { buffer: old, low, high })
    }

    /// The host touches pinned memory, if there is any.
    fn host_access(&mut self) -> bool {
        let buffers = &self.generator.program.buffers;
        let pinned = self.alive.iter().copied().find(|&buffer| buffers[buffer].kind == BufferKind::Pinned);
        let Some(buffer) = pinned else { return false };
        let mode = if self.generator.random.bool() { AccessMode::Read } else { AccessMode::Write };
        let accesses = vec![self.access(buffer, mode)];
        self.generator.push(Action::HostAccess { accesses });
        true
    }

    fn access(&mut self, buffer: usize, mode: AccessMode) -> Access {
        let size = self.generator.program.buffers[buffer].size;
        let bytes = if self.generator.random.bool() {
            Bytes::interval(0, size)
        } else {
            self.generator.bytes(size.min(4096))
        };
        Access { buffer, mode, bytes }
    }

    /// Any block alive, seldom a freed one.
    fn buffer(&mut self) -> usize {
        let random = &mut self.generator.random;
        let dead = random.u8(..60) == 0 || self.alive.is_empty();
        let from = if dead && !self.freed.is_empty() { &self.freed } else { &self.alive };
        from[random.usize(..from.len())]
    }

    fn operation(&mut self, stream: usize) -> Action {
        let copy = self.generator.random.u8(..4) == 0;
        let count = if copy { 2 } else { [1, 1, 2][self.generator.random.usize(..3)] };
        let accesses = (0..count)
            .map(|index| {
                let buffer = self.buffer();
                let mode = match (copy, index) {
                    (true, 0) => AccessMode::Read,
                    (true, _) => AccessMode::Write,
                    _ => [AccessMode::Read, AccessMode::Write, AccessMode::Update]
                        [self.generator.random.usize(..3)],
                };
                self.access(buffer, mode)
            })
            .collect();
        let work = if copy { Work::Copy } else { Work::Kernel };
        Action::Operation { stream, work, accesses }
    }
}

fn pick<'a, T>(random: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    if from.is_empty() { None } else { from.get(random.usize(..from.len())) }
}

#[cfg(test)]
mod tests {
    use crate::judge::Kind;

    #[test]
    fn printing_and_parsing_gives_the_program_back() {
        for seed in 0..20_000 {
            let program = crate::random_lifetimes(seed);
            let text = program.to_string();
            assert_eq!(crate::parse("random", &text).as_ref(), Ok(&program), "seed {seed}\n{text}");
        }
    }

    #[test]
    fn all_kinds_occur_and_many_programs_are_clean() {
        let mut counts = std::collections::BTreeMap::new();
        let mut clean = 0;
        for seed in 0..3000 {
            let verdict = crate::judge(&crate::random_lifetimes(seed));
            clean += u32::from(verdict.found.is_empty());
            let mut kinds: Vec<Kind> = verdict.found.iter().map(|found| found.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            for kind in kinds {
                *counts.entry(kind).or_insert(0) += 1;
            }
        }
        let enough = counts.len() == 7 && counts.values().all(|&count| count > 30) && clean > 300;
        assert!(enough, "{counts:?}, {clean} clean");
    }
}
