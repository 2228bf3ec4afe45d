//! `streamsan doctor`: what can be recorded here, and with which versions that was tested.

mod versions;

use crate::fault::Fault;
use crate::gpu::Gpus;
use crate::run::installation::Installation;
use crate::run::python::Python;
use crate::{ExitStatus, TOOL, output};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use versions::{Standing, Versions};

/// Asks the device library for the version of its table; in a process of its own, as it takes over CUDA.
const TABLE_VERSION: &str = "\
import ctypes, sys
table = ctypes.CDLL(sys.argv[1]).streamsan_table
table.restype = ctypes.POINTER(ctypes.c_uint32)
print(table()[0])";

pub(crate) fn doctor() -> i32 {
    let mut obstacles: Vec<Fault> = Vec::new();
    let mut row = |name: &str, what: &str, fault: Option<Fault>| {
        let mark = if fault.is_some() { "  <- see below" } else { "" };
        output::print(&format!("  {name:<15} {what}{mark}\n"));
        obstacles.extend(fault);
    };
    output::print(&format!("{TOOL}\n"));
    let versions = Versions::built_in();
    let mut own = String::new();
    let mut gpus = None;
    match Python::find() {
        Err(fault) => row("Python", "not found", Some(fault)),
        Ok(python) => {
            let libc = Some(python.fact("libc")).filter(|libc| !libc.is_empty()).unwrap_or("no glibc");
            let platform = format!("{} {}, {libc}", python.fact("system"), python.fact("machine"));
            row("platform", &platform, python.can_record().err());
            row("Python", &format!("{} ({})", python.fact("python"), python.fact("executable")), None);
            row("torch", &torch(&python), python.has_suitable_torch().err());
            own = standing(&versions, &python);
            gpus = Some(Gpus::ask(&python));
            match Installation::find(&python) {
                Err(fault) => row("libraries", "not found", Some(fault)),
                Ok(installation) => {
                    for (name, library) in [
                        ("virtual device", installation.device_library()),
                        ("GPU recorder", installation.forward_library()),
                    ] {
                        let (text, fault) = library_version(python.executable(), &library);
                        row(name, &text, fault);
                    }
                    row("package", &installation.package().display().to_string(), None);
                }
            }
        }
    }
    row("GPU", &gpu(gpus.as_ref()), None);
    output::print(&format!(
        "\nTested with this streamsan (tests that passed, of those that ran):\n\n{}{own}",
        versions.table()
    ));
    for obstacle in &obstacles {
        output::print(&format!("\n{obstacle}\n"));
    }
    if obstacles.is_empty() {
        let place = match gpus {
            Some(Gpus::Found { .. }) => "on the GPU, or with --device virtual on the virtual device",
            _ => "on the virtual device",
        };
        output::print(&format!("\n`streamsan run` works here, {place}.\n"));
        return ExitStatus::Clean.code();
    }
    output::print("\n`streamsan run` does not work here yet; `streamsan check` and `streamsan demo` do.\n");
    ExitStatus::Usage.code()
}

/// Where the versions of an interpreter stand, in sentences.
fn standing(versions: &Versions, python: &Python) -> String {
    let (torch, version) = (python.fact("torch"), python.fact("python"));
    if torch.is_empty() {
        return String::new();
    }
    let verdict = match versions.standing(torch, version, python.is_free_threaded()) {
        Standing::Tested(failures) if failures.is_empty() => "tested".to_owned(),
        Standing::Tested(failures) => format!("tested; what failed: {}", failures.join(", ")),
        Standing::Likely(why) => format!("not tested, but likely to work: {why}"),
        Standing::Unknown(why) => format!("not tested, and it may not work: {why}; {UNKNOWN}"),
        Standing::DoesNotWork(why) => format!("known not to work: {why}"),
    };
    let mut text = format!("\nYours, torch {torch} with Python {version}: {verdict}.\n");
    for note in versions.notes(version) {
        let _ = writeln!(text, "{note}.");
    }
    text
}

/// What happens with versions that nobody has tried.
const UNKNOWN: &str = "what streamsan needs of torch is looked for when torch is imported, and a run stops with a message if it is not there";

/// What to say before a run with versions that were not tested, or that do not work.
pub(crate) fn warning(python: &Python) -> Option<String> {
    let torch = python.fact("torch");
    match Versions::built_in().standing(torch, python.fact("python"), python.is_free_threaded()) {
        Standing::Tested(..) | Standing::Likely(_) => None,
        Standing::Unknown(why) | Standing::DoesNotWork(why) => Some(format!("{why}; streamsan doctor")),
    }
}

fn torch(python: &Python) -> String {
    match (python.fact("torch_folder"), python.fact("torch"), python.fact("torch_cuda")) {
        ("", _, _) => "not installed".to_owned(),
        (_, version, "") => format!("{version} (without CUDA)"),
        (_, version, cuda) => format!("{version} (CUDA {cuda})"),
    }
}

fn library_version(python: &OsStr, library: &Path) -> (String, Option<Fault>) {
    let shown = library.display().to_string();
    let answer = Command::new(python).args(["-c", TABLE_VERSION]).arg(library).output();
    let version = answer.as_ref().ok().filter(|answer| answer.status.success()).map(|answer| {
        let version = String::from_utf8_lossy(&answer.stdout);
        version.trim().to_owned()
    });
    if let Some(version) = version {
        return (format!("{shown} (interface {version})"), None);
    }
    let said = answer.map(|answer| String::from_utf8_lossy(&answer.stderr).into_owned()).unwrap_or_default();
    let last = said.lines().last().unwrap_or("it said nothing");
    let fault = Fault::new(format!("the device library {shown} cannot be loaded: {last}"))
        .help("install it again: pip install --force-reinstall . in a clone of streamsan");
    (shown, Some(fault))
}

fn gpu(gpus: Option<&Gpus>) -> String {
    match gpus {
        Some(Gpus::Found { driver, .. }) => format!("{} (driver for CUDA {driver})", shown(gpus)),
        _ => format!("{}; none is needed for the virtual device", shown(gpus)),
    }
}

fn shown(gpus: Option<&Gpus>) -> String {
    gpus.map_or_else(|| "not asked for".to_owned(), Gpus::shown)
}
