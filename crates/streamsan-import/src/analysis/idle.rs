//! Why a device had nothing to do.
//!
//! A gap between operations ends with an operation that some call issued. Until that call has returned the host is the
//! reason: it waited, it had just waited and so could not issue ahead, or it had not come to it. After the call the device is.

use super::host::HostTimes;
use super::{Idle, IssuedBy, length};
use crate::names::NameId;
use crate::profile::{Call, Operation};
use crate::spans::{Span, Spans};
use std::collections::BTreeMap;

/// Finds reasons, and what each wait cost.
#[derive(Debug)]
pub(crate) struct Causes<'a> {
    host: &'a HostTimes<'a>,
    issued_by: &'a IssuedBy<'a>,
    /// All waits, whoever else works meanwhile.
    in_waits: Spans,
    /// Indexes of waits, by their end.
    by_end: Vec<usize>,
    /// For each wait of the host, how long devices had nothing to do in it or because of it, and what of that it cost.
    pub(super) after: Vec<(u64, u64)>,
    /// When a device had nothing to do because a thread had not issued the next operation yet.
    pub(super) late: Vec<(Span, NameId)>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(host: &'a HostTimes<'a>, issued_by: &'a IssuedBy<'a>) -> Self {
        let mut by_end: Vec<usize> = (0..host.waits.len()).collect();
        by_end.sort_by_key(|&index| host.waits[index].span.1);
        let in_waits = Spans::of(host.waits.iter().map(|wait| wait.span));
        let after = vec![(0, 0); host.waits.len()];
        Self { host, issued_by, in_waits, by_end, after, late: Vec::new() }
    }

    /// The reasons for the gaps of one device, whose operations are ordered by their start.
    pub(super) fn idle(&mut self, operations: &[&Operation], gaps: &Spans) -> Idle {
        let mut idle = Idle::default();
        let mut caused: BTreeMap<usize, u64> = BTreeMap::new();
        let mut rest = operations;
        for gap in gaps.iter() {
            let skipped = rest.partition_point(|one| one.span.0 < gap.1);
            rest = &rest[skipped..];
            let starting = rest.iter().take_while(|one| one.span.0 == gap.1).filter(|one| one.span.1 > gap.1);
            let issued = starting
                .filter_map(|one| self.issued_by.call(one))
                .min_by_key(|call| (call.span, call.thread));
            match issued {
                Some(call) => self.gap(gap, call, &mut idle, &mut caused),
                None => idle.nothing += length(gap),
            }
        }
        for (wait, time) in caused {
            let sum = &mut self.after[wait];
            // Without the wait the host would have come to its next call earlier by the time of the wait, and not by more.
            let cost = time.min(length(self.host.waits[wait].span));
            *sum = (sum.0.saturating_add(time), sum.1.saturating_add(cost));
        }
        idle
    }

    /// One gap, and the call that issued what ended it.
    fn gap(&mut self, gap: Span, call: &Call, idle: &mut Idle, caused: &mut BTreeMap<usize, u64>) {
        let issued = call.span.1.clamp(gap.0, gap.1);
        idle.starting += length((issued, gap.1));
        let first = self.first_wait((gap.0, issued), call);
        // A thread that waits holds up another one only if that does nothing meanwhile.
        let own = first.is_some_and(|first| self.host.waits[first].thread == call.thread);
        let in_waits = if own { &self.in_waits } else { &self.host.waiting };
        let waiting = in_waits.within((gap.0, issued));
        let free = Spans::of([(gap.0, issued)]).without(&waiting);
        let after = first.map_or(0, |first| free.within((self.host.waits[first].span.1, issued)).length());
        idle.waiting += waiting.length();
        idle.after_wait += after;
        idle.issuing += free.length() - after;
        if let Some(first) = first {
            *caused.entry(first).or_default() += after;
        }
        for index in self.waits_in((gap.0, issued)) {
            *caused.entry(index).or_default() += waiting.within(self.host.waits[index].span).length();
        }
        self.late.extend(free.iter().map(|span| (span, call.thread)));
    }

    /// The waits that overlap a stretch.
    fn waits_in(&self, stretch: Span) -> impl Iterator<Item = usize> + '_ {
        let wait = |index: usize| self.host.waits[index].span;
        let first = self.by_end.partition_point(|&index| wait(index).1 <= stretch.0);
        // Of those that end later, each thread has one that started before, and few threads wait.
        let ends = self.by_end[first..].partition_point(|&index| wait(index).1 <= stretch.1);
        let near = self.by_end[first..].iter().take(ends + 64).copied();
        near.filter(move |&index| wait(index).0 < stretch.1)
    }

    /// The wait in which the device ran empty, and after which the host could go on issuing: that of the thread which issued
    /// what came next, if it waited. A wait that began when the device was idle already is no reason for it.
    fn first_wait(&self, stretch: Span, call: &Call) -> Option<usize> {
        let wait = |index: usize| self.host.waits[index];
        let first = self.by_end.partition_point(|&index| wait(index).span.1 <= stretch.0);
        let ended = || {
            self.by_end[first..]
                .iter()
                .copied()
                .take_while(|&index| wait(index).span.1 <= stretch.1)
                // Enough for a gap; a program that polls must not take forever.
                .take(1000)
                .filter(|&index| wait(index).span.0 <= stretch.0)
        };
        // Another thread's wait is a reason only if nobody worked when it ended.
        let held_all = |index: &usize| {
            let end = wait(*index).span.1;
            self.host.waiting.within((end - 1, end)).length() > 0
        };
        ended().find(|&index| wait(index).thread == call.thread).or_else(|| ended().find(held_all))
    }
}
