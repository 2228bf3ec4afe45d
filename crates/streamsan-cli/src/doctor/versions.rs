//! Which versions of torch and Python were tested, and where others stand. The data is a file that
//! `scripts/test_versions.py` writes; the Python package reads it too.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const DATA: &str = include_str!("../../../../python/streamsan/versions.json");

/// What is known of versions.
#[derive(Debug, Deserialize)]
pub(crate) struct Versions {
    /// Versions of Python for which types and syntax are checked.
    python_checked: Vec<String>,
    known_not_to_work: Vec<Obstacle>,
    /// Why Python without a global interpreter lock does not work.
    free_threaded: String,
    python_notes: Vec<PythonNote>,
    /// By torch, then Python.
    tested: Vec<Tested>,
}

/// Pairs that do not work. A bound that is not there is none.
#[derive(Debug, Deserialize)]
struct Obstacle {
    torch_from: Option<String>,
    torch_to: Option<String>,
    python_from: Option<String>,
    python_to: Option<String>,
    why: String,
}

/// What is different with some versions of Python.
#[derive(Debug, Deserialize)]
struct PythonNote {
    python_from: Option<String>,
    python_to: Option<String>,
    note: String,
}

/// A pair on which tests were run.
#[derive(Debug, Deserialize)]
struct Tested {
    torch: String,
    cuda: String,
    python: String,
    suites: BTreeMap<String, Suite>,
}

/// What came of a part of the tests.
#[derive(Debug, Deserialize)]
struct Suite {
    passed: u32,
    failed: u32,
    failures: Vec<String>,
    // For the page alone.
    #[cfg(test)]
    skipped: u32,
    #[cfg(test)]
    commit: String,
    #[cfg(test)]
    date: String,
}

/// Where a pair of torch and Python stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Tests were run on it; the names of those that failed.
    Tested(Vec<String>),
    /// It was not tested, but versions on both sides of it were. Says so.
    Likely(String),
    /// It was not tested, and is newer or older than all that were. Says so.
    Unknown(String),
    /// It is known not to work. Says why.
    DoesNotWork(String),
}

/// Major and minor version; builds and repairs do not count. `None` if it does not begin with two numbers.
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    let mut number = || {
        let part = parts.next()?;
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse().ok()
    };
    Some((number()?, number()?))
}

fn within(version: (u32, u32), from: Option<&str>, to: Option<&str>) -> bool {
    from.and_then(minor).is_none_or(|from| from <= version)
        && to.and_then(minor).is_none_or(|to| version <= to)
}

impl Obstacle {
    fn holds(&self, torch: (u32, u32), python: (u32, u32)) -> bool {
        within(torch, self.torch_from.as_deref(), self.torch_to.as_deref())
            && within(python, self.python_from.as_deref(), self.python_to.as_deref())
    }
}

impl Tested {
    /// Tests that passed, and all that ran.
    fn counts(&self) -> (u32, u32) {
        self.suites
            .values()
            .fold((0, 0), |(passed, all), suite| (passed + suite.passed, all + suite.passed + suite.failed))
    }

    fn is_of(&self, torch: (u32, u32), python: (u32, u32)) -> bool {
        (minor(&self.torch), minor(&self.python)) == (Some(torch), Some(python))
    }
}

impl Versions {
    /// The data that this streamsan was built with.
    pub(crate) fn built_in() -> Self {
        serde_json::from_str(DATA).expect("a test reads this file")
    }

    /// Where a pair stands.
    pub(crate) fn standing(&self, torch: &str, python: &str, free_threaded: bool) -> Standing {
        if free_threaded {
            return Standing::DoesNotWork(self.free_threaded.clone());
        }
        let (Some(torch_minor), Some(python_minor)) = (minor(torch), minor(python)) else {
            return Standing::Unknown("this is no version that is known".to_owned());
        };
        if let Some(obstacle) =
            self.known_not_to_work.iter().find(|obstacle| obstacle.holds(torch_minor, python_minor))
        {
            return Standing::DoesNotWork(obstacle.why.clone());
        }
        if let Some(tested) = self.tested.iter().find(|tested| tested.is_of(torch_minor, python_minor)) {
            return Standing::Tested(
                tested.suites.values().flat_map(|suite| suite.failures.iter().cloned()).collect(),
            );
        }
        let torches = self.tested.iter().map(|tested| tested.torch.as_str());
        let pythons = self.tested.iter().map(|tested| tested.python.as_str());
        for (name, version, own, tested) in [
            ("torch", torch, torch_minor, torches.collect::<Vec<_>>()),
            ("Python", python, python_minor, pythons.collect()),
        ] {
            let oldest = tested.iter().min_by_key(|version| minor(version));
            let newest = tested.iter().max_by_key(|version| minor(version));
            let (word, bound) = match (oldest, newest) {
                (Some(oldest), _) if Some(own) < minor(oldest) => ("older", oldest),
                (_, Some(newest)) if Some(own) > minor(newest) => ("newer", newest),
                (Some(_), _) => continue,
                (None, _) => return Standing::Unknown("nothing was tested".to_owned()),
            };
            return Standing::Unknown(format!(
                "{name} {version} is {word} than any that was tested ({bound})"
            ));
        }
        let either = |(name, version): (&str, &str), found: bool| {
            if found {
                format!("{name} {version} was tested with others")
            } else {
                format!("{name} {version} lies between tested ones")
            }
        };
        let torch_found = self.tested.iter().any(|tested| minor(&tested.torch) == Some(torch_minor));
        let python_found = self.tested.iter().any(|tested| minor(&tested.python) == Some(python_minor));
        Standing::Likely(format!(
            "{}, and {}",
            either(("torch", torch), torch_found),
            either(("Python", python), python_found)
        ))
    }

    /// What is different with a version of Python.
    pub(crate) fn notes(&self, python: &str) -> impl Iterator<Item = &str> {
        let python = minor(python);
        self.python_notes
            .iter()
            .filter(move |note| {
                python.is_some_and(|python| {
                    within(python, note.python_from.as_deref(), note.python_to.as_deref())
                })
            })
            .map(|note| note.note.as_str())
    }

    /// The pairs as rows of cells: the head first, then one row for each torch.
    fn grid(&self) -> Vec<Vec<String>> {
        let mut head = vec!["torch".to_owned(), "CUDA".to_owned()];
        head.extend(self.python_checked.iter().map(|python| format!("Python {python}")));
        let mut rows = vec![head];
        for tested in &self.tested {
            let Some(torch) = minor(&tested.torch) else { continue };
            if rows.last().is_some_and(|row| minor(&row[0]) == Some(torch)) {
                continue;
            }
            let mut row = vec![tested.torch.clone(), tested.cuda.clone()];
            for python in self.python_checked.iter().filter_map(|python| minor(python)) {
                row.push(match self.tested.iter().find(|tested| tested.is_of(torch, python)) {
                    Some(tested) => {
                        let (passed, all) = tested.counts();
                        format!("{passed} of {all}")
                    }
                    None if self.known_not_to_work.iter().any(|obstacle| obstacle.holds(torch, python)) => {
                        "no".to_owned()
                    }
                    None => "untested".to_owned(),
                });
            }
            rows.push(row);
        }
        rows
    }

    /// The table for a terminal, indented.
    pub(crate) fn table(&self) -> String {
        let rows = self.grid();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let mut text = String::new();
        for row in &rows {
            let cells: Vec<String> =
                row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
            let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        }
        for obstacle in &self.known_not_to_work {
            let _ = writeln!(text, "  no: {}", obstacle.why);
        }
        text
    }
}

#[cfg(test)]
mod tests;
