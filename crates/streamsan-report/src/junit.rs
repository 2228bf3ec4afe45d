//! JUnit XML: one suite for each trace, one case for each finding.
//!
//! Errors are failures. Warnings are cases that were skipped, with the reason, as readers show these and count
//! none of them as failed. A trace without findings has one case that passed; one without operations has one
//! with an error, so that nothing is ever taken for clean by accident.

use crate::document::Finding;
use crate::{Checked, document, summary};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;
use streamsan_check::Level;

pub(crate) fn render(checked: &[Checked<'_>]) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut writer, checked).expect("a vector takes all that is written");
    let mut text = String::from_utf8(writer.into_inner()).expect("what goes in is UTF-8");
    text.push('\n');
    text
}

/// The cases of one trace.
#[derive(Default)]
struct Cases {
    failures: usize,
    skipped: usize,
    all: Vec<Case>,
}

struct Case {
    name: String,
    place: Option<(String, u32)>,
    outcome: Outcome,
    /// All that there is to say.
    text: String,
}

enum Outcome {
    Passed,
    Skipped(String),
    /// Message and type.
    Failed(String, String),
    Error(String),
}

fn document(writer: &mut Writer<Vec<u8>>, checked: &[Checked<'_>]) -> io::Result<()> {
    let mut suites: Vec<Cases> = checked.iter().map(suite).collect();
    let mut suite = 0;
    document::each(checked, |finding, one| {
        while !std::ptr::eq(&raw const checked[suite], one) {
            suite += 1;
        }
        suites[suite].add(&finding);
    });
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let sum = |count: fn(&Cases) -> usize| suites.iter().map(count).sum::<usize>().to_string();
    writer
        .create_element("testsuites")
        .with_attributes([
            ("name", "streamsan"),
            ("tests", &*sum(|suite| suite.all.len())),
            ("failures", &*sum(|suite| suite.failures)),
            ("errors", &*sum(Cases::errors)),
        ])
        .write_inner_content(|writer| {
            for (one, suite) in checked.iter().zip(&suites) {
                write_suite(writer, one, suite)?;
            }
            Ok(())
        })?;
    Ok(())
}

/// A suite without its findings.
fn suite(checked: &Checked<'_>) -> Cases {
    let mut cases = Cases::default();
    let verdict = || summary::verdict(&[*checked]);
    if checked.report.coverage.operations == 0 {
        cases.all.push(Case {
            name: "recorded operations".to_owned(),
            place: None,
            outcome: Outcome::Error("no CUDA operation was recorded: there was nothing to check".to_owned()),
            text: verdict(),
        });
    } else if checked.report.findings.is_empty() {
        cases.all.push(Case {
            name: "no hazards in what was seen".to_owned(),
            place: None,
            outcome: Outcome::Passed,
            text: verdict(),
        });
    }
    cases
}

impl Cases {
    fn add(&mut self, finding: &Finding<'_>) {
        let outcome = if finding.level == crate::concise::level(Level::Error) {
            self.failures += 1;
            Outcome::Failed(finding.message.clone(), format!("{} {}", finding.rule, finding.name))
        } else {
            self.skipped += 1;
            Outcome::Skipped(format!("{}: {}", finding.level, finding.message))
        };
        self.all.push(Case {
            name: format!("{} {}", finding.rule, finding.between()),
            place: finding.primary().at.map(|frame| (frame.file.to_owned(), frame.line)),
            outcome,
            text: finding.told(),
        });
    }

    fn errors(&self) -> usize {
        self.all.iter().filter(|case| matches!(case.outcome, Outcome::Error(_))).count()
    }
}

fn write_suite(writer: &mut Writer<Vec<u8>>, checked: &Checked<'_>, suite: &Cases) -> io::Result<()> {
    let name = legal(checked.file);
    writer
        .create_element("testsuite")
        .with_attributes([
            ("name", &*name),
            ("tests", &*suite.all.len().to_string()),
            ("failures", &*suite.failures.to_string()),
            ("errors", &*suite.errors().to_string()),
            ("skipped", &*suite.skipped.to_string()),
        ])
        .write_inner_content(|writer| {
            for case in &suite.all {
                write_case(writer, &name, case)?;
            }
            Ok(())
        })?;
    Ok(())
}

fn write_case(writer: &mut Writer<Vec<u8>>, suite: &str, case: &Case) -> io::Result<()> {
    let name = legal(&case.name);
    let mut element =
        writer.create_element("testcase").with_attributes([("name", &*name), ("classname", suite)]);
    if let Some((file, line)) = &case.place {
        element = element.with_attribute(("file", &*legal(file)));
        if *line > 0 {
            element = element.with_attribute(("line", &*line.to_string()));
        }
    }
    element.write_inner_content(|writer| {
        let text = legal(&case.text);
        let body = BytesText::new(&text);
        match &case.outcome {
            Outcome::Passed => writer.create_element("system-out").write_text_content(body)?,
            Outcome::Skipped(message) => {
                let skipped = writer.create_element("skipped").with_attribute(("message", &*legal(message)));
                skipped.write_empty()?;
                writer.create_element("system-out").write_text_content(body)?
            }
            Outcome::Failed(message, kind) => writer
                .create_element("failure")
                .with_attributes([("message", &*legal(message)), ("type", &**kind)])
                .write_text_content(body)?,
            Outcome::Error(message) => writer
                .create_element("error")
                .with_attribute(("message", &*legal(message)))
                .write_text_content(body)?,
        };
        Ok(())
    })?;
    Ok(())
}

/// XML 1.0 has no way to write control characters and noncharacters.
fn legal(text: &str) -> String {
    let illegal = |character: char| {
        character.is_control() && character != '\n' || matches!(character, '\u{fffe}' | '\u{ffff}')
    };
    text.chars().map(|character| if illegal(character) { '\u{fffd}' } else { character }).collect()
}
