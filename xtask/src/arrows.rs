//! Which crate may use which: the table of ARCHITECTURE.md as data.

use std::path::Path;

/// Crate, and ours that it may name in `[dependencies]`. Development dependencies are free.
const ARROWS: &[(&str, &[&str])] = &[
    ("streamsan-trace", &[]),
    ("streamsan-check", &["streamsan-trace"]),
    ("streamsan-report", &["streamsan-check", "streamsan-trace"]),
    ("streamsan-sim", &["streamsan-trace"]),
    ("streamsan-record", &["streamsan-trace", "streamsan-check"]),
    ("streamsan-device", &["streamsan-record", "streamsan-trace"]),
    ("streamsan-forward", &["streamsan-record", "streamsan-trace"]),
    ("streamsan-driver", &[]),
    ("streamsan-import", &["streamsan-trace"]),
    ("streamsan-runtime", &["streamsan-record", "streamsan-trace", "streamsan-check"]),
    (
        "streamsan-cli",
        &[
            "streamsan-trace",
            "streamsan-check",
            "streamsan-report",
            "streamsan-sim",
            "streamsan-record",
            "streamsan-import",
        ],
    ),
    (
        "streamsan-py",
        &[
            "streamsan-trace",
            "streamsan-record",
            "streamsan-check",
            "streamsan-report",
            "streamsan-runtime",
            "streamsan-cli",
        ],
    ),
    ("xtask", &[]),
];

/// Every arrow that is not in the table.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let crates =
        std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in crates.chain([root.join("xtask")]) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else {
            problems.push(format!("crates/{name}: no Cargo.toml"));
            continue;
        };
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("crates/{name}: not in the table of xtask/src/arrows.rs"));
            continue;
        };
        for used in dependencies(&manifest) {
            if !allowed.contains(&used.as_str()) {
                problems.push(format!(
                    "crates/{name}/Cargo.toml: {name} may not use {used} (xtask/src/arrows.rs)"
                ));
            }
        }
    }
    problems
}

fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && line.starts_with("streamsan-") {
            let end = line
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
                .unwrap_or(line.len());
            found.push(line[..end].to_owned());
        }
    }
    found
}
