//! What a profile says of overlap: who was busy when, and who waited for whom.
//!
//! All of it is sets of points in time. What is counted lies in the *window*: from the start of the first step, or of the
//! first call that issued work for a device, to the end of the last operation of a device.
//!
//! What it can miss: a profile has no addresses and no reads and writes, so it can say nothing of order; and what the host
//! did between its calls is not known.

mod device;
mod host;
mod idle;
mod meanwhile;
#[cfg(test)]
mod tests;
mod wait_places;

use crate::lines;
use crate::place::{Place, places};
use crate::profile::{Call, Kind, Memory, Operation, Profile};
use crate::spans::{Span, Spans};
use host::HostTimes;
pub(crate) use host::waits;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What a profile says. All times are nanoseconds.
#[derive(Debug)]
pub struct Analysis {
    /// How long the window is.
    pub took: u64,
    /// The window: from, to, in the times of the profile.
    pub(crate) window: Span,
    /// How many steps the program announced; 0: none, then the window is the whole of what ran.
    pub steps: usize,
    /// The devices by number.
    pub devices: Vec<Device>,
    /// What the host did.
    pub host: Host,
    /// Who is busiest, and for how long: no overlap makes the window shorter than that.
    pub bound: Bound,
    /// Calls in which the host waited for a device, the costliest first; calls of the same place are one.
    pub waits: Vec<Wait>,
    /// Where the host was while a device had nothing to do because the next operation was not issued yet, the longest first.
    pub meanwhile: Vec<Meanwhile>,
    /// Copies of pageable host memory, the longest first; those of the same place are one.
    pub pageable: Vec<Pageable>,
    /// Whether the profile has Python functions.
    pub has_stacks: bool,
    /// Categories of events that are not known, with how many there are.
    pub unread: BTreeMap<String, u64>,
    /// Events without a usable time.
    pub timeless: u64,
}

/// What can work at the same time as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Copies from the host.
    Up,
    /// Copies to the host.
    Down,
    /// Copies to and from other devices.
    Between,
    /// Kernels of NCCL.
    Collectives,
    /// Kernels, memsets, and copies within a device.
    Compute,
    /// The host, in what is recorded of it and is no wait for a device.
    Host,
}

/// Who is busiest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it is.
    pub engine: Engine,
    /// On which device, unless it is the host.
    pub device: Option<i64>,
    /// How long it was busy.
    pub busy: u64,
}

/// One device.
#[derive(Debug)]
pub struct Device {
    /// Its number.
    pub number: i64,
    /// `NVIDIA H200`, if the profile says it.
    pub name: Option<String>,
    /// How long anything ran on it.
    pub busy: u64,
    /// How long each engine was busy; only those that were.
    pub engines: Vec<(Engine, u64)>,
    /// How long a copy ran to or from the host.
    pub copying: u64,
    /// How much of that was while something computed.
    pub copying_beside_compute: u64,
    /// How long copies ran in both directions at once.
    pub both_ways: u64,
    /// How long at least two streams had something running.
    pub together: u64,
    /// How long nothing ran, by the reason.
    pub idle: Idle,
    /// Its streams by number.
    pub streams: Vec<Stream>,
}

/// How long nothing ran on a device, by what the host did then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The host waited in a call.
    pub waiting: u64,
    /// The host had not issued the next operation yet, after a wait had kept it from doing so ahead.
    pub after_wait: u64,
    /// The host had not issued the next operation yet, and it had not waited.
    pub issuing: u64,
    /// The call that issued the next operation had returned, and it had not started.
    pub starting: u64,
    /// Nothing was issued any more; or the profile does not say what issued the next operation.
    pub nothing: u64,
}

impl Idle {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.waiting + self.after_wait + self.issuing + self.starting + self.nothing
    }
}

/// One stream of a device.
#[derive(Debug, Default)]
pub struct Stream {
    /// CUPTI's number; -1 if the profile does not say it.
    pub number: i64,
    /// How long anything ran on it.
    pub busy: u64,
    /// Kernels and memsets.
    pub kernels: u64,
    /// How long they ran.
    pub computing: u64,
    /// Copies by direction and memory.
    pub copies: Vec<Copies>,
}

