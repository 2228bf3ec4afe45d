//! Findings: what is reported, as plain values. No words beyond names; `streamsan-report` writes sentences.

use crate::rules::{Level, Rule};
use streamsan_trace::{
    AccessMode, BlockId, DeviceId, EventId, FrameId, LabelId, OpKind, OpNumber, SiteId, StreamId, ThreadId,
    VisibleStream,
};

/// Hazards of one rule and one pair of places, with a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The earlier operation in issue order. `None` for rules with one place.
    pub first: Option<Place>,
    /// The later operation, or the only one.
    pub second: Place,
    /// Where the last reference to the block went (lifetime rules).
    pub free: Option<Place>,
    /// The memory, if the rule is about memory: the block that `second` touches.
    pub memory: Option<Memory>,
    /// Lifetime rules: the block of the old owner, which `first` touches.
    pub old_memory: Option<Memory>,
    /// How far the order that exists reaches, seen from `second`.
    pub ordered_up_to: Option<OrderedUpTo>,
    /// How often it occurred.
    pub count: u64,
    /// When, if it is about two operations or a line that was met again and again; else empty.
    pub occurrences: Occurrences,
    /// What to insert, if a fix could be found.
    pub fix: Option<Fix>,
    /// Index in the report of a finding whose fix alone also removes this one.
    pub removed_by: Option<usize>,
    /// How many later findings the fix of this one alone also removes.
    pub removes: usize,
    /// Further statements, in order.
    pub notes: Vec<Note>,
    /// Rules of the family [`Advice`](crate::Family::Advice): what was counted, and what to change.
    pub advice: Option<Box<Advised>>,
    /// Stable identity across runs: a hash of the rule and, of both places, the file's name, the function and the
    /// label. No line numbers: they change with every edit above.
    pub fingerprint: u64,
    /// The level, if [`Config::levels`](crate::Config::levels) gives the rule another one than its own.
    pub set_level: Option<Level>,
}

impl Finding {
    /// How serious it is.
    pub fn level(&self) -> Level {
        self.set_level.unwrap_or(self.rule.level())
    }
}

/// What a piece of advice counted. Nothing in it is a time: a log has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advised {
    /// Executions of the line, or what else [`Finding::count`] is a part of.
    pub executions: u64,
    /// Operations that it concerned.
    pub operations: u64,
    /// Bytes that it concerned.
    pub bytes: u64,
    /// What there is to say for its rule.
    pub measured: Measured,
    /// Whether the log was checked again with the change made, and nothing new appeared. `None`: there is nothing that
    /// could be tried, as for a call that is to be made elsewhere.
    pub verified: Option<bool>,
    /// Whether operations or order may be missing from the log: then neither what was counted nor what was tried is sure.
    pub unseen: bool,
}

/// What a piece of advice counted, by rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// SS703: a wait that ordered nothing new.
    Redundant(Cover),
    /// SS707: `record_stream` where the owner stream was ordered after the use anyway.
    OversizedRecord,
    /// SS701: copies from or to memory that is not page-locked.
    PageableCopy {
        /// Whether they go to the device.
        up: bool,
    },
    /// SS702: the host waited, and no stream had work after that.
    HostSync(HostWork),
    /// SS702: the same, by a call of `synchronize`, and what is needed of it is that one stream waits for another.
    HostSyncForStream {
        /// The stream that has to wait.
        waiter: StreamId,
        /// The stream it has to wait for.
        awaited: StreamId,
        /// Expressions for the two that are right there.
        names: Vec<VisibleStream>,
    },
    /// SS704: a wait for a whole stream where an event in it is enough.
    Serialising(Box<Matters>),
    /// SS705: memory was page-locked, or taken page-locked and filled.
    PinInLoop,
    /// SS706: blocks that were freed and held for a stream.
    HeldBack(Box<HeldBack>),
    /// SS706: memory that stays with a stream which does nothing any more.
    IdlePool {
        /// The stream.
        owner: StreamId,
        /// When it did something last.
        last: OpNumber,
        /// Bytes that others allocated after that.
        later: u64,
    },
}

/// SS702: what the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWork {
    /// A value that it reads, such as by `.item()`.
    Read,
    /// A truth value, which decides what is done next.
    Condition,
    /// A download.
    Download {
        /// Bytes, the first time.
        bytes: u64,
    },
    /// An upload.
    Upload,
    /// An operator that reads something back, such as how many results it has.
    ReadBack {
        /// The operator.
        label: LabelId,
    },
    /// It calls `synchronize` of a stream or a device.
    Synchronize,
    /// Anything else, such as `synchronize` of an event.
    Other,
}

/// SS704: what a wait is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matters {
    /// The stream that is waited for.
    pub awaited: StreamId,
    /// The operation that has to be waited for, the first time.
    pub number: OpNumber,
    /// Its call stack.
    pub site: SiteId,
    /// Expressions for the two streams that are right at the wait.
    pub names: Vec<VisibleStream>,
}

