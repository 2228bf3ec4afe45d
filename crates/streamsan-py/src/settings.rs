//! What the Python side tells once, before anything is recorded.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::context::locate;
use crate::table::table;

/// Where code comes from, and who is asked about new places in it.
pub struct Settings {
    /// Folders of the interpreter and of installed packages.
    library: Vec<String>,
    /// Folder of the streamsan package.
    own: String,
    /// Working directory at start.
    directory: PathBuf,
    /// Called once for each new position in user code.
    pub place_hook: Py<PyAny>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings, once [`configure`] was called.
pub fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// Tells where library code lies and who is asked about new places in user code.
///
/// `place_hook(frame, frame_id, file, line, end_line, column, end_column)` returns the name that the
/// statement gives to the value of that position, or None. Only the first call has an effect.
#[pyfunction]
pub fn configure(library: Vec<String>, own: String, directory: PathBuf, place_hook: Py<PyAny>) {
    let _already_set = SETTINGS.set(Settings { library, own, directory, place_hook });
    if let Some(table) = table() {
        // SAFETY: the function may be called from any thread, at any time.
        unsafe { (table.set_locator)(locate) }
    }
}

/// Whose code a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user's.
    User,
    /// A library's or the interpreter's.
    Library,
    /// Ours: left out of stacks.
    Streamsan,
}

impl Settings {
    /// The file's path, absolute if it is a file.
    pub fn absolute(&self, file: &str) -> String {
        if file.starts_with('<') || Path::new(file).is_absolute() {
            return file.to_owned();
        }
        let relative = file.strip_prefix("./").unwrap_or(file);
        self.directory.join(relative).to_string_lossy().into_owned()
    }

    /// Whose code a file is.
    pub fn owner(&self, file: &str) -> Owner {
        if file.starts_with('<') {
            let typed = ["<string>", "<stdin>", "<ipython-input"];
            return if typed.iter().any(|name| file.starts_with(name)) {
                Owner::User
            } else {
                Owner::Library
            };
        }
        if is_below(file, &self.own) {
            return Owner::Streamsan;
        }
        let installed = ["/site-packages/", "/dist-packages/"].iter().any(|part| file.contains(part));
        if installed || self.library.iter().any(|folder| is_below(file, folder)) {
            return Owner::Library;
        }
        Owner::User
    }
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}