/// Copies of one sort.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// Where to: `up`, `down`, `within`, `between`, `host`.
    pub direction: &'static str,
    /// The host's memory: `pinned`, `pageable`, `other`; `None` if it is no copy of the host.
    pub memory: Option<&'static str>,
    /// How many.
    pub count: u64,
    /// All their bytes.
    pub bytes: u64,
    /// All their times.
    pub time: u64,
}

/// What the host did in the window.
#[derive(Debug, Default)]
pub struct Host {
    /// It was in calls that do not wait, in operators or in Python functions.
    pub busy: u64,
    /// It did nothing but wait for a device.
    pub waiting: u64,
    /// Neither of the two: Python without stacks, sleeping, or asking a busy device whether it is done.
    pub unexplained: u64,
    /// It was in calls of CUDA that do not wait.
    pub calling: u64,
    /// Those calls by name, the longest in sum first: name, how many, how long.
    pub calls: Vec<(String, u64, u64)>,
}

/// Calls of one place in which the host waited.
#[derive(Debug)]
pub struct Wait {
    /// `cudaStreamSynchronize`.
    pub call: String,
    /// Where it was called.
    pub place: Place,
    /// How often.
    pub count: u64,
    /// How long the host was in it.
    pub waited: u64,
    /// How long a device had nothing to do while the host was in it, and, if it had run empty in it, until the host had issued
    /// the next operation. The sum over devices.
    pub idle: u64,
    /// What of that the wait cost: for each one no more than it took, since without it the host would have come to its next
    /// call earlier by that.
    pub cost: u64,
}

/// A place of the host, and how long a device had nothing to do while it was there.
#[derive(Debug)]
pub struct Meanwhile {
    /// The innermost function of the user and what it called; the operator if the profile has no stacks. Empty: elsewhere.
    pub place: Place,
    /// How long.
    pub time: u64,
}

/// Copies of one place between a device and pageable memory.
#[derive(Debug)]
pub struct Pageable {
    /// `up` or `down`.
    pub direction: &'static str,
    /// Where it was called.
    pub place: Place,
    /// How many.
    pub count: u64,
    /// All their bytes.
    pub bytes: u64,
    /// How long the copies took on the device.
    pub time: u64,
    /// How long the host was in the calls.
    pub calling: u64,
}

/// Works out what a profile says.
pub fn analyse(profile: &Profile) -> Analysis {
    let issued_by = IssuedBy::of(profile);
    let window = window(profile, &issued_by);
    let blocking: BTreeSet<i64> = profile
        .operations
        .iter()
        .filter(|one| one.kind == Kind::Down(Memory::Pageable))
        .map(|one| one.correlation)
        .collect();
    let running = points(profile.operations.iter().map(|one| one.span), window);
    let host = HostTimes::of(profile, window, &blocking, &running);
    let mut causes = idle::Causes::new(&host, &issued_by);
    let mut by_device: BTreeMap<i64, Vec<&Operation>> = BTreeMap::new();
    for operation in &profile.operations {
        by_device.entry(operation.device).or_default().push(operation);
    }
    let devices: Vec<Device> = by_device
        .iter()
        .map(|(&number, operations)| {
            let name = profile.devices.get(&number).cloned();
            device::device(number, name, operations, window, &mut causes)
        })
        .collect();
    let waits = wait_places::grouped(profile, &host, &causes);
    let took = window.0.abs_diff(window.1);
    let bound = bound(&devices, host.busy());
    Analysis {
        took,
        window,
        steps: profile.steps.len(),
        bound,
        waits,
        meanwhile: meanwhile::meanwhile(profile, causes.late),
        pageable: pageable(profile, &issued_by, window),
        has_stacks: !profile.functions.is_empty(),
        unread: profile.unread.clone(),
        timeless: profile.timeless,
        host: host.summary(profile),
        devices,
    }
}

impl Analysis {
    /// Looks up in which lines of their functions the calls are. `source`: the text of a file by the path that the profile has.
    pub fn find_lines(&mut self, source: &dyn Fn(&str) -> Option<String>) {
        // The costliest only: each reads a file.
        let waits = self.waits.iter_mut().take(20).map(|one| &mut one.place);
        let copies = self.pageable.iter_mut().take(20).map(|one| &mut one.place);
        let others = self.meanwhile.iter_mut().take(20).map(|one| &mut one.place);
        waits.chain(copies).chain(others).for_each(|place| lines::find(place, source));
    }

