//! `streamsan demo`: a small stream program, bad and fixed, through the real checker.

use crate::fault::Fault;
use crate::{ExitStatus, TOOL, output};
use streamsan_check::{Config, check};
use streamsan_report::{Checked, ColorChoice, Format, Options, Sources, render};

/// Name and text of a program.
struct Program {
    name: &'static str,
    text: &'static str,
}

const BAD: Program = Program { name: "bad.sim", text: include_str!("demo/bad.sim") };
const FIXED: Program = Program { name: "fixed.sim", text: include_str!("demo/fixed.sim") };

impl Sources for Program {
    fn text(&self, path: &str) -> Option<String> {
        (path == self.name).then(|| self.text.to_owned())
    }
}

pub(crate) fn demo(color: ColorChoice) -> Result<i32, Fault> {
    let color = output::colors_stdout(color);
    output::print("A program of two streams: the default stream uploads, `side` computes.\n\n");
    let errors = show(&BAD, color)?;
    output::print("\nThe same with an event between them:\n\n");
    let errors_left = show(&FIXED, color)?;
    if errors == 1 && errors_left == 0 {
        output::print("\nNext: streamsan run your_script.py\n");
        return Ok(ExitStatus::Clean.code());
    }
    Err(Fault::new(format!("the demo should give 1 error and then 0, not {errors} and {errors_left}"))
        .help("this is a bug in streamsan; please report it"))
}

/// Prints the program and its report. Gives the number of findings.
fn show(program: &Program, color: bool) -> Result<usize, Fault> {
    let parsed =
        streamsan_sim::parse(program.name, program.text).map_err(|error| Fault::new(error.to_string()))?;
    let trace = streamsan_sim::lower(&parsed, program.name, "demo").trace;
    let report = check(&trace, &Config::default());
    for line in program.text.lines() {
        output::print(&format!("    {line}\n"));
    }
    output::print("\n");
    let checked = Checked { file: program.name, log: &trace, report: &report };
    let options = Options { color, tool: TOOL, limit: None, width: output::columns_stdout() };
    output::print(&render(Format::Full, &[checked], program, &options));
    Ok(report.findings.len())
}
