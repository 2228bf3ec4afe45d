//! Where the parts of the Python package are.

use super::python::Python;
use crate::environment as variables;
use crate::fault::Fault;
use std::path::{Path, PathBuf};

/// The folder of the Python package, with the libraries in it.
#[derive(Debug)]
pub(crate) struct Installation {
    package: PathBuf,
}

impl Installation {
    /// Finds it: the console script says where; in a checkout it is beside the binary's folders; else the
    /// interpreter has it installed.
    pub(crate) fn find(python: &Python) -> Result<Self, Fault> {
        let found = Self::candidates(python).into_iter().map(|package| Self { package });
        let mut first = None;
        for installation in found {
            match installation.missing() {
                None => return Ok(installation),
                Some(missing) => first = first.or(Some(missing)),
            }
        }
        let message = match first {
            Some(missing) => {
                format!("this installation of streamsan is incomplete: there is no {}", missing.display())
            }
            None => format!("cannot find the Python package of streamsan, nor is it in {}", python.shown()),
        };
        Err(Fault::new(message)
            .help("install it again: pip install --force-reinstall . in a clone of streamsan"))
    }

    fn candidates(python: &Python) -> Vec<PathBuf> {
        if let Some(package) = std::env::var_os(variables::PACKAGE).filter(|value| !value.is_empty()) {
            return vec![PathBuf::from(package)];
        }
        let binary = std::env::current_exe().unwrap_or_default();
        let checkouts = binary.ancestors().map(|folder| folder.join("python/streamsan"));
        let installed = Some(python.fact("package")).filter(|path| !path.is_empty()).map(PathBuf::from);
        checkouts.filter(|path| path.is_dir()).chain(installed).collect()
    }

    /// The first part that is not there.
    fn missing(&self) -> Option<PathBuf> {
        let parts = [
            self.device_library(),
            self.forward_library(),
            self.virtual_libraries().join("libcuda.so.1"),
            self.startup().join("sitecustomize.py"),
        ];
        parts.into_iter().find(|part| !part.is_file())
    }

    /// The library to preload on the virtual device.
    pub(crate) fn device_library(&self) -> PathBuf {
        self.package.join("lib/libstreamsan_device.so")
    }

    /// The library to preload on a GPU.
    pub(crate) fn forward_library(&self) -> PathBuf {
        self.package.join("lib/libstreamsan_forward.so")
    }

    /// The folder of libraries that are found by name on the virtual device only.
    pub(crate) fn virtual_libraries(&self) -> PathBuf {
        self.package.join("lib/virtual")
    }

    /// The folder whose `sitecustomize` starts the torch layer.
    pub(crate) fn startup(&self) -> PathBuf {
        self.package.join("_startup")
    }

    /// The folder of the package.
    pub(crate) fn package(&self) -> &Path {
        &self.package
    }
}
