//! SARIF 2.1.0: the later operation is the location, the earlier one and the memory are related locations, and each
//! stream is a thread flow with the numbers of its operations as execution order.

mod insertion;
mod model;

use crate::document::{Finding, Frame, Spot};
use crate::lines::Lines;
use crate::{Checked, Options, Sources, document, gaps, printable};
use model::{
    ArtifactChange, ArtifactLocation, BaseUri, CodeFlow, Configuration, Descriptor, Driver, Fingerprints,
    Help, Invocation, Location, LogicalLocation, Message, Notification, Outcome, PhysicalLocation,
    Properties, Reference, Region, Repair, Replacement, Run, SarifLog, Step, ThreadFlow, Tool,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use streamsan_check::Rule;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The name of the root of the repository, as GitHub knows it.
const ROOT: &str = "%SRCROOT%";
/// What stands in the path of a URI as it is.
const PATH: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn render(checked: &[Checked<'_>], sources: &dyn Sources, options: &Options<'_>) -> String {
    let mut writer = Writer { lines: Lines::new(sources), indents: HashMap::new() };
    let (name, version) = options.tool.split_once(' ').unwrap_or((options.tool, "0"));
    let mut results = Vec::new();
    // Ranks of one job share findings; within a trace each has a fingerprint of its own.
    let mut used: HashMap<(&str, String), u32> = HashMap::new();
    document::each(checked, |finding, one| {
        let ordinal = used.entry((one.file, finding.fingerprint.clone())).or_default();
        *ordinal += 1;
        results.push(writer.outcome(finding, one, *ordinal));
    });
    let run = Run {
        tool: Tool { driver: Driver { name, version, rules: Rule::all().map(descriptor).collect() } },
        invocations: [invocation(checked)],
        original_uri_base_ids: BTreeMap::from([(
            ROOT,
            BaseUri { description: message("The root of the repository, or the directory of the run.") },
        )]),
        column_kind: "unicodeCodePoints",
        results,
    };
    let log = SarifLog { schema: SCHEMA, version: "2.1.0", runs: [run] };
    let mut text = serde_json::to_string_pretty(&log).expect("strings and numbers can always be written");
    text.push('\n');
    text
}

fn descriptor(rule: Rule) -> Descriptor {
    Descriptor {
        id: rule.code(),
        name: rule.name(),
        short_description: message(rule.summary()),
        help: Help {
            text: format!("{}\nThe whole page: streamsan explain {}", rule.summary(), rule.code()),
            markdown: rule.page(),
        },
        default_configuration: Configuration { level: crate::concise::level(rule.level()) },
    }
}

/// What was not seen. A trace without operations was no successful check.
fn invocation(checked: &[Checked<'_>]) -> Invocation {
    let mut notifications = Vec::new();
    for one in checked {
        let file = if checked.len() > 1 { format!("{}: ", one.file) } else { String::new() };
        if one.report.coverage.operations == 0 {
            notifications.push(Notification {
                level: "error",
                message: message(&format!(
                    "{file}no CUDA operation was recorded: there was nothing to check"
                )),
                descriptor: None,
            });
        }
        for gap in &one.report.gaps {
            let detail = one.log.tables().string(gap.detail);
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            let text = format!("{file}not seen: {}{detail} ({} times)", gaps::key(gap.reason), gap.count);
            notifications.push(Notification {
                level: "note",
                message: message(&text),
                descriptor: Some(Reference { id: gaps::rule(gap.reason).code() }),
            });
        }
    }
    let empty = checked.iter().any(|one| one.report.coverage.operations == 0);
    Invocation { execution_successful: !empty, tool_execution_notifications: notifications }
}

fn message(text: &str) -> Message {
    Message { text: printable(text) }
}

struct Writer<'a> {
    /// Where statements start, by file.
    indents: HashMap<String, Vec<Option<usize>>>,
    lines: Lines<'a>,
}

impl Writer<'_> {
    fn outcome<'f>(&mut self, finding: Finding<'f>, checked: &Checked<'_>, ordinal: u32) -> Outcome<'f> {
        let primary = finding.primary();
        let rule_index = Rule::all().position(|rule| rule.code() == finding.rule).unwrap_or(0);
        Outcome {
            rule_id: finding.rule,
            rule_index,
            level: finding.level,
            message: Message { text: finding.told() },
            locations: [self.spot(&primary, checked)],
            related_locations: self.related(&finding, checked),
            code_flows: [CodeFlow { thread_flows: self.flows(&finding, checked) }],
            partial_fingerprints: Fingerprints {
                line_hash: format!("{}:{ordinal}", finding.fingerprint),
                own: finding.fingerprint.clone(),
            },
            occurrence_count: finding.count,
            fixes: self.repair(&finding, checked).into_iter().collect(),
            properties: Properties { id: finding.id, trace: finding.trace, hazard: finding.hazard },
        }
    }

    /// All places but the primary one.
    fn related(&mut self, finding: &Finding<'_>, checked: &Checked<'_>) -> Vec<Location> {
        let primary = finding.primary();
        let mut related: Vec<Location> = finding
            .spots()
            .iter()
            .filter(|spot| spot.op != primary.op)
            .map(|spot| self.spot(spot, checked))
            .collect();
        let memory = [(&finding.old_alloc, "the old memory was"), (&finding.alloc, "the memory was")];
        for (site, says) in memory {
            if let Some(frame) = site.as_ref().and_then(|site| site.stack.first()) {
                related.push(self.location(Some(frame), &format!("{says} allocated here"), checked));
            }
        }
        if let Some(reach) = &finding.ordered_up_to
            && let Some(frame) = &reach.at
        {
            let says = format!(
                "the order that exists reaches only up to this operation of {} (#{})",
                reach.stream, reach.op
            );
            related.push(self.location(Some(frame), &says, checked));
        }
        for (index, location) in related.iter_mut().enumerate() {
            location.id = Some(index + 1);
        }
        related
    }

    /// One thread flow for each stream, in the order of their first operation.
    fn flows(&mut self, finding: &Finding<'_>, checked: &Checked<'_>) -> Vec<ThreadFlow> {
        let mut flows: Vec<ThreadFlow> = Vec::new();
        for spot in finding.spots() {
            let step = Step {
                location: self.spot(&spot, checked),
                execution_order: spot.op,
                importance: "essential",
            };
            match flows.iter_mut().find(|flow| flow.id == spot.stream) {
                Some(flow) => flow.locations.push(step),
                None => flows.push(ThreadFlow { id: printable(spot.stream), locations: vec![step] }),
            }
        }
        flows
    }

    fn spot(&mut self, spot: &Spot<'_>, checked: &Checked<'_>) -> Location {
        self.location(spot.at, spot.says, checked)
    }

    fn location(&mut self, frame: Option<&Frame<'_>>, says: &str, checked: &Checked<'_>) -> Location {
        let function = frame.and_then(|frame| frame.function);
        Location {
            id: None,
            physical_location: frame.map(|frame| PhysicalLocation {
                artifact_location: self.artifact(frame.path, checked),
                region: self.region(frame),
            }),
            logical_locations: function
                .map(|name| LogicalLocation { fully_qualified_name: printable(name), kind: "function" })
                .into_iter()
                .collect(),
            message: message(says),
        }
    }

    fn artifact(&mut self, path: &str, checked: &Checked<'_>) -> ArtifactLocation {
        let path = self.lines.repository_path(path, checked.log);
        let encoded = utf8_percent_encode(path, &PATH);
        if path.starts_with('/') {
            ArtifactLocation { uri: format!("file://{encoded}"), uri_base_id: None }
        } else {
            ArtifactLocation { uri: encoded.to_string(), uri_base_id: Some(ROOT) }
        }
    }

    fn region(&mut self, frame: &Frame<'_>) -> Option<Region> {
        let start_column = frame.column.map(|column| self.lines.column(frame.path, frame.line, column));
        let end_line = frame.end_line.filter(|&end| end >= frame.line);
        let end_column =
            end_line.zip(frame.end_column).map(|(line, column)| self.lines.column(frame.path, line, column));
        (frame.line > 0).then_some(Region { start_line: frame.line, start_column, end_line, end_column })
    }

    /// The fix as an edit, where its code can be pasted before a statement.
    fn repair(&mut self, finding: &Finding<'_>, checked: &Checked<'_>) -> Option<Repair> {
        // The fix of another finding removes this one too: one edit is enough.
        let fix =
            finding.fix.as_ref().filter(|fix| finding.removed_by.is_none() && fix.r#where == "before")?;
        let (code, path, line) = (fix.insert.as_ref()?, fix.path?, fix.line?);
        if !self.indents.contains_key(path) {
            let indents = self.lines.text(path).map(insertion::indentations).unwrap_or_default();
            self.indents.insert(path.to_owned(), indents);
        }
        let width = *self.indents.get(path)?.get((line as usize).checked_sub(1)?)?;
        let indent = self.lines.line(path, line)?.get(..width?)?;
        let mut inserted = String::new();
        for code in code.lines() {
            let _ = writeln!(inserted, "{indent}{code}");
        }
        let here =
            Region { start_line: line, start_column: Some(1), end_line: Some(line), end_column: Some(1) };
        Some(Repair {
            description: message(finding.help.as_deref().unwrap_or(code)),
            artifact_changes: [ArtifactChange {
                artifact_location: self.artifact(path, checked),
                replacements: [Replacement {
                    deleted_region: here,
                    inserted_content: Message { text: inserted },
                }],
            }],
        })
    }
}
