//! What a trace means: order, shadow memory, rules, fixes.

mod finding;
mod report;
mod rules;

pub use finding::{Actor, Finding, Fix, FixAction, Memory, Note, OrderedUpTo, Place};
pub use report::{Coverage, Gap, Report};
pub use rules::{Family, Level, Rule};

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct Config {}

/// Checks a trace.
pub fn check(_trace: &streamsan_trace::Trace, _config: &Config) -> Report {
    Report::default()
}
