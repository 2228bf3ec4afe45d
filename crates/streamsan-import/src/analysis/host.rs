//! When the host waited for a device, and when it worked.

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

/// The host in the window.
#[derive(Debug)]
pub(crate) struct HostTimes<'a> {
    /// The calls that wait, by their start.
    pub(super) waits: Vec<&'a Call>,
    /// Some thread waits and no other one works.
    pub(super) waiting: Spans,
    /// Some thread is in a call that does not wait.
    calling: Spans,
    window: Span,
    blocking: BTreeSet<i64>,
}

impl<'a> HostTimes<'a> {
    /// `blocking`: correlations of copies that the host waits for within the call.
    pub(super) fn of(profile: &'a Profile, window: Span, blocking: &BTreeSet<i64>) -> Self {
        let is_wait = |call: &&Call| waits(profile.name(call.name)) || blocking.contains(&call.correlation);
        let inside = |call: &&Call| call.span.1 > window.0 && call.span.0 < window.1;
        let (waits, others): (Vec<&Call>, Vec<&Call>) =
            profile.calls.iter().filter(inside).partition(is_wait);
        let mut by_thread: FxHashMap<NameId, (Vec<Span>, Vec<Span>)> = FxHashMap::default();
        for wait in &waits {
            by_thread.entry(wait.thread).or_default().0.push(wait.span);
        }
        for (span, thread) in others
            .iter()
            .map(|call| (call.span, call.thread))
            .chain(profile.operators.iter().map(|one| (one.span, one.thread)))
        {
            by_thread.entry(thread).or_default().1.push(span);
        }
        let mut waiting = Spans::default();
        let mut working = Spans::default();
        for (waits, works) in by_thread.into_values() {
            let waits = points(waits, window);
            working = working.or(&points(works, window).without(&waits));
            waiting = waiting.or(&waits);
        }
        Self {
            waits,
            waiting: waiting.without(&working),
            calling: points(others.iter().map(|call| call.span), window),
            window,
            blocking: blocking.clone(),
        }
    }

    /// How long it did something else than wait.
    pub(super) fn busy(&self) -> u64 {
        length(self.window) - self.waiting.length()
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
        Host { busy: self.busy(), waiting: self.waiting.length(), calling: self.calling.length(), calls }
    }
}
