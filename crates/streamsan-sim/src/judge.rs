//! The judge: which conflicting operations of a program can execute in either order.
//!
//! It executes programs and knows no clocks and no reachability. Small programs are explored completely;
//! of larger ones some schedules are run, and then an unordered pair can be missed (never invented).

use crate::exchange::exchanges;
use crate::explore::Explorer;
use crate::memory::Memory;
use crate::program::{Action, Program};
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

/// What is wrong with a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two operations in streams on the same memory can execute in either order (SS101 to SS103).
    Order,
    /// The host touches memory that an operation may not be done with (SS301, SS302).
    Host,
    /// The host frees page-locked memory that an operation may not be done with (SS303).
    HostFree,
    /// The old owner's operation and the new owner's can execute in either order, although whatever the owner
    /// stream were given at the hand-out would be after the old owner's (SS201).
    UseBeforeAllocation,
    /// They can, and the owner stream itself might overtake the old owner's operation (SS202).
    ReuseWhileInUse,
    /// They could, if the second operation's block had got the memory of the freed block that the first uses
    /// (SS203).
    FreedWhileInUse,
    /// The first step frees what the second touches (SS204).
    UseAfterFree,
}

/// A pair and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Found {
    /// The steps.
    pub pair: Pair,
    /// What is wrong.
    pub kind: Kind,
}

