//! The judge: which conflicting operations of a program can execute in either order.
//!
//! It executes programs and knows no clocks and no reachability. Small programs are explored completely;
//! of larger ones some schedules are run, and then an unordered pair can be missed (never invented).

use crate::explore::Explorer;
use crate::program::Program;
use crate::queues::Queues;
use crate::sample::{self, Sample, Schedule};

/// Two operations that touch a common byte, which at least one of them writes: indices of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The one that was issued first.
    pub first: usize,
    /// The one that was issued later.
    pub second: usize,
}

/// What the judge says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Conflicting operations that can execute in either order, sorted by the later and then the earlier.
    pub unordered: Vec<Pair>,
    /// Whether every legal schedule was considered.
    pub complete: bool,
    /// How many states were visited.
    pub states: u64,
    /// How many schedules were run because the program is too large for all its states.
    pub schedules: u64,
}

/// How hard to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Programs with more states than this are sampled.
    pub states: u64,
    /// How many random schedules a sampled program gets; half of them by PCT.
    pub schedules: u64,
    /// Seed of the random schedules.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { states: 1 << 20, schedules: 2000, seed: 0 }
    }
}

/// Judges programs; keeps its memory from one to the next.
#[derive(Debug)]
pub struct Judge {
    effort: Effort,
    queues: Queues,
    explorer: Explorer,
}

impl Default for Judge {
    fn default() -> Self {
        Self::new(Effort::default())
    }
}

impl Judge {
    /// A judge that looks this hard.
    pub fn new(effort: Effort) -> Self {
        Self { effort, queues: Queues::default(), explorer: Explorer::new() }
    }

    /// Judges one program.
    pub fn judge(&mut self, program: &Program) -> Verdict {
        self.queues.fill(program);
        if self.explorer.explore(&self.queues, true, self.effort.states) {
            let precedes = &self.explorer.precedes;
            let both = |first: usize, second: usize| {
                precedes[first] >> second & 1 == 1 && precedes[second] >> first & 1 == 1
            };
            let unordered = pairs(program, &self.queues.operations, both);
            return Verdict { unordered, complete: true, states: self.explorer.states, schedules: 0 };
        }
        self.sample(program)
    }

    fn sample(&self, program: &Program) -> Verdict {
        let operations = &self.queues.operations;
        let count = operations.len();
        // For each pair whether it was seen in issue order (1) and against it (2).
        let mut seen = vec![0_u8; count * count];
        let mut position = vec![0_usize; count];
        let mut schedules = 0;
        let conflicting = pairs_of_operations(program, operations);
        let mut note = |sample: &Sample| {
            for (place, operation) in sample.order.iter().enumerate() {
                position[*operation as usize] = place;
            }
            for &(first, second) in &conflicting {
                seen[first * count + second] |= if position[first] < position[second] { 1 } else { 2 };
            }
            schedules += 1;
        };
        for operation in 0..count {
            note(&sample::hold_back(&self.queues, operation as u32));
        }
        let mut random = fastrand::Rng::with_seed(self.effort.seed);
        for round in 0..self.effort.schedules {
            note(&if round % 2 == 0 {
                sample::uniform(&self.queues, &mut random)
            } else {
                let changes = 1 + (round / 2 % 4) as usize;
                sample::priorities(&self.queues, changes, &mut random)
            });
        }
        let unordered = pairs(program, operations, |first, second| seen[first * count + second] == 3);
        Verdict { unordered, complete: false, states: self.explorer.states, schedules }
    }
}

/// Judges one program with the default effort.
pub fn judge(program: &Program) -> Verdict {
    Judge::default().judge(program)
}

/// Two schedules that execute a pair in either order: first in issue order, then against it. `None` if the
/// operations are ordered.
///
/// They are found by holding one of the two back as long as anything else can act. By the argument of
/// `explore` that is enough for programs whose requirements are lower bounds.
pub fn witness(program: &Program, pair: Pair) -> Option<(Schedule, Schedule)> {
    let queues = Queues::new(program);
    let operation = |step: usize| queues.operations.iter().position(|known| *known == step);
    let (first, second) = (operation(pair.first)? as u32, operation(pair.second)? as u32);
    let in_order = sample::hold_back(&queues, second);
    let reversed = sample::hold_back(&queues, first);
    let before = |sample: &Sample, one: u32, other: u32| {
        sample.order.iter().find(|executed| **executed == one || **executed == other) == Some(&one)
    };
    (before(&in_order, first, second) && before(&reversed, second, first))
        .then_some((in_order.schedule, reversed.schedule))
}

/// Conflicting operations, by index of operation, first issued first.
fn pairs_of_operations(program: &Program, operations: &[usize]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (second, &later) in operations.iter().enumerate() {
        for (first, &earlier) in operations[..second].iter().enumerate() {
            if program.conflict(earlier, later) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

/// Pairs of steps that conflict and for which `unordered` holds.
fn pairs(program: &Program, operations: &[usize], unordered: impl Fn(usize, usize) -> bool) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (second, &later) in operations.iter().enumerate() {
        for (first, &earlier) in operations[..second].iter().enumerate() {
            if unordered(first, second) && program.conflict(earlier, later) {
                pairs.push(Pair { first: earlier, second: later });
            }
        }
    }
    pairs
}