/// SS706: blocks that are held for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The stream for which `record_stream` was called.
    pub user: StreamId,
    /// The stream that owns the blocks.
    pub owner: StreamId,
    /// When most bytes were held: [`Advised::bytes`] in [`Advised::operations`] blocks.
    pub peak_at: OpNumber,
    /// Bytes of all blocks that were ever held.
    pub total: u64,
    /// Bytes that were held when the run ended.
    pub at_end: u64,
    /// Where the blocks were freed, the first time.
    pub free_site: SiteId,
    /// Expressions for the two streams that are right there.
    pub names: Vec<VisibleStream>,
}

/// Why a wait ordered nothing new, the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The stream that was waited for; `None` if the host waited.
    pub awaited: Option<StreamId>,
    /// The last wait of the same stream for it that did order something, and its call stack.
    pub earlier: Option<(OpNumber, SiteId)>,
}

/// One operation of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number.
    pub number: OpNumber,
    /// Where it ran.
    pub actor: Actor,
    /// The host thread that made the call.
    pub thread: ThreadId,
    /// What sort of work it is; `None` for what the host does itself.
    pub kind: Option<OpKind>,
    /// Its call stack.
    pub site: SiteId,
    /// For an operation of backward: the call stack of its forward operation. For a node of a graph that was launched
    /// ([`OpKind::GraphLaunch`]): the call stack that captured it. Else the empty stack.
    pub forward_site: SiteId,
    /// Its label.
    pub label: LabelId,
    /// How it touches the memory.
    pub access: Option<AccessMode>,
}

/// Who acts: a stream or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A stream.
    Stream(StreamId),
    /// The host.
    Host,
}

/// When a finding occurred: the numbers of the later operations, each once, thinned out where they are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// In the order of the log: the first one, and from there on every [`every`](Self::every)-th.
    pub numbers: Vec<OpNumber>,
    /// 1 if all of them are there, else a power of two.
    pub every: u64,
    /// How many there are in all.
    pub total: u64,
    /// How often the very operation that the finding names was executed in it; others of its line do not count.
    pub turns: u64,
    /// How many waits are enough for these: one before each that the wait before it does not cover.
    /// Fewer than `turns` where the later operation is repeated and the earlier one is not, as in an inner loop.
    pub waits: u64,
    /// Whether an earlier operation came between the later ones that one wait is enough for.
    pub interleaved: bool,
    /// The last one, even if it was thinned out.
    pub last: OpNumber,
}

impl Occurrences {
    /// How many numbers are kept.
    const MOST: usize = 128;

    /// Takes the next one.
    pub(crate) fn add(&mut self, number: OpNumber) {
        // One operation can meet several earlier ones.
        if self.total > 0 && number == self.last {
            return;
        }
        self.every = self.every.max(1);
        let kept = self.total.is_multiple_of(self.every);
        self.total += 1;
        if self.total > 1 && number < self.last {
            // What a capture did is told when its graph is launched.
            if kept {
                let place = self.numbers.partition_point(|known| *known < number);
                self.numbers.insert(place, number);
            }
        } else {
            if kept {
                self.numbers.push(number);
            }
            self.last = number;
        }
        if self.numbers.len() > Self::MOST {
            let mut index = 0;
            self.numbers.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// Takes a hazard of the operation that the finding names. `again`: it is the same execution as before.
    /// `waits`: no wait before it covers it.
    pub(crate) fn turn(&mut self, again: bool, waits: bool) {
        self.turns += u64::from(!again);
        self.waits += u64::from(waits);
    }
}

/// The memory of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The block (of the later operation).
    pub block: BlockId,
    /// Where the later access starts, in bytes from the start of the block.
    pub offset: u64,
    /// Bounding length of the overlap in bytes.
    pub overlap: u64,
    /// Size of the block in bytes; 0 if unknown.
    pub size: u64,
    /// Call stack of the allocation.
    pub alloc_site: SiteId,
    /// The stream that the block was allocated on (torch's caching allocator).
    pub owner: Option<StreamId>,
    /// The device; `None` for host memory.
    pub device: Option<DeviceId>,
}

/// The last operation of `actor` that `second` is ordered after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedUpTo {
    /// Whose operations.
    pub actor: Actor,
    /// The last one that is ordered before; 0 if none is.
    pub number: OpNumber,
    /// Its call stack, if `number` is not 0 and the log was read a second time (not in live findings).
    pub site: SiteId,
    /// Whether that is known from a wait of the host: the later stream need not have waited itself.
    pub by_host: bool,
}

/// One change to the program that removes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What to do, each once, in order of need. More than one if the occurrences are on several streams.
    pub actions: Vec<FixAction>,
    /// The frame before whose line the code goes.
    pub frame: Option<FrameId>,
    /// The event before whose line the code goes.
    pub before: OpNumber,
    /// Expressions for streams that are right there, in the frames on the way to it.
    pub names: Vec<VisibleStream>,
    /// Likewise at the first operation.
    pub names_at_first: Vec<VisibleStream>,
    /// Whether the trace was checked again with all fixes of the report in place, this finding was gone and
    /// nothing new appeared.
    pub verified: bool,
    /// Whether it goes before the reuse of a block that is freed too early, not before the free.
    pub is_at_reuse: bool,
}

