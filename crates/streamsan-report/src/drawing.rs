//! Drawings of a run for files of their own: the streams, one finding, the operations.

use crate::dot;
use crate::graph::operations::Operations;
use crate::graph::{Effort, Survey, numbers};
use crate::headline::headline;
use crate::names::Names;
use crate::svg;
use crate::svg::lanes::Drawing;
use crate::{Checked, printable};
use std::collections::{BTreeSet, HashSet};
use streamsan_check::Report;
use streamsan_trace::{Log, OpNumber, StreamId};

pub use crate::graph::operations::{Selection, TooMany};

/// In which language a drawing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// An image for a browser.
    Svg,
    /// A graph for Graphviz.
    Dot,
}

/// Who waits for whom in a run.
pub fn streams(log: &dyn Log, language: Language) -> String {
    let survey = Survey::of_streams(log);
    let names = Names::of_blocks(log, &BTreeSet::new());
    let title = title(log, "who waits for whom");
    match language {
        Language::Svg => svg::streams::draw_file(&survey, &names, &title),
        Language::Dot => dot::streams::draw(&survey, &names, &title),
    }
}

/// The few operations that decide one finding: `index` counts from 0. `None` if there is no such finding.
pub fn finding(checked: &Checked<'_>, index: usize, language: Language) -> Option<String> {
    let found = checked.report.findings.get(index)?;
    let only = Report { findings: vec![found.clone()], ..Report::default() };
    let survey = Survey::new(checked.log, &only, Effort { slices: 1, events: 0 });
    let names = Names::new(checked.log, &only);
    let drawing = Drawing {
        slice: survey.slices.first()?,
        finding: found,
        lanes: &survey.lanes,
        log: checked.log,
        names: &names,
        operations: checked.report.coverage.operations,
    };
    let id = format!("F{}", index + 1);
    Some(match language {
        Language::Svg => drawing.file(&id),
        Language::Dot => {
            dot::slice::draw(&drawing, &format!("{id} {} {}", found.rule.code(), headline(found, &names)))
        }
    })
}

/// Operations and their order, in Graphviz's language; with the missing edges of `report`, if it is given.
///
/// # Errors
///
/// If the selection is more than can be drawn.
pub fn operations(log: &dyn Log, report: Option<&Report>, selection: &Selection) -> Result<String, TooMany> {
    let keep: HashSet<OpNumber> =
        report.into_iter().flat_map(|report| &report.findings).flat_map(numbers).collect();
    let operations = Operations::new(log, selection, &keep)?;
    let names = Names::of_blocks(log, &BTreeSet::new());
    Ok(dot::operations::draw(&operations, log, report, &names, &title(log, "operations and their order")))
}

/// The numbers of the operations of a finding, for [`Selection::seeds`].
pub fn operations_of(report: &Report, index: usize) -> Vec<OpNumber> {
    report.findings.get(index).map(|finding| numbers(finding).collect()).unwrap_or_default()
}

/// The streams that were used, with their names, in order of first use.
pub fn stream_names(log: &dyn Log) -> Vec<(StreamId, String)> {
    let survey = Survey::of_streams(log);
    let names = Names::of_blocks(log, &BTreeSet::new());
    let streams = survey.lanes.list.iter().filter_map(|lane| lane.stream);
    streams.map(|stream| (stream, printable(&names.stream_plain(stream)))).collect()
}

fn title(log: &dyn Log, what: &str) -> String {
    match log.header().command.as_str() {
        "" => what.to_owned(),
        command => format!("{}: {what}", svg::shorten(command, 80)),
    }
}
