//! Advice in words: what a line does more of than it needs, how often, what that comes to, and what to change.

mod changes;

pub(crate) use changes::Change;

use crate::names::Names;
use crate::numbers::{bytes, counted, grouped};
use crate::places::in_parentheses;
use streamsan_check::{Advised, Cover, Finding, HeldBack, HostWork, Matters, Measured};
use streamsan_trace::Log;

/// The first line.
pub(crate) fn headline(finding: &Finding, advised: &Advised, names: &Names<'_>) -> String {
    let actor = names.actor(finding.second.actor);
    match &advised.measured {
        Measured::PageableCopy { up } => {
            let (way, end) = if *up { ("upload", "from") } else { ("download", "to") };
            format!("{way} in a loop {end} memory that is not page-locked")
        }
        Measured::HostSync(HostWork::Read) => {
            format!("the host reads {} in each turn of a loop, and waits for it", memory(finding, names))
        }
        Measured::HostSync(HostWork::Condition) => {
            "the host reads a condition in each turn of a loop, and waits for it".to_owned()
        }
        Measured::HostSync(HostWork::Download { .. }) => {
            format!("the host downloads {} in each turn of a loop, and waits for it", memory(finding, names))
        }
        Measured::HostSync(HostWork::Upload) => {
            "the host waits for an upload in each turn of a loop".to_owned()
        }
        Measured::HostSync(HostWork::ReadBack { .. }) => {
            "an operator reads its result back in each turn of a loop, and the host waits for it".to_owned()
        }
        Measured::HostSync(HostWork::Synchronize | HostWork::Other) | Measured::HostSyncForStream { .. } => {
            "the host waits in each turn of a loop until no stream has work".to_owned()
        }
        Measured::Redundant(Cover { awaited: Some(awaited), .. }) => {
            format!("{actor} waits for {}, after which it is ordered already", names.stream(*awaited))
        }
        Measured::Redundant(_) => format!("{actor} waits for work that it knows to be done"),
        Measured::Serialising(matters) => {
            format!("{actor} waits for all of {}, and needs a part of it", names.stream(matters.awaited))
        }
        Measured::PinInLoop => "page-locked memory is taken anew in each turn of a loop".to_owned(),
        Measured::HeldBack(held) => {
            let (amount, user) = (bytes(advised.bytes), names.stream(held.user));
            format!("up to {amount} of freed memory held by `record_stream` for {user}")
        }
        Measured::IdlePool { owner, .. } => {
            let (amount, owner) = (bytes(advised.bytes), names.stream(*owner));
            format!("{amount} stay with {owner}, which is not used any more")
        }
        Measured::OversizedRecord => {
            format!(
                "`record_stream` of {} for {actor}, where the order makes it needless",
                memory(finding, names)
            )
        }
    }
}

fn memory(finding: &Finding, names: &Names<'_>) -> String {
    finding.memory.map_or_else(|| "a tensor".to_owned(), |memory| names.memory_spoken(&memory))
}

/// What stands under the line.
pub(crate) fn label(finding: &Finding, advised: &Advised) -> String {
    let number = finding.second.number;
    let says = match &advised.measured {
        Measured::PageableCopy { .. } => "this copy holds the host",
        Measured::HostSync(_) | Measured::HostSyncForStream { .. } => "the host waits here",
        Measured::Redundant(_) => "this wait orders nothing new",
        Measured::Serialising(_) => "this wait covers more than it has to",
        Measured::PinInLoop => "this memory is page-locked",
        Measured::HeldBack(_) => "this call holds the block after its free",
        Measured::IdlePool { .. } => "its largest block was allocated here",
        Measured::OversizedRecord => "this call guards nothing",
    };
    format!("{says} ({number})")
}

