//! Random programs from a seed, for comparing the checker with the judge.
//!
//! Most have some synchronization that works and some that does not, because a program without any, or
//! with too much, tells little. What they do not hold: more than four streams, and what
//! `random_lifetimes` has: allocations, host accesses.

use crate::bytes::{Bytes, Runs};
use crate::program::{Access, Action, Buffer, BufferKind, Program, Step, Stream, StreamKind, Target, Work};
use fastrand::Rng;
use streamsan_trace::AccessMode;

/// The program of a seed: always the same for the same seed.
pub fn random(seed: u64) -> Program {
    let mut random = Rng::with_seed(seed);
    let mut program = Program { streams: streams(&mut random), streams_line: 1, ..Program::default() };
    let buffers = random.usize(1..=3);
    for (index, name) in ["x", "y", "z"].iter().take(buffers).enumerate() {
        let size = [32, 64, 96, 4096][random.usize(..4)];
        program.buffers.push(Buffer {
            name: (*name).to_owned(),
            size,
            line: 2 + index as u32,
            kind: BufferKind::Device,
        });
    }
    let mut generator = Generator { line: 2 + buffers as u32, random, program, events: Vec::new() };
    generator.fill();
    generator.program
}

pub(crate) fn streams(random: &mut Rng) -> Vec<Stream> {
    let count = random.usize(2..=4);
    let with_default = random.u8(..3) == 0;
    let names = if with_default { ["default", "a", "b", "c"] } else { ["a", "b", "c", "d"] };
    let blocking_likely = if with_default { 128 } else { 16 };
    names[..count]
        .iter()
        .map(|name| Stream {
            name: (*name).to_owned(),
            kind: match *name {
                "default" => StreamKind::LegacyDefault,
                _ if random.u8(..) < blocking_likely => StreamKind::Blocking,
                _ => StreamKind::NonBlocking,
            },
        })
        .collect()
}

pub(crate) struct Generator {
    pub(crate) random: Rng,
    pub(crate) program: Program,
    pub(crate) line: u32,
    // Its events by number, in order of first mention; `e0` comes first.
    pub(crate) events: Vec<usize>,
}

impl Generator {
    fn fill(&mut self) {
        let operations = self.random.usize(4..=14);
        // How much synchronization this program has, in 256ths per operation.
        let density = [0, 40, 120, 200][self.random.usize(..4)];
        // How likely an operation waits for what the other streams hold, in 256ths: from not at all to
        // nearly always, so that few edges are missing.
        let care = [0, 150, 220, 245, 252][self.random.usize(..5)];
        let writes = [60, 128, 220][self.random.usize(..3)];
        let mut busy = [false; 4];
        for _ in 0..operations {
            while self.random.u32(..256) < density * 3 / 4 {
                self.synchronization();
            }
            let stream = self.stream();
            for (other, busy) in busy.iter_mut().enumerate() {
                if *busy && other != stream && self.random.u32(..256) < care {
                    self.wait_for(stream, other);
                    // The next one may rely on this one's wait, or forget the stream.
                    *busy = self.random.bool();
                }
            }
            busy[stream] = true;
            let operation = self.operation(stream, writes);
            self.push(operation);
        }
    }

    /// Orders what `stream` does next after what `other` did.
    pub(crate) fn wait_for(&mut self, stream: usize, other: usize) {
        let target = Target::Stream(other);
        match self.random.u8(..16) {
            0 => self.push(Action::Synchronize { target }),
            1 => self.push(Action::Query { target, ready: true }),
            choice => {
                let event = self.event();
                self.push(Action::Record { stream: other, event });
                if choice == 2 {
                    self.synchronization();
                }
                if choice == 3 {
                    self.push(Action::Synchronize { target: Target::Event(event) });
                } else {
                    self.push(Action::Wait { stream, event });
                }
            }
        }
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.program.steps.push(Step { line: self.line, action });
        self.line += 1;
    }

    pub(crate) fn stream(&mut self) -> usize {
        self.random.usize(..self.program.streams.len())
    }

    fn event(&mut self) -> usize {
        let event = self.random.usize(..4);
        if let Some(&known) = self.events.get(event) {
            return known;
        }
        let new = self.program.events.len();
        self.program.events.push(format!("e{}", self.events.len()));
        self.events.push(new);
        new
    }

