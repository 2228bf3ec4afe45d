//! A few numbers, looked for while numbers rise.

use streamsan_trace::OpNumber;

/// Says of each number of a rising sequence whether it is one of a few, without a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// The next one is the last.
    numbers: Vec<OpNumber>,
}

impl Wanted {
    pub(crate) fn new(numbers: impl Iterator<Item = OpNumber>) -> Self {
        let mut numbers: Vec<OpNumber> = numbers.collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.dedup();
        Self { numbers }
    }

    /// Whether the number is wanted. Those before it are not asked for again.
    pub(crate) fn is_next(&mut self, number: OpNumber) -> bool {
        while self.numbers.last().is_some_and(|next| *next < number) {
            self.numbers.pop();
        }
        self.numbers.last() == Some(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;
    use streamsan_trace::OpNumber;

    #[test]
    fn finds_each_and_no_other() {
        let mut wanted = Wanted::new([7, 3, 7, 1].map(OpNumber).into_iter());
        let found: Vec<u64> = (2..10).filter(|&number| wanted.is_next(OpNumber(number))).collect();
        assert_eq!(found, [3, 7]);
    }
}
