//! Random programs with graphs, from a seed: captures with several streams, launches, work outside, and blocks that are
//! freed and handed out again while a graph still names them.
//!
//! They are smaller than the other random programs, since each node of a graph executes on its own.

use crate::program::{Action, Buffer, BufferKind, Program, StreamKind, Within};
use crate::random::{Generator, streams};
use fastrand::Rng;

/// Nodes of all graphs of a program: with the streams, as many queues as the judge can pack into a state.
const MOST_NODES: usize = 7;

/// The program of a seed: always the same for the same seed.
pub fn random_graphs(seed: u64) -> Program {
    let mut random = Rng::with_seed(seed ^ 0x6772_6170_6873);
    let mut program = Program { streams: streams(&mut random), streams_line: 1, ..Program::default() };
    let buffers = random.usize(1..=3);
    for (index, name) in ["x", "y", "z"].iter().take(buffers).enumerate() {
        program.buffers.push(Buffer {
            name: (*name).to_owned(),
            size: [32, 64, 96][random.usize(..3)],
            line: 2 + index as u32,
            kind: BufferKind::Device,
        });
    }
    let line = 2 + buffers as u32;
    let generator = Generator { line, random, program, events: Vec::new() };
    let mut graphs = Graphs { generator, captured: Vec::new(), nodes: 0, freed: Vec::new() };
    graphs.fill();
    graphs.generator.program
}

struct Graphs {
    generator: Generator,
    /// Events that are recorded in captures only.
    captured: Vec<usize>,
    nodes: usize,
    /// Blocks that were freed.
    freed: Vec<usize>,
}

impl Graphs {
    fn fill(&mut self) {
        let care = [0, 128, 200, 240][self.generator.random.usize(..4)];
        let writes = [60, 128, 220][self.generator.random.usize(..3)];
        let lifetimes = self.generator.random.bool();
        if lifetimes {
            self.allocate();
        }
        self.capture(writes);
        for _ in 0..self.generator.random.usize(3..=8) {
            let stream = self.generator.stream();
            for other in 0..self.generator.program.streams.len() {
                if other != stream && self.generator.random.u32(..256) < care {
                    self.generator.wait_for(stream, other);
                }
            }
            match self.generator.random.u8(..16) {
                0..=5 => self.replay(stream),
                6 => self.capture(writes),
                7 => self.generator.synchronization(),
                8 | 9 if lifetimes => self.allocate(),
                10 | 11 if lifetimes => self.free(),
                _ => {
                    let operation = self.operation(stream, writes);
                    self.generator.push(operation);
                }
            }
        }
    }

    /// An operation on memory that is there, or, now and then, on a block that was freed.
    fn operation(&mut self, stream: usize, writes: u8) -> Action {
        loop {
            let action = self.generator.operation(stream, writes);
            let Action::Operation { accesses, .. } = &action else { return action };
            let freed = accesses.iter().any(|access| self.freed.contains(&access.buffer));
            if !freed || self.generator.random.u8(..64) == 0 {
                return action;
            }
        }
    }

    fn replay(&mut self, stream: usize) {
        let graphs = self.generator.program.graphs.len();
        let graph = self.generator.random.usize(..graphs);
        self.generator.push(Action::Replay { stream, graph });
    }

    fn capture(&mut self, writes: u8) {
        let program = &self.generator.program;
        let able: Vec<usize> = (0..program.streams.len())
            .filter(|&stream| program.streams[stream].kind != StreamKind::LegacyDefault)
            .collect();
        let most = 4.min(MOST_NODES - self.nodes);
        if most == 0 {
            return;
        }
        let graph = program.graphs.len();
        self.generator.program.graphs.push(format!("g{graph}"));
        let origin = able[self.generator.random.usize(..able.len())];
        self.generator.push(Action::Capture { stream: origin, graph });
        let mut capturing = vec![origin];
        for _ in 0..self.generator.random.usize(1..=most) {
            let stream = able[self.generator.random.usize(..able.len())];
            if !capturing.contains(&stream) {
                let from = capturing[self.generator.random.usize(..capturing.len())];
                self.edge(from, stream);
                capturing.push(stream);
            }
            let other = capturing[self.generator.random.usize(..capturing.len())];
            if self.generator.random.u8(..3) == 0 {
                self.edge(other, stream);
            }
            let operation = self.operation(stream, writes);
            self.generator.push(operation);
            self.nodes += 1;
        }
        for joined in capturing.into_iter().skip(1) {
            self.edge(joined, origin);
        }
        self.generator.push(Action::EndCapture { stream: origin, graph });
    }

    /// A record and a wait in a capture.
    fn edge(&mut self, from: usize, to: usize) {
        let which = self.generator.random.usize(..2);
        if which >= self.captured.len() {
            self.captured.push(self.generator.program.events.len());
            self.generator.program.events.push(format!("c{}", self.captured.len() - 1));
        }
        let event = self.captured[which.min(self.captured.len() - 1)];
        self.generator.push(Action::Record { stream: from, event });
        self.generator.push(Action::Wait { stream: to, event });
    }

    /// A block, of fresh memory or that of a freed one whose memory nobody has.
    fn allocate(&mut self) {
        let program = &self.generator.program;
        let taken = |old: usize| {
            program.buffers.iter().any(|buffer| {
                matches!(buffer.kind, BufferKind::Cached { within: Some(within), .. } if within.buffer == old)
            })
        };
        let old = self.freed.iter().copied().find(|&old| !taken(old));
        let old = old.filter(|_| self.generator.random.u8(..3) > 0);
        let owner = old.and_then(|old| program.buffers[old].owner());
        let owner = owner.unwrap_or_else(|| self.generator.stream());
        let within = old.map(|buffer| Within { buffer, low: 0, high: None });
        let buffer = self.generator.program.buffers.len();
        self.generator.program.buffers.push(Buffer {
            name: format!("b{buffer}"),
            size: [64, 96][self.generator.random.usize(..2)],
            line: self.generator.line,
            kind: BufferKind::Cached { owner, within },
        });
        self.generator.push(Action::Allocate { buffer });
    }

    fn free(&mut self) {
        let program = &self.generator.program;
        let alive: Vec<usize> = (0..program.buffers.len())
            .filter(|buffer| program.buffers[*buffer].owner().is_some() && !self.freed.contains(buffer))
            .collect();
        if let Some(&buffer) = alive.first() {
            if self.generator.random.u8(..3) == 0 {
                let stream = self.generator.stream();
                self.generator.push(Action::RecordStream { buffer, stream });
            }
            self.generator.push(Action::Free { buffer });
            self.freed.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Action;

    #[test]
    fn printing_and_parsing_gives_the_program_back() {
        for seed in 0..20_000 {
            let program = crate::random_graphs(seed);
            let text = program.to_string();
            assert_eq!(crate::parse("random", &text).as_ref(), Ok(&program), "seed {seed}\n{text}");
        }
    }

    #[test]
    fn graphs_have_edges_and_are_launched_more_than_once() {
        let (mut launched_again, mut of_two_streams) = (0, 0);
        for seed in 0..2000 {
            let program = crate::random_graphs(seed);
            let count = |wanted: fn(&Action) -> bool| {
                program.steps.iter().filter(|step| wanted(&step.action)).count()
            };
            let launches = count(|action| matches!(action, Action::Replay { .. }));
            launched_again += usize::from(launches > program.graphs.len());
            let captured = program.events.iter().any(|event| event.starts_with('c'));
            of_two_streams += usize::from(captured);
        }
        assert!(launched_again > 500 && of_two_streams > 800, "{launched_again}, {of_two_streams}");
    }
}