    pub(crate) fn synchronization(&mut self) {
        let stream = self.stream();
        let action = match self.random.u8(..16) {
            // A wait that works, if nothing comes between.
            0..=6 => {
                let event = self.event();
                self.push(Action::Record { stream, event });
                Action::Wait { stream: self.stream(), event }
            }
            7..=8 => Action::Record { stream, event: self.event() },
            9..=11 => Action::Wait { stream, event: self.event() },
            12 => Action::Synchronize { target: Target::Stream(stream) },
            13 => Action::Synchronize {
                target: if self.random.u8(..3) == 0 { Target::Device } else { Target::Event(self.event()) },
            },
            14 => Action::Query { target: Target::Stream(stream), ready: self.random.bool() },
            _ => Action::Query { target: Target::Event(self.event()), ready: self.random.bool() },
        };
        self.push(action);
    }

    pub(crate) fn operation(&mut self, stream: usize, writes: u8) -> Action {
        if self.random.u8(..8) == 0 {
            let accesses = vec![self.access(AccessMode::Read), self.access(AccessMode::Write)];
            return Action::Operation { stream, work: Work::Copy, accesses };
        }
        let count = [1, 1, 1, 2, 3][self.random.usize(..5)];
        let accesses = (0..count)
            .map(|_| {
                let mode = if self.random.u8(..) >= writes {
                    AccessMode::Read
                } else if self.random.u8(..3) == 0 {
                    AccessMode::Update
                } else {
                    AccessMode::Write
                };
                self.access(mode)
            })
            .collect();
        Action::Operation { stream, work: Work::Kernel, accesses }
    }

    fn access(&mut self, mode: AccessMode) -> Access {
        let buffer = self.random.usize(..self.program.buffers.len());
        Access { buffer, mode, bytes: self.bytes(self.program.buffers[buffer].size) }
    }

    pub(crate) fn bytes(&mut self, size: u64) -> Bytes {
        match self.random.u8(..8) {
            0..=2 => Bytes::interval(0, size),
            3..=5 => {
                let low = self.random.u64(..size / 8) * 8;
                Bytes::interval(low, (low + self.random.u64(1..=4) * 8).min(size))
            }
            _ => self.strided(size),
        }
    }

    /// Columns of a matrix, more or less: steps that often agree and starts that often do not.
    pub(crate) fn strided(&mut self, size: u64) -> Bytes {
        let step = [8, 8, 12, 16][self.random.usize(..4)];
        let run = self.random.u64(1..=2) * 4;
        let run = if run < step { run } else { 4 };
        let low = self.random.u64(..4) * 4;
        let most = (size - low - run) / step;
        let high = low + self.random.u64(most.min(1)..=most.min(6)) * step + run;
        Bytes { low, high, runs: Some(Runs { step, run }) }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Action, StreamKind, Work};

    #[test]
    fn printing_and_parsing_gives_the_program_back() {
        for seed in 0..20_000 {
            let program = crate::random(seed);
            let text = program.to_string();
            assert_eq!(crate::parse("random", &text).as_ref(), Ok(&program), "seed {seed}\n{text}");
        }
    }

    #[test]
    fn all_shapes_occur() {
        let programs: Vec<_> = (0..2000).map(crate::random).collect();
        let count = |wanted: &dyn Fn(&crate::Program) -> bool| {
            programs.iter().filter(|program| wanted(program)).count()
        };
        let steps = |wanted: fn(&Action) -> bool| {
            count(&|program| program.steps.iter().any(|step| wanted(&step.action)))
        };
        assert!(steps(|action| matches!(action, Action::Query { ready: true, .. })) > 300);
        assert!(steps(|action| matches!(action, Action::Operation { work: Work::Copy, .. })) > 300);
        let kind =
            |kind: StreamKind| count(&|program| program.streams.iter().any(|stream| stream.kind == kind));
        assert!(kind(StreamKind::LegacyDefault) > 500 && kind(StreamKind::Blocking) > 500);
        let racy = count(&|program| !crate::judge(program).unordered.is_empty());
        assert!(racy > 400 && racy < 1800, "{racy} of 2000 have an unordered pair");
    }
}
