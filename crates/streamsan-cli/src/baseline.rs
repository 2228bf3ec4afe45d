//! Known findings: a file of fingerprints that people can read, and what it hides.
//!
//! An entry hides one finding of a trace: of the same fingerprint (rule, files' names, functions, labels) and with the
//! same code on its lines, as far as both are known. So lines may move, and a second hazard of the same kind in the
//! same function is still reported. An entry with the same line numbers is preferred.

use crate::fault::Fault;
use crate::reports::Files;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use streamsan_check::{Finding, Report, Rule};
use streamsan_report::{Paths, Sources};
use streamsan_trace::{Log, SiteId};

const VERSION: u32 = 1;
const ABOUT: &str =
    "Findings that are known: `streamsan check --baseline` hides them. Written by --write-baseline.";

/// A file of known findings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    version: Version,
    #[serde(default)]
    about: String,
    findings: Vec<Entry>,
    /// Which entries hid a finding.
    #[serde(skip)]
    met: Vec<bool>,
}

/// The version of the format.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Version;

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        if version == VERSION {
            Ok(Self)
        } else {
            Err(format!("version {version} of the format is not known; this build knows {VERSION}"))
        }
    }
}

impl From<Version> for u32 {
    fn from(_: Version) -> Self {
        VERSION
    }
}

/// A known finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: Code,
    fingerprint: String,
    /// In the order of their operations; the one that it is shown at is the last.
    places: Vec<Spot>,
}

