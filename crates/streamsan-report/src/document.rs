//! A report as plain values, for all formats that programs read.
//!
//! As JSON its keys are API (docs/schema). The types of `streamsan-check` are converted here by hand, so that
//! they can change.

mod measured;

pub(crate) use measured::Measured;

use crate::advice::{Advice, gone_with};
use crate::advised::Change;
use crate::concise::level;
use crate::gaps;
use crate::headline::{hazard, headline};
use crate::labels::{first_label, free_label, second_label};
use crate::names::Names;
use crate::notes::notes;
use crate::places::{Location, locate, user_stack};
use crate::{Checked, Options, ignored, printable};
use serde::Serialize;
use std::fmt::Write as _;
use streamsan_check as check;
use streamsan_trace::{AccessMode, Log, OpKind, SiteId};

/// Raised when a key changes its meaning or goes; new keys do not raise it.
const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) format_version: u32,
    pub(crate) tool: &'a str,
    pub(crate) findings: Vec<Finding<'a>>,
    pub(crate) gaps: Vec<Gap<'a>>,
    /// How many findings `--ignore` or `--select` left out.
    pub(crate) hidden: u64,
    /// Ignores in the program and its configuration that were met, and what each left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<Ignored<'a>>,
    pub(crate) coverage: Coverage,
    /// What was counted of each trace; left out if no advice was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) measures: Vec<Measured<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Ignored<'a> {
    trace: &'a str,
    /// `train.py:41`, or the pattern of a configuration.
    place: String,
    rules: Vec<&'a str>,
    /// Empty for a configuration.
    reason: &'a str,
    findings: u64,
    hazards: u64,
}

#[derive(Serialize)]
pub(crate) struct Finding<'a> {
    pub(crate) id: String,
    pub(crate) trace: &'a str,
    pub(crate) rule: &'a str,
    pub(crate) name: &'a str,
    pub(crate) level: &'a str,
    pub(crate) hazard: Option<&'a str>,
    pub(crate) fingerprint: String,
    pub(crate) count: u64,
    /// When: left out for findings that happen once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occurrences: Option<Occurrences>,
    /// The headline.
    pub(crate) message: String,
    pub(crate) first: Option<Place<'a>>,
    pub(crate) second: Place<'a>,
    pub(crate) alloc: Option<Site<'a>>,
    pub(crate) free: Option<Free<'a>>,
    pub(crate) missing_edge: Option<Edge>,
    pub(crate) ordered_up_to: Option<Reach<'a>>,
    pub(crate) memory: Option<Memory>,
    /// Lifetime rules: what the old owner had. `first` touches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old_memory: Option<Memory>,
    /// Lifetime rules: where that was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old_alloc: Option<Site<'a>>,
    pub(crate) fix: Option<Fix<'a>>,
    /// The id of a finding whose fix alone also removes this one.
    pub(crate) removed_by: Option<String>,
    /// How many other findings the fix of this one alone also removes.
    pub(crate) removes: usize,
    pub(crate) notes: Vec<String>,
    /// Advice only: what was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<Counted>,
    /// The fix in one sentence, or which other fix removes this finding too.
    #[serde(skip)]
    pub(crate) help: Option<String>,
}

/// What a piece of advice counted.
#[derive(Serialize)]
pub(crate) struct Counted {
    executions: u64,
    operations: u64,
    bytes: u64,
}

/// The numbers of the later operations.
#[derive(Serialize)]
pub(crate) struct Occurrences {
    ops: Vec<u64>,
    every: u64,
    last: u64,
}

#[derive(Serialize)]
pub(crate) struct Place<'a> {
    pub(crate) op: u64,
    pub(crate) stream: String,
    pub(crate) access: Option<&'a str>,
    pub(crate) label: &'a str,
    pub(crate) stack: Vec<Frame<'a>>,
    /// Only for operations of backward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forward: Option<Site<'a>>,
    /// Only for nodes of a graph: what captured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) captured: Option<Site<'a>>,
    /// ``(1) wrote `x` on the default stream (#1203 memcpy HtoD)``.
    #[serde(skip)]
    pub(crate) says: String,
    /// The user's line, or whatever line is known.
    #[serde(skip)]
    pub(crate) at: Option<Frame<'a>>,
}

