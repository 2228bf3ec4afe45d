//! Questions to a live check, answered in words.

use super::{LiveTrace, View};
use crate::TOOL;
use crate::reports::Files;
use std::collections::BTreeSet;
use streamsan_check::{Finding, Question, Report};
use streamsan_report::{Checked, Format, Names, Options, render, summary};

/// Access that a program is about to make to an argument of a call.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Number of the argument, for whoever asks.
    pub argument: usize,
    /// The access.
    pub question: Question<'a>,
    /// Whether it is to be kept by `record_stream` already.
    pub recorded: bool,
}

/// What is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Number of the argument.
    pub argument: usize,
    /// `None`: the access is not ordered, and this is the report. Else the memory's owner and the stream that is about to
    /// use it, for which it was not recorded.
    pub streams: Option<(String, String)>,
    /// The report, with the source lines.
    pub text: String,
}

/// What is wrong with a call, if anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// What is wrong with each argument.
    pub answers: Vec<Answer>,
    /// A report of all findings, as JSON.
    pub json: String,
    /// The same, a line for each.
    pub concise: String,
}

impl LiveTrace {
    /// Looks whether accesses would be ordered, and their memory kept, if they were made now.
    pub fn ask(&mut self, asked: &[Asked<'_>]) -> Answers {
        let Some(tables) = self.follower.tables() else { return Answers::default() };
        let mut wrong: Vec<(&Asked<'_>, Vec<Finding>)> = Vec::new();
        let mut unkept = Vec::new();
        for one in asked {
            let findings = self.check.ask(&one.question, tables);
            if !findings.is_empty() {
                wrong.push((one, findings));
            }
            let (block, stream) = (one.question.access.block, one.question.stream);
            if one.recorded
                && let Some(owner) = self.check.unrecorded_owner(block, stream)
            {
                unkept.push((one.argument, owner, stream));
            }
        }
        if wrong.is_empty() && unkept.is_empty() {
            return Answers::default();
        }
        self.tell(&wrong, &unkept)
    }

    fn tell(
        &self,
        wrong: &[(&Asked<'_>, Vec<Finding>)],
        unkept: &[(usize, streamsan_trace::StreamId, streamsan_trace::StreamId)],
    ) -> Answers {
        let (Some(header), Some(tables)) = (self.follower.header(), self.follower.tables()) else {
            return Answers::default();
        };
        let blocks: BTreeSet<_> = wrong
            .iter()
            .flat_map(|(_, findings)| findings)
            .flat_map(|finding| [finding.memory, finding.old_memory])
            .flatten()
            .map(|memory| memory.block)
            .collect();
        let view = View::new(header, tables, &self.known, &blocks);
        let sources = Files { directories: vec![header.directory.clone()] };
        let file = self.path.display().to_string();
        let options = Options { color: false, tool: TOOL, limit: None, width: None };
        let write = |format, findings: &[Finding]| {
            let report = Report { findings: findings.to_vec(), ..Report::default() };
            let checked = [Checked { file: &file, log: &view, report: &report }];
            let text = render(format, &checked, &sources, &options);
            // What was seen in all is said at the end of the run.
            let end = text
                .strip_suffix(&summary(&checked, None))
                .and_then(|rest| rest.trim_end().rsplit_once("\n\n"));
            match (format, end) {
                (Format::Full, Some((findings, _numbered))) => findings.to_owned(),
                _ => text,
            }
        };
        let mut answers: Vec<Answer> = wrong
            .iter()
            .map(|(one, findings)| Answer {
                argument: one.argument,
                streams: None,
                text: write(Format::Full, findings),
            })
            .collect();
        let names = Names::of_blocks(&view, &blocks);
        answers.extend(unkept.iter().map(|&(argument, owner, stream)| Answer {
            argument,
            streams: Some((names.stream(owner), names.stream(stream))),
            text: String::new(),
        }));
        answers.sort_by_key(|answer| answer.argument);
        let all: Vec<Finding> = wrong.iter().flat_map(|(_, findings)| findings.clone()).collect();
        Answers { answers, json: write(Format::Json, &all), concise: write(Format::Concise, &all) }
    }
}
