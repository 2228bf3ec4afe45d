//! When a query says "finished".
//!
//! Work on the virtual device is done at once, but a program must not come to rely on that: its queries are
//! answered as late as CUDA allows. What the host has waited for, directly or through other streams, is
//! finished; anything else is "not ready" for up to [`LONGEST_POLL`] polls.
//!
//! Each stream in use has a chain. A clock holds one position per chain: the work known to be done before.

use std::time::Instant;

/// So many polls of one record, or of one stream with nothing newly enqueued, are answered "not ready".
pub const LONGEST_POLL: u32 = 64;

/// Index of a stream's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(usize);

/// How a stream is ordered with the legacy default stream of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// It is the legacy default stream.
    Legacy,
    /// It takes part in the legacy default stream's order.
    Blocking,
    /// It does not.
    NonBlocking,
}

#[derive(Clone, Debug, Default)]
struct Clock(Vec<u64>);

impl Clock {
    fn at(&self, chain: usize) -> u64 {
        self.0.get(chain).copied().unwrap_or(0)
    }

    fn set(&mut self, chain: usize, position: u64) {
        if self.0.len() <= chain {
            self.0.resize(chain + 1, 0);
        }
        self.0[chain] = position;
    }

    /// Takes the later position of each chain; says whether one was later.
    fn join(&mut self, other: &Self) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut changed = false;
        for (own, &theirs) in self.0.iter_mut().zip(&other.0) {
            if *own < theirs {
                *own = theirs;
                changed = true;
            }
        }
        changed
    }

    fn covers(&self, other: &Self) -> bool {
        other.0.iter().enumerate().all(|(chain, &position)| self.at(chain) >= position)
    }
}

#[derive(Debug)]
struct ChainState {
    device: u32,
    kind: StreamKind,
    clock: Clock,
    polls: u32,
}

/// One record of an event: all work of its stream so far.
#[derive(Clone, Debug)]
pub struct Record {
    chain: usize,
    position: u64,
    clock: Clock,
    polls: u32,
    /// When the call was made.
    pub at: Instant,
}

impl Record {
    /// Whether the record covers this position of a chain.
    pub fn sees(&self, Chain(chain): Chain, position: u64) -> bool {
        self.clock.at(chain) >= position
    }
}

/// What is enqueued where, and what the host knows to be finished.
#[derive(Debug, Default)]
pub struct Readiness {
    chains: Vec<ChainState>,
    unused: Vec<usize>,
    host: Clock,
}

impl Readiness {
    /// A chain for a stream that is used for the first time.
    pub fn open(&mut self, device: u32, kind: StreamKind) -> Chain {
        if let Some(chain) = self.unused.pop() {
            // Positions go on from those of the destroyed stream: its work counts as issued before.
            let state = &mut self.chains[chain];
            (state.device, state.kind, state.polls) = (device, kind, 0);
            return Chain(chain);
        }
        self.chains.push(ChainState { device, kind, clock: Clock::default(), polls: 0 });
        Chain(self.chains.len() - 1)
    }

    /// The chain's stream was destroyed.
    pub fn close(&mut self, Chain(chain): Chain) {
        self.chains[chain].kind = StreamKind::NonBlocking;
        self.unused.push(chain);
    }

    /// The order that the legacy default stream of a device brings with it.
    fn join_implicit(&mut self, chain: usize) {
        let (device, kind) = (self.chains[chain].device, self.chains[chain].kind);
        let partner = match kind {
            StreamKind::Legacy => StreamKind::Blocking,
            StreamKind::Blocking => StreamKind::Legacy,
            StreamKind::NonBlocking => return,
        };
        let mut clock = std::mem::take(&mut self.chains[chain].clock);
        for other in self.chains.iter().filter(|other| other.device == device && other.kind == partner) {
            clock.join(&other.clock);
        }
        self.chains[chain].clock = clock;
    }

