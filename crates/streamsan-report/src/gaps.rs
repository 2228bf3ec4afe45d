//! What could not be seen, said as a limit of the tool.

use crate::numbers::{counted, grouped};
use std::collections::BTreeSet;
use streamsan_check::{Gap, Report, Rule};
use streamsan_trace::{GapReason, Log, OpNumber};

/// The rule under which a reason is listed.
pub(crate) fn rule(reason: GapReason) -> Rule {
    match reason {
        GapReason::OpaqueKernel
        | GapReason::UnknownOperator
        | GapReason::Undecided
        | GapReason::Escaped
        | GapReason::UnseenGraph
        | GapReason::NotComputed => Rule::Ss902,
        GapReason::UnsupportedCall
        | GapReason::Lost
        | GapReason::Forked
        | GapReason::NotClosed
        | GapReason::Forgotten
        | GapReason::Damaged => Rule::Ss901,
    }
}

/// A stable name of a reason, for JSON.
pub(crate) fn key(reason: GapReason) -> &'static str {
    match reason {
        GapReason::OpaqueKernel => "opaque-kernel",
        GapReason::UnsupportedCall => "unsupported-call",
        GapReason::Lost => "lost-events",
        GapReason::UnknownOperator => "unknown-operator",
        GapReason::Forked => "forked",
        GapReason::NotClosed => "not-closed",
        GapReason::Damaged => "damaged",
        GapReason::Undecided => "undecided",
        GapReason::Escaped => "escaped",
        GapReason::UnseenGraph => "unseen-graph",
        GapReason::Forgotten => "forgotten",
        GapReason::NotComputed => "not-computed",
    }
}

/// Whether events may be missing.
pub(crate) fn loses_events(reason: GapReason) -> bool {
    matches!(reason, GapReason::Lost | GapReason::NotClosed | GapReason::Damaged)
}

/// One line for each reason, in a fixed order.
pub(crate) fn lines(report: &Report, log: &dyn Log) -> Vec<String> {
    const ORDER: [GapReason; 12] = [
        GapReason::OpaqueKernel,
        GapReason::UnknownOperator,
        GapReason::Undecided,
        GapReason::Escaped,
        GapReason::UnseenGraph,
        GapReason::NotComputed,
        GapReason::UnsupportedCall,
        GapReason::Forked,
        GapReason::Forgotten,
        GapReason::Lost,
        GapReason::NotClosed,
        GapReason::Damaged,
    ];
    ORDER
        .iter()
        .filter_map(|&reason| {
            let gaps: Vec<&Gap> = report.gaps.iter().filter(|gap| gap.reason == reason).collect();
            (!gaps.is_empty()).then(|| line(reason, &gaps, report, log))
        })
        .collect()
}

fn line(reason: GapReason, gaps: &[&Gap], report: &Report, log: &dyn Log) -> String {
    let count = gaps.iter().map(|gap| gap.count).sum::<u64>();
    let code = rule(reason).code();
    let most = most_often(gaps, log);
    let last = match report.coverage.last {
        OpNumber(0) => "the start".to_owned(),
        last => last.to_string(),
    };
    match reason {
        GapReason::OpaqueKernel => {
            format!("{} with unknown accesses ({code}){most}", counted(count, "kernel", "kernels"))
        }
        GapReason::UnknownOperator => {
            let operators = counted(count, "operator call", "operator calls");
            format!("{operators} whose schema does not say what is read and written ({code}){most}")
        }
        GapReason::Escaped => {
            let times = if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) };
            let by = by(gaps, log);
            format!(
                "page-locked memory given away{by} {times} while a copy uses it: what is done through it is not seen ({code})"
            )
        }
        GapReason::UnseenGraph => {
            let launches = counted(count, "launch of a graph", "launches of graphs");
            format!("{launches} not seen being captured: what their nodes touch is not known ({code})")
        }
        GapReason::NotComputed => {
            let kernels = counted(count, "kernel", "kernels");
            format!("results of {kernels}, which the virtual device does not run ({code}){most}")
        }
        GapReason::Undecided => {
            let pairs = counted(count, "pair of accesses", "pairs of accesses");
            format!("{pairs} too intricate, or too many, to say whether they overlap ({code}){most}")
        }
        GapReason::UnsupportedCall => {
            format!(
                "{} that streamsan does not model yet ({code}){most}",
                counted(count, "CUDA call", "CUDA calls")
            )
        }
        GapReason::Forked => {
            format!(
                "{} of this program: what they did is not in this trace ({code})",
                counted(count, "forked child", "forked children")
            )
        }
        GapReason::Forgotten => {
            let first = gaps.iter().map(|gap| gap.first).min().unwrap_or_default();
            let times = if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) };
            format!(
                "races between what came before and after some moments, {times}, first at {first}: so many streams wait for \
                 each other that their order does not fit into memory ({code})"
            )
        }
        GapReason::Lost => format!("events that could not be stored ({code}){most}"),
        GapReason::NotClosed => {
            format!(
                "the end of the run: the program was killed or left without cleaning up; checked up to {last} ({code})"
            )
        }
        GapReason::Damaged => {
            format!("the rest of the file: it is cut off or damaged; checked up to {last} ({code})")
        }
    }
}

/// `, most often `triton_poi_fused` (312 times)`, or the only name.
fn most_often(gaps: &[&Gap], log: &dyn Log) -> String {
    let named = |gap: &&&Gap| !log.tables().string(gap.detail).is_empty();
    let most = gaps.iter().filter(named).max_by(|a, b| {
        let by_count = a.count.cmp(&b.count);
        // Among equals the first name in the alphabet, so that the text does not depend on order.
        by_count.then_with(|| log.tables().string(b.detail).cmp(log.tables().string(a.detail)))
    });
    match most {
        None => String::new(),
        Some(gap) if gaps.len() == 1 => format!(": `{}`", shorten(log.tables().string(gap.detail))),
        Some(gap) => format!(", most often `{}`", shorten(log.tables().string(gap.detail))),
    }
}

/// `` by `numpy()` ``, or nothing.
fn by(gaps: &[&Gap], log: &dyn Log) -> String {
    let names: BTreeSet<&str> =
        gaps.iter().map(|gap| log.tables().string(gap.detail)).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", shorten(name))).collect();
    format!(" by {}", names.join(" and "))
}

/// Kernel names can have hundreds of characters.
fn shorten(name: &str) -> String {
    const LIMIT: usize = 60;
    if name.chars().count() <= LIMIT {
        return name.to_owned();
    }
    name.chars().take(LIMIT - 3).chain("...".chars()).collect()
}
