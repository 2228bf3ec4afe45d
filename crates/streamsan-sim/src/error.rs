//! What is wrong with a program's text, where, and what to do.

use std::fmt::{Display, Formatter, Result};

/// A mistake in a program or in the markdown around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// The file.
    pub path: String,
    /// The line, from 1. 0 if the mistake has no line.
    pub line: u32,
    /// What is wrong and what to do: a lowercase fragment.
    pub message: String,
}

impl Display for ProgramError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        if self.line == 0 {
            write!(formatter, "{}: {}", self.path, self.message)
        } else {
            write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
        }
    }
}

impl std::error::Error for ProgramError {}
