//! Which frames a moment lies in.

use crate::names::NameId;
use crate::profile::Frame;
use crate::spans::Span;

/// How many frames around a moment are looked at: more are nothing that a person wrote.
const DEEPEST: usize = 1000;

/// For each of `wanted`, the frames of its thread that it lies in, outermost first.
///
/// Both are ordered by their start. Takes time in proportion to both.
pub(crate) fn enclosing<'a>(frames: &'a [Frame], wanted: &[(Span, NameId)]) -> Vec<Vec<&'a Frame>> {
    let mut open: rustc_hash::FxHashMap<NameId, Vec<&Frame>> = rustc_hash::FxHashMap::default();
    let mut next = frames.iter().peekable();
    let mut found = Vec::with_capacity(wanted.len());
    for (span, thread) in wanted {
        while let Some(frame) = next.next_if(|frame| frame.span.0 <= span.0) {
            let stack = open.entry(frame.thread).or_default();
            while stack.pop_if(|top| top.span.1 <= frame.span.0).is_some() {}
            stack.push(frame);
        }
        let stack = open.get(thread).map_or(&[][..], Vec::as_slice);
        let near = &stack[stack.len().saturating_sub(DEEPEST)..];
        found.push(near.iter().copied().filter(|frame| frame.span.1 >= span.1).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::enclosing;
    use crate::names::Names;
    use crate::profile::Frame;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_those_around_it(
            starts in prop::collection::vec((0i64..40, 0i64..20, 0u8..2), 0..20),
            wanted in prop::collection::vec((0i64..40, 1i64..4, 0u8..2), 0..10),
        ) {
            let mut names = Names::default();
            let mut frames: Vec<Frame> = Vec::new();
            for (start, length, thread) in starts {
                let span = (start, start + length);
                // Frames of a thread lie within each other or apart.
                let thread = names.id(&format!("t{thread}"));
                let crosses = |other: &Frame| other.thread == thread
                    && (other.span.0 < span.0 && span.0 < other.span.1 && other.span.1 < span.1
                        || span.0 < other.span.0 && other.span.0 < span.1 && span.1 < other.span.1);
                if !frames.iter().any(crosses) {
                    frames.push(Frame { span, thread, name: thread });
                }
            }
            frames.sort_by_key(|one| (one.span.0, -one.span.1));
            let mut wanted: Vec<_> = wanted.iter()
                .map(|&(start, length, thread)| ((start, start + length), names.id(&format!("t{thread}"))))
                .collect();
            wanted.sort_unstable();
            for ((span, thread), found) in wanted.iter().zip(enclosing(&frames, &wanted)) {
                let expected: Vec<_> = frames.iter()
                    .filter(|one| one.thread == *thread && one.span.0 <= span.0 && span.1 <= one.span.1)
                    .map(|one| one.span)
                    .collect();
                let found: Vec<_> = found.iter().map(|one| one.span).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
