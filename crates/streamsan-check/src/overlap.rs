//! Exact overlap of strided accesses.
//!
//! Two footprints overlap if some byte belongs to both. Bounding intervals decide most cases; the rest is a
//! search that takes one dimension at a time and follows only steps whose bounding intervals meet. Tensors
//! that do not overlap themselves leave at most two such steps per dimension, so the search is short. The
//! general question is a bounded integer problem without a short answer (it contains subset sum), so the
//! effort is limited, for each question and for all of a check: what is not decided within it is a gap, never an
//! error.

use std::cell::Cell;
use streamsan_trace::{Shape, ShapeDimension, ShapeId, Tables};

/// Steps that one question may take.
const EFFORT: u32 = 200_000;
/// Steps that any question may take, whatever those before it took: as many as slices of a tensor need.
const PLAIN: u32 = 16;
/// Steps beyond the plain ones that all questions of a check may take together: a second or so.
const TOTAL: u64 = 40_000_000;
/// As many more come with each access, so that a long run can ask more than a short one.
const PER_ACCESS: u64 = 64;

/// What is left of the steps that a check may spend on questions that are not plain.
///
/// Counted in steps, not in time: the same log gives the same report on every machine.
#[derive(Debug)]
pub(crate) struct Effort {
    left: Cell<u64>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { left: Cell::new(TOTAL) }
    }
}

impl Effort {
    /// An access is about to be compared with those before it.
    pub(crate) fn access(&self) {
        let left = self.left.get();
        if left < TOTAL {
            self.left.set(left + PER_ACCESS);
        }
    }

    /// A list of so many accesses is about to be searched. Eight of them cost as much as a step; short lists are free.
    pub(crate) fn search(&self, length: usize) {
        self.spend(u32::try_from(length / 8).unwrap_or(u32::MAX));
    }

    /// Whether nothing is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    fn allowed(&self) -> u32 {
        u32::try_from(self.left.get()).map_or(EFFORT, |left| left.saturating_add(PLAIN).min(EFFORT))
    }

    fn spend(&self, steps: u32) {
        self.left.set(self.left.get().saturating_sub(u64::from(steps.saturating_sub(PLAIN))));
    }
}

/// The shapes of a log, and what may be spent to compare them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) effort: &'a Effort,
}

impl<'a> Shapes<'a> {
    /// `None`: every byte.
    pub(crate) fn shape(self, id: ShapeId) -> Option<&'a Shape> {
        self.tables.shape(id)
    }
}

/// Bytes in memory: a strided shape at an address, or a whole interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `None`: every byte from `start` to `end`.
    pub(crate) shape: Option<&'a Shape>,
}

/// Whether two footprints share a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Disjoint,
    Shared,
    Undecided,
}

/// Whether two footprints share a byte, as far as can be decided with the effort that is left.
pub(crate) fn overlap(a: &Footprint<'_>, b: &Footprint<'_>, effort: &Effort) -> Overlap {
    if a.end <= b.start || b.end <= a.start {
        return Overlap::Disjoint;
    }
    if a.shape.is_none() && b.shape.is_none() {
        return Overlap::Shared;
    }
    let (run_a, dimensions_a) = parts(a);
    let (run_b, dimensions_b) = parts(b);
    let allowed = effort.allowed();
    let mut search = Search { left: allowed };
    let a = Piece { base: i128::from(a.start), run: i128::from(run_a), dimensions: dimensions_a };
    let b = Piece { base: i128::from(b.start), run: i128::from(run_b), dimensions: dimensions_b };
    let answer = search.meets(a, b);
    effort.spend(allowed - search.left);
    match answer {
        Some(true) => Overlap::Shared,
        Some(false) => Overlap::Disjoint,
        None => Overlap::Undecided,
    }
}

fn parts<'a>(footprint: &Footprint<'a>) -> (u64, &'a [ShapeDimension]) {
    footprint.shape.map_or((footprint.end - footprint.start, &[]), |shape| (shape.run, &shape.dimensions))
}

/// A shape at a base address, outermost dimension first.
#[derive(Clone, Copy)]
struct Piece<'a> {
    base: i128,
    run: i128,
    dimensions: &'a [ShapeDimension],
}

impl Piece<'_> {
    fn end(&self) -> i128 {
        self.base
            + self.run
            + self
                .dimensions
                .iter()
                .map(|step| i128::from(step.stride) * (i128::from(step.size) - 1))
                .sum::<i128>()
    }

    /// The piece without its outermost dimension, at the first step, and that dimension.
    fn open(&self) -> Option<(Self, i128, i128)> {
        let (outer, inner) = self.dimensions.split_first()?;
        Some((Self { dimensions: inner, ..*self }, i128::from(outer.stride), i128::from(outer.size)))
    }

    fn shifted(&self, bytes: i128) -> Self {
        Self { base: self.base + bytes, ..*self }
    }
}

struct Search {
    left: u32,
}

