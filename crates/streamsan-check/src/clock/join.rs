//! The join of two clocks: the greater of both in each component.
//!
//! The only unsafe code of this crate is here: a call of the loop compiled for AVX2 after the processor has
//! been asked for it.

/// Raises each of `mine` to the component of `theirs` at the same place, if that is greater.
pub(super) fn raise_all(mine: &mut [u64], theirs: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function asks for.
        #[allow(unsafe_code)]
        unsafe {
            raise_all_avx2(mine, theirs);
        }
        return;
    }
    raise_all_anywhere(mine, theirs);
}

/// Inlined into its caller, so that it is compiled for what the caller may use.
#[inline(always)]
#[allow(clippy::inline_always)]
fn raise_all_anywhere(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(*theirs);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn raise_all_avx2(mine: &mut [u64], theirs: &[u64]) {
    raise_all_anywhere(mine, theirs);
}

#[cfg(test)]
mod tests {
    use super::{raise_all, raise_all_anywhere};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn both_ways_agree(
            mine in prop::collection::vec(any::<u64>(), 0..70),
            theirs in prop::collection::vec(any::<u64>(), 0..70),
        ) {
            let (mut chosen, mut plain) = (mine.clone(), mine.clone());
            raise_all(&mut chosen, &theirs);
            raise_all_anywhere(&mut plain, &theirs);
            prop_assert_eq!(&chosen, &plain);
            for (index, &joined) in chosen.iter().enumerate() {
                prop_assert_eq!(joined, mine[index].max(theirs.get(index).copied().unwrap_or(0)));
            }
        }
    }
}