/// What a fix does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FixAction {
    /// `waiter` waits for all work issued to `awaited` so far.
    WaitStream {
        /// The stream that has to wait.
        waiter: StreamId,
        /// The stream it waits for.
        awaited: StreamId,
        /// Whether `waiter` is the current stream where the code goes.
        waiter_is_current: bool,
    },
    /// The host waits for all work issued to `awaited` so far.
    SynchronizeStream {
        /// The stream.
        awaited: StreamId,
    },
}

impl FixAction {
    /// The streams that it names.
    pub(crate) fn streams(self) -> Vec<StreamId> {
        match self {
            Self::WaitStream { waiter, awaited, .. } => vec![waiter, awaited],
            Self::SynchronizeStream { awaited } => vec![awaited],
        }
    }
}

/// A further statement of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// An edge exists the other way round only: `first`'s stream waited for `second`'s.
    OppositeWait {
        /// Number of that wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
    },
    /// The stream waited for itself at this place; that makes no order.
    SelfWait {
        /// Number of the wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
        /// The event.
        event: EventId,
    },
    /// The wait on this event did nothing: it had never been recorded.
    UnrecordedWait {
        /// Number of the wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
        /// The event.
        event: EventId,
    },
    /// SS404: `second`'s stream did wait for `first`'s, but before `first` was issued.
    EarlyWait {
        /// Number of that wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
    },
    /// SS402: between the two operations `second`'s stream waited for an event of a third stream.
    WaitOnOther {
        /// Number of that wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
        /// The stream in which the event was recorded.
        from: StreamId,
    },
    /// SS602: a stream other than `second`'s waited for the collective. Of a lifetime finding: other than the owner.
    WaitedElsewhere {
        /// Number of that wait.
        wait: OpNumber,
        /// Its call stack.
        site: SiteId,
        /// The stream that waited.
        stream: StreamId,
    },
    /// SS407: one of the operations ran on the default stream of a thread that never had another current
    /// stream; the current stream is a thread's own.
    OtherThread {
        /// The operation.
        number: OpNumber,
    },
    /// SS406: the memory is not torch's device memory, so there is no block that the call could guard.
    NotInDeviceMemory,
    /// SS903: the ignore stands in the configuration, for the file of this place.
    ConfiguredIgnore,
    /// Where the first occurrence was.
    FirstOccurrence {
        /// Number of the first occurrence.
        number: OpNumber,
    },
}

impl Note {
    /// The rule whose page explains this note, if it has one.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::WaitOnOther { .. } => Some(Rule::Ss402),
            Self::EarlyWait { .. } => Some(Rule::Ss404),
            Self::WaitedElsewhere { .. } => Some(Rule::Ss602),
            Self::OtherThread { .. } => Some(Rule::Ss407),
            Self::SelfWait { .. } => Some(Rule::Ss403),
            Self::UnrecordedWait { .. } => Some(Rule::Ss401),
            Self::OppositeWait { .. }
            | Self::NotInDeviceMemory
            | Self::ConfiguredIgnore
            | Self::FirstOccurrence { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Occurrences;
    use streamsan_trace::OpNumber;

    #[test]
    fn many_occurrences_are_thinned_out_evenly() {
        let mut occurrences = Occurrences::default();
        for number in 1..=1000 {
            occurrences.add(OpNumber(number * 10));
            occurrences.turn(false, number % 4 == 1);
        }
        assert_eq!((occurrences.total, occurrences.every), (1000, 8));
        assert_eq!((occurrences.turns, occurrences.waits), (1000, 250));
        assert_eq!(occurrences.last, OpNumber(10_000));
        let wanted: Vec<_> = (0..125).map(|index| OpNumber(10 + 80 * index)).collect();
        assert_eq!(occurrences.numbers, wanted);
    }

    #[test]
    fn one_operation_counts_once() {
        let mut occurrences = Occurrences::default();
        for number in [3, 3, 7] {
            occurrences.add(OpNumber(number));
        }
        assert_eq!(occurrences.total, 2);
    }

    #[test]
    fn a_turn_can_have_several_hazards() {
        let mut occurrences = Occurrences::default();
        for (again, waits) in [(false, true), (false, false), (true, true), (true, false), (false, false)] {
            occurrences.turn(again, waits);
        }
        assert_eq!((occurrences.turns, occurrences.waits), (3, 2));
    }

    #[test]
    fn earlier_numbers_that_come_later_are_in_order() {
        let mut occurrences = Occurrences::default();
        for number in [20, 10, 30] {
            occurrences.add(OpNumber(number));
        }
        assert_eq!(occurrences.numbers, [10, 20, 30].map(OpNumber));
        assert_eq!((occurrences.total, occurrences.last), (3, OpNumber(30)));
    }
}
