//! JSON: the keys are API. The types of `streamsan-check` are converted here by hand, so that they can change.

use crate::advice::Advice;
use crate::concise::level;
use crate::gaps;
use crate::headline::hazard;
use crate::names::Names;
use crate::notes::notes;
use crate::places::user_stack;
use crate::{Checked, Options};
use serde::Serialize;
use streamsan_check::{Finding, Memory, Place};
use streamsan_trace::{AccessMode, Log, SiteId};

/// Raised when a key changes its meaning or goes; new keys do not raise it.
const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format_version: u32,
    tool: &'a str,
    findings: Vec<JsonFinding<'a>>,
    gaps: Vec<JsonGap<'a>>,
    /// How many findings `--ignore` or `--select` left out.
    hidden: u64,
    coverage: JsonCoverage,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    id: String,
    trace: &'a str,
    rule: &'a str,
    name: &'a str,
    level: &'a str,
    hazard: Option<&'a str>,
    fingerprint: String,
    count: u64,
    first: Option<JsonPlace<'a>>,
    second: JsonPlace<'a>,
    alloc: Option<JsonSite<'a>>,
    free: Option<JsonFree<'a>>,
    missing_edge: Option<JsonEdge>,
    ordered_up_to: Option<JsonReach>,
    memory: Option<JsonMemory>,
    /// Lifetime rules: what the old owner had. `first` touches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_memory: Option<JsonMemory>,
    /// Lifetime rules: where that was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_alloc: Option<JsonSite<'a>>,
    fix: Option<JsonFix<'a>>,
    /// The id of a finding whose fix alone also removes this one.
    removed_by: Option<String>,
    /// How many other findings the fix of this one alone also removes.
    removes: usize,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    op: u64,
    stream: String,
    access: Option<&'a str>,
    label: &'a str,
    stack: Vec<JsonFrame<'a>>,
    /// Only for operations of backward.
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<JsonSite<'a>>,
}

/// Where the last reference went.
#[derive(Serialize)]
struct JsonFree<'a> {
    op: u64,
    stack: Vec<JsonFrame<'a>>,
}

#[derive(Serialize)]
struct JsonSite<'a> {
    stack: Vec<JsonFrame<'a>>,
}

#[derive(Serialize)]
struct JsonFrame<'a> {
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonEdge {
    from: u64,
    to: u64,
}

#[derive(Serialize)]
struct JsonReach {
    stream: String,
    /// 0: nothing of that stream is ordered before.
    op: u64,
}

#[derive(Serialize)]
struct JsonMemory {
    name: Option<String>,
    bytes: u64,
    offset: u64,
    device: Option<u32>,
    /// The stream that it was allocated on; null for memory that belongs to no stream.
    owner: Option<String>,
}

#[derive(Serialize)]
struct JsonFix<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    r#where: &'a str,
    /// Code, perhaps of several lines; null if a stream has no name there, see `notes`.
    insert: Option<String>,
    verified: bool,
}

#[derive(Serialize)]
struct JsonGap<'a> {
    rule: &'a str,
    trace: &'a str,
    reason: &'a str,
    detail: &'a str,
    count: u64,
}

#[derive(Default, Serialize)]
struct JsonCoverage {
    operations: u64,
    opaque: u64,
    streams: u64,
    devices: u64,
    waits: u64,
    host_waits: u64,
    blocks: u64,
}

pub(crate) fn render(checked: &[Checked<'_>], options: &Options<'_>) -> String {
    let mut document = Document {
        format_version: FORMAT_VERSION,
        tool: options.tool,
        findings: Vec::new(),
        gaps: Vec::new(),
        hidden: checked.iter().map(|one| one.report.hidden).sum(),
        coverage: JsonCoverage::default(),
    };
    for one in checked {
        let names = Names::new(one.log, one.report);
        let before = document.findings.len();
        for finding in &one.report.findings {
            let id = |index: usize| format!("F{}", before + index + 1);
            let mut converted = convert(id(document.findings.len() - before), finding, one, &names);
            converted.removed_by = finding.removed_by.map(id);
            document.findings.push(converted);
        }
        document.gaps.extend(one.report.gaps.iter().map(|gap| JsonGap {
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
    let mut text =
        serde_json::to_string_pretty(&document).expect("strings and numbers can always be written");
    text.push('\n');
    text
}

fn convert<'a>(id: String, finding: &Finding, checked: &Checked<'a>, names: &Names<'_>) -> JsonFinding<'a> {
    let log = checked.log;
    let mut statements = notes(finding, log, names);
    let fix = finding.fix.as_ref().map(|fix| {
        let advice = Advice::new(finding, fix, log, names);
        if advice.code.is_none() {
            statements.push(advice.line());
        }
        statements.extend(advice.alternatives);
        JsonFix {
            file: advice.place.map(|place| place.shown),
            line: advice.place.map(|place| place.frame.line),
            r#where: "before",
            insert: advice.code,
            verified: advice.verified,
        }
    });
    JsonFinding {
        id,
        trace: checked.file,
        rule: finding.rule.code(),
        name: finding.rule.name(),
        level: level(finding.rule.level()),
        hazard: hazard(finding),
        fingerprint: format!("{:016x}", finding.fingerprint),
        count: finding.count,
        first: finding.first.as_ref().map(|first| place(first, log, names)),
        second: place(&finding.second, log, names),
        alloc: finding.memory.and_then(|memory| known_site(memory.alloc_site, log)),
        free: finding.free.map(|free| JsonFree { op: free.number.0, stack: stack(free.site, log) }),
        missing_edge: finding
            .first
            .map(|first| JsonEdge { from: first.number.0, to: finding.second.number.0 }),
        ordered_up_to: finding
            .ordered_up_to
            .map(|reach| JsonReach { stream: names.actor_plain(reach.actor), op: reach.number.0 }),
        memory: finding.memory.map(|known| memory(&known, names)),
        old_memory: finding.old_memory.map(|known| memory(&known, names)),
        old_alloc: finding.old_memory.and_then(|known| known_site(known.alloc_site, log)),
        fix,
        removed_by: None,
        removes: finding.removes,
        notes: statements,
    }
}

fn memory(memory: &Memory, names: &Names<'_>) -> JsonMemory {
    JsonMemory {
        name: names.block(memory.block).map(str::to_owned),
        bytes: memory.size,
        offset: memory.offset,
        device: memory.device.map(|device| device.0),
        owner: memory.owner.filter(|_| names.is_cached(memory.block)).map(|owner| names.stream_plain(owner)),
    }
}

fn place<'a>(place: &Place, log: &'a dyn Log, names: &Names<'_>) -> JsonPlace<'a> {
    JsonPlace {
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
        forward: (place.forward_site != SiteId(0))
            .then(|| JsonSite { stack: stack(place.forward_site, log) }),
    }
}

fn known_site(site: SiteId, log: &dyn Log) -> Option<JsonSite<'_>> {
    (site != SiteId(0)).then(|| JsonSite { stack: stack(site, log) })
}

fn stack(site: SiteId, log: &dyn Log) -> Vec<JsonFrame<'_>> {
    user_stack(log, site)
        .map(|location| JsonFrame {
            file: location.shown,
            line: location.frame.line,
            function: Some(log.tables().string(location.frame.function)).filter(|name| !name.is_empty()),
        })
        .collect()
}
