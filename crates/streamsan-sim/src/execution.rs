//! One execution of a program, step by step: who can act, and what happens when one does.

use crate::queues::{HostStep, Queues, Watch};

/// Who acts next: 0 is the host, `n` the `n`-th stream of the `streams` line.
pub type Actor = usize;

/// The state of one execution.
#[derive(Clone, Debug)]
pub(crate) struct Execution<'program> {
    queues: &'program Queues,
    host: usize,
    issued: Vec<u32>,
    executed: Vec<u32>,
}

impl<'program> Execution<'program> {
    pub(crate) fn new(queues: &'program Queues) -> Self {
        let streams = queues.streams.len();
        Self { queues, host: 0, issued: vec![0; streams], executed: vec![0; streams] }
    }

    /// How many actors there are.
    pub(crate) fn actors(&self) -> usize {
        1 + self.queues.streams.len()
    }

    /// Whether the actor can act now.
    pub(crate) fn can_act(&self, actor: Actor) -> bool {
        let executed = |stream: usize| self.executed[stream];
        match actor.checked_sub(1) {
            None => match self.queues.host.get(self.host) {
                Some(HostStep::Enqueue(_) | HostStep::Act(_)) => true,
                Some(HostStep::Block(needs)) => self.queues.met(needs, executed),
                None => false,
            },
            Some(stream) => {
                stream < self.executed.len()
                    && self.executed[stream] < self.issued[stream]
                    && self
                        .queues
                        .met(&self.queues.streams[stream][self.executed[stream] as usize].needs, executed)
            }
        }
    }

    /// The operation that the actor would execute next, if its next item is one.
    pub(crate) fn next_operation(&self, actor: Actor) -> Option<u32> {
        let Some(stream) = actor.checked_sub(1) else {
            return match self.queues.host.get(self.host) {
                Some(HostStep::Act(operation)) => Some(*operation),
                _ => None,
            };
        };
        self.queues.streams[stream].get(self.executed[stream] as usize)?.operation
    }

    /// Lets an actor that can act do so. Gives the operation that executed, if one did.
    pub(crate) fn act(&mut self, actor: Actor) -> Option<u32> {
        debug_assert!(self.can_act(actor));
        let Some(stream) = actor.checked_sub(1) else {
            let step = &self.queues.host[self.host];
            self.host += 1;
            return match step {
                HostStep::Enqueue(stream) => {
                    self.issued[*stream as usize] += 1;
                    None
                }
                HostStep::Block(_) => None,
                HostStep::Act(operation) => Some(*operation),
            };
        };
        let item = &self.queues.streams[stream][self.executed[stream] as usize];
        self.executed[stream] += 1;
        item.operation
    }

    /// Whether what a watch stands for can have happened; `operation` says which operations have executed.
    pub(crate) fn reached(&self, watch: &Watch, operation: impl Fn(u32) -> bool) -> bool {
        self.queues.reached(watch, self.host, |stream| self.executed[stream], operation)
    }

    /// Whether the host is through and all queues are empty.
    pub(crate) fn finished(&self) -> bool {
        self.host == self.queues.host.len() && self.issued == self.executed
    }
}
