//! Reports made by hand, and how they read.

mod advice;
mod fix;
mod fixture;
mod formats;
mod graphs;
mod host;
mod lifetime;
mod perfetto;
mod reading;
mod relations;
mod summary;

use crate::{Checked, Format, Options, Sources, render};
use fixture::Case;

const FILES: [(&str, &str); 3] = [
    ("/work/job/train.py", include_str!("tests/train.txt")),
    ("/work/job/data.py", include_str!("tests/data.txt")),
    ("/work/job/loop.py", include_str!("tests/loop.txt")),
];

struct Fixed;

impl Sources for Fixed {
    fn text(&self, path: &str) -> Option<String> {
        FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned())
    }
}

fn full(case: &Case) -> String {
    rendered(case, Format::Full)
}

fn rendered(case: &Case, format: Format) -> String {
    let checked = Checked { file: "run.sstrace", log: &case.trace, report: &case.report };
    render(
        format,
        &[checked],
        &Fixed,
        &Options { color: false, tool: "streamsan 0.1.0", limit: None, width: Some(160) },
    )
}
