//! `streamsan explain`: the page of a rule, the list of rules, the limits.

use crate::ExitStatus;
use crate::arguments::ExplainArguments;
use crate::fault::Fault;
use crate::nearest::nearest;
use crate::output;
use std::fmt::Write as _;
use streamsan_check::{Level, Rule};

const LIMITS: &str = include_str!("pages/limits.md");

/// Stands before the first `sim` block of a page.
const SIM: &str = "As a stream program (the language: docs/programs.md):";

pub(crate) fn explain(arguments: &ExplainArguments) -> Result<i32, Fault> {
    let width = output::columns_stdout();
    let text = match arguments.topic.to_ascii_lowercase().as_str() {
        "limits" => LIMITS.to_owned(),
        "rules" => list(width),
        topic => match Rule::parse(topic) {
            Some(rule) => page(rule),
            None => return Err(unknown(&arguments.topic)),
        },
    };
    output::print(&width.map_or_else(|| text.clone(), |width| streamsan_report::folded_page(&text, width)));
    Ok(ExitStatus::Clean.code())
}

/// The page for a terminal: without what is meant for programs, and with a word on the `sim` blocks.
fn page(rule: Rule) -> String {
    let mut text = String::new();
    let mut comment = false;
    let mut blank = false;
    for line in rule.page().lines() {
        comment |= line.trim_start().starts_with("<!--");
        let skipped = comment || blank && line.is_empty();
        comment &= !line.trim_end().ends_with("-->");
        if skipped {
            continue;
        }
        if line == "```sim" && !text.contains(SIM) {
            let _ = writeln!(text, "{SIM}\n");
        }
        let _ = writeln!(text, "{line}");
        blank = line.is_empty();
    }
    text
}

fn unknown(topic: &str) -> Fault {
    let topics = Rule::all().flat_map(|rule| [rule.code(), rule.name()]).chain(["rules", "limits"]);
    let fault = Fault::new(format!("there is no rule {topic}"));
    match nearest(topic, topics) {
        Some(near) => fault.help(format!("did you mean `streamsan explain {near}`?")),
        None => fault.help("`streamsan explain rules` lists them"),
    }
}

/// One line for each rule, for `grep`; on a terminal that is too narrow for that, two.
fn list(columns: Option<usize>) -> String {
    let width = Rule::all().map(|rule| rule.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in Rule::all() {
        let level = match rule.level() {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let head = format!("{}  {:<width$}  {level:<7}", rule.code(), rule.name());
        let fits = columns.is_none_or(|columns| head.len() + 2 + rule.summary().len() <= columns);
        let between = if fits { "  " } else { "\n       " };
        let _ = writeln!(text, "{}{between}{}", if fits { &head } else { head.trim_end() }, rule.summary());
    }
    text
}