/// Where the last reference went.
#[derive(Serialize)]
pub(crate) struct Free<'a> {
    pub(crate) op: u64,
    pub(crate) stack: Vec<Frame<'a>>,
    #[serde(skip)]
    pub(crate) says: String,
    #[serde(skip)]
    pub(crate) at: Option<Frame<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Site<'a> {
    pub(crate) stack: Vec<Frame<'a>>,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Frame<'a> {
    pub(crate) file: &'a str,
    /// 0: not known.
    pub(crate) line: u32,
    /// Columns are in bytes, from 1; they are left out where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_line: Option<u32>,
    /// One past the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) function: Option<&'a str>,
    /// The file as the trace has it.
    #[serde(skip)]
    pub(crate) path: &'a str,
}

#[derive(Serialize)]
pub(crate) struct Edge {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Serialize)]
pub(crate) struct Reach<'a> {
    pub(crate) stream: String,
    /// 0: nothing of that stream is ordered before.
    pub(crate) op: u64,
    #[serde(skip)]
    pub(crate) at: Option<Frame<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Memory {
    pub(crate) name: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) device: Option<u32>,
    /// The stream that it was allocated on; null for memory that belongs to no stream.
    pub(crate) owner: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Fix<'a> {
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
    pub(crate) r#where: &'a str,
    /// Code, perhaps of several lines; null if a stream has no name there or no line runs each time before, see `notes`.
    pub(crate) insert: Option<String>,
    pub(crate) verified: bool,
    #[serde(skip)]
    pub(crate) path: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct Gap<'a> {
    pub(crate) rule: &'a str,
    pub(crate) trace: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) count: u64,
}

#[derive(Default, Serialize)]
pub(crate) struct Coverage {
    pub(crate) operations: u64,
    pub(crate) opaque: u64,
    pub(crate) streams: u64,
    pub(crate) devices: u64,
    pub(crate) waits: u64,
    pub(crate) host_waits: u64,
    pub(crate) blocks: u64,
}

/// Converts all findings, in order, and hands each over with the trace that it is from.
pub(crate) fn each<'a>(checked: &[Checked<'a>], mut take: impl FnMut(Finding<'a>, &Checked<'a>)) {
    let mut before = 0;
    for one in checked {
        let names = Names::new(one.log, one.report);
        for (index, finding) in one.report.findings.iter().enumerate() {
            let id = |index: usize| format!("F{}", before + index + 1);
            let mut converted = convert(id(index), finding, one, &names);
            converted.removed_by = finding.removed_by.map(id);
            take(converted, one);
        }
        before += one.report.findings.len();
    }
}

/// Everything but the findings.
pub(crate) fn frame_of<'a>(checked: &[Checked<'a>], options: &Options<'a>) -> Document<'a> {
    let mut document = Document {
        format_version: FORMAT_VERSION,
        tool: options.tool,
        findings: Vec::new(),
        gaps: Vec::new(),
        hidden: checked.iter().map(|one| one.report.hidden).sum(),
        ignored: Vec::new(),
        coverage: Coverage::default(),
        measures: checked.iter().filter_map(measured::of).collect(),
    };
    for one in checked {
        document.ignored.extend(one.report.ignored.iter().map(|ignored| Ignored {
            trace: one.file,
            place: ignored::place(&ignored.source, one.log),
            rules: ignored.rules.iter().map(|rule| rule.code()).collect(),
            reason: &ignored.reason,
            findings: ignored.findings,
            hazards: ignored.hazards,
        }));
        document.gaps.extend(one.report.gaps.iter().map(|gap| Gap {
            rule: gaps::rule(gap.reason).code(),
            trace: one.file,
            reason: gaps::key(gap.reason),
            detail: one.log.tables().string(gap.detail),
            count: gap.count,
        }));
        let (sum, coverage) = (&mut document.coverage, one.report.coverage);
        sum.operations += coverage.operations;
        sum.opaque += coverage.opaque;
        // Processes of one job share devices, so that a sum would mean nothing.
        sum.streams = sum.streams.max(coverage.streams);
        sum.devices = sum.devices.max(coverage.devices);
        sum.waits += coverage.waits;
        sum.host_waits += coverage.host_waits;
        sum.blocks += coverage.blocks;
    }
    document
}

/// The name of a finding's level.
pub(crate) fn level_of(finding: &check::Finding) -> &'static str {
    level(finding.level())
}