    /// Work was enqueued.
    pub fn enqueue(&mut self, Chain(chain): Chain) {
        self.join_implicit(chain);
        let state = &mut self.chains[chain];
        state.clock.set(chain, state.clock.at(chain) + 1);
        state.polls = 0;
    }

    /// An event was recorded.
    pub fn record(&mut self, chain: Chain) -> Record {
        self.enqueue(chain);
        let clock = self.chains[chain.0].clock.clone();
        Record { chain: chain.0, position: clock.at(chain.0), clock, polls: 0, at: Instant::now() }
    }

    /// The stream waits for a record.
    pub fn wait(&mut self, Chain(chain): Chain, record: &Record) {
        let state = &mut self.chains[chain];
        if state.clock.join(&record.clock) {
            state.polls = 0;
        }
    }

    /// The host has waited for a record.
    pub fn host_waited_record(&mut self, record: &Record) {
        self.host.join(&record.clock);
    }

    /// The host has waited for a stream.
    pub fn host_waited_chain(&mut self, Chain(chain): Chain) {
        self.join_implicit(chain);
        self.host.join(&self.chains[chain].clock);
    }

    /// The host has waited for a device.
    pub fn host_waited_device(&mut self, device: u32) {
        for chain in self.chains.iter().filter(|chain| chain.device == device) {
            self.host.join(&chain.clock);
        }
    }

    /// Whether what the chain's next work is ordered after includes this position of another one.
    pub fn sees(&mut self, chain: Chain, Chain(other): Chain, position: u64) -> bool {
        self.join_implicit(chain.0);
        self.chains[chain.0].clock.at(other) >= position
    }

    /// How far the chain has come: all work enqueued so far.
    pub fn position(&self, Chain(chain): Chain) -> u64 {
        self.chains[chain].clock.at(chain)
    }

    /// Whether the host has waited for the chain up to this position.
    pub fn has_passed(&self, Chain(chain): Chain, position: u64) -> bool {
        self.host.at(chain) >= position
    }

    /// Whether the host has waited for the record.
    pub fn is_known(&self, record: &Record) -> bool {
        self.host.at(record.chain) >= record.position
    }

    /// The program asks for a record: "finished" if the host knows or has asked often enough.
    pub fn poll_record(&mut self, record: &mut Record) -> bool {
        if !self.is_known(record) {
            if record.polls < LONGEST_POLL {
                record.polls += 1;
                return false;
            }
            self.host_waited_record(record);
        }
        true
    }

    /// A watchdog asks for a record: "finished", but not the first time. So what a program does right after it has
    /// issued the work comes before that answer.
    pub fn poll_watched(&self, record: &mut Record) -> bool {
        let early = record.polls == 0 && !self.is_known(record);
        record.polls += u32::from(early);
        !early
    }

