//! Every state that a small program can reach, each once.
//!
//! A state is the host's position and how many items of each stream have executed. With the reduction, the
//! host and the records and waits act as soon as they can: acting early takes no possibility away (they
//! touch no memory, and what is required is only ever a *lower* bound on what has executed), so the sets of
//! executed operations are the same and there are far fewer states. A test compares both ways. What breaks
//! that argument, such as an allocator whose choice depends on what has finished, has to switch it off.

use crate::queues::{HostStep, Queues};
use crate::state_set::StateSet;

/// Sizes that a packed state can hold.
const MOST_STREAMS: usize = 13;
const MOST_ITEMS: usize = 255;
const MOST_STEPS: usize = 1 << 15;
const MOST_OPERATIONS: usize = 128;

#[derive(Clone, Copy)]
struct State {
    host: u16,
    executed: [u8; MOST_STREAMS],
    issued: [u8; MOST_STREAMS],
    operations: u128,
}

/// Explores programs; keeps its memory from one to the next.
#[derive(Debug)]
pub(crate) struct Explorer {
    seen: StateSet,
    stack: Vec<State>,
    /// For each operation those that were once outstanding when it had executed.
    pub(crate) precedes: Vec<u128>,
    /// For each watch of the queues those operations that were outstanding when it could happen.
    pub(crate) overtaken: Vec<u128>,
    /// How many states were visited.
    pub(crate) states: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "host {} executed {:?}", self.host, self.executed)
    }
}

impl Explorer {
    pub(crate) fn new() -> Self {
        Self {
            seen: StateSet::new(),
            stack: Vec::new(),
            precedes: Vec::new(),
            overtaken: Vec::new(),
            states: 0,
        }
    }

    /// Visits all states. `false` if the program is too large for it or has more than `limit` states.
    pub(crate) fn explore(&mut self, queues: &Queues, reduce: bool, limit: u64) -> bool {
        self.seen.clear();
        self.stack.clear();
        self.precedes.clear();
        self.precedes.resize(queues.operations.len(), 0);
        self.overtaken.clear();
        self.overtaken.resize(queues.watches.len(), 0);
        self.states = 0;
        let fits = queues.streams.len() <= MOST_STREAMS
            && queues.host.len() < MOST_STEPS
            && queues.operations.len() <= MOST_OPERATIONS
            && queues.streams.iter().all(|items| items.len() <= MOST_ITEMS);
        if !fits {
            return false;
        }
        let start = State { host: 0, executed: [0; MOST_STREAMS], issued: [0; MOST_STREAMS], operations: 0 };
        self.visit(queues, reduce, start);
        while let Some(state) = self.stack.pop() {
            if self.states > limit {
                return false;
            }
            let mut next = state;
            if host_acts(queues, &mut next, false) {
                self.visit(queues, reduce, next);
            }
            for stream in 0..queues.streams.len() {
                let mut next = state;
                if stream_acts(queues, &mut next, stream, false) {
                    self.visit(queues, reduce, next);
                }
            }
        }
        true
    }

    fn visit(&mut self, queues: &Queues, reduce: bool, mut state: State) {
        if reduce {
            settle(queues, &mut state);
        }
        if !self.seen.insert(state.packed()) {
            return;
        }
        self.states += 1;
        let mut rest = state.operations;
        while rest != 0 {
            self.precedes[rest.trailing_zeros() as usize] |= !state.operations;
            rest &= rest - 1;
        }
        for (watch, overtaken) in queues.watches.iter().zip(&mut self.overtaken) {
            let executed = |stream: usize| u32::from(state.executed[stream]);
            let operation = |operation: u32| state.operations >> operation & 1 == 1;
            if queues.reached(watch, usize::from(state.host), executed, operation) {
                *overtaken |= !state.operations;
            }
        }
        self.stack.push(state);
    }
}

impl State {
    fn packed(&self) -> u128 {
        let mut bytes = [0; 16];
        bytes[..MOST_STREAMS].copy_from_slice(&self.executed);
        bytes[MOST_STREAMS..15].copy_from_slice(&self.host.to_le_bytes());
        u128::from_le_bytes(bytes)
    }
}

/// Lets the host make its next call, if it can; only one that touches no memory if `calls_only`.
fn host_acts(queues: &Queues, state: &mut State, calls_only: bool) -> bool {
    match queues.host.get(usize::from(state.host)) {
        Some(HostStep::Enqueue(stream)) => state.issued[*stream as usize] += 1,
        Some(HostStep::Block(needs)) => {
            if !queues.met(needs, |stream| u32::from(state.executed[stream])) {
                return false;
            }
        }
        Some(HostStep::Act(_)) if calls_only => return false,
        Some(HostStep::Act(operation)) => state.operations |= 1 << operation,
        None => return false,
    }
    state.host += 1;
    true
}

/// Lets a stream execute its next item, if it can; only a record or a wait if `markers_only`.
fn stream_acts(queues: &Queues, state: &mut State, stream: usize, markers_only: bool) -> bool {
    if state.executed[stream] == state.issued[stream] {
        return false;
    }
    let item = &queues.streams[stream][usize::from(state.executed[stream])];
    if markers_only && item.operation.is_some()
        || !queues.met(&item.needs, |stream| u32::from(state.executed[stream]))
    {
        return false;
    }
    state.executed[stream] += 1;
    if let Some(operation) = item.operation {
        state.operations |= 1 << operation;
    }
    true
}

/// Lets the host, records and waits act until none can.
fn settle(queues: &Queues, state: &mut State) {
    loop {
        let mut acted = false;
        while host_acts(queues, state, true) {
            acted = true;
        }
        for stream in 0..queues.streams.len() {
            while stream_acts(queues, state, stream, true) {
                acted = true;
            }
        }
        if !acted {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Explorer;
    use crate::queues::Queues;

    #[test]
    fn the_reduction_changes_no_answer() {
        let (mut reduced, mut full) = (Explorer::new(), Explorer::new());
        let (mut few, mut many, mut compared) = (0, 0, 0);
        for seed in 0..6000 {
            let program = if seed % 2 == 0 { crate::random(seed) } else { crate::random_lifetimes(seed) };
            let queues = Queues::new(&program);
            if full.explore(&queues, false, 200_000) {
                assert!(reduced.explore(&queues, true, 200_000));
                let known = (1_u128 << queues.operations.len()) - 1;
                for (one, other) in reduced.precedes.iter().zip(&full.precedes) {
                    assert_eq!(one & known, other & known, "seed {seed}\n{program}");
                }
                for (one, other) in reduced.overtaken.iter().zip(&full.overtaken) {
                    assert_eq!(one & known, other & known, "seed {seed}, a watch\n{program}");
                }
                few += reduced.states;
                many += full.states;
                compared += 1;
            }
        }
        assert!(compared > 5800 && many > few * 5, "{compared} programs, {few} and {many} states");
    }
}
