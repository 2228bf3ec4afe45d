//! What to do about a finding, with the code in its place.

use super::code::{Files, insertion};
use super::finding::Context;
use super::words::rich;
use crate::advice::{Advice, gone_with};
use crate::advised::Change;
use crate::svg::escape::escape;
use std::fmt::Write as _;
use streamsan_check::Finding;

/// The section of one finding.
pub(super) fn section(id: &str, finding: &Finding, context: &Context<'_>, files: &mut Files<'_>) -> String {
    let (log, report) = (context.checked.log, context.checked.report);
    let mut button = String::new();
    let mut body = String::new();
    if let Some(advised) = &finding.advice {
        let change = Change::new(finding, advised, log, context.names);
        let words = change.code.as_ref().and_then(|code| change.line.strip_suffix(code.as_str()));
        let _ = write!(body, "<p>{}</p>", rich(&capitalized(words.unwrap_or(&change.line))));
        body.extend(change.code.as_deref().map(alone));
        let standing = change.standing().map(capitalized);
        body.extend(standing.map(|text| format!("<p class=\"checked\">{}</p>", rich(&text))));
    } else if let Some(gone) = gone_with(finding, report, log) {
        let _ = write!(body, "<p>Nothing here: {}.</p>", rich(&gone));
    } else if let Some(fix) = &finding.fix {
        let advice = Advice::new(finding, fix, log, context.names);
        if let Some(code) = &advice.code {
            let label = format!("copy the fix of {id}");
            let _ = write!(
                button,
                "<button class=\"copier script\" type=\"button\" data-copy=\"{}\" aria-label=\"{label}\">Copy</button>",
                escape(code)
            );
        }
        describe(&advice, files, &mut body);
    } else {
        body.push_str("<p>No single change was found that removes it; the rule's page has the pattern.</p>");
    }
    format!("<section class=\"fix\"><div><h4>What to do</h4>{button}</div>{body}</section>")
}

fn describe(advice: &Advice<'_>, files: &mut Files<'_>, html: &mut String) {
    let line = advice.line();
    match &advice.code {
        Some(code) => {
            let words = line.strip_suffix(code.as_str()).unwrap_or(&line).trim_end_matches([' ', ':', '\n']);
            let _ = write!(html, "<p>{}:</p>", rich(&capitalized(words)));
            let change = advice.place.as_ref().and_then(|place| insertion(place, code, files));
            html.push_str(&change.unwrap_or_else(|| alone(code)));
        }
        None => {
            let _ = write!(html, "<p>{}</p>", rich(&capitalized(&line)));
        }
    }
    let class = if advice.verified { "checked" } else { "unchecked" };
    let _ = write!(html, "<p class=\"{class}\">{}</p>", rich(&capitalized(&advice.standing())));
    for alternative in &advice.alternatives {
        let _ = write!(html, "<p class=\"soft\">{}</p>", rich(alternative));
    }
}

/// Code where the lines around it are not at hand.
fn alone(code: &str) -> String {
    let lines =
        code.lines().map(|line| format!("<span class=\"line new\" data-n=\"+\">{}\n</span>", escape(line)));
    format!("<pre class=\"change\" tabindex=\"0\">{}</pre>", lines.collect::<String>())
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}
