//! Some schedules of a program: random ones, PCT, and those that hold one operation back.
//!
//! PCT is the algorithm of Burckhardt et al., "A randomized scheduler with probabilistic guarantees of
//! finding bugs" (ASPLOS 2010): random priorities, lowered at a few random points. Here actors are the host
//! and the streams. Sampling can miss orders; what it finds is real.

use crate::execution::{Actor, Execution};
use crate::queues::Queues;

/// Who acted, in order, from the start to the end.
pub type Schedule = Vec<Actor>;

/// One execution from start to end: who acted, and which operations executed in which order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) schedule: Schedule,
    pub(crate) order: Vec<u32>,
    /// For each watch, how many operations had executed when it could first happen.
    pub(crate) watched: Vec<usize>,
}

/// Runs to the end; `choose` picks one of the actors that can act.
fn run(queues: &Queues, mut choose: impl FnMut(&Execution<'_>, &[Actor]) -> Actor) -> Sample {
    let mut execution = Execution::new(queues);
    let mut sample = Sample::default();
    let mut able = Vec::new();
    sample.watched.resize(queues.watches.len(), usize::MAX);
    let mut executed = vec![false; queues.operations.len()];
    loop {
        for (watch, place) in queues.watches.iter().zip(&mut sample.watched) {
            if *place == usize::MAX && execution.reached(watch, |operation| executed[operation as usize]) {
                *place = sample.order.len();
            }
        }
        able.clear();
        able.extend((0..execution.actors()).filter(|actor| execution.can_act(*actor)));
        if able.is_empty() {
            debug_assert!(execution.finished(), "a wait requires only what was issued before it");
            return sample;
        }
        let actor = choose(&execution, &able);
        sample.schedule.push(actor);
        if let Some(operation) = execution.act(actor) {
            executed[operation as usize] = true;
            sample.order.push(operation);
        }
    }
}

/// A schedule in which each actor that can act is as likely as any other.
pub(crate) fn uniform(queues: &Queues, random: &mut fastrand::Rng) -> Sample {
    run(queues, |_, able| able[random.usize(..able.len())])
}

/// A schedule by priorities that change at `changes` random points.
pub(crate) fn priorities(queues: &Queues, changes: usize, random: &mut fastrand::Rng) -> Sample {
    let steps = queues.host.len() + queues.streams.iter().map(Vec::len).sum::<usize>();
    let mut priority: Vec<usize> = (changes..=changes + queues.streams.len()).collect();
    random.shuffle(&mut priority);
    let points: Vec<usize> = (0..changes).map(|_| random.usize(..steps.max(1))).collect();
    let mut step = 0;
    run(queues, |_, able| {
        let highest = |priority: &[usize]| able.iter().copied().max_by_key(|actor| priority[*actor]);
        let mut actor = highest(&priority).unwrap_or(able[0]);
        if let Some(rank) = points.iter().position(|point| *point == step) {
            priority[actor] = rank;
            actor = highest(&priority).unwrap_or(actor);
        }
        step += 1;
        actor
    })
}

/// A schedule in which an operation executes only when nothing else can act.
pub(crate) fn hold_back(queues: &Queues, operation: u32) -> Sample {
    run(queues, |execution, able| {
        let other = able.iter().find(|actor| execution.next_operation(**actor) != Some(operation));
        *other.unwrap_or(&able[0])
    })
}