/// The code of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
struct Code(String);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(code: String) -> Result<Self, String> {
        match Rule::parse(&code) {
            Some(_) => Ok(Self(code)),
            None => Err(format!("there is no rule `{code}`")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spot {
    /// `train.py:41`.
    at: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    function: String,
    /// What stands on that line; empty if the source was not at hand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    code: String,
}

impl Entry {
    fn of(finding: &Finding, log: &dyn Log, files: &Files) -> Self {
        let mut sites: Vec<SiteId> = finding
            .first
            .iter()
            .chain(&finding.free)
            .chain([&finding.second])
            .map(|place| place.site)
            .collect();
        // The free is what SS203 is shown at.
        if finding.rule == Rule::Ss203 && finding.free.is_some() {
            let last = sites.len() - 1;
            sites.swap(last - 1, last);
        }
        Self {
            rule: Code(finding.rule.code().to_owned()),
            fingerprint: format!("{:016x}", finding.fingerprint),
            places: sites.into_iter().map(|site| Spot::of(site, log, files)).collect(),
        }
    }

    /// Whether the entry may stand for a finding.
    fn covers(&self, found: &Self) -> bool {
        self.fingerprint == found.fingerprint
            && self.places.len() == found.places.len()
            && self
                .places
                .iter()
                .zip(&found.places)
                .all(|(known, now)| known.code.is_empty() || now.code.is_empty() || known.code == now.code)
    }

    /// `SS101 data.py:18 -> train.py:41`.
    fn shown(&self) -> String {
        match self.places.as_slice() {
            [first, .., last] => format!("{} {} -> {}", self.rule.0, first.at, last.at),
            [only] => format!("{} {}", self.rule.0, only.at),
            [] => self.rule.0.clone(),
        }
    }
}

impl Spot {
    fn of(site: SiteId, log: &dyn Log, files: &Files) -> Self {
        let tables = log.tables();
        let Some((_, frame)) = tables.user_frame(site) else {
            return Self { at: "unknown place".to_owned(), function: String::new(), code: String::new() };
        };
        let path = tables.string(frame.file);
        let line = |text: String| {
            text.lines().nth(frame.line.checked_sub(1)? as usize).map(str::trim).map(str::to_owned)
        };
        Self {
            at: format!("{}:{}", Paths::new(log).shorten(path), frame.line),
            function: tables.string(frame.function).to_owned(),
            code: files.text(path).and_then(line).unwrap_or_default(),
        }
    }
}

/// Bytes of a file: far more than a project has findings.
const MOST_BYTES: u64 = 64 << 20;

/// The bytes of a file, or of a pipe; a device may have no end.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is longer than any baseline"));
    }
    Ok(bytes)
}

/// Whether a file that cannot be read was a baseline, as far as can be seen: it may be written anew. Anything else is
/// somebody's file.
fn is_ours(bytes: &[u8]) -> bool {
    let holds = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    holds("streamsan") && holds("\"findings\"")
}

impl Baseline {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Fault> {
        let shown = path.display();
        let bytes = bytes(path).map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "no such file".to_owned(),
                std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
                _ => error.to_string(),
            };
            Fault::new(format!("cannot read the baseline {shown}: {reason}"))
                .help(format!("--write-baseline {shown} writes it"))
        })?;
        Self::parse(&bytes, &shown.to_string())
    }

    /// Takes the text of a file; `shown` is its name.
    pub(crate) fn parse(bytes: &[u8], shown: &str) -> Result<Self, Fault> {
        let mut baseline: Self = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or(&text).to_owned();
            let fault = Fault::new(format!("{shown}:{}: {text}", error.line().max(1)));
            if is_ours(bytes) {
                fault.help(format!("write it anew with --write-baseline {shown} --force"))
            } else {
                fault.help("it is no baseline of streamsan; --write-baseline FILE writes one to another file")
            }
        })?;
        baseline.met = vec![false; baseline.findings.len()];
        Ok(baseline)
    }

    /// Of all findings of some traces.
    pub(crate) fn of<'a>(traces: impl IntoIterator<Item = (&'a dyn Log, &'a Report, &'a Files)>) -> Self {
        let mut findings: Vec<Entry> = Vec::new();
        for (log, report, files) in traces {
            let mut own: Vec<Entry> =
                report.findings.iter().map(|finding| Entry::of(finding, log, files)).collect();
            // The ranks of a job have the same findings; an entry stands for one finding of each trace.
            for known in &findings {
                if let Some(index) = own.iter().position(|entry| entry == known) {
                    own.remove(index);
                }
            }
            findings.extend(own);
        }
        findings.sort();
        Self { version: Version, about: ABOUT.to_owned(), findings, met: Vec::new() }
    }

    /// How many findings it has.
    pub(crate) fn len(&self) -> usize {
        self.findings.len()
    }

    /// As it is written to a file.
    pub(crate) fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers can always be written");
        text.push('\n');
        text
    }

    /// Takes the known findings out of a report.
    pub(crate) fn hide(&mut self, report: &mut Report, log: &dyn Log, files: &Files) {
        if self.findings.is_empty() {
            return;
        }
        let found: Vec<Entry> =
            report.findings.iter().map(|finding| Entry::of(finding, log, files)).collect();
        let mut used = vec![false; self.findings.len()];
        let mut known = vec![false; found.len()];
        for exact in [true, false] {
            for (index, entry) in
                found.iter().enumerate().filter(|(index, _)| !known[*index]).collect::<Vec<_>>()
            {
                let fits = |(number, candidate): &(usize, &Entry)| {
                    !used[*number] && if exact { *candidate == entry } else { candidate.covers(entry) }
                };
                if let Some((number, _)) = self.findings.iter().enumerate().find(fits) {
                    used[number] = true;
                    self.met[number] = true;
                    known[index] = true;
                }
            }
        }
        remove(report, &known);
    }

    /// Entries of reported rules that hid nothing in any trace.
    pub(crate) fn idle(&self, is_reported: impl Fn(Rule) -> bool) -> Vec<String> {
        let reported = |entry: &Entry| Rule::parse(&entry.rule.0).is_some_and(&is_reported);
        let entries = self.findings.iter().zip(&self.met);
        entries.filter(|(entry, met)| !**met && reported(entry)).map(|(entry, _)| entry.shown()).collect()
    }
}

/// Takes findings out and counts them. What refers to them by index is put right.
fn remove(report: &mut Report, gone: &[bool]) {
    let mut kept = 0;
    let new: Vec<Option<usize>> = gone
        .iter()
        .map(|&gone| {
            kept += usize::from(!gone);
            (!gone).then(|| kept - 1)
        })
        .collect();
    let mut flags = gone.iter();
    report.findings.retain(|_| !flags.next().is_some_and(|&gone| gone));
    report.hidden += (gone.len() - kept) as u64;
    let mut removes = vec![0; kept];
    for finding in &mut report.findings {
        finding.removed_by = finding.removed_by.and_then(|index| new.get(index).copied().flatten());
        if let Some(index) = finding.removed_by {
            removes[index] += 1;
        }
    }
    for (finding, removes) in report.findings.iter_mut().zip(removes) {
        finding.removes = removes;
    }
}
