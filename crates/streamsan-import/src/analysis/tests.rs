//! The analysis against a second one that looks at each nanosecond by itself.

use super::{Analysis, Engine, Idle, analyse};
use crate::profile::{Call, Frame, Kind, Memory, Operation, Profile};
use crate::spans::Span;
use proptest::prelude::*;

const WAIT: &str = "cudaStreamSynchronize";
const LAUNCH: &str = "cudaLaunchKernel";
const ASK: &str = "cudaEventQuery";
const SLEEP: &str = "<built-in function sleep>";

/// What a test says of an operation and of the call that issued it.
#[derive(Clone, Debug)]
struct Issued {
    call: Span,
    thread: u8,
    /// How long after the start of the call it ran, and for how long.
    delay: i64,
    length: i64,
    device: i64,
    stream: i64,
    kind: Kind,
}

#[derive(Clone, Debug, Default)]
struct Program {
    issued: Vec<Issued>,
    waits: Vec<(Span, u8)>,
    asks: Vec<(Span, u8)>,
    operators: Vec<(Span, u8)>,
    functions: Vec<(Span, u8)>,
    sleeps: Vec<(Span, u8)>,
    steps: Vec<Span>,
}

impl Program {
    fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        let threads: Vec<_> = (0..3).map(|thread| profile.names.id(&format!("t{thread}"))).collect();
        let (launch, wait) = (profile.names.id(LAUNCH), profile.names.id(WAIT));
        for (correlation, one) in (1..).zip(&self.issued) {
            let start = one.call.0 + one.delay;
            profile.operations.push(Operation {
                span: (start, start + one.length),
                device: one.device,
                stream: one.stream,
                correlation,
                kind: one.kind,
                name: launch,
                bytes: 1000,
            });
            let thread = threads[usize::from(one.thread)];
            profile.calls.push(Call { span: one.call, thread, name: launch, correlation });
        }
        for &(span, thread) in &self.waits {
            let thread = threads[usize::from(thread)];
            profile.calls.push(Call { span, thread, name: wait, correlation: -1 });
        }
        let ask = profile.names.id(ASK);
        for &(span, thread) in &self.asks {
            let thread = threads[usize::from(thread)];
            profile.calls.push(Call { span, thread, name: ask, correlation: -1 });
        }
        for (name, frames) in [("train.py(1): step", &self.functions), (SLEEP, &self.sleeps)] {
            let name = profile.names.id(name);
            for &(span, thread) in frames {
                profile.functions.push(Frame { span, thread: threads[usize::from(thread)], name });
            }
        }
        for &(span, thread) in &self.operators {
            profile.operators.push(Frame { span, thread: threads[usize::from(thread)], name: launch });
        }
        profile.steps.clone_from(&self.steps);
        profile.sort();
        profile
    }
}

fn has(span: Span, at: i64) -> bool {
    span.0 <= at && at < span.1
}

/// One nanosecond at a time.
struct Slow<'a>(&'a Program, Span);

