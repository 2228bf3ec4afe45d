//! The GPUs that a program started from here would find.

use crate::run::python::Python;
use std::process::Command;

/// Prints `key=value` lines. In a process of its own: it starts CUDA, which cannot be undone.
const PROBE: &str = include_str!("gpus.py");

/// What the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// There are some.
    Found {
        /// How many.
        count: u32,
        /// What the first is called.
        name: String,
        /// The version of CUDA that the driver is for.
        driver: String,
    },
    /// There is none that CUDA can use: why.
    None(String),
}

impl Gpus {
    /// Asks the driver.
    pub(crate) fn ask(python: &Python) -> Self {
        let Ok(output) = Command::new(python.executable()).arg("-c").arg(PROBE).output() else {
            return Self::None(format!("{} did not start", python.shown()));
        };
        Self::from_facts(&Python::from_facts(
            python.executable().to_owned(),
            &String::from_utf8_lossy(&output.stdout),
        ))
    }

    fn from_facts(facts: &Python) -> Self {
        let text = |key: &str| facts.fact(key).to_owned();
        match facts.fact("gpu_count").parse() {
            Ok(count) => Self::Found { count, name: text("gpu_name"), driver: text("gpu_driver") },
            Err(_) if facts.fact("gpu_trouble").is_empty() => {
                Self::None("the CUDA driver gives no answer".to_owned())
            }
            Err(_) => Self::None(text("gpu_trouble")),
        }
    }

    /// Such as `NVIDIA H200`, or `4 of NVIDIA H200`.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Found { count: 1, name, .. } => name.clone(),
            Self::Found { count, name, .. } => format!("{count} of {name}"),
            Self::None(why) => format!("none: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(said: &str) -> Gpus {
        Gpus::from_facts(&Python::from_facts("python3".into(), said))
    }

    #[test]
    fn the_answer_is_read() {
        let found = from("gpu_count=1\ngpu_name=NVIDIA H200\ngpu_driver=13.0\n");
        assert_eq!(found.shown(), "NVIDIA H200");
        assert_eq!(from("gpu_count=4\ngpu_name=NVIDIA H200\n").shown(), "4 of NVIDIA H200");
        assert_eq!(from("gpu_trouble=there is no driver\n").shown(), "none: there is no driver");
        assert_eq!(from("").shown(), "none: the CUDA driver gives no answer");
    }
}
