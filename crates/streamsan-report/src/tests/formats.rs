//! The formats of other tools: what they look like, and that names and paths cannot break them.

use super::fixture::{BLOCK, Case};
use super::{Fixed, rendered};
use crate::{Checked, Format, Options, Sources, render};
use insta::assert_snapshot;
use streamsan_check::{Coverage, Gap, Rule};
use streamsan_trace::{GapReason, OpNumber};

/// The run was in `/work/job`, the repository is `/work`.
struct Repository;

impl Sources for Repository {
    fn text(&self, path: &str) -> Option<String> {
        Fixed.text(path)
    }
    fn repository_path(&self, path: &str) -> Option<String> {
        path.strip_prefix("/work/").map(str::to_owned)
    }
}

const PROGRAMS: [Format; 6] =
    [Format::Json, Format::JsonLines, Format::Sarif, Format::Github, Format::Junit, Format::Concise];

fn in_repository(case: &Case, format: Format) -> String {
    let checked = Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
    let options = Options { color: false, tool: "streamsan 0.1.0", limit: None, width: Some(160) };
    render(format, &[checked], &Repository, &options)
}

/// Its log, with the descriptions of the rules left out.
fn sarif(text: &str) -> serde_json::Value {
    let mut log: serde_json::Value = serde_json::from_str(text).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].take();
    assert_eq!(rules.as_array().unwrap().len(), Rule::all().count());
    log
}

#[test]
fn sarif_of_the_example() {
    let text = in_repository(&Case::read_after_write(), Format::Sarif);
    assert_snapshot!(serde_json::to_string_pretty(&sarif(&text)["runs"][0]).unwrap());
}

#[test]
fn github_of_the_example() {
    assert_snapshot!(in_repository(&Case::read_after_write(), Format::Github));
}

#[test]
fn junit_of_the_example() {
    assert_snapshot!(rendered(&Case::read_after_write(), Format::Junit));
}

#[test]
fn json_lines_of_the_example() {
    let text = rendered(&Case::read_after_write(), Format::JsonLines);
    let document: serde_json::Value =
        serde_json::from_str(&rendered(&Case::read_after_write(), Format::Json)).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["report", "finding", "end"]);
    let mut finding = lines[1].clone();
    finding.as_object_mut().unwrap().remove("type");
    assert_eq!(finding, document["findings"][0]);
    assert_eq!(lines[2]["coverage"], document["coverage"]);
}

/// Warnings, two traces, and a trace without operations.
#[test]
fn several_traces() {
    let (one, mut two, mut three) =
        (Case::read_after_write(), Case::read_after_write(), Case::without_findings());
    two.finding().rule = Rule::Ss401;
    two.finding().first = None;
    three.report.coverage = Coverage::default();
    let checked = [("r0.sstrace", &one), ("r1.sstrace", &one), ("r2.sstrace", &two), ("r3.sstrace", &three)]
        .map(|(file, case)| Checked { file, log: &case.trace, report: &case.report });
    let options = Options { color: false, tool: "streamsan 0.1.0", limit: None, width: Some(160) };
    let write = |format| render(format, &checked, &Fixed, &options);
    let github = write(Format::Github);
    assert_eq!(github.matches("::error ").count(), 1, "ranks share an annotation: {github}");
    assert_eq!(github.matches("::warning ").count(), 1, "{github}");
    assert_snapshot!(write(Format::Junit));
    let log = sarif(&write(Format::Sarif));
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0]["partialFingerprints"], results[1]["partialFingerprints"]);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    for format in PROGRAMS {
        assert_eq!(write(format), write(format));
    }
}

#[test]
fn two_findings_of_one_trace_have_two_identities_for_code_scanning() {
    let mut case = Case::read_after_write();
    let again = case.report.findings[0].clone();
    case.report.findings.push(again);
    let log = sarif(&rendered(&case, Format::Sarif));
    let hash = |index: usize| log["runs"][0]["results"][index]["partialFingerprints"].clone();
    assert_eq!(hash(0)["streamsan/v1"], hash(1)["streamsan/v1"]);
    assert_eq!(hash(0)["primaryLocationLineHash"], "9c1f00420000abcd:1");
    assert_eq!(hash(1)["primaryLocationLineHash"], "9c1f00420000abcd:2");
}

/// Names that a program chose, and what they would do where nobody looks.
#[test]
fn nothing_in_a_trace_breaks_a_format() {
    let evil = "]]> <a b='\"'>&amp; %0A\n ::error::##[error]x\r\n\u{1b}[2J\u{7}\u{ffff}\u{fffe},:é\u{202e}";
    let mut case = Case::read_after_write();
    case.rename_block(BLOCK, evil);
    let label = case.string(evil);
    case.finding().second.label = label;
    let site = case.site(&format!("dir with spaces/{evil}.py"), 7, 3, 9, evil);
    case.finding().first.as_mut().unwrap().site = site;
    case.finding().second.site = site;
    case.report.gaps.push(Gap {
        reason: GapReason::OpaqueKernel,
        detail: label,
        count: 1,
        first: OpNumber(1),
    });
    for format in PROGRAMS {
        let text = in_repository(&case, format);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r']), "{format:?}: {text}");
        match format {
            Format::Json => assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok()),
            Format::JsonLines => {
                assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
            }
            Format::Sarif => {
                let log = sarif(&text);
                let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
                let uri = location["artifactLocation"]["uri"].as_str().unwrap();
                assert!(uri.starts_with("job/dir%20with%20spaces/%5D%5D%3E%20"), "{uri}");
                assert!(uri.is_ascii() && !uri.contains([' ', '<', '"', ':']), "{uri}");
            }
            Format::Github => {
                let commands: Vec<_> =
                    text.lines().filter(|line| line.trim_start().starts_with("::")).collect();
                assert_eq!(commands.len(), 1, "{text}");
                assert_eq!(text.lines().filter(|line| line.contains("##[")).count(), 1, "{text}");
                let properties = commands[0].split("::").nth(1).unwrap();
                assert_eq!(properties.matches(',').count(), 4, "{properties}");
            }
            Format::Junit => {
                let mut reader = quick_xml::Reader::from_str(&text);
                reader.config_mut().check_end_names = true;
                loop {
                    match reader.read_event().unwrap() {
                        quick_xml::events::Event::Eof => break,
                        quick_xml::events::Event::Start(tag) => {
                            for attribute in tag.attributes() {
                                attribute.unwrap();
                            }
                        }
                        _ => {}
                    }
                }
                assert!(!text.contains(['\u{ffff}', '\u{fffe}']), "{text}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_fix_is_an_edit_only_where_it_can_be_pasted() {
    let log = sarif(&in_repository(&Case::read_after_write(), Format::Sarif));
    let fix = &log["runs"][0]["results"][0]["fixes"][0];
    let change = &fix["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "job/train.py");
    let region = &change["replacements"][0]["deletedRegion"];
    assert_eq!((&region["startLine"], &region["endLine"]), (&41.into(), &41.into()));
    let inserted = change["replacements"][0]["insertedContent"]["text"].as_str().unwrap();
    assert_eq!(inserted, "        side.wait_stream(torch.cuda.default_stream())\n");
    // Without its source nobody knows where the line begins.
    let mut case = Case::read_after_write();
    let elsewhere = case.site("missing.py", 3, 1, 2, "f");
    let frame = case.trace.tables.sites[elsewhere.index()][0];
    case.finding().fix.as_mut().unwrap().frame = Some(frame);
    let log = sarif(&in_repository(&case, Format::Sarif));
    assert_eq!(log["runs"][0]["results"][0].get("fixes"), None);
}
