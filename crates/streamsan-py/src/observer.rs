//! The dispatch mode's hot path without Python: an operator that runs as it is and is recorded.

use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use rustc_hash::FxHashMap;

use crate::context;
use crate::native_tensor::is_plain_class;
use crate::operation;
use crate::plan::{Path, Plan};
use crate::table::has_page_locked;
use crate::thread::{ThreadRecorder, new_node};

/// An operator that was called before.
struct Known {
    /// Keeps the operator alive, so that its address stays its own.
    _function: Py<PyAny>,
    /// What runs it.
    call: Py<PyAny>,
    /// The `Operator` of `streamsan.torch.plans`.
    operator: Py<PyAny>,
    plan: Py<Plan>,
    path: Path,
}

static KNOWN: OnceLock<Mutex<FxHashMap<usize, &'static Known>>> = OnceLock::new();

fn with_known<R>(action: impl FnOnce(&mut FxHashMap<usize, &'static Known>) -> R) -> R {
    action(&mut KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner))
}

/// Tells how an operator is recorded: `function` is what torch hands to a mode, `call` runs it. With `by_hand` the
/// mode's Python code does it.
#[pyfunction]
pub fn learn_operator(
    function: Py<PyAny>,
    call: Py<PyAny>,
    operator: Py<PyAny>,
    plan: &Bound<'_, Plan>,
    by_hand: bool,
) {
    let path = if by_hand { Path::ByHand } else { plan.get().path() };
    let address = function.as_ptr() as usize;
    let known = Known { _function: function, call, operator, plan: plan.clone().unbind(), path };
    with_known(|operators| {
        // As many as there are operators; they live to the end of the process.
        operators.entry(address).or_insert_with(|| Box::leak(Box::new(known)));
    });
}

/// What a mode that observes inherits: torch calls this function for each operator. What needs more than that the
/// operator runs and is recorded goes to the method `dispatch` of the mode.
#[pyclass(subclass, frozen, module = "streamsan._core")]
pub struct Observer {
    #[pyo3(get)]
    recorder: Py<ThreadRecorder>,
    /// Computes operators in their place, if there is no device that does.
    #[pyo3(get)]
    compute: Option<Py<PyAny>>,
}

#[pymethods]
impl Observer {
    /// Belongs to the thread that makes it.
    #[new]
    #[pyo3(signature = (compute=None))]
    fn new(py: Python<'_>, compute: Option<Py<PyAny>>) -> PyResult<Self> {
        Ok(Self { recorder: Py::new(py, ThreadRecorder::new())?, compute })
    }

    /// Runs an operator and records it.
    #[pyo3(signature = (func, types, args=None, kwargs=None))]
    fn __torch_dispatch__<'py>(
        slf: &Bound<'py, Self>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: Option<&Bound<'py, PyTuple>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let empty;
        let args = if let Some(args) = args {
            args
        } else {
            empty = PyTuple::empty(py);
            &empty
        };
        let none;
        let kwargs = if let Some(kwargs) = kwargs {
            kwargs
        } else {
            none = PyDict::new(py);
            &none
        };
        if types.len()? == 0 && is_faked(py)? {
            return func.call(args, Some(kwargs));
        }
        let known = with_known(|operators| operators.get(&(func.as_ptr() as usize)).copied());
        if let Some(known) = known
            && are_plain(types)
            && let Some(out) = slf.get().observe(py, known, args, kwargs, func)?
        {
            return Ok(out);
        }
        slf.call_method1(intern!(py, "dispatch"), (func, types, args, kwargs))
    }
}

/// Whether a fake mode is below ours. What it makes has no memory; without a tensor among the arguments nothing else
/// tells.
fn is_faked(py: Python<'_>) -> PyResult<bool> {
    static ASK: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (ask, which) = ASK.get_or_try_init(py, || {
        let native = py.import("torch._C")?;
        let which = native.getattr("_TorchDispatchModeKey")?.getattr("FAKE")?;
        PyResult::Ok((native.getattr("_get_dispatch_mode")?.unbind(), which.unbind()))
    })?;
    Ok(!ask.bind(py).call1((which,))?.is_none())
}

/// Whether all of these classes are those of plain tensors.
fn are_plain(types: &Bound<'_, PyAny>) -> bool {
    let Ok(types) = types.cast::<PyTuple>() else {
        return types.len().is_ok_and(|count| count == 0);
    };
    types.iter().all(|class| is_plain_class(class.as_ptr().cast()))
}

/// Leaves an operator however it ends.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        context::leave();
    }
}

impl Observer {
    /// `None` if this call is for the mode's Python code; nothing was done then.
    fn observe<'py>(
        &self,
        py: Python<'py>,
        known: &'static Known,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        func: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let plan = known.plan.get();
        if known.path == Path::ByHand {
            return Ok(None);
        }
        let device = plan.device(args, kwargs)?;
        if known.path.needs_python(args, kwargs, device)? {
            return Ok(None);
        }
        let run = || known.call.bind(py).call(args, Some(kwargs));
        let Ok(index) = u32::try_from(device) else {
            // What the host does with page-locked memory is not recorded here.
            if plan.touches_bytes() && (plan.page_locks(kwargs)? || has_page_locked()) {
                return Ok(None);
            }
            new_node(py)?;
            return run().map(Some);
        };
        let recorder = self.recorder.get();
        recorder.enter(py, plan, args, kwargs, new_node(py)?)?;
        if known.path == Path::View {
            return run().map(Some);
        }
        let _inside = Inside;
        if known.path == Path::Allocates {
            let out = run()?;
            operation::note_sizes(&out)?;
            return Ok(Some(out));
        }
        let out = match &self.compute {
            None => run()?,
            Some(compute) => compute.bind(py).call1((&known.operator, func, args, kwargs, device))?,
        };
        operation::record(py, plan, index, args, kwargs, &out, 0)?;
        Ok(Some(out))
    }
}
