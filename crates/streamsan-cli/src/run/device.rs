//! Where a program is run: on the virtual device, or on a GPU.

use super::in_front;
use super::installation::Installation;
use super::python::Python;
use crate::arguments::{Device, RunArguments};
use crate::environment as variables;
use crate::fault::Fault;
use crate::gpu::Gpus;
use std::process::Command;

/// What the run takes.
#[derive(Debug)]
pub(super) enum Taken {
    Virtual,
    Gpu(Gpus),
}

impl Taken {
    /// What the arguments ask for; with `auto`, a GPU if there is one.
    pub(super) fn choose(arguments: &RunArguments, python: &Python) -> Result<Self, Fault> {
        let only_virtual = only_virtual(arguments);
        // A program of a virtual run that starts us again finds the virtual device's driver.
        let inside = std::env::var_os(variables::DEVICE).is_some_and(|device| device == "virtual");
        match (arguments.device, only_virtual) {
            (Device::Virtual, _) | (Device::Auto, Some(_)) => Ok(Self::Virtual),
            (Device::Auto, None) if inside => Ok(Self::Virtual),
            (Device::Cuda, Some(option)) => {
                Err(Fault::new(format!("{option} is for the virtual device, and --device cuda is not"))
                    .help("--device virtual records the same program without a GPU"))
            }
            (Device::Cuda, None) => match Gpus::ask(python) {
                Gpus::None(why) => Err(Fault::new(format!("cannot record on a GPU: {why}"))
                    .help("--device virtual records the same program without a GPU")),
                found @ Gpus::Found { .. } => Ok(Self::Gpu(found)),
            },
            (Device::Auto, None) => Ok(match Gpus::ask(python) {
                Gpus::None(_) => Self::Virtual,
                found @ Gpus::Found { .. } => Self::Gpu(found),
            }),
        }
    }

    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual)
    }

    /// `the virtual device`, `the GPU (NVIDIA H200)`.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Virtual => "the virtual device".to_owned(),
            Self::Gpu(gpus) => format!("the GPU ({})", gpus.shown()),
        }
    }

    /// Has the program find the library that records it.
    pub(super) fn prepare(
        &self,
        command: &mut Command,
        arguments: &RunArguments,
        installation: &Installation,
    ) {
        let library = match self {
            Self::Virtual => installation.device_library(),
            Self::Gpu(_) => installation.forward_library(),
        };
        command.env("LD_PRELOAD", in_front(&library, "LD_PRELOAD"));
        match self {
            Self::Gpu(gpus) => {
                command.env(variables::DEVICE, "cuda");
                if let Gpus::Found { count, .. } = gpus {
                    command.env(variables::DEVICE_COUNT, count.to_string());
                }
            }
            Self::Virtual => {
                command
                    .env(variables::DEVICE, "virtual")
                    .env("LD_LIBRARY_PATH", in_front(&installation.virtual_libraries(), "LD_LIBRARY_PATH"));
                if let Some(bytes) = arguments.device_memory {
                    command.env(variables::DEVICE_MEMORY, bytes.to_string());
                }
                if arguments.delay_copies {
                    command.env(variables::DELAY_COPIES, "1");
                }
                if arguments.protect_host_memory {
                    command.env(variables::PROTECT, "1");
                }
                if let Some(count) = arguments.device_count {
                    command.env(variables::DEVICE_COUNT, count.to_string());
                }
            }
        }
    }
}

/// The first option that is given and has a meaning on the virtual device only.
fn only_virtual(arguments: &RunArguments) -> Option<&'static str> {
    let given = [
        (arguments.device_memory.is_some(), "--device-memory"),
        (arguments.device_count.is_some(), "--device-count"),
        (arguments.protect_host_memory, "--protect-host-memory"),
        (arguments.delay_copies, "--delay-copies"),
        (arguments.one_stream, "--one-stream"),
    ];
    given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
}