impl Search {
    /// Whether the pieces share a byte; `None` if the effort is used up.
    fn meets(&mut self, a: Piece<'_>, b: Piece<'_>) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        if a.end() <= b.base || b.end() <= a.base {
            return Some(false);
        }
        match (a.open(), b.open()) {
            (None, None) => Some(true),
            (Some((inner_a, stride_a, size_a)), Some((inner_b, stride_b, size_b)))
                if stride_a == stride_b =>
            {
                // Same step: only the difference of the two indices matters.
                self.any_step(inner_a, stride_a, -(size_b - 1), size_a - 1, inner_b)
            }
            (Some((inner, stride, size)), other)
                if other.is_none_or(|(_, stride_b, _)| stride >= stride_b) =>
            {
                self.any_step(inner, stride, 0, size - 1, b)
            }
            (_, Some((inner, stride, size))) => self.any_step(inner, stride, 0, size - 1, a),
            (Some((inner, stride, size)), None) => self.any_step(inner, stride, 0, size - 1, b),
        }
    }

    /// Whether `piece` shifted by some step of `low ..= high` meets `other`.
    fn any_step(
        &mut self,
        piece: Piece<'_>,
        stride: i128,
        low: i128,
        high: i128,
        other: Piece<'_>,
    ) -> Option<bool> {
        // Steps whose bounding interval meets that of `other`.
        let first = (other.base - piece.end() + 1).div_euclid(stride)
            + i128::from((other.base - piece.end() + 1).rem_euclid(stride) != 0);
        let last = (other.end() - 1 - piece.base).div_euclid(stride);
        let mut undecided = false;
        for step in first.max(low)..=last.min(high) {
            match self.meets(piece.shifted(step * stride), other) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => {
                    undecided = true;
                    break;
                }
            }
        }
        if undecided { None } else { Some(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::{EFFORT, Effort, Footprint, Overlap, PER_ACCESS, PLAIN, TOTAL, overlap};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use streamsan_trace::Shape;

    fn bytes(start: u64, shape: &Shape) -> BTreeSet<u64> {
        let mut bases = vec![start];
        for step in &shape.dimensions {
            bases = bases
                .iter()
                .flat_map(|base| (0..step.size).map(move |index| base + index * step.stride))
                .collect();
        }
        bases.iter().flat_map(|&base| base..base + shape.run).collect()
    }

    fn tensor() -> impl Strategy<Value = (u64, Shape)> {
        let dimension = (1_u64..5, 0_i64..40);
        (0_u64..60, prop::collection::vec(dimension, 0..4), 1_u64..5).prop_map(
            |(start, dimensions, element)| {
                let sizes: Vec<u64> = dimensions.iter().map(|dimension| dimension.0).collect();
                let strides: Vec<i64> = dimensions.iter().map(|dimension| dimension.1).collect();
                (start, Shape::from_tensor(&sizes, &strides, element).unwrap().0)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn agrees_with_sets_of_bytes((start_a, a) in tensor(), (start_b, b) in tensor()) {
            let shared = !bytes(start_a, &a).is_disjoint(&bytes(start_b, &b));
            let print = |start, shape: &Shape| (start, start + shape.length());
            let (a_range, b_range) = (print(start_a, &a), print(start_b, &b));
            let found = overlap(
                &Footprint { start: a_range.0, end: a_range.1, shape: Some(&a) },
                &Footprint { start: b_range.0, end: b_range.1, shape: Some(&b) },
                &Effort::default(),
            );
            prop_assert_eq!(found, if shared { Overlap::Shared } else { Overlap::Disjoint });
        }

        #[test]
        fn normal_form_keeps_the_bytes(dimensions in prop::collection::vec((1_u64..5, 0_i64..40), 0..4), element in 1_u64..5) {
            let sizes: Vec<u64> = dimensions.iter().map(|dimension| dimension.0).collect();
            let strides: Vec<i64> = dimensions.iter().map(|dimension| dimension.1).collect();
            let (shape, _) = Shape::from_tensor(&sizes, &strides, element).unwrap();
            let mut bases = vec![0_u64];
            for (size, stride) in sizes.iter().zip(&strides) {
                bases = bases.iter().flat_map(|base| (0..*size).map(move |index| base + index * (*stride).cast_unsigned() * element)).collect();
            }
            let plain: BTreeSet<u64> = bases.iter().flat_map(|&base| base..base + element).collect();
            prop_assert_eq!(bytes(0, &shape), plain);
        }
    }

    #[test]
    fn columns_of_a_large_matrix_are_told_apart_quickly() {
        let (column, _) = Shape::from_tensor(&[100_000, 1], &[4096, 1], 4).unwrap();
        let at = |start: u64| Footprint { start, end: start + column.length(), shape: Some(&column) };
        let none_left = Effort::default();
        none_left.left.set(0);
        for effort in [Effort::default(), none_left] {
            assert_eq!(overlap(&at(0), &at(4), &effort), Overlap::Disjoint);
            assert_eq!(overlap(&at(0), &at(4096 * 4), &effort), Overlap::Shared);
        }
    }

    /// Shapes whose strides have no common step: the search visits nearly every pair.
    fn intricate(start: u64, strides: &[i64]) -> (u64, Shape) {
        let sizes = vec![40; strides.len()];
        (start, Shape::from_tensor(&sizes, strides, 1).expect("it has elements").0)
    }

    #[test]
    fn what_all_questions_may_cost_is_limited() {
        let (a, b) = (intricate(0, &[3001, 2003, 1009, 500]), intricate(1, &[2999, 2010, 1013, 506]));
        let footprint = |(start, shape): &(u64, Shape)| (*start, *start + shape.length());
        let ask = |effort: &Effort| {
            let ((a_start, a_end), (b_start, b_end)) = (footprint(&a), footprint(&b));
            let a = Footprint { start: a_start, end: a_end, shape: Some(&a.1) };
            let b = Footprint { start: b_start, end: b_end, shape: Some(&b.1) };
            overlap(&a, &b, effort)
        };
        let effort = Effort::default();
        let _ = ask(&effort);
        let cost = TOTAL - effort.left.get();
        assert!(cost > 1000 && cost <= u64::from(EFFORT), "the question is a hard one: {cost} steps");
        for _ in 0..=TOTAL / cost {
            let _ = ask(&effort);
        }
        assert_eq!(effort.left.get(), 0);
        assert_eq!(ask(&effort), Overlap::Undecided);
        assert_eq!((effort.left.get(), effort.allowed()), (0, PLAIN));
        effort.access();
        assert_eq!(effort.left.get(), PER_ACCESS, "more comes with the accesses");
    }
}
