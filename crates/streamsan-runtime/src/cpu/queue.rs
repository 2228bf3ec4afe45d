//! One stream: a queue of operations and the thread that runs them.

use super::delays::Delays;
use crate::backend::HostWork;
use crate::error::Error;
use crate::sync::{Condvar, Mutex, MutexGuard, held, thread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use thread::ThreadId;

/// What a stream does next.
pub(super) enum Task {
    /// A named operation.
    Work(String, HostWork),
    /// Goes on only after an operation of another stream.
    Wait(Arc<Queue>, u64),
}

#[derive(Default)]
struct State {
    name: Arc<str>,
    tasks: VecDeque<Task>,
    /// Tasks that were enqueued, and tasks that are done.
    pushed: u64,
    done: u64,
    /// Nothing further comes, and the thread may end.
    closed: bool,
    thread: Option<ThreadId>,
    /// The first task that failed, and why: nothing after it is run, as on a GPU.
    failure: Option<(u64, Error)>,
}

impl State {
    /// The failure of a task or of one before it.
    fn failure_of(&self, number: u64) -> Option<Error> {
        self.failure.as_ref().filter(|(failed, _)| *failed <= number).map(|(_, error)| error.clone())
    }
}

/// A stream.
pub(super) struct Queue {
    delays: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    /// Makes a stream and starts its thread.
    pub(super) fn start(name: &str, delays: Option<u64>) -> Result<Arc<Self>, Error> {
        let queue = Arc::new(Self { delays, state: Mutex::default(), changed: Condvar::new() });
        queue.reopen(name)?;
        Ok(queue)
    }

    /// Tasks come again. The thread is started, unless it has not ended since the queue was closed.
    pub(super) fn reopen(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        let mut state = held(&self.state);
        if state.thread.is_none() {
            let (own, delays) = (Arc::clone(self), Delays::new(self.delays));
            let started = thread::Builder::new().spawn(move || own.work(delays));
            let thread = started.map_err(|error| Error::NoThread { reason: error.to_string() })?;
            state.thread = Some(thread.thread().id());
        }
        state.closed = false;
        state.name = name.into();
        Ok(())
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

    /// Whether the calling thread is this stream's.
    pub(super) fn is_current(&self) -> bool {
        held(&self.state).thread == Some(thread::current().id())
    }

    pub(super) fn finished(&self, number: u64) -> Result<bool, Error> {
        let state = held(&self.state);
        if state.done < number {
            // Also after a failure: what the number stands for includes what its stream waits for.
            return Ok(false);
        }
        state.failure_of(number).map_or(Ok(true), Err)
    }

    pub(super) fn synchronize(&self, number: u64) -> Result<(), Error> {
        self.until(number).failure_of(number).map_or(Ok(()), Err)
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
            let Some(task) = state.tasks.pop_front() else {
                state.thread = None;
                return;
            };
            let (failed, stream) = (state.failure.is_some(), Arc::clone(&state.name));
            drop(state);
            let failure = match task {
                Task::Work(_, work) if failed => {
                    // What it owns is dropped, and may panic too.
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
                    None
                }
                Task::Work(name, work) => {
                    delays.pause();
                    run(&stream, name, work)
                }
                Task::Wait(awaited, number) => awaited.until(number).failure_of(number),
            };
            let mut state = held(&self.state);
            state.done += 1;
            let number = state.done;
            state.failure = state.failure.take().or(failure.map(|error| (number, error)));
            self.changed.notify_all();
        }
    }
}

fn run(stream: &str, operation: String, work: HostWork) -> Option<Error> {
    let panic = catch_unwind(AssertUnwindSafe(work)).err()?;
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "it panicked".to_owned());
    Some(Error::Operation { stream: stream.to_owned(), operation, message })
}