/// What the judge says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Conflicting operations that can execute in either order, sorted by the later and then the earlier.
    pub unordered: Vec<Pair>,
    /// All that is wrong, also what no other order is needed for. Sorted likewise.
    pub found: Vec<Found>,
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
        let memory = Memory::new(program);
        let mut verdict = self.execute(program, &memory, None);
        for &(step, buffer) in &memory.dead {
            if let Some(freed) = memory.extents[buffer].freed {
                let pair = Pair { first: freed, second: step };
                verdict.found.push(Found { pair, kind: Kind::UseAfterFree });
            }
        }
        self.freed_while_in_use(program, &memory, &mut verdict);
        verdict.unordered =
            verdict.found.iter().filter(|found| found.kind.is_unordered()).map(|found| found.pair).collect();
        verdict.unordered.sort_unstable_by_key(|pair| (pair.second, pair.first));
        verdict.unordered.dedup();
        verdict.found.sort_unstable_by_key(|found| (found.pair.second, found.pair.first, found.kind));
        verdict.found.dedup();
        verdict
    }

    /// Executes the program and gives the conflicting pairs that can swap, or only those of one old and one new
    /// buffer; nothing is sorted.
    fn execute(&mut self, program: &Program, memory: &Memory, only: Option<(usize, usize)>) -> Verdict {
        self.queues.fill(program);
        let cases = cases(program, memory, &mut self.queues, only);
        if self.explorer.explore(&self.queues, true, self.effort.states) {
            let (precedes, overtaken) = (&self.explorer.precedes, &self.explorer.overtaken);
            let bit = |set: u128, operation: usize| set >> operation & 1 == 1;
            let found = decide(
                memory,
                &self.queues.operations,
                &cases,
                |one, other| bit(precedes[one], other),
                |watch, operation| bit(overtaken[watch], operation),
            );
            let states = self.explorer.states;
            return Verdict { unordered: Vec::new(), found, complete: true, states, schedules: 0 };
        }
        self.sample(memory, &cases)
    }

    fn sample(&self, memory: &Memory, cases: &[Case]) -> Verdict {
        let count = self.queues.operations.len();
        // For each two operations whether the first was seen to execute before the second, then for each
        // watch and operation.
        let mut before = vec![false; count * count];
        let mut overtaken = vec![false; self.queues.watches.len() * count];
        let mut position = vec![0_usize; count];
        let mut schedules = 0;
        let mut note = |sample: &Sample| {
            for (place, operation) in sample.order.iter().enumerate() {
                position[*operation as usize] = place;
            }
            for case in cases {
                before[case.first * count + case.second] |= position[case.first] < position[case.second];
                before[case.second * count + case.first] |= position[case.second] < position[case.first];
                for watch in [case.held, case.hand_out].into_iter().flatten() {
                    overtaken[watch * count + case.first] |= sample.watched[watch] <= position[case.first];
                }
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
        let found = decide(
            memory,
            &self.queues.operations,
            cases,
            |one, other| before[one * count + other],
            |watch, operation| overtaken[watch * count + operation],
        );
        Verdict { unordered: Vec::new(), found, complete: false, states: self.explorer.states, schedules }
    }

    /// Gives each freed block's memory to each later block that could have had it, and judges that program.
    fn freed_while_in_use(&mut self, program: &Program, memory: &Memory, verdict: &mut Verdict) {
        for exchange in exchanges(program, memory) {
            let given = exchange.program(program);
            let outcome = self.execute(&given, &Memory::new(&given), Some((exchange.old, exchange.new)));
            verdict.complete &= outcome.complete;
            verdict.found.extend(
                outcome
                    .found
                    .into_iter()
                    .filter(|found| {
                        found.pair.second == exchange.access && found.kind == Kind::ReuseWhileInUse
                    })
                    .map(|found| Found { kind: Kind::FreedWhileInUse, ..found }),
            );
        }
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
    let mut queues = Queues::new(program);
    let memory = Memory::new(program);
    let cases = cases(program, &memory, &mut queues, None);
    let acts = |case: &Case| [case.first, case.second].map(|operation| queues.operations[operation]);
    let of_pair = |case: &&Case| {
        let [first, second] = acts(case);
        memory.pair(first, second) == pair
    };
    cases.iter().filter(of_pair).find_map(|case| swapped(&queues, &cases, case.first, case.second))
}

/// Two schedules that execute two operations in either order.
fn swapped(queues: &Queues, cases: &[Case], first: usize, second: usize) -> Option<(Schedule, Schedule)> {
    let in_order = sample::hold_back(queues, second as u32);
    let reversed = sample::hold_back(queues, first as u32);
    let place = |sample: &Sample, wanted: usize| {
        sample.order.iter().position(|executed| *executed as usize == wanted)
    };
    let overtakes =
        |case: &Case| case.held.is_none_or(|held| Some(reversed.watched[held]) <= place(&reversed, first));
    (place(&in_order, first) < place(&in_order, second)
        && place(&reversed, second) < place(&reversed, first)
        && cases.iter().any(|case| (case.first, case.second) == (first, second) && overtakes(case)))
    .then_some((in_order.schedule, reversed.schedule))
}

/// Two operations that conflict.
#[derive(Debug)]
struct Case {
    /// Indices of operations, first issued first.
    first: usize,
    second: usize,
    kind: Kind,
    /// The watch for the second's accesses, if guards hold them.
    held: Option<usize>,
    /// The watch for the owner stream at the hand-out, if the second is a new owner.
    hand_out: Option<usize>,
}

/// All conflicting operations, by the later and then the earlier.
fn cases(program: &Program, memory: &Memory, queues: &mut Queues, only: Option<(usize, usize)>) -> Vec<Case> {
    let mut cases = Vec::new();
    for second in 0..queues.operations.len() {
        for first in 0..second {
            let (earlier, later) = (queues.operations[first], queues.operations[second]);
            for conflict in memory.conflicts(earlier, later) {
                if only.is_some_and(|only| only != (conflict.old, conflict.new)) {
                    continue;
                }
                let held = queues.hold(second as u32, memory.generations(conflict));
                let reused = conflict.old != conflict.new;
                let kind = match program.steps[memory.step(later)].action {
                    Action::HostAccess { .. } => Kind::Host,
                    Action::Free { .. } => Kind::HostFree,
                    _ if reused => Kind::ReuseWhileInUse,
                    _ => Kind::Order,
                };
                let hand_out = if reused { queues.hand_outs[conflict.new] } else { None };
                cases.push(Case { first, second, kind, held, hand_out });
            }
        }
    }
    cases
}

/// The pairs that can swap. `before(one, other)`: an operation was seen to execute before another one;
/// `overtakes(watch, operation)`: what the watch stands for was.
fn decide(
    memory: &Memory,
    operations: &[usize],
    cases: &[Case],
    before: impl Fn(usize, usize) -> bool,
    overtakes: impl Fn(usize, usize) -> bool,
) -> Vec<Found> {
    let mut found = Vec::new();
    for case in cases {
        let swaps = before(case.first, case.second) && before(case.second, case.first);
        if swaps && case.held.is_none_or(|held| overtakes(held, case.first)) {
            let owner_waited = case.hand_out.is_some_and(|hand_out| !overtakes(hand_out, case.first));
            found.push(Found {
                pair: memory.pair(operations[case.first], operations[case.second]),
                kind: if owner_waited { Kind::UseBeforeAllocation } else { case.kind },
            });
        }
    }
    found
}

impl Kind {
    /// Whether it is about two operations that can execute in either order in the program as it is.
    pub fn is_unordered(self) -> bool {
        !matches!(self, Self::FreedWhileInUse | Self::UseAfterFree)
    }
}
