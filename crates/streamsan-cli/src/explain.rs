//! `streamsan explain`: the page of a rule, the list of rules, the limits.

use crate::ExitStatus;
use crate::arguments::ExplainArguments;
use crate::fault::Fault;
use crate::output;
use std::fmt::Write as _;
use streamsan_check::{Level, Rule};

const LIMITS: &str = include_str!("pages/limits.md");

pub(crate) fn explain(arguments: &ExplainArguments) -> Result<i32, Fault> {
    let text = match arguments.topic.to_ascii_lowercase().as_str() {
        "limits" => LIMITS.to_owned(),
        "rules" => list(),
        topic => match Rule::parse(topic) {
            Some(rule) => rule.page().to_owned(),
            None => {
                return Err(Fault::new(format!("there is no rule {}", arguments.topic))
                    .help("`streamsan explain rules` lists them"));
            }
        },
    };
    output::print(&text);
    Ok(ExitStatus::Clean.code())
}

fn list() -> String {
    let width = Rule::all().map(|rule| rule.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in Rule::all() {
        let level = match rule.level() {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let _ = writeln!(text, "{}  {:<width$}  {level:<7}  {}", rule.code(), rule.name(), rule.summary());
    }
    text
}
