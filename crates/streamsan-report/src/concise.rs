//! One line for each finding, as editors and `grep` like it.

use crate::headline::short_headline;
use crate::names::Names;
use crate::places::{in_parentheses, locate, primary_site};
use crate::{Checked, summary};
use std::fmt::Write as _;
use streamsan_check::{Finding, Level};
use streamsan_trace::Log;

pub(crate) fn render(checked: &[Checked<'_>]) -> String {
    let mut text = String::new();
    for one in checked {
        let names = Names::new(one.log, one.report);
        for finding in &one.report.findings {
            let _ = writeln!(text, "{}", line(finding, one.log, &names));
        }
    }
    text.push_str(&summary::verdict(checked));
    text
}

/// The name of a level.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

fn line(finding: &Finding, log: &dyn Log, names: &Names<'_>) -> String {
    let place = locate(log, primary_site(finding))
        .map_or_else(|| "unknown place".to_owned(), |place| place.line_and_column());
    let (level, code) = (level(finding.level()), finding.rule.code());
    let what = short_headline(finding, names);
    let actors = match finding.first {
        Some(first) => {
            let place = in_parentheses(log, first.site);
            let (from, to) = (names.actor_plain(first.actor), names.actor_plain(finding.second.actor));
            format!(": {from} {}{place} -> {to} {}", first.number, finding.second.number)
        }
        None => format!(" ({})", finding.second.number),
    };
    let free = finding.free.and_then(|free| locate(log, free.site));
    let free = free.map_or_else(String::new, |place| format!(", freed at {}", place.line()));
    format!("{place}: {level}[{code}] {what}{actors}{free}")
}
