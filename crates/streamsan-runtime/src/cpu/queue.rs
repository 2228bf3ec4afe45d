//! One stream: a queue of operations and the thread that runs them.

use super::delays::Delays;
use crate::backend::HostWork;
use crate::error::Error;
use crate::sync::{Condvar, Mutex, MutexGuard, held, thread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

/// What a stream does next.
pub(super) enum Task {
    /// A named operation.
    Work(String, HostWork),
    /// Goes on only after an operation of another stream.
    Wait(Arc<Queue>, u64),
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Tasks that were enqueued, and tasks that are done.
    pushed: u64,
    done: u64,
    closed: bool,
    /// The first operation that failed: nothing after it is run, as on a GPU.
    failure: Option<Error>,
}

/// A stream.
pub(super) struct Queue {
    name: String,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Queue {
    /// Makes a stream and starts its thread.
    pub(super) fn start(name: &str, delays: Option<u64>) -> Arc<Self> {
        let queue =
            Arc::new(Self { name: name.to_owned(), state: Mutex::default(), changed: Condvar::new() });
        let own = Arc::clone(&queue);
        thread::spawn(move || own.work(Delays::new(delays)));
        queue
    }

    /// Enqueues a task and gives its number.
    pub(super) fn push(&self, task: Task) -> u64 {
        let mut state = held(&self.state);
        state.tasks.push_back(task);
        state.pushed += 1;
        self.changed.notify_all();
        state.pushed
    }

    /// The number of the last task.
    pub(super) fn pushed(&self) -> u64 {
        held(&self.state).pushed
    }

    /// No further tasks come: the thread ends after those that are there.
    pub(super) fn close(&self) {
        held(&self.state).closed = true;
        self.changed.notify_all();
    }

    pub(super) fn finished(&self, number: u64) -> Result<bool, Error> {
        let state = held(&self.state);
        if state.done < number {
            // Also after a failure: what the number stands for includes what its stream waits for.
            return Ok(false);
        }
        state.failure.clone().map_or(Ok(true), Err)
    }

    pub(super) fn synchronize(&self, number: u64) -> Result<(), Error> {
        let state = self.until(number);
        state.failure.clone().map_or(Ok(()), Err)
    }

    fn until(&self, number: u64) -> MutexGuard<'_, State> {
        let waiting = |state: &mut State| state.done < number;
        self.changed.wait_while(held(&self.state), waiting).unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of the stream.
    fn work(&self, mut delays: Delays) {
        loop {
            let idle = |state: &mut State| state.tasks.is_empty() && !state.closed;
            let mut state =
                self.changed.wait_while(held(&self.state), idle).unwrap_or_else(PoisonError::into_inner);
            let Some(task) = state.tasks.pop_front() else { return };
            let failed = state.failure.is_some();
            drop(state);
            let failure = match task {
                Task::Work(..) if failed => None,
                Task::Work(name, work) => {
                    delays.pause();
                    self.run(name, work)
                }
                Task::Wait(awaited, number) => awaited.until(number).failure.clone(),
            };
            let mut state = held(&self.state);
            state.done += 1;
            state.failure = state.failure.take().or(failure);
            self.changed.notify_all();
        }
    }

    fn run(&self, operation: String, work: HostWork) -> Option<Error> {
        let panic = catch_unwind(AssertUnwindSafe(work)).err()?;
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_else(|| "it panicked".to_owned());
        Some(Error::Operation { stream: self.name.clone(), operation, message })
    }
}
