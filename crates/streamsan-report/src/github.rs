//! Workflow commands of GitHub Actions: a finding becomes an annotation at its line.

use crate::document::{Finding, Frame};
use crate::lines::Lines;
use crate::{Checked, Sources, document, printable, summary};
use std::collections::HashSet;
use std::fmt::Write as _;

/// One command for each place that findings are shown at, then the verdict as plain lines.
pub(crate) fn render(checked: &[Checked<'_>], sources: &dyn Sources) -> String {
    let mut text = String::new();
    let mut said = HashSet::new();
    let mut lines = Lines::new(sources);
    document::each(checked, |finding, one| {
        let line = command(&finding, one, &mut lines);
        // Ranks of one job have the same findings.
        if !said.contains(&line) {
            text.push_str(&line);
            text.push('\n');
            said.insert(line);
        }
    });
    for line in printable(&summary::verdict(checked)).lines() {
        let _ = writeln!(text, "{}", plain(line));
    }
    text
}

/// A line that is no command, whatever the names of a trace are. The old form counts anywhere in a line.
fn plain(line: &str) -> String {
    let start = line.trim_start();
    let line = if start.starts_with("::") { start.trim_start_matches(':') } else { line };
    line.replace("##[", "# #[")
}

fn command(finding: &Finding<'_>, checked: &Checked<'_>, lines: &mut Lines<'_>) -> String {
    let level = if finding.level == "note" { "notice" } else { finding.level };
    let mut text = format!("::{level} ");
    if let Some(frame) = finding.primary().at {
        let _ = write!(text, "file={},", property(lines.repository_path(frame.path, checked.log)));
        text.push_str(&position(frame, lines));
    }
    let _ = write!(text, "title={}::", property(&format!("{} {}", finding.rule, finding.name)));
    let _ = write!(text, "{}", data(&finding.told()));
    text
}

fn position(frame: &Frame<'_>, lines: &mut Lines<'_>) -> String {
    if frame.line == 0 {
        return String::new();
    }
    let mut text = format!("line={},", frame.line);
    if let Some(end) = frame.end_line.filter(|&end| end > frame.line) {
        let _ = write!(text, "endLine={end},");
    } else if let Some(column) = frame.column {
        // Columns are taken only for one line.
        let _ = write!(text, "col={},", lines.column(frame.path, frame.line, column));
        if let Some(end) = frame.end_column.filter(|&end| end > column) {
            let _ = write!(text, "endColumn={},", lines.column(frame.path, frame.line, end));
        }
    }
    text
}

/// The text of a command: everything up to the end of the line.
fn data(text: &str) -> String {
    printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which a comma or colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
