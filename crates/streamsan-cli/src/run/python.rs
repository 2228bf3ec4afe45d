//! The interpreter that runs the program, and what a short probe says of it.

use crate::environment as variables;
use crate::fault::Fault;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The CUDA major version of the runtime that the device library stands in for.
pub(crate) const CUDA_MAJOR: &str = "13";

/// Prints `key=value` lines. Does not import torch: that takes seconds, and would start CUDA.
const PROBE: &str = include_str!("probe.py");

/// An interpreter.
#[derive(Debug)]
pub(crate) struct Python {
    executable: OsString,
    /// What the probe said.
    facts: BTreeMap<String, String>,
}

impl Python {
    /// The interpreter that the console script runs in, else `python3` on the path.
    pub(crate) fn find() -> Result<Self, Fault> {
        let executable = std::env::var_os(variables::PYTHON)
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| "python3".into());
        let shown = executable.to_string_lossy().into_owned();
        let output = Command::new(&executable).arg("-c").arg(PROBE).output().map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "it was not found".to_owned(),
                _ => error.to_string(),
            };
            Fault::new(format!("cannot start the Python interpreter {shown}: {reason}"))
                .help("install streamsan into the environment of the program, or set STREAMSAN_PYTHON")
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or("it said nothing").to_owned();
            return Err(Fault::new(format!("the Python interpreter {shown} does not work: {last}")));
        }
        Ok(Self::from_facts(executable, &said))
    }

    pub(crate) fn from_facts(executable: OsString, said: &str) -> Self {
        let pairs = said.lines().filter_map(|line| line.split_once('='));
        let facts = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { executable, facts }
    }

    pub(crate) fn executable(&self) -> &OsStr {
        &self.executable
    }

    /// One fact; empty if the probe did not say it.
    pub(crate) fn fact(&self, key: &str) -> &str {
        self.facts.get(key).map_or("", String::as_str)
    }

    /// `Python 3.11 (/usr/bin/python3)`.
    pub(crate) fn shown(&self) -> String {
        format!("Python {} ({})", self.fact("python"), self.fact("executable"))
    }

    /// Whether it was built without the global interpreter lock.
    pub(crate) fn is_free_threaded(&self) -> bool {
        self.fact("free_threaded") == "1"
    }

    /// Whether a preloaded library can work in this interpreter.
    pub(crate) fn can_record(&self) -> Result<(), Fault> {
        let (system, machine, libc) = (self.fact("system"), self.fact("machine"), self.fact("libc"));
        if system != "linux" || machine != "x86_64" {
            return Err(Fault::new(format!("cannot record here: this is {system} on {machine}")).help(
                "recording needs Linux on x86-64; traces from there can be checked here: streamsan check",
            ));
        }
        if !libc.starts_with("glibc") {
            let libc = if libc.is_empty() { "musl or another C library" } else { libc };
            return Err(Fault::new(format!("cannot record here: this Python uses {libc}"))
                .help("use a Python for glibc, such as that of Debian, Ubuntu, Fedora or conda"));
        }
        Ok(())
    }

    /// Whether its torch is one that the device library stands in for.
    pub(crate) fn has_suitable_torch(&self) -> Result<(), Fault> {
        let shown = self.shown();
        if self.fact("torch_folder").is_empty() {
            return Err(Fault::new(format!("there is no torch in {shown}")).help(
                "install it there (pip install torch), or use the streamsan of the environment that has it",
            ));
        }
        let (version, cuda) = (self.fact("torch"), self.fact("torch_cuda"));
        let install = format!(
            "no GPU is needed, but the CUDA {CUDA_MAJOR} build of torch is, which `pip install torch` gives on Linux"
        );
        if cuda.is_empty() {
            let build = if self.fact("torch_hip").is_empty() { "a CPU-only build" } else { "built for ROCm" };
            return Err(Fault::new(format!("torch {version} in {shown} is {build}")).help(install));
        }
        if cuda.split('.').next() != Some(CUDA_MAJOR) {
            return Err(Fault::new(format!(
                "torch {version} in {shown} is built for CUDA {cuda}; this streamsan works with CUDA {CUDA_MAJOR}"
            ))
            .help(install));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Python;

    const GOOD: &str = "python=3.11.2\nexecutable=/usr/bin/python3\nsystem=linux\nmachine=x86_64\nlibc=glibc 2.36\n\
                        torch_folder=/site/torch\ntorch=2.11.0+cu130\ntorch_cuda=13.0\ntorch_hip=\n";

    fn verdict(change: (&str, &str)) -> String {
        let python = Python::from_facts("python3".into(), &GOOD.replace(change.0, change.1));
        match python.can_record().and_then(|()| python.has_suitable_torch()) {
            Ok(()) => "fine".to_owned(),
            Err(fault) => fault.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn each_obstacle_has_its_sentence() {
        assert_eq!(verdict(("", "")), "fine");
        let cases = [
            (("=linux", "=darwin"), "error: cannot record here: this is darwin on x86_64"),
            (("x86_64", "aarch64"), "error: cannot record here: this is linux on aarch64"),
            (("glibc 2.36", ""), "error: cannot record here: this Python uses musl or another C library"),
            (("=/site/torch", "="), "error: there is no torch in Python 3.11.2 (/usr/bin/python3)"),
            (
                ("torch_cuda=13.0", "torch_cuda="),
                "error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is a CPU-only build",
            ),
            (
                ("torch_cuda=13.0\ntorch_hip=", "torch_cuda=\ntorch_hip=7.1"),
                "error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is built for ROCm",
            ),
            (
                ("torch_cuda=13.0", "torch_cuda=12.8"),
                "error: torch 2.11.0+cu130 in Python 3.11.2 (/usr/bin/python3) is built for CUDA 12.8; this streamsan works with CUDA 13",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(verdict(change), expected);
        }
    }
}