/// The statements: how often, why, and what it comes to.
pub(crate) fn notes(finding: &Finding, advised: &Advised, log: &dyn Log, names: &Names<'_>) -> Vec<String> {
    let actor = names.actor(finding.second.actor);
    let amount = bytes(advised.bytes);
    match &advised.measured {
        Measured::PageableCopy { up } => {
            let returns = if *up { "its source has been staged" } else { "it is done" };
            vec![
                format!("{}, {amount} in all", counted(finding.count, "copy", "copies")),
                format!(
                    "the driver takes the bytes through a buffer of its own, and the call returns when {returns}, with `non_blocking=True` too"
                ),
            ]
        }
        Measured::HostSync(work) => host_sync(finding, advised, *work, log),
        Measured::HostSyncForStream { waiter, awaited, .. } => {
            let mut notes = host_sync(finding, advised, HostWork::Synchronize, log);
            notes.push(format!(
                "what is needed of it is only that {} comes after {}",
                names.stream(*waiter),
                names.stream(*awaited)
            ));
            notes
        }
        Measured::Redundant(cover) => vec![
            format!("{} ordered nothing new", every(finding.count, "execution of this line")),
            covered(&actor, cover, log, names),
        ],
        Measured::Serialising(matters) => serialising(finding, advised, matters, log, names),
        Measured::PinInLoop => vec![
            format!(
                "taken {}, {amount} in all; in {} of them the system had to lock new memory",
                counted(finding.count, "time", "times"),
                grouped(advised.operations)
            ),
            "to lock memory holds the host, and what `pin_memory()` takes is copied there first; how long that is, a trace does not tell"
                .to_owned(),
        ],
        Measured::HeldBack(held) => held_back(advised, held, log, names),
        Measured::IdlePool { owner, last, later } => {
            let owner = names.stream(*owner);
            vec![
                format!("{owner} had that much at one time, has nothing now, and no work after {last}"),
                format!(
                    "torch keeps it for {owner}; other streams allocated {} after that and could use none of it",
                    bytes(*later)
                ),
            ]
        }
        Measured::OversizedRecord => {
            let owner = finding.memory.and_then(|memory| memory.owner);
            let owner = owner.map_or_else(|| "the owner stream".to_owned(), |owner| names.stream(owner));
            vec![
                format!(
                    "at {} that this line is for, {owner}, which owns the memory, was ordered after the last use on {actor} already",
                    every(finding.count, "free of the tensors")
                ),
                format!(
                    "torch held back {}, {amount} in all, until the host had seen that {actor} got as far as the free",
                    counted(finding.count, "block", "blocks")
                ),
            ]
        }
    }
}

fn host_sync(finding: &Finding, advised: &Advised, work: HostWork, log: &dyn Log) -> Vec<String> {
    let turns = finding.count;
    let each = advised.operations / turns.max(1);
    let mut notes = vec![format!(
        "in {} of {} no stream had work left after it; it waited for {} in all, {} in each",
        grouped(turns),
        counted(advised.executions, "turn", "turns"),
        counted(advised.operations, "operation", "operations"),
        grouped(each)
    )];
    let then = "the device has nothing to do until the host has enqueued more, and nothing of the next turn can run beside this one";
    notes.push(match work {
        HostWork::ReadBack { label } => {
            format!(
                "`{}` has to know on the host what the device computed; {then}",
                log.tables().string(label)
            )
        }
        _ => then.to_owned(),
    });
    notes
}

fn serialising(
    finding: &Finding,
    advised: &Advised,
    matters: &Matters,
    log: &dyn Log,
    names: &Names<'_>,
) -> Vec<String> {
    let (actor, awaited) = (names.actor(finding.second.actor), names.stream(matters.awaited));
    vec![
        format!(
            "needed is what {awaited} does at {}{}, and no later operation of it",
            matters.number,
            in_parentheses(log, matters.site)
        ),
        format!(
            "in {} of {} {actor} also waits for {} that {awaited} was given after that",
            grouped(finding.count),
            counted(advised.executions, "execution", "executions"),
            counted(advised.operations, "operation", "operations in all")
        ),
    ]
}

fn held_back(advised: &Advised, held: &HeldBack, log: &dyn Log, names: &Names<'_>) -> Vec<String> {
    let (user, owner) = (names.stream(held.user), names.stream(held.owner));
    let mut notes = vec![
        format!(
            "at {} {} in {} had been freed{} and no wait of the host covered what {user} had to do by then",
            held.peak_at,
            bytes(advised.bytes),
            counted(advised.operations, "block", "blocks"),
            in_parentheses(log, held.free_site).replace('(', "(at "),
        ),
        format!(
            "{owner} gets such a block back when torch sees that {user} is past its free: by then the host may be any number of turns ahead; {} in all were freed so",
            bytes(held.total)
        ),
    ];
    if held.at_end > 0 {
        notes.push(format!("at the end of the run {} were held", bytes(held.at_end)));
    }
    notes
}

/// `the only execution of this line`, `each of the 12 executions of this line`.
fn every(count: u64, what: &str) -> String {
    if count == 1 {
        return format!("the only {what}");
    }
    let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
    format!("each of the {} {first}s {rest}", grouped(count))
}

fn covered(waiter: &str, cover: &Cover, log: &dyn Log, names: &Names<'_>) -> String {
    let Some(awaited) = cover.awaited else {
        return "the host had waited for all of it before, and nothing was issued in between".to_owned();
    };
    let awaited = names.stream(awaited);
    match cover.earlier {
        Some((number, site)) => format!(
            "the wait at {number}{} had ordered {waiter} after {awaited}, and nothing that this wait would cover was issued since",
            in_parentheses(log, site)
        ),
        None => format!("{waiter} was ordered after all of it by what it had waited for before"),
    }
}
