//! Sets of points in time, as sorted stretches that do not touch.

/// A stretch of time: from, to (not included), in nanoseconds.
pub(crate) type Span = (i64, i64);

/// A set of nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    /// All that lies in one of the stretches.
    pub(crate) fn of(stretches: impl IntoIterator<Item = Span>) -> Self {
        let mut all: Vec<Span> = stretches.into_iter().filter(|(from, to)| from < to).collect();
        all.sort_unstable();
        let mut merged: Vec<Span> = Vec::new();
        for (from, to) in all {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Self(merged)
    }

    /// How long it is, in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        self.0.iter().map(|(from, to)| from.abs_diff(*to)).sum()
    }

    /// What lies in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let ([first, ..], [second, ..]) = (mine, theirs) {
            let (from, to) = (first.0.max(second.0), first.1.min(second.1));
            if from < to {
                both.push((from, to));
            }
            if first.1 <= second.1 {
                mine = &mine[1..];
            } else {
                theirs = &theirs[1..];
            }
        }
        Self(both)
    }

    /// What lies in this one only.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        let mut theirs = other.0.as_slice();
        for &(from, to) in &self.0 {
            let mut at = from;
            while let [first, tail @ ..] = theirs {
                if first.1 <= at {
                    theirs = tail;
                    continue;
                }
                if first.0 >= to {
                    break;
                }
                if at < first.0 {
                    rest.push((at, first.0));
                }
                at = first.1;
                if at >= to {
                    break;
                }
            }
            if at < to {
                rest.push((at, to));
            }
        }
        Self(rest)
    }

    /// What lies in either.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied())
    }

    /// The part in a stretch.
    pub(crate) fn within(&self, span: Span) -> Self {
        let first = self.0.partition_point(|one| one.1 <= span.0);
        let last = self.0.partition_point(|one| one.0 < span.1).max(first);
        Self::of(self.0[first..last].iter().map(|one| (one.0.max(span.0), one.1.min(span.1))))
    }

    /// The stretches in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().copied()
    }
}

/// The time in which at least two of the sets have a point.
pub(crate) fn shared(sets: &[Spans]) -> Spans {
    let mut edges: Vec<(i64, i32)> =
        sets.iter().flat_map(Spans::iter).flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    edges.sort_unstable();
    let mut open = 0;
    let mut since = 0;
    let mut found = Vec::new();
    for (at, change) in edges {
        if open >= 2 {
            found.push((since, at));
        }
        open += change;
        since = at;
    }
    Spans::of(found)
}

#[cfg(test)]
mod tests {
    use super::{Span, Spans, shared};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Points = BTreeSet<i64>;

    fn points(stretches: &[Span]) -> Points {
        stretches.iter().flat_map(|&(from, to)| from..to).collect()
    }

    fn points_of(spans: &Spans) -> Points {
        let list: Vec<Span> = spans.iter().collect();
        for pair in list.windows(2) {
            assert!(pair[0].1 < pair[1].0, "{list:?} touch");
        }
        assert_eq!(points(&list).len() as u64, spans.length());
        points(&list)
    }

    fn stretches() -> impl Strategy<Value = Vec<Span>> {
        prop::collection::vec((-20i64..40, -3i64..12).prop_map(|(from, length)| (from, from + length)), 0..12)
    }

    proptest! {
        #[test]
        fn they_are_sets_of_points(a in stretches(), b in stretches(), from in -20i64..40, to in -20i64..40) {
            let (one, two) = (Spans::of(a.clone()), Spans::of(b.clone()));
            let (p, q) = (points(&a), points(&b));
            prop_assert_eq!(points_of(&one), p.clone());
            prop_assert_eq!(points_of(&one.and(&two)), p.intersection(&q).copied().collect::<Points>());
            prop_assert_eq!(points_of(&one.without(&two)), p.difference(&q).copied().collect::<Points>());
            prop_assert_eq!(points_of(&one.or(&two)), p.union(&q).copied().collect::<Points>());
            let inside: Points = p.iter().copied().filter(|at| (from..to).contains(at)).collect();
            prop_assert_eq!(points_of(&one.within((from, to))), inside);
        }

        #[test]
        fn shared_is_what_two_have(all in prop::collection::vec(stretches(), 0..5)) {
            let sets: Vec<Spans> = all.iter().cloned().map(Spans::of).collect();
            let wanted: Points = (-30i64..60)
                .filter(|at| all.iter().filter(|list| points(list).contains(at)).count() >= 2)
                .collect();
            prop_assert_eq!(points_of(&shared(&sets)), wanted);
        }
    }
}