impl Slow<'_> {
    fn count(&self, is: impl Fn(i64) -> bool) -> u64 {
        (self.1.0..self.1.1).filter(|&at| is(at)).count() as u64
    }

    fn span(one: &Issued) -> Span {
        let start = one.call.0 + one.delay;
        (start, start + one.length)
    }

    fn runs(&self, at: i64, is: impl Fn(&Issued) -> bool) -> bool {
        self.0.issued.iter().any(|one| is(one) && has(Self::span(one), at))
    }

    /// Calls that wait: synchronizations, and copies to pageable memory.
    fn waits(&self) -> Vec<(Span, u8)> {
        let blocking = self.0.issued.iter().filter(|one| one.kind == Kind::Down(Memory::Pageable));
        self.0.waits.iter().copied().chain(blocking.map(|one| (one.call, one.thread))).collect()
    }

    fn thread_waits(&self, thread: u8, at: i64) -> bool {
        self.waits().iter().any(|&(span, other)| other == thread && has(span, at))
    }

    /// Calls that are no questions, and operators.
    fn others(&self) -> impl Iterator<Item = (Span, u8)> {
        let calls = self.0.issued.iter().map(|one| (one.call, one.thread));
        calls.chain(self.0.waits.clone()).chain(self.0.operators.clone())
    }

    /// A question, or between two of them with nothing else from the one to the other.
    fn thread_polls(&self, thread: u8, at: i64) -> bool {
        let in_one = |list: &[(Span, u8)], at| list.iter().any(|one| one.1 == thread && has(one.0, at));
        let others: Vec<(Span, u8)> = self.others().collect();
        let nothing = |at: &i64| !in_one(&self.0.asks, *at) && !in_one(&others, *at);
        let asks = |at: i64| in_one(&self.0.asks, at);
        let between = || {
            let before = (self.1.0..at).rev().find(|at| !nothing(at));
            let after = (at..self.1.1).find(|at| !nothing(at));
            nothing(&at) && before.is_some_and(asks) && after.is_some_and(asks)
        };
        self.runs(at, |_| true) && !in_one(&others, at) && (asks(at) || between())
    }

    fn thread_works(&self, thread: u8, at: i64) -> bool {
        let works = self.others().chain(self.0.asks.clone());
        !self.thread_waits(thread, at)
            && !self.thread_polls(thread, at)
            && works.into_iter().any(|(span, other)| other == thread && has(span, at))
    }

    fn host_works(&self, at: i64) -> bool {
        let in_one = |list: &[(Span, u8)], thread| list.iter().any(|one| one.1 == thread && has(one.0, at));
        let computes = |thread| {
            in_one(&self.0.functions, thread)
                && !in_one(&self.0.sleeps, thread)
                && !self.thread_waits(thread, at)
        };
        let polls = || (0..3).any(|thread| self.thread_polls(thread, at));
        let in_functions = || !polls() && !self.host_waits(at) && (0..3).any(computes);
        (0..3).any(|thread| self.thread_works(thread, at)) || in_functions()
    }

    fn host_waits(&self, at: i64) -> bool {
        (0..3).any(|thread| self.thread_waits(thread, at))
            && !(0..3).any(|thread| self.thread_works(thread, at))
    }

    /// The reasons, and the moments in a wait.
    fn idle(&self, device: i64) -> (Idle, Vec<i64>) {
        let mut idle = Idle::default();
        let mut moments = Vec::new();
        let on = |one: &Issued| one.device == device;
        for at in self.1.0..self.1.1 {
            if self.runs(at, on) {
                continue;
            }
            let next = self.0.issued.iter().filter(|one| on(one) && one.length > 0 && Self::span(one).0 > at);
            let Some(start) = next.map(|one| Self::span(one).0).min().filter(|&start| start < self.1.1)
            else {
                idle.nothing += 1;
                continue;
            };
            let next =
                self.0.issued.iter().filter(|one| on(one) && one.length > 0 && Self::span(one).0 == start);
            let call = next.min_by_key(|one| (one.call, one.thread)).expect("it starts there");
            // When the device ran empty, or the window began.
            let empty = (self.1.0..=at).rev().take_while(|&at| !self.runs(at, on)).last().unwrap_or(at);
            if at >= call.call.1 {
                idle.starting += 1;
                continue;
            }
            let limit = call.call.1.min(start);
            let drained = |thread: Option<u8>| {
                let waits = self.waits();
                let here = waits.iter().filter(move |(span, other)| {
                    thread.is_none_or(|thread| thread == *other)
                        && span.0 <= empty
                        && empty < span.1
                        && span.1 <= limit
                        && (thread.is_some() || self.host_waits(span.1 - 1) && has(self.1, span.1 - 1))
                });
                here.map(|&(span, thread)| (span.1, thread)).min_by_key(|one| one.0)
            };
            let own = drained(Some(call.thread));
            let cause = own.or_else(|| drained(None));
            let in_wait = if own.is_some() {
                (0..3).any(|thread| self.thread_waits(thread, at))
            } else {
                self.host_waits(at)
            };
            if in_wait {
                idle.waiting += 1;
                moments.push(at);
            } else if cause.is_some_and(|(end, _)| at >= end) {
                idle.after_wait += 1;
            } else {
                idle.issuing += 1;
            }
        }
        (idle, moments)
    }
}