    /// The program asks for a stream, likewise.
    pub fn poll_chain(&mut self, chain: Chain) -> bool {
        let state = &mut self.chains[chain.0];
        if !self.host.covers(&state.clock) {
            if state.polls < LONGEST_POLL {
                state.polls += 1;
                return false;
            }
            self.host_waited_chain(chain);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polls_until_ready(readiness: &mut Readiness, record: &mut Record) -> u32 {
        (0..=LONGEST_POLL + 1).find(|_| readiness.poll_record(record)).expect("ready at last")
    }

    #[test]
    fn a_record_is_ready_after_the_longest_poll_and_stays_so() {
        let mut readiness = Readiness::default();
        let stream = readiness.open(0, StreamKind::NonBlocking);
        let mut record = readiness.record(stream);
        assert_eq!(polls_until_ready(&mut readiness, &mut record), LONGEST_POLL);
        assert_eq!(polls_until_ready(&mut readiness, &mut record), 0);
        let mut later = readiness.record(stream);
        assert_eq!(polls_until_ready(&mut readiness, &mut later), LONGEST_POLL);
    }

    #[test]
    fn a_watchdog_asks_twice() {
        let mut readiness = Readiness::default();
        let stream = readiness.open(0, StreamKind::NonBlocking);
        let mut record = readiness.record(stream);
        assert!(!readiness.poll_watched(&mut record));
        assert!(readiness.poll_watched(&mut record));
        assert!(!readiness.poll_record(&mut record), "the program has learned nothing");
        let mut known = readiness.record(stream);
        readiness.host_waited_chain(stream);
        assert!(readiness.poll_watched(&mut known));
    }

    #[test]
    fn what_the_host_waited_for_is_ready_at_once() {
        let mut readiness = Readiness::default();
        let stream = readiness.open(0, StreamKind::NonBlocking);
        let mut before = readiness.record(stream);
        readiness.host_waited_chain(stream);
        let mut after = readiness.record(stream);
        assert_eq!(polls_until_ready(&mut readiness, &mut before), 0);
        assert!(!readiness.poll_record(&mut after));
    }

    #[test]
    fn a_host_wait_reaches_through_stream_waits() {
        let mut readiness = Readiness::default();
        let (producer, consumer) =
            (readiness.open(0, StreamKind::NonBlocking), readiness.open(0, StreamKind::NonBlocking));
        let mut record = readiness.record(producer);
        readiness.wait(consumer, &record);
        assert!(!readiness.poll_chain(consumer), "a wait is work of the stream that waits");
        readiness.host_waited_chain(consumer);
        assert!(readiness.poll_record(&mut record));
        assert!(readiness.poll_chain(consumer));
    }

    #[test]
    fn a_device_wait_covers_its_device_only() {
        let mut readiness = Readiness::default();
        let (here, there) =
            (readiness.open(0, StreamKind::NonBlocking), readiness.open(1, StreamKind::NonBlocking));
        let (mut first, mut second) = (readiness.record(here), readiness.record(there));
        readiness.host_waited_device(0);
        assert!(readiness.poll_record(&mut first));
        assert!(!readiness.poll_record(&mut second));
    }

    #[test]
    fn a_stream_polled_often_is_ready_until_new_work_comes() {
        let mut readiness = Readiness::default();
        let stream = readiness.open(0, StreamKind::NonBlocking);
        assert!(readiness.poll_chain(stream), "nothing was enqueued");
        readiness.enqueue(stream);
        for _ in 0..LONGEST_POLL {
            assert!(!readiness.poll_chain(stream));
        }
        assert!(readiness.poll_chain(stream));
        readiness.enqueue(stream);
        assert!(!readiness.poll_chain(stream));
    }

    #[test]
    fn the_legacy_stream_waits_for_blocking_streams_and_they_for_it() {
        let mut readiness = Readiness::default();
        let legacy = readiness.open(0, StreamKind::Legacy);
        let blocking = readiness.open(0, StreamKind::Blocking);
        let independent = readiness.open(0, StreamKind::NonBlocking);
        let mut earlier = readiness.record(blocking);
        let mut unrelated = readiness.record(independent);
        readiness.host_waited_chain(legacy);
        assert!(readiness.poll_record(&mut earlier));
        assert!(!readiness.poll_record(&mut unrelated));
        let mut default = readiness.record(legacy);
        readiness.enqueue(blocking);
        readiness.host_waited_chain(blocking);
        assert!(readiness.poll_record(&mut default));
    }

    #[test]
    fn a_chain_is_used_again_without_forgetting_old_records() {
        let mut readiness = Readiness::default();
        let first = readiness.open(0, StreamKind::NonBlocking);
        let mut record = readiness.record(first);
        readiness.close(first);
        let second = readiness.open(0, StreamKind::NonBlocking);
        assert_eq!(first, second);
        assert!(!readiness.poll_record(&mut record));
        let mut newer = readiness.record(second);
        readiness.host_waited_record(&record.clone());
        assert!(!readiness.poll_record(&mut newer));
    }
}