/// One place of a finding.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    /// What happened there.
    pub(crate) says: &'a str,
    /// The number of the operation.
    pub(crate) op: u64,
    /// The stream, or "host".
    pub(crate) stream: &'a str,
    /// Where.
    pub(crate) at: Option<&'a Frame<'a>>,
}

impl Finding<'_> {
    /// The places in the order of their numbers.
    pub(crate) fn spots(&self) -> Vec<Spot<'_>> {
        let mut spots: Vec<Spot<'_>> = self.first.iter().map(Place::spot).collect();
        spots.extend(self.free.as_ref().map(|free| Spot {
            says: &free.says,
            op: free.op,
            stream: "host",
            at: free.at.as_ref(),
        }));
        spots.push(self.second.spot());
        spots
    }

    /// The place that the finding is shown at.
    pub(crate) fn primary(&self) -> Spot<'_> {
        let mut spots = self.spots();
        // The free is what has to change; the access after it only shows what might have happened.
        let index = match (self.rule, &self.free) {
            ("SS203", Some(_)) => spots.len() - 2,
            _ => spots.len() - 1,
        };
        spots.swap_remove(index)
    }

    /// `data.py:18 -> train.py:41`, or the only place.
    pub(crate) fn between(&self) -> String {
        let spots = self.spots();
        let from = spots.first().filter(|_| spots.len() > 1);
        let place = |spot: &Spot<'_>| spot.at.map_or_else(|| "unknown place".to_owned(), Frame::shown);
        match from {
            Some(from) => format!("{} -> {}", place(from), place(&self.primary())),
            None => place(&self.primary()),
        }
    }

    /// All of it as plain text of several lines: what, where, why, and what to do.
    pub(crate) fn told(&self) -> String {
        let mut text = self.message.clone();
        for spot in self.spots() {
            let _ = match spot.at {
                Some(frame) => write!(text, "\n{}, at {}", spot.says, frame.shown()),
                None => write!(text, "\n{}, at an unknown place", spot.says),
            };
        }
        let said = |note: &str| self.help.as_ref().is_some_and(|help| help.starts_with(note));
        for note in self.notes.iter().filter(|note| !said(note)) {
            let _ = write!(text, "\n{note}");
        }
        if let Some(help) = &self.help {
            let _ = write!(text, "\nfix: {help}");
        }
        let _ = write!(text, "\nabout the rule: streamsan explain {}", self.rule);
        printable(&text)
    }
}

impl Place<'_> {
    fn spot(&self) -> Spot<'_> {
        Spot { says: &self.says, op: self.op, stream: &self.stream, at: self.at.as_ref() }
    }
}

impl Frame<'_> {
    /// `train.py:41`.
    pub(crate) fn shown(&self) -> String {
        match self.line {
            0 => self.file.to_owned(),
            line => format!("{}:{line}", self.file),
        }
    }
}

fn convert<'a>(
    id: String,
    finding: &check::Finding,
    checked: &Checked<'a>,
    names: &Names<'_>,
) -> Finding<'a> {
    let log = checked.log;
    let mut statements = notes(finding, log, names);
    let mut help = gone_with(finding, checked.report, log);
    let fix = finding.fix.as_ref().map(|fix| {
        let advice = Advice::new(finding, fix, log, names);
        if advice.code.is_none() {
            statements.push(advice.line());
        }
        help.get_or_insert_with(|| format!("{}\n({})", advice.line(), advice.standing()));
        statements.extend(advice.alternatives);
        Fix {
            file: advice.place.map(|place| place.shown),
            line: advice.place.map(|place| place.number),
            r#where: "before",
            insert: advice.code,
            verified: advice.verified,
            path: advice.place.map(|place| place.path),
        }
    });
    let fix = match &finding.advice {
        Some(advised) => Some(advised_fix(finding, advised, log, names, &mut statements, &mut help)),
        None => fix,
    };
    Finding {
        id,
        trace: checked.file,
        rule: finding.rule.code(),
        name: finding.rule.name(),
        level: level(finding.level()),
        hazard: hazard(finding),
        fingerprint: format!("{:016x}", finding.fingerprint),
        count: finding.count,
        occurrences: Some(&finding.occurrences).filter(|known| known.total > 1).map(|known| Occurrences {
            ops: known.numbers.iter().map(|number| number.0).collect(),
            every: known.every,
            last: known.last.0,
        }),
        message: headline(finding, names),
        first: finding.first.as_ref().map(|first| {
            let says = first_label(finding, first, log, names);
            place(first, says, log, names)
        }),
        second: place(&finding.second, second_label(finding, log, names), log, names),
        alloc: finding.memory.and_then(|memory| known_site(memory.alloc_site, log)),
        free: finding.free.map(|free| Free {
            op: free.number.0,
            stack: stack(free.site, log),
            says: free_label(finding, &free, names),
            at: at(free.site, log),
        }),
        missing_edge: finding.first.map(|first| Edge { from: first.number.0, to: finding.second.number.0 }),
        ordered_up_to: finding.ordered_up_to.map(|reach| Reach {
            stream: names.actor_plain(reach.actor),
            op: reach.number.0,
            at: at(reach.site, log).filter(|_| reach.number.0 > 0),
        }),
        memory: finding.memory.map(|known| memory(&known, names)),
        old_memory: finding.old_memory.map(|known| memory(&known, names)),
        old_alloc: finding.old_memory.and_then(|known| known_site(known.alloc_site, log)),
        fix,
        removed_by: None,
        removes: finding.removes,
        notes: statements,
        advice: finding.advice.as_ref().map(|advised| Counted {
            executions: advised.executions,
            operations: advised.operations,
            bytes: advised.bytes,
        }),
        help,
    }
}

