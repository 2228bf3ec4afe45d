//! `run --confirm`: the program runs again, with the first operation of a finding made late, to see whether a wrong
//! value shows.
//!
//! Two runs in which all devices are waited for before each second operation say what is right, and what differs by
//! itself. Then one run for each finding. What is compared are hashes of what the two operations wrote
//! (`python/streamsan/torch/confirm.py`), exit status and output. A value that stays right proves nothing.

mod plan;
mod snapshots;

use super::one_stream::{Difference, Folder, Observed, Side, Subject, differences};
use super::{End, child};
use crate::environment as variables;
use crate::fault::Fault;
use crate::output::say;
pub(super) use plan::Suspect;
use snapshots::Snapshots;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// How many findings are tried: each costs a run.
const MOST: usize = 10;
/// Read by the CUDA driver, for which it is `LAZY` where it is not set.
const MODULE_LOADING: &str = "CUDA_MODULE_LOADING";
/// How late the first operation is made, in milliseconds.
const LATE: u32 = 50;

/// What a run showed.
#[derive(Debug)]
struct Shown {
    end: End,
    observed: Observed,
    snapshots: Snapshots,
}

/// The runs of one program.
#[derive(Debug)]
pub(super) struct Confirmation<'a, Prepare> {
    pub(super) suspects: &'a [Suspect],
    pub(super) name: &'a str,
    /// Whether the program runs on the virtual device, where only copies can be late.
    pub(super) on_virtual_device: bool,
    /// Gives a command that writes its trace, if it writes one, to a path.
    pub(super) prepare: Prepare,
}

impl<Prepare: Fn(&Path) -> Result<Command, Fault>> Confirmation<'_, Prepare> {
    /// Runs the program again and says what came of it.
    pub(super) fn run(&self) -> Result<(), Fault> {
        if self.suspects.is_empty() {
            say("nothing to confirm: there are no errors with two operations");
            return Ok(());
        }
        let tried = &self.suspects[..self.suspects.len().min(MOST)];
        let folder = Folder::new("confirm")?;
        say(&format!(
            "confirming {}: the program runs {} more times, twice with all waits, then with one operation late",
            if tried.len() == 1 { "1 error".to_owned() } else { format!("{} errors", tried.len()) },
            tried.len() + 2
        ));
        let reference = self.once(&folder, "first", tried, None)?;
        let second = self.once(&folder, "second", tried, None)?;
        let mut confirmed = 0;
        let mut lines = Vec::new();
        for (index, suspect) in tried.iter().enumerate() {
            let late = self.once(&folder, &format!("late{index}"), tried, Some(index))?;
            let (shown, verdict) = self.verdict(suspect, index, &reference, &second, &late);
            confirmed += usize::from(shown);
            lines.push(format!("  {suspect}: {verdict}"));
        }
        say(&format!("confirmed {confirmed} of {}", tried.len()));
        for line in lines {
            say(&line);
        }
        for suspect in &self.suspects[tried.len()..] {
            say(&format!("  {suspect}: not tried: only {MOST} errors of a run are"));
        }
        Ok(())
    }

    fn once(
        &self,
        folder: &Folder,
        name: &str,
        tried: &[Suspect],
        late: Option<usize>,
    ) -> Result<Shown, Fault> {
        let results = folder.file(&format!("{name}.results"));
        std::fs::create_dir(&results)
            .map_err(|error| Fault::new(format!("cannot make the folder {}: {error}", results.display())))?;
        let path = folder.file(&format!("{name}.plan"));
        plan::write(&path, tried, late, LATE, &results)?;
        let mut command = (self.prepare)(&folder.file(&format!("{name}.sstrace")))?;
        let side = Side::new(&mut command, folder, name, false)?;
        command
            .env(variables::CONFIRM, &path)
            .env(variables::DELAY_COPIES, if late.is_some() { "1" } else { "0" });
        if self.loads_kernels_first() {
            command.env(MODULE_LOADING, "EAGER");
        }
        let end = child::run(command, self.name, |_| {})?;
        Ok(Shown { end, observed: side.finish(end), snapshots: Snapshots::read(&results) })
    }

    /// Whether all kernels are loaded when CUDA starts: to load one at its first launch waits for the device, which
    /// hides what is to be shown. Who has chosen keeps the choice.
    fn loads_kernels_first(&self) -> bool {
        !self.on_virtual_device && std::env::var_os(MODULE_LOADING).is_none()
    }

    /// Whether the finding showed, and the sentence for it.
    fn verdict(
        &self,
        suspect: &Suspect,
        index: usize,
        reference: &Shown,
        second: &Shown,
        late: &Shown,
    ) -> (bool, String) {
        let how = if self.on_virtual_device {
            "with copies as late as its waits allow".to_owned()
        } else {
            format!("with line {} late by {LATE} ms", suspect.first.line)
        };
        let compared = reference.snapshots.compare(&second.snapshots, &late.snapshots, index);
        if compared.other > 0 {
            let turns = if compared.turns == 1 { "execution" } else { "executions" };
            return (
                true,
                format!("confirmed: {how}, other bytes in {} of {} {turns}", compared.other, compared.turns),
            );
        }
        let own: BTreeSet<Subject> =
            differences(&reference.observed, &second.observed).into_iter().map(|one| one.what).collect();
        let by_output = differences(&late.observed, &reference.observed);
        // A delay of our own changes the times that a program prints.
        let counts = |one: &Difference| {
            self.on_virtual_device || !matches!(one.what, Subject::Line(_)) || one.is_in_words()
        };
        if let Some(one) = by_output.into_iter().find(|one| !own.contains(&one.what) && counts(one)) {
            return (
                true,
                format!("confirmed: {how}, the program showed something else: {}", one.told("in order")),
            );
        }
        let why = if late.end.code() != 0 && reference.end.code() == 0 {
            "the run with the delay failed"
        } else if late.snapshots.executions(index) == 0 {
            "the two lines were not seen again"
        } else if compared.turns == 0 && compared.unsteady > 0 {
            "the bytes differ from run to run by themselves (random numbers?): seed them"
        } else if compared.turns == 0 {
            "what the second operation did could not be looked at"
        } else if self.on_virtual_device {
            "the bytes were the same, but kernels are never late on the virtual device; a GPU shows more"
        } else if self.loads_kernels_first() {
            "the bytes were the same in this run, which proves nothing"
        } else {
            "the bytes were the same in this run, which proves nothing (with CUDA_MODULE_LOADING as it is set here, a kernel's first launch can wait by itself)"
        };
        (false, format!("not shown: {why}"))
    }
}
