//! JSON lines: a line for the report, for each finding, for each gap and ignore, for what was counted of each trace
//! if advice was asked for, and at the end what was seen.
//!
//! The objects are those of the JSON document with a `type` (docs/schema/report-lines-1.json). A file without the
//! last line is cut off.

use crate::document::{Coverage, Finding, Gap, Ignored, Measured};
use crate::{Checked, Options, document};
use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Report { format_version: u32, tool: &'a str },
    Finding(&'a Finding<'a>),
    Gap(&'a Gap<'a>),
    Ignored(&'a Ignored<'a>),
    Measures(&'a Measured<'a>),
    End { findings: usize, hidden: u64, coverage: &'a Coverage },
}

pub(crate) fn render(checked: &[Checked<'_>], options: &Options<'_>) -> String {
    let whole = document::frame_of(checked, options);
    let mut text = Vec::new();
    let mut write = |line: &Line<'_>| {
        serde_json::to_writer(&mut text, line).expect("a vector takes all that is written");
        text.push(b'\n');
    };
    write(&Line::Report { format_version: whole.format_version, tool: whole.tool });
    let mut findings = 0;
    document::each(checked, |finding, _| {
        write(&Line::Finding(&finding));
        findings += 1;
    });
    for gap in &whole.gaps {
        write(&Line::Gap(gap));
    }
    for ignored in &whole.ignored {
        write(&Line::Ignored(ignored));
    }
    for measures in &whole.measures {
        write(&Line::Measures(measures));
    }
    write(&Line::End { findings, hidden: whole.hidden, coverage: &whole.coverage });
    String::from_utf8(text).expect("JSON is UTF-8")
}