fn advised_fix<'a>(
    finding: &check::Finding,
    advised: &check::Advised,
    log: &'a dyn Log,
    names: &Names<'_>,
    statements: &mut Vec<String>,
    help: &mut Option<String>,
) -> Fix<'a> {
    let change = Change::new(finding, advised, log, names);
    if change.code.is_none() {
        statements.push(change.line.clone());
    }
    let standing = change.standing().map_or_else(String::new, |standing| format!("\n({standing})"));
    *help = Some(format!("{}{standing}", change.line));
    Fix {
        file: change.place.map(|place| place.shown),
        line: change.place.map(|place| place.frame.line),
        r#where: change.side,
        verified: change.is_verified(),
        insert: change.code,
        path: change.place.map(|place| place.path),
    }
}

fn memory(memory: &check::Memory, names: &Names<'_>) -> Memory {
    Memory {
        name: names.block(memory.block).map(str::to_owned),
        bytes: memory.size,
        offset: memory.offset,
        device: memory.device.map(|device| device.0),
        owner: memory.owner.filter(|_| names.is_cached(memory.block)).map(|owner| names.stream_plain(owner)),
    }
}

fn place<'a>(place: &check::Place, says: String, log: &'a dyn Log, names: &Names<'_>) -> Place<'a> {
    let captured = place.kind == Some(OpKind::GraphLaunch);
    Place {
        op: place.number.0,
        stream: names.actor_plain(place.actor),
        access: place.access.map(|mode| match mode {
            AccessMode::Read => "read",
            AccessMode::Write => "write",
            AccessMode::Update => "update",
            AccessMode::Unknown => "unknown",
        }),
        label: log.tables().string(place.label),
        stack: stack(place.site, log),
        forward: known_site(place.forward_site, log).filter(|_| !captured),
        captured: known_site(place.forward_site, log).filter(|_| captured),
        says,
        at: at(place.site, log),
    }
}

fn known_site(site: SiteId, log: &dyn Log) -> Option<Site<'_>> {
    (site != SiteId(0)).then(|| Site { stack: stack(site, log) })
}

fn at(site: SiteId, log: &dyn Log) -> Option<Frame<'_>> {
    locate(log, site).map(|location| frame(&location, log))
}

fn stack(site: SiteId, log: &dyn Log) -> Vec<Frame<'_>> {
    user_stack(log, site).map(|location| frame(&location, log)).collect()
}

fn frame<'a>(location: &Location<'a>, log: &'a dyn Log) -> Frame<'a> {
    let known = |value: u32| Some(value).filter(|&value| value > 0);
    let frame = location.frame;
    Frame {
        file: location.shown,
        line: frame.line,
        column: known(frame.column),
        end_line: known(frame.end_line).filter(|_| frame.column > 0),
        end_column: known(frame.end_column).filter(|_| frame.column > 0),
        function: Some(log.tables().string(frame.function)).filter(|name| !name.is_empty()),
        path: location.path,
    }
}
