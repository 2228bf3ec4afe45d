//! Running one given schedule, and saying what happened.

use crate::execution::{Actor, Execution};
use crate::memory::Memory;
use crate::program::Program;
use crate::queues::Queues;
use std::fmt::{Display, Formatter};

/// What one schedule did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Everyone who acted, in order: the schedule, completed to the end of the program.
    pub schedule: Vec<Actor>,
    /// Steps that are operations, in the order in which they executed; a launch once for each node.
    pub order: Vec<usize>,
}

/// A schedule that the program does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// Which choice, from 1.
    pub position: usize,
    /// Who was to act.
    pub actor: Actor,
    /// Who could have acted instead.
    pub able: Vec<Actor>,
}

impl Display for ScheduleError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "choice {} of the schedule is {}, which cannot act there: choose one of {}",
            self.position,
            self.actor,
            schedule_text(&self.able)
        )
    }
}

impl std::error::Error for ScheduleError {}

/// A schedule as the command line takes it: `2,0,1,1`.
pub fn schedule_text(schedule: &[Actor]) -> String {
    let numbers: Vec<String> = schedule.iter().map(ToString::to_string).collect();
    numbers.join(",")
}

/// Runs a schedule: 0 is the host's next call, `n` the next item of the `n`-th stream; behind the streams come the nodes
/// of graphs. When it ends before
/// the program does, the host goes on first and then the streams in their order.
///
/// # Errors
/// If someone is to act who cannot.
pub fn replay(program: &Program, schedule: &[Actor]) -> Result<Replay, ScheduleError> {
    let queues = Queues::new(program);
    let memory = Memory::new(program);
    let mut execution = Execution::new(&queues);
    let mut replay = Replay { schedule: Vec::new(), order: Vec::new() };
    let mut choices = schedule.iter().copied();
    loop {
        let able: Vec<Actor> = (0..execution.actors()).filter(|actor| execution.can_act(*actor)).collect();
        let actor = match (choices.next(), able.first()) {
            (Some(actor), _) if !able.contains(&actor) => {
                return Err(ScheduleError { position: replay.schedule.len() + 1, actor, able });
            }
            (Some(actor), _) | (None, Some(&actor)) => actor,
            (None, None) => return Ok(replay),
        };
        replay.schedule.push(actor);
        replay
            .order
            .extend(execution.act(actor).map(|operation| memory.step(queues.operations[operation as usize])));
    }
}
