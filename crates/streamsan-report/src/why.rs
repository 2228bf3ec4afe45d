//! Why a finding matters, in a line or two, where the headline does not say it.

use crate::headline::{is_configured, on_host_memory};
use crate::labels::{free_mark, old_memory, second_mark};
use crate::names::Names;
use streamsan_check::{Actor, Finding, Rule};
use streamsan_trace::{AccessMode, CaptureKind, Log, OpKind};

/// The statement, if there is one for the rule.
pub(crate) fn why(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Option<String> {
    let first = finding.first.as_ref();
    Some(match finding.rule {
        Rule::Ss201 => {
            let owner = names.stream(finding.memory?.owner?);
            let second = names.actor(finding.second.actor);
            format!(
                "{owner} was ordered after (1) when it got the block, but {second} did not wait for {owner}: {}",
                consequence(finding)?
            )
        }
        Rule::Ss202 | Rule::Ss203 => handed_out(finding, log, names)?,
        Rule::Ss204 => format!(
            "what is freed may belong to another owner by now; keep {} alive until after {}",
            old_memory(finding, names),
            second_mark(finding)?
        ),
        Rule::Ss301 => {
            "the call at (1) returns before its data has arrived; without a wait the host may see old bytes"
                .to_owned()
        }
        Rule::Ss302 => {
            let consequence = match first?.access {
                Some(AccessMode::Read) => "(1) may read the host's new bytes instead of the old ones",
                Some(AccessMode::Write) => "(1) may write over the host's new bytes",
                _ => "(1) may see or write over the host's new bytes",
            };
            format!("the call at (1) returns before its work is done; without a wait {consequence}")
        }
        Rule::Ss303 => {
            "the call at (1) returns before its work is done; without a wait the memory may be gone by then"
                .to_owned()
        }
        Rule::Ss501 | Rule::Ss502 => {
            let launch = [finding.second, *first?].into_iter().find(|place| place.kind == Some(OpKind::GraphLaunch))?;
            format!(
                "a launch is one operation of its stream, {}: waits that were captured order nodes of the graph only",
                names.actor(launch.actor)
            )
        }
        Rule::Ss601 | Rule::Ss602 if finding.second.kind != Some(OpKind::Collective) => {
            "a collective with `async_op=True` runs on a stream of its group; `work.wait()` makes the stream wait for it that is current then"
                .to_owned()
        }
        Rule::Ss601 | Rule::Ss602 => {
            "a collective waits for the stream that is current where it is called, and for no other".to_owned()
        }
        Rule::Ss401 => {
            "CUDA treats an event without a record as finished, so nothing is waited for".to_owned()
        }
        Rule::Ss405 => {
            "torch has 32 streams for each priority and hands them out in turn; work of objects that share one runs in order, so overlap is lost and a missing wait does not show".to_owned()
        }
        Rule::Ss406 if on_host_memory(finding) => {
            "torch raises NotImplementedError for it; page-locked memory that a copy uses needs a host wait before it is touched".to_owned()
        }
        Rule::Ss406 => {
            "a freed block goes back to the stream that owns it anyway; was the stream that reads the tensor meant?".to_owned()
        }
        Rule::Ss403 => {
            "a stream is ordered after itself anyway; was another stream meant?\nwithin `with torch.cuda.stream(s)`, `torch.cuda.current_stream()` is `s`".to_owned()
        }
        Rule::Ss903 if is_configured(finding) => {
            "no finding of its rules was met in the file: take it out of per-file-ignores, or add SS903 to it".to_owned()
        }
        Rule::Ss903 => {
            "what it is for may be fixed; left behind, it hides the next hazard here\ntake it out, or add SS903 to its rules if it is needed in other runs".to_owned()
        }
        Rule::Ss101 | Rule::Ss102 | Rule::Ss103 | Rule::Ss402 | Rule::Ss404 | Rule::Ss407 | Rule::Ss701
        | Rule::Ss702
        | Rule::Ss703
        | Rule::Ss704
        | Rule::Ss705
        | Rule::Ss706
        | Rule::Ss707 | Rule::Ss901 | Rule::Ss902 => return None,
    })
}

fn handed_out(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> Option<String> {
    let Actor::Stream(user) = finding.first?.actor else { return None };
    let allocator = if log.header().capture == CaptureKind::Sim { "the allocator" } else { "torch" };
    let owner = names.stream(finding.old_memory?.owner?);
    let user = names.stream(user);
    let then = match finding.rule {
        Rule::Ss203 => format!("another run may hand this one out while {user} uses it"),
        _ => consequence(finding)?,
    };
    Some(format!(
        "{allocator} gives a freed block back to its owner, {owner}, at once: {then}\nonly `record_stream`, or a wait of {owner} for {user} before {}, holds it back",
        free_mark(finding)
    ))
}

/// What may happen to the data of the new owner or of the old one.
fn consequence(finding: &Finding) -> Option<String> {
    let (first, second) = (finding.first?.access, finding.second.access);
    let mark = second_mark(finding)?;
    Some(match (first, second) {
        (Some(AccessMode::Read), _) => format!("(1) may read what {mark} writes"),
        (Some(AccessMode::Write | AccessMode::Update), Some(AccessMode::Read)) => {
            format!("{mark} may read what (1) writes")
        }
        (Some(AccessMode::Write | AccessMode::Update), Some(AccessMode::Write | AccessMode::Update)) => {
            format!("(1) may overwrite what {mark} writes")
        }
        _ => format!("(1) and {mark} may spoil each other's data"),
    })
}
