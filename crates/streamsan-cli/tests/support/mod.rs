//! Runs the command, in a folder of its own, with an interpreter that answers what the test wants.
//!
//! Each test file uses a part of this.
#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What the probe says of an interpreter in which everything is fine.
const FACTS: &str = "python=3.11.2\nexecutable=/usr/bin/python3\nsystem=linux\nmachine=x86_64\nlibc=glibc 2.36\n\
                     package=\ntorch_folder=/site/torch\ntorch=2.11.0+cu130\ntorch_cuda=13.0\ntorch_hip=\n";

/// A folder with traces, scripts, an interpreter and a package.
pub struct Workplace {
    folder: TempDir,
}

/// What a command said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Workplace {
    pub fn new() -> Self {
        let workplace = Self { folder: TempDir::new().expect("a temporary folder can be made") };
        workplace.write("facts", FACTS);
        // "Scripts" of these tests are shell scripts.
        workplace
            .program("python", "if [ \"$1\" = -c ]; then cat \"${0%/*}/facts\"; exit; fi\nexec sh \"$@\"");
        workplace.package();
        workplace
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("folders can be made");
        fs::write(path, text).expect("files can be written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Changes what the interpreter says of itself.
    pub fn fact(&self, from: &str, to: &str) {
        let facts = self.read("facts");
        assert!(facts.contains(from), "{facts}");
        self.write("facts", facts.replace(from, to));
    }

    pub fn program(&self, name: &str, body: &str) {
        self.write(name, format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("modes can be set");
    }

    /// A package whose library can be preloaded and does nothing: the recorder is not what is tested here.
    fn package(&self) {
        self.write("package/lib/virtual/libcuda.so.1", "");
        self.write("package/_startup/sitecustomize.py", "");
        for name in ["device", "forward"] {
            let path = self.path(&format!("package/lib/libstreamsan_{name}.so"));
            symlink(harmless_library(), path).expect("links can be made");
        }
    }

    /// Writes the trace of a stream program.
    pub fn trace(&self, name: &str, program: &str) {
        let parsed = streamsan_sim::parse("program.sim", program).expect("the program is right");
        let mut trace = streamsan_sim::lower(&parsed, "program.sim", "test").trace;
        trace.header.directory = self.folder.path().display().to_string();
        streamsan_trace::file::write(&trace, &self.path(name)).expect("traces can be written");
        self.write("program.sim", program);
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command
            .args(arguments.split(' ').filter(|word| !word.is_empty()))
            .current_dir(self.folder.path())
            .env("STREAMSAN_PYTHON", self.path("python"))
            .env("STREAMSAN_PACKAGE", self.path("package"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for variable in
            ["COLUMNS", "LINES", "CLICOLOR_FORCE", "STREAMSAN_OUTPUT_FORMAT", "STREAMSAN_TRACE", "LD_PRELOAD"]
        {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command line.
    #[track_caller]
    pub fn run(&self, arguments: &str) -> Said {
        self.said(self.command(arguments).output().expect("the command can be started"))
    }

    pub fn said(&self, output: Output) -> Said {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .expect("it speaks UTF-8")
                .replace(&self.folder.path().display().to_string(), "DIR")
        };
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs a command line that must stop with status 2, say exactly this, and print nothing.
    #[track_caller]
    pub fn refuses(&self, arguments: &str, expected: &str) {
        let said = self.run(arguments);
        assert_eq!((said.stderr.trim_end(), said.code, said.stdout.as_str()), (expected, 2, ""));
    }
}

/// A library that every test process has anyway.
fn harmless_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux says what is mapped");
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let found = paths
        .map(Path::new)
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libgcc_s.so")));
    found.expect("libgcc_s is mapped").to_owned()
}

/// One error: SS101 on line 4.
pub const BAD: &str = "streams default, side\nbuffer x 4MiB\ndefault: write x\nside: read x\n";

/// No finding.
pub const GOOD: &str =
    "streams default, side\nbuffer x 4MiB\ndefault: write x\ndefault: record e\nside: wait e\nside: read x\n";

/// A warning, SS401, and no error.
pub const WARNING: &str = "streams default, side\nbuffer x 4MiB\nside: wait e\nside: read x\n";

/// No operation.
pub const NOTHING: &str = "streams default, side\nbuffer x 4MiB\n";
