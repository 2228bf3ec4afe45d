//! What is known of an operator before it is called: which arguments it reads and writes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::table::{has_page_locked, intern_text};
use crate::tensor::{device_index, device_of, for_each_tensor};
use crate::torch_functions::is_tensor;

/// Mode of an argument whose bytes are not touched.
pub const METADATA: u32 = u32::MAX;

/// Routes of operators that touch no bytes and allocate nothing themselves: views, and those that run as
/// the other operators they call.
const ROUTES_WITHOUT_RECORD: [u32; 2] = [0, 5];
const VIEW: u32 = 0;
/// The route of operators that allocate, or make runtime calls that record themselves.
const ALLOCATES: u32 = 1;
/// The route of copies, which may cross devices.
const COPY: u32 = 2;
/// The route of operators that are computed on host tensors: no runtime call shows what they read on the host.
const COMPUTE: u32 = 3;

/// One argument that may hold tensors.
pub struct Input {
    position: usize,
    name: Py<PyString>,
    /// `AccessMode` as a number, or [`METADATA`].
    pub mode: u32,
    /// The interned name.
    pub argument: u32,
}

impl Input {
    /// The argument's value, if it is given.
    fn value<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.position < args.len() {
            return args.get_item(self.position).map(Some);
        }
        if kwargs.is_empty() { Ok(None) } else { kwargs.get_item(&self.name) }
    }
}

/// An operator's plan, made once from its schema by `streamsan.torch.plans`.
#[pyclass(frozen, module = "streamsan._core")]
pub struct Plan {
    /// The interned label, such as `aten::mul`.
    pub label: u32,
    /// How it is executed; see `streamsan.torch.plans.Route`.
    #[pyo3(get)]
    pub route: u32,
    /// `OpKind` as a number.
    pub kind: u32,
    /// Arguments that may hold tensors.
    pub inputs: Vec<Input>,
    /// For each result, whether it is new memory that the operator fills.
    pub fills: Vec<bool>,
    page_locks: bool,
    /// Whether the operator may give a tensor other memory.
    may_move: bool,
}

/// What is done with an operator that runs as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Nothing of it is recorded.
    View,
    /// The memory that it makes is noted.
    Allocates,
    /// It is recorded with what it touches.
    Recorded,
    /// The same, for a copy that stays on its device.
    Copies,
    /// Something else.
    ByHand,
}

impl Path {
    /// Whether the arguments may ask for something that is not on this path: page-locked memory, another device.
    pub fn needs_python(
        self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        device: i32,
    ) -> PyResult<bool> {
        let py = args.py();
        let asked =
            |name| -> PyResult<bool> { kwargs.get_item(name)?.map_or(Ok(false), |value| value.is_truthy()) };
        match self {
            Self::View => Ok(false),
            Self::ByHand => Ok(true),
            Self::Allocates | Self::Recorded => Ok(!kwargs.is_empty() && asked(intern!(py, "pin_memory"))?),
            Self::Copies => {
                for name in [intern!(py, "device"), intern!(py, "src"), intern!(py, "pin_memory")] {
                    if !kwargs.is_empty() && kwargs.get_item(name)?.is_some_and(|value| !value.is_none()) {
                        return Ok(true);
                    }
                }
                for value in args.iter() {
                    if is_tensor(&value)? && device_index(&value)? != device {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

#[pymethods]
impl Plan {
    /// `inputs` holds position, name and mode (0 read, 1 write, 2 update, -1 metadata only) of each argument
    /// that may hold tensors; `fills` says for each result whether it is new memory that the operator fills.
    #[new]
    #[pyo3(signature = (label, route, kind, inputs, fills))]
    fn new(
        label: &str,
        route: u32,
        kind: u32,
        inputs: Vec<(usize, Bound<'_, PyString>, i32)>,
        fills: Vec<bool>,
    ) -> PyResult<Self> {
        let inputs = inputs
            .into_iter()
            .map(|(position, name, mode)| {
                Ok(Input {
                    position,
                    argument: intern_text(&name.to_cow()?),
                    name: name.unbind(),
                    mode: u32::try_from(mode).unwrap_or(METADATA),
                })
            })
            .collect::<PyResult<_>>()?;
        let page_locks = matches!(label, "aten::_pin_memory" | "aten::pin_memory");
        let may_move = matches!(label, "aten::resize_" | "aten::resize_as_");
        Ok(Self { label: intern_text(label), route, kind, inputs, fills, page_locks, may_move })
    }
}

impl Plan {
    /// What is done with the operator, if nothing speaks against it.
    pub fn path(&self) -> Path {
        match self.route {
            VIEW => Path::View,
            ALLOCATES => Path::Allocates,
            COMPUTE => Path::Recorded,
            COPY => Path::Copies,
            _ => Path::ByHand,
        }
    }

    /// Whether the operator is recorded itself.
    pub fn is_recorded(&self) -> bool {
        !ROUTES_WITHOUT_RECORD.contains(&self.route)
    }

    /// Whether its record says all that it touches on its device: then copies there that it makes are part of it.
    pub fn is_whole(&self) -> bool {
        matches!(self.route, COPY | COMPUTE)
    }

    /// Whether the operator, run on the host, may touch bytes of its arguments.
    pub fn touches_bytes(&self) -> bool {
        self.route != VIEW
    }

    /// Whether the operator, run on a device, reads its arguments that lie in host memory itself.
    pub fn reads_on_host(&self) -> bool {
        self.route == COMPUTE
    }

    /// Calls `action` with each tensor of the arguments.
    pub fn for_each_input<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        action: &mut dyn FnMut(&Input, &Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        for input in &self.inputs {
            if let Some(value) = input.value(args, kwargs)? {
                for_each_tensor(&value, &mut |tensor| action(input, tensor))?;
            }
        }
        Ok(())
    }

    /// Whether the operator, run on the host, makes page-locked memory, or may.
    pub fn page_locks(&self, kwargs: &Bound<'_, PyDict>) -> PyResult<bool> {
        if self.page_locks {
            return Ok(true);
        }
        if self.may_move && has_page_locked() {
            return Ok(true);
        }
        if kwargs.is_empty() {
            return Ok(false);
        }
        match kwargs.get_item(intern!(kwargs.py(), "pin_memory"))? {
            Some(asked) => asked.is_truthy(),
            None => Ok(false),
        }
    }

    /// That of the first tensor on a device, or -1.
    fn first_device(&self, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<i32> {
        for input in &self.inputs {
            if let Some(value) = input.value(args, kwargs)? {
                let device = device_of(&value)?;
                if device >= 0 {
                    return Ok(device);
                }
            }
        }
        Ok(-1)
    }

    /// The device on which the operator runs: that of its first device tensor, else the one it is asked to
    /// make its result on. -1 if it runs on the host.
    pub fn device(&self, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<i32> {
        let device = self.first_device(args, kwargs)?;
        if device >= 0 || kwargs.is_empty() {
            return Ok(device);
        }
        let py = args.py();
        let Some(asked) = kwargs.get_item(intern!(py, "device"))?.filter(|value| !value.is_none()) else {
            return Ok(-1);
        };
        let asked = if asked.is_instance_of::<PyString>() {
            py.import("torch")?.call_method1("device", (asked,))?
        } else {
            asked
        };
        let kind: String = asked.getattr(intern!(py, "type"))?.extract()?;
        if kind != "cuda" {
            return Ok(-1);
        }
        match asked.getattr(intern!(py, "index"))?.extract::<Option<i32>>()? {
            Some(index) => Ok(index),
            None => py.import("torch")?.getattr("cuda")?.call_method0("current_device")?.extract(),
        }
    }
}