    /// What perfect overlap could save at most: what was taken above the bound.
    pub fn gain(&self) -> u64 {
        self.took.saturating_sub(self.bound.busy)
    }
}

/// The calls that issued operations, by correlation.
#[derive(Debug)]
pub(crate) struct IssuedBy<'a>(FxHashMap<i64, &'a Call>);

impl<'a> IssuedBy<'a> {
    fn of(profile: &'a Profile) -> Self {
        let wanted: rustc_hash::FxHashSet<i64> =
            profile.operations.iter().map(|one| one.correlation).filter(|&id| id > 0).collect();
        // The driver's call lies within the runtime's: the outer one comes first, and counts.
        let mut calls = FxHashMap::default();
        for call in profile.calls.iter().filter(|call| wanted.contains(&call.correlation)) {
            calls.entry(call.correlation).or_insert(call);
        }
        Self(calls)
    }

    pub(crate) fn call(&self, operation: &Operation) -> Option<&'a Call> {
        self.0.get(&operation.correlation).copied()
    }
}

/// What is looked at.
fn window(profile: &Profile, issued_by: &IssuedBy<'_>) -> Span {
    let end = profile.operations.iter().map(|one| one.span.1).max().unwrap_or(0);
    if let (Some(first), Some(last)) = (profile.steps.first(), profile.steps.iter().map(|one| one.1).max()) {
        return (first.0, last.max(end));
    }
    let issued = |one: &Operation| issued_by.call(one).map_or(one.span.0, |call| call.span.0.min(one.span.0));
    let start = profile.operations.iter().map(issued).min().unwrap_or(0);
    (start, end)
}

fn bound(devices: &[Device], host: u64) -> Bound {
    let all = devices.iter().flat_map(|device| {
        device.engines.iter().map(|&(engine, busy)| Bound { engine, device: Some(device.number), busy })
    });
    let host = Bound { engine: Engine::Host, device: None, busy: host };
    all.fold(host, |most, one| if one.busy > most.busy { one } else { most })
}

fn pageable(profile: &Profile, issued_by: &IssuedBy<'_>, window: Span) -> Vec<Pageable> {
    let mut calls: Vec<(&Call, &Operation, &'static str)> = profile
        .operations
        .iter()
        .filter(|one| one.span.1 > window.0)
        .filter_map(|one| match one.kind {
            Kind::Up(Memory::Pageable) => Some((one, "up")),
            Kind::Down(Memory::Pageable) => Some((one, "down")),
            _ => None,
        })
        .filter_map(|(one, direction)| Some((issued_by.call(one)?, one, direction)))
        .collect();
    calls.sort_by_key(|(call, operation, _)| (call.span, operation.span));
    let spans: Vec<_> = calls.iter().map(|(call, ..)| (call.span, call.thread)).collect();
    let mut groups: BTreeMap<(Place, &'static str), Pageable> = BTreeMap::new();
    for ((call, operation, direction), place) in calls.into_iter().zip(places(profile, &spans)) {
        let group = groups.entry((place.clone(), direction)).or_insert(Pageable {
            direction,
            place,
            count: 0,
            bytes: 0,
            time: 0,
            calling: 0,
        });
        group.count += 1;
        group.bytes = group.bytes.saturating_add(operation.bytes);
        group.time = group.time.saturating_add(length(operation.span));
        group.calling = group.calling.saturating_add(length(call.span));
    }
    let mut groups: Vec<Pageable> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.time.max(group.calling), group.bytes)));
    groups
}

/// How long it is, in nanoseconds.
pub(crate) fn length(span: Span) -> u64 {
    span.0.abs_diff(span.1)
}

/// The points of some stretches that lie in the window.
fn points(spans: impl IntoIterator<Item = Span>, window: Span) -> Spans {
    Spans::of(spans.into_iter().map(|(from, to)| (from.max(window.0), to.min(window.1))))
}