fn compare(program: &Program, analysis: &Analysis) -> Result<(), TestCaseError> {
    let operations = || program.issued.iter().map(|one| (Slow::span(one), one.call));
    let last = operations().map(|(span, _)| span.1).max().expect("there is one");
    let first = operations().map(|(span, call)| span.0.min(call.0)).min().expect("there is one");
    let window = match (program.steps.iter().min(), program.steps.iter().map(|step| step.1).max()) {
        (Some(step), Some(end)) => (step.0, end.max(last)),
        _ => (first, last),
    };
    let slow = Slow(program, window);
    prop_assert_eq!(analysis.took, slow.count(|_| true));
    prop_assert_eq!(analysis.host.waiting, slow.count(|at| slow.host_waits(at)));
    prop_assert_eq!(analysis.host.busy, slow.count(|at| slow.host_works(at)));
    prop_assert_eq!(analysis.host.unexplained, slow.count(|at| !slow.host_waits(at) && !slow.host_works(at)));
    let mut bound = analysis.host.busy;
    for device in &analysis.devices {
        let on = |one: &Issued| one.device == device.number;
        let engine =
            |at, engine| slow.runs(at, |one| on(one) && super::device::engine(one.kind) == Some(engine));
        prop_assert_eq!(device.busy, slow.count(|at| slow.runs(at, on)));
        for each in [Engine::Up, Engine::Down, Engine::Between, Engine::Collectives, Engine::Compute] {
            let busy = device.engines.iter().find(|one| one.0 == each).map_or(0, |one| one.1);
            prop_assert_eq!(busy, slow.count(|at| engine(at, each)), "{:?}", each);
            bound = bound.max(busy);
        }
        let copies = |at| engine(at, Engine::Up) || engine(at, Engine::Down);
        prop_assert_eq!(device.copying, slow.count(copies));
        prop_assert_eq!(
            device.copying_beside_compute,
            slow.count(|at| copies(at) && engine(at, Engine::Compute))
        );
        prop_assert_eq!(
            device.both_ways,
            slow.count(|at| engine(at, Engine::Up) && engine(at, Engine::Down))
        );
        let streams = |at| (0..3).filter(|&id| slow.runs(at, |one| on(one) && one.stream == id)).count();
        prop_assert_eq!(device.together, slow.count(|at| streams(at) >= 2));
        prop_assert_eq!(device.idle.total(), slow.count(|at| !slow.runs(at, on)));
        prop_assert_eq!(device.idle, slow.idle(device.number).0);
    }
    prop_assert_eq!(analysis.bound.busy, bound);
    // A moment in several waits counts for each.
    let mut idle = 0;
    for device in &analysis.devices {
        let moments = slow.idle(device.number).1;
        let waits = slow.waits();
        idle +=
            moments.iter().map(|&at| waits.iter().filter(|wait| has(wait.0, at)).count() as u64).sum::<u64>();
        idle += device.idle.after_wait;
    }
    prop_assert_eq!(analysis.waits.iter().map(|wait| wait.idle).sum::<u64>(), idle);
    prop_assert!(analysis.waits.iter().all(|wait| wait.cost <= wait.idle));
    Ok(())
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Kernel,
        Kind::Kernel,
        Kind::Collective,
        Kind::Memset,
        Kind::Up(Memory::Pinned),
        Kind::Up(Memory::Pageable),
        Kind::Down(Memory::Pinned),
        Kind::Down(Memory::Pageable),
        Kind::Within,
        Kind::Between,
        Kind::Host,
    ])
}

fn issued() -> impl Strategy<Value = Issued> {
    ((0i64..60, 1i64..5), 0u8..3, 0i64..9, 0i64..9, 0i64..2, 0i64..3, kind()).prop_map(
        |((start, length), thread, delay, busy, device, stream, kind)| Issued {
            call: (start, start + length),
            thread,
            delay,
            length: busy,
            device,
            stream,
            kind,
        },
    )
}

fn spans(longest: i64) -> impl Strategy<Value = (Span, u8)> {
    ((0i64..60, 1..longest), 0u8..3).prop_map(|((start, length), thread)| ((start, start + length), thread))
}

fn programs() -> impl Strategy<Value = Program> {
    (
        prop::collection::vec(issued(), 1..12),
        prop::collection::vec(spans(12), 0..6),
        prop::collection::vec(spans(4), 0..12),
        [spans(20), spans(40), spans(12)].map(|each| prop::collection::vec(each, 0..4)),
        prop::collection::vec(spans(30), 0..3),
    )
        .prop_map(|(issued, waits, asks, [operators, functions, sleeps], steps)| Program {
            issued,
            waits,
            asks,
            operators,
            functions,
            sleeps,
            steps: steps.into_iter().map(|(span, _)| span).collect(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn each_nanosecond_counts_once(program in programs()) {
        compare(&program, &analyse(&program.profile()))?;
    }
}
