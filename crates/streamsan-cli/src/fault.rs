//! What went wrong, and what to do about it.

use std::fmt;

/// A reason to stop, for people. Leads to exit status 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    message: String,
    help: Option<String>,
}

impl Fault {
    /// What is wrong: a fragment that starts in lowercase.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// What to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Fault {
    /// The text without the word in front: for exceptions.
    pub(crate) fn plain(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("error: ").map(str::to_owned).unwrap_or(text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}
