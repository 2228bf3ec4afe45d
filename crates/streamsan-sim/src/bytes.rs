//! The bytes of one access: an interval, or runs at a fixed distance within one.
//!
//! Overlap is decided exactly and on purpose by another method than the checker's: run by run, up to the
//! point where the pattern repeats.

/// Bytes of a buffer: `low..high`, or only runs within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// First byte.
    pub low: u64,
    /// One past the last byte of the interval. More than `low`.
    pub high: u64,
    /// If set, only runs of `run` bytes at `low`, `low + step`, … are touched.
    pub runs: Option<Runs>,
}

/// Runs at a fixed distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Bytes from the start of one run to the next. More than `run`.
    pub step: u64,
    /// Bytes of one run, at least 1.
    pub run: u64,
}

impl Bytes {
    /// All of `low..high`.
    pub const fn interval(low: u64, high: u64) -> Self {
        Self { low, high, runs: None }
    }

    /// How many runs there are: those that start below `high`.
    pub fn count(&self) -> u64 {
        self.runs.map_or(1, |runs| (self.high - self.low).div_ceil(runs.step))
    }

    /// Start and end of the run with this number, from 0.
    fn run(&self, index: u64) -> (u64, u64) {
        match self.runs {
            None => (self.low, self.high),
            Some(runs) => {
                let start = self.low + index * runs.step;
                (start, start + runs.run)
            }
        }
    }

    /// One past the last byte touched.
    pub fn end(&self) -> u64 {
        self.run(self.count() - 1).1
    }

    /// The number of the first run that ends after `position`; at least [`Bytes::count`] if none does.
    fn first_after(&self, position: u64) -> u64 {
        match self.runs {
            None => u64::from(self.high <= position),
            Some(runs) if position < self.low + runs.run => 0,
            Some(runs) => (position - self.low - runs.run) / runs.step + 1,
        }
    }

    /// Whether any byte of `start..end` is touched.
    fn touches(&self, start: u64, end: u64) -> bool {
        let first = self.first_after(start);
        first < self.count() && self.run(first).0 < end
    }

    /// The same bytes, `by` further on.
    pub(crate) fn shifted(&self, by: u64) -> Self {
        Self { low: self.low + by, high: self.high + by, runs: self.runs }
    }

    /// Those of the bytes that lie in `low..high`: at most three pieces, since only the first and the last run
    /// can be cut.
    pub(crate) fn between(&self, low: u64, high: u64) -> Vec<Self> {
        let mut first = self.first_after(low);
        let mut pieces = Vec::new();
        let Some(runs) = self.runs else {
            if self.low < high && low < self.high {
                pieces.push(Self::interval(self.low.max(low), self.high.min(high)));
            }
            return pieces;
        };
        // One past the last run that starts below `high`.
        let mut end = self.count().min(high.saturating_sub(self.low).div_ceil(runs.step));
        let mut cut = |index: u64| {
            let (start, stop) = self.run(index);
            pieces.push(Self::interval(start.max(low), stop.min(high)));
        };
        if first < end && self.run(first).0 < low {
            cut(first);
            first += 1;
        }
        if first < end && self.run(end - 1).1 > high {
            cut(end - 1);
            end -= 1;
        }
        if first < end {
            pieces.push(Self { low: self.run(first).0, high: self.run(end - 1).1, runs: Some(runs) });
        }
        pieces
    }

    /// Whether both touch a common byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = if self.count() <= other.count() { (self, other) } else { (other, self) };
        let first = few.first_after(many.low);
        // After this many runs the places relative to the other's runs repeat; if none of the first ones
        // meets a run, no later one does.
        let period = match (few.runs, many.runs) {
            (Some(few), Some(many)) => many.step / greatest_common_divisor(few.step, many.step),
            _ => 1,
        };
        (first..few.count().min(first + period)).any(|index| {
            let (start, end) = few.run(index);
            many.touches(start, end)
        })
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Runs};

    fn byte_by_byte(bytes: &Bytes) -> Vec<u64> {
        (bytes.low..bytes.high)
            .filter(|byte| bytes.runs.is_none_or(|runs| (byte - bytes.low) % runs.step < runs.run))
            .collect()
    }

    #[test]
    fn overlap_equals_a_byte_by_byte_comparison() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut any = move || {
            let low = random.u64(0..24);
            let mut bytes = Bytes::interval(low, low + random.u64(1..30));
            if random.bool() {
                let run = random.u64(1..5);
                let runs = Runs { step: run + random.u64(1..6), run };
                bytes.high = low + random.u64(0..12) * runs.step + run;
                bytes.runs = Some(runs);
            }
            bytes
        };
        let mut overlapping = 0;
        for _ in 0..200_000 {
            let (one, other) = (any(), any());
            let other_bytes = byte_by_byte(&other);
            let expected = byte_by_byte(&one).iter().any(|byte| other_bytes.contains(byte));
            assert_eq!(one.overlaps(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), expected, "{other:?} {one:?}");
            assert_eq!(Some(one.end() - 1), byte_by_byte(&one).last().copied());
            overlapping += u32::from(expected);
        }
        assert!(overlapping > 50_000 && overlapping < 190_000, "{overlapping}");
    }

    #[test]
    fn a_part_holds_the_bytes_that_lie_in_it() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..100_000 {
            let low = random.u64(0..24);
            let mut bytes = Bytes::interval(low, low + random.u64(1..30));
            if random.bool() {
                let run = random.u64(1..5);
                let runs = Runs { step: run + random.u64(1..6), run };
                bytes.high = low + random.u64(0..12) * runs.step + run;
                bytes.runs = Some(runs);
            }
            let from = random.u64(0..60);
            let until = from + random.u64(1..30);
            let mut pieces: Vec<u64> = bytes.between(from, until).iter().flat_map(byte_by_byte).collect();
            pieces.sort_unstable();
            let mut expected = byte_by_byte(&bytes);
            expected.retain(|byte| (from..until).contains(byte));
            assert_eq!(pieces, expected, "{bytes:?} {from}..{until}");
        }
    }

    #[test]
    fn billions_of_runs_take_no_time() {
        let wide = |low, step| Bytes { low, high: 1 << 48, runs: Some(Runs { step, run: 1 }) };
        assert!(!wide(0, 4).overlaps(&wide(2, 8)));
        assert!(wide(0, 4).overlaps(&wide(2, 7)));
        assert!(!wide(0, 1 << 20).overlaps(&wide(1, 1 << 19)));
    }
}
