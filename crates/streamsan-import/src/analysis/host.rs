//! When the host waited for a device, when it worked, and when nothing says what it did.
//!
//! Work is what lies in a call, an operator or a Python function that was recorded. Asking a device again and again whether it
//! is done is no work, nor is sleeping.

use super::{Host, length, points};
use crate::names::NameId;
use crate::profile::{Call, Profile};
use crate::spans::{Span, Spans};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Calls that return when a device has come to something.
pub(crate) fn waits(name: &str) -> bool {
    let name = name.strip_suffix("_v2").unwrap_or(name);
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    matches!(
        name,
        "cudaDeviceSynchronize"
            | "cudaStreamSynchronize"
            | "cudaEventSynchronize"
            | "cudaThreadSynchronize"
            | "cudaMemcpy"
            | "cudaMemcpy2D"
            | "cudaMemcpy3D"
            | "cudaMemcpyFromSymbol"
            | "cudaFree"
            | "cuCtxSynchronize"
            | "cuStreamSynchronize"
            | "cuEventSynchronize"
            | "cuMemcpyDtoH"
            | "cuMemFree"
    )
}

/// Calls that ask whether a device has come to something.
fn asks(name: &str) -> bool {
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    matches!(name, "cudaEventQuery" | "cudaStreamQuery" | "cuEventQuery" | "cuStreamQuery")
}

/// Functions that let time pass.
fn rests(name: &str) -> bool {
    const NAMES: [&str; 4] = [
        "<built-in function sleep>",
        "<built-in method acquire of _thread.",
        "<built-in function select>",
        "<built-in method poll of select.",
    ];
    NAMES.iter().any(|start| name.starts_with(start))
}

/// What one thread did.
#[derive(Default)]
struct Thread {
    waits: Vec<Span>,
    asks: Vec<Span>,
    /// Other calls, and operators.
    works: Vec<Span>,
    functions: Vec<Span>,
    rests: Vec<Span>,
}

/// When a thread asked again and again: in the calls, and between two of them if it was in nothing else there. What lies in
/// an operator is its work: the allocator asks as well.
fn polls(asks: &Spans, others: &Spans) -> Spans {
    let mut between = Vec::new();
    for (one, next) in asks.iter().zip(asks.iter().skip(1)) {
        let gap = (one.1, next.0);
        if others.within(gap).length() == 0 {
            between.push(gap);
        }
    }
    asks.or(&Spans::of(between)).without(others)
}

/// The host in the window.
#[derive(Debug)]
pub(crate) struct HostTimes<'a> {
    /// The calls that wait, by their start.
    pub(super) waits: Vec<&'a Call>,
    /// Some thread waits and no other one works.
    pub(super) waiting: Spans,
    /// Some thread works, and `waiting` has nothing of it.
    working: Spans,
    /// Some thread is in a call that does not wait.
    calling: Spans,
    window: Span,
    blocking: BTreeSet<i64>,
}

impl<'a> HostTimes<'a> {
    /// `blocking`: correlations of copies that the host waits for within the call. `running`: when a device was busy.
    pub(super) fn of(profile: &'a Profile, window: Span, blocking: &BTreeSet<i64>, running: &Spans) -> Self {
        let is_wait = |call: &&Call| waits(profile.name(call.name)) || blocking.contains(&call.correlation);
        let inside = |call: &&Call| call.span.1 > window.0 && call.span.0 < window.1;
        let (waits, others): (Vec<&Call>, Vec<&Call>) =
            profile.calls.iter().filter(inside).partition(is_wait);
        let mut by_thread: FxHashMap<NameId, Thread> = FxHashMap::default();
        for wait in &waits {
            by_thread.entry(wait.thread).or_default().waits.push(wait.span);
        }
        for call in &others {
            let thread = by_thread.entry(call.thread).or_default();
            let list = if asks(profile.name(call.name)) { &mut thread.asks } else { &mut thread.works };
            list.push(call.span);
        }
        for one in &profile.operators {
            by_thread.entry(one.thread).or_default().works.push(one.span);
        }
        for one in &profile.functions {
            let thread = by_thread.entry(one.thread).or_default();
            let list = if rests(profile.name(one.name)) { &mut thread.rests } else { &mut thread.functions };
            list.push(one.span);
        }
        let (mut waiting, mut polling) = (Spans::default(), Spans::default());
        let (mut working, mut in_functions) = (Spans::default(), Spans::default());
        for thread in by_thread.into_values() {
            let (waits, asks, works) =
                (points(thread.waits, window), points(thread.asks, window), points(thread.works, window));
            let polls = polls(&asks, &works.or(&waits)).and(running);
            let idle = waits.or(&polls);
            working = working.or(&works.or(&asks).without(&idle));
            let functions = points(thread.functions, window).without(&points(thread.rests, window));
            in_functions = in_functions.or(&functions.without(&idle));
            waiting = waiting.or(&waits);
            polling = polling.or(&polls);
        }
        // A function may itself wait for another thread: it is no reason to say that the host did not wait.
        let waiting = waiting.without(&working);
        let in_functions = in_functions.without(&waiting).without(&polling);
        Self {
            waits,
            working: working.or(&in_functions),
            waiting,
            calling: points(others.iter().map(|call| call.span), window),
            window,
            blocking: blocking.clone(),
        }
    }

    /// How long it did something that is recorded, and no wait.
    pub(super) fn busy(&self) -> u64 {
        self.working.length()
    }

    pub(super) fn summary(&self, profile: &Profile) -> Host {
        let mut calls: FxHashMap<NameId, (u64, u64)> = FxHashMap::default();
        for call in &profile.calls {
            let span = (call.span.0.max(self.window.0), call.span.1.min(self.window.1));
            let other = !waits(profile.name(call.name)) && !self.blocking.contains(&call.correlation);
            if span.0 < span.1 && other {
                let sum = calls.entry(call.name).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(length(span)));
            }
        }
        let mut calls: Vec<(String, u64, u64)> = calls
            .into_iter()
            .map(|(name, (count, time))| (profile.name(name).to_owned(), count, time))
            .collect();
        calls.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.0.cmp(&other.0)));
        let (busy, waiting) = (self.busy(), self.waiting.length());
        Host {
            busy,
            waiting,
            unexplained: length(self.window) - busy - waiting,
            calling: self.calling.length(),
            calls,
        }
    }
}
