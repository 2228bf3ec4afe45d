//! What the exit status says.

/// The exit statuses of streamsan itself. `run` otherwise keeps the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// No errors were found.
    Clean,
    /// `check`: errors were found.
    Errors,
    /// Wrong usage, an unreadable trace, or a bug in streamsan.
    Usage,
    /// Nothing was recorded, or not all: what is not there cannot be clean.
    NothingCaptured,
    /// `run`: the program exited 0 and errors were found. 66 unless `--error-exitcode` says otherwise.
    ErrorsInRun,
}

impl ExitStatus {
    /// The number.
    pub const fn code(self) -> i32 {
        match self {
            Self::Clean => 0,
            Self::Errors => 1,
            Self::Usage => 2,
            Self::NothingCaptured => 4,
            Self::ErrorsInRun => 66,
        }
    }
}

/// The table in `streamsan check --help`.
pub(crate) const CHECK_HELP: &str = "\
Exit status:
   0  no errors
   1  errors found, or warnings with --error-on-warning; 0 with --exit-zero
   2  wrong usage, a trace that cannot be read, or a bug in streamsan
   4  a trace holds no operation, or a part of it was lost and there are no errors in the rest";

/// The table in `streamsan advise --help`.
pub(crate) const ADVISE_HELP: &str = "\
Advice is the rules SS7, given beside the findings of `check`; --select SS7 leaves those out. What it means, and what
it cannot know: docs/advice.md, `streamsan explain SS703`.

Profiles of torch.profiler (.json, .json.gz) are read too: what bounds the program, what overlap could gain, what waits
cost; as text, json or html (a timeline per stream), on standard output or with -o. What each figure means:
docs/profiles.md.

Exit status: as of `check`. Advice never counts, unless --error or --warn give its rules another level.
   0  no errors
   1  errors found, or warnings with --error-on-warning; 0 with --exit-zero
   2  wrong usage, a trace that cannot be read, or a bug in streamsan
   4  a trace holds no operation, or a part of it was lost and there are no errors in the rest; nothing ran on a GPU in a
      profile";

/// The table in `streamsan run --help`.
pub(crate) const RUN_HELP: &str = "\
Exit status:
   0  the program exited 0 and there are no errors
  66  the program exited 0 and there are errors (--error-exitcode), or --halt-on-error ended it
   N  the program exited N, which is kept; 128 + N if signal N ended it
   2  wrong usage, or the program cannot be recorded here; it was not started
   4  the program exited 0, and nothing was recorded, or a part was lost (disk full) and there are no
      errors in the rest

Options of streamsan come before SCRIPT, -m or --; all that follows belongs to the program.";

#[cfg(test)]
mod tests {
    use super::{ADVISE_HELP, CHECK_HELP, ExitStatus, RUN_HELP};

    #[test]
    fn help_names_every_status() {
        for status in [ExitStatus::Clean, ExitStatus::Errors, ExitStatus::Usage, ExitStatus::NothingCaptured]
        {
            for help in [CHECK_HELP, ADVISE_HELP] {
                assert!(help.contains(&format!("\n{:>4}  ", status.code())), "{status:?}");
            }
        }
        for status in
            [ExitStatus::Clean, ExitStatus::ErrorsInRun, ExitStatus::Usage, ExitStatus::NothingCaptured]
        {
            assert!(RUN_HELP.contains(&format!("\n{:>4}  ", status.code())), "{status:?}");
        }
    }
}
