//! Where the host was while a device had nothing to do for want of it.

use super::Meanwhile;
use crate::names::NameId;
use crate::place::{Place, callee, user_function};
use crate::profile::{Frame, Profile};
use crate::spans::{Span, Spans};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A user's function and what it called there; or an operator.
type Key = (Option<NameId>, Option<NameId>);

/// The time of `late` by place, the longest first.
pub(super) fn meanwhile(profile: &Profile, late: Vec<(Span, NameId)>) -> Vec<Meanwhile> {
    let mut by_thread: BTreeMap<NameId, Vec<Span>> = BTreeMap::new();
    for (span, thread) in late {
        by_thread.entry(thread).or_default().push(span);
    }
    let frames = if profile.functions.is_empty() { &profile.operators } else { &profile.functions };
    let of_functions = !profile.functions.is_empty();
    let mut of_thread: FxHashMap<NameId, Vec<&Frame>> = FxHashMap::default();
    for frame in frames.iter().filter(|frame| by_thread.contains_key(&frame.thread)) {
        of_thread.entry(frame.thread).or_default().push(frame);
    }
    let mut users: FxHashMap<NameId, bool> = FxHashMap::default();
    let mut below = |parent: Key, name: NameId| {
        if of_functions {
            let user = *users.entry(name).or_insert_with(|| user_function(profile.name(name)).is_some());
            match parent {
                _ if user => (Some(name), None),
                (Some(function), None) => (Some(function), Some(name)),
                other => other,
            }
        } else {
            let aten = |id: NameId| profile.name(id).starts_with("aten::");
            match parent.1 {
                Some(operator) if aten(operator) || !aten(name) => parent,
                _ => (None, Some(name)),
            }
        }
    };
    let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
    for (thread, spans) in by_thread {
        let frames = of_thread.remove(&thread).unwrap_or_default();
        spent(&frames, &Spans::of(spans), &mut below, &mut sums);
    }
    let mut all: BTreeMap<Place, u64> = BTreeMap::new();
    for ((function, called), time) in sums.into_iter().filter(|one| one.1 > 0) {
        let text = |id: NameId| profile.name(id);
        let place = if of_functions {
            Place {
                function: function.and_then(|id| user_function(text(id))),
                callee: called.and_then(|id| callee(text(id))),
                ..Place::default()
            }
        } else {
            Place { operator: called.map(|id| text(id).to_owned()), ..Place::default() }
        };
        *all.entry(place).or_default() += time;
    }
    let mut all: Vec<Meanwhile> = all.into_iter().map(|(place, time)| Meanwhile { place, time }).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.time));
    all
}

/// Adds to `sums` how much of `late` lies in which frame. `below`: what a frame in a frame stands for.
fn spent(
    frames: &[&Frame],
    late: &Spans,
    below: &mut impl FnMut(Key, NameId) -> Key,
    sums: &mut BTreeMap<Key, u64>,
) {
    let late: Vec<Span> = late.iter().collect();
    let mut open: Vec<(i64, Key)> = Vec::new();
    let mut at = i64::MIN;
    let mut next = 0;
    let mut until = |end: i64, key: Key| {
        while let Some(&(from, to)) = late.get(next) {
            let (from, stop) = (from.max(at), to.min(end));
            if from < stop {
                *sums.entry(key).or_default() += from.abs_diff(stop);
            }
            if to > end {
                break;
            }
            next += 1;
        }
        at = at.max(end);
    };
    for frame in frames {
        while let Some((end, key)) = open.pop_if(|top| top.0 <= frame.span.0) {
            until(end, key);
        }
        let key = open.last().map_or((None, None), |top| top.1);
        until(frame.span.0, key);
        open.push((frame.span.1, below(key, frame.name)));
    }
    while let Some((end, key)) = open.pop() {
        until(end, key);
    }
    until(i64::MAX, (None, None));
}

#[cfg(test)]
mod tests {
    use super::{Key, meanwhile, spent};
    use crate::names::Names;
    use crate::profile::{Frame, Profile};
    use crate::spans::Spans;
    use std::collections::BTreeMap;

    #[test]
    fn innermost_frames_have_the_time() {
        let mut names = Names::default();
        let thread = names.id("t");
        let mut frame = |name: &str, from, to| Frame { span: (from, to), thread, name: names.id(name) };
        let frames = [
            frame("a", 0, 100),
            frame("b", 10, 30),
            frame("c", 20, 25),
            frame("d", 90, 100),
            frame("e", 120, 130),
        ];
        let late = Spans::of([(5, 12), (22, 40), (95, 125)]);
        let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
        spent(&frames.iter().collect::<Vec<_>>(), &late, &mut |_, name| (None, Some(name)), &mut sums);
        let of = |index: usize| sums.get(&(None, Some(frames[index].name))).copied();
        assert_eq!((of(0), of(1), of(2), of(3), of(4)), (Some(15), Some(7), Some(3), Some(5), Some(5)));
        assert_eq!(sums.get(&(None, None)), Some(&20));
        assert_eq!(sums.values().sum::<u64>(), late.length());
    }

    #[test]
    fn library_code_counts_for_who_called_it() {
        let mut profile = Profile::default();
        let thread = profile.names.id("t");
        for (name, span) in [
            ("train.py(3): main", (0, 100)),
            ("torch/nn/modules/module.py(1): cuda", (10, 50)),
            ("torch/x.py(1): y", (20, 40)),
            ("data.py(7): load", (60, 80)),
        ] {
            let name = profile.names.id(name);
            profile.functions.push(Frame { span, thread, name });
        }
        let found = meanwhile(&profile, vec![((0, 100), thread)]);
        let said: Vec<(String, Option<&str>, u64)> = found
            .iter()
            .map(|one| {
                let function = one.place.function.as_ref().expect("all are in one");
                (format!("{}:{}", function.file, function.line), one.place.callee.as_deref(), one.time)
            })
            .collect();
        assert_eq!(
            said,
            [
                ("train.py:3".to_owned(), None, 40),
                ("train.py:3".to_owned(), Some("torch.nn.Module.cuda"), 40),
                ("data.py:7".to_owned(), None, 20)
            ]
        );
    }
}
