//! Where the findings are in the log: which event is not ordered after which.

use std::collections::HashMap;
use streamsan_check::{Finding, Place, Report, Rule};
use streamsan_trace::{BlockId, OpNumber};

/// An event that lacks an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    /// Index of the finding.
    pub(super) finding: usize,
    /// The rule.
    pub(super) rule: Rule,
    /// What the event is not ordered after, if the finding says.
    pub(super) after: Option<&'a Place>,
    /// The block that `after` touches, if it is another one.
    pub(super) of: Option<BlockId>,
}

/// The marks of a report.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    findings: &'a [Finding],
    /// Indexes of the findings that name an event.
    named: HashMap<OpNumber, Vec<usize>>,
}

impl<'a> Marks<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        let mut named = HashMap::<OpNumber, Vec<usize>>::new();
        for (index, finding) in report.findings.iter().enumerate() {
            for place in [finding.first, finding.free, Some(finding.second)].into_iter().flatten() {
                named.entry(place.number).or_default().push(index);
            }
        }
        Self { findings: &report.findings, named }
    }

    /// Whether a finding names the event.
    pub(super) fn names(&self, number: OpNumber) -> bool {
        self.named.contains_key(&number)
    }

    /// The blocks of the old owners.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.findings.iter().filter_map(|finding| Some(finding.old_memory?.block))
    }

    /// The findings of which this event of the block is the later half.
    pub(super) fn of(&self, number: OpNumber, block: BlockId) -> impl Iterator<Item = Mark<'a>> {
        let indexes = self.named.get(&number).into_iter().flatten();
        let findings = self.findings;
        indexes.filter_map(move |&index| {
            let finding = &findings[index];
            let later = match (finding.rule, &finding.free) {
                // What came later is innocent: the free came too early.
                (Rule::Ss203, Some(free)) => free.number,
                _ => finding.second.number,
            };
            let old = finding.old_memory.map(|memory| memory.block);
            let on = if finding.rule == Rule::Ss203 { old } else { None };
            let on = on.or(finding.memory.map(|memory| memory.block));
            (later == number && on == Some(block)).then(|| Mark {
                finding: index,
                rule: finding.rule,
                after: finding.first.as_ref(),
                of: old.filter(|&old| old != block),
            })
        })
    }

    /// The findings about a block.
    pub(super) fn about(&self, block: BlockId) -> impl Iterator<Item = usize> {
        let about = move |finding: &Finding| {
            [finding.old_memory, finding.memory].into_iter().flatten().any(|memory| memory.block == block)
        };
        let all = self.findings.iter().enumerate();
        all.filter(move |(_, finding)| about(finding)).map(|(index, _)| index)
    }
}
