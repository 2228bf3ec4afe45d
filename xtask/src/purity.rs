//! What must be absent: files, clocks, environment and output in `check`; serialization outside `report`;
//! unsafe code outside the crates that need it.

use crate::tree;
use std::path::Path;

struct Absence {
    folder: &'static str,
    words: &'static [&'static str],
    reason: &'static str,
    /// One file that may have them.
    except: Option<&'static str>,
}

const ABSENCES: &[Absence] = &[
    Absence {
        folder: "crates/streamsan-check/src",
        words: &["std::fs", "std::env", "std::time", "std::io", "println!", "eprintln!", "serde", "Result<"],
        reason: "check is a pure function that cannot fail",
        except: None,
    },
    Absence {
        folder: "crates/streamsan-check/src",
        words: &["unsafe "],
        reason: "unsafe code lies in device, record, driver and the join of clocks only",
        except: Some("crates/streamsan-check/src/clock/join.rs"),
    },
    Absence {
        folder: "crates/streamsan-sim/src",
        words: &["VectorClock", "Epoch", "unsafe "],
        reason: "the judge knows nothing of clocks",
        except: None,
    },
    Absence {
        folder: "crates/streamsan-report/src",
        words: &["unsafe ", "std::env", "std::fs"],
        reason: "report only turns values into text",
        except: None,
    },
    Absence {
        folder: "crates/streamsan-trace/src",
        words: &["std::env"],
        reason: "the trace crate reads no environment",
        except: None,
    },
];

/// Every forbidden word that is there.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for path in tree::files(root) {
        if !tree::has_suffix(&path, "rs") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let applies = |absence: &&Absence| {
            path.starts_with(absence.folder) && absence.except.is_none_or(|except| !path.ends_with(except))
        };
        for absence in ABSENCES.iter().filter(applies) {
            for (index, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for word in absence.words.iter().filter(|word| code.contains(**word)) {
                    problems.push(format!("{}:{}: `{word}`: {}", path.display(), index + 1, absence.reason));
                }
            }
        }
    }
    problems
}
