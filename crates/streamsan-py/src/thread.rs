//! One user thread as the dispatch mode sees it.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustc_hash::FxHashMap;

use crate::context::{self, BackwardCall, capture, thread_number};
use crate::operation;
use crate::plan::Plan;
use crate::table::table;
use crate::torch_functions::{next_sequence_number, running_node};

/// Forward operations remembered for each thread that runs them.
const REMEMBERED: usize = 1 << 16;

/// Sites of forward operations by the sequence number of their node; old ones are overwritten.
struct ForwardSites(Vec<(u64, u32)>);

impl ForwardSites {
    fn new() -> Self {
        Self(vec![(u64::MAX, 0); REMEMBERED])
    }

    fn slot(number: u64) -> usize {
        number as usize % REMEMBERED
    }

    fn remember(&mut self, number: u64, site: u32) {
        self.0[Self::slot(number)] = (number, site);
    }

    fn site(&self, number: u64) -> Option<u32> {
        let (known, site) = self.0[Self::slot(number)];
        (known == number).then_some(site)
    }
}

#[derive(Default)]
struct State {
    backward_calls: Vec<Arc<BackwardCall>>,
    forward_sites: FxHashMap<u64, ForwardSites>,
}

thread_local! {
    /// The sequence number seen last: another value means that a node was made since.
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
}

/// What the dispatch mode of one user thread records. The engine's threads use that of the thread which
/// called backward.
#[pyclass(frozen, module = "streamsan._core")]
pub struct ThreadRecorder {
    owner: u64,
    state: Mutex<State>,
}

#[pymethods]
impl ThreadRecorder {
    /// Belongs to the thread that makes it.
    #[new]
    pub fn new() -> Self {
        Self { owner: thread_number(), state: Mutex::default() }
    }

    /// Before an operator runs. Returns the device it runs on, -1 for the host, or -2 for the host if the
    /// operator makes page-locked memory.
    ///
    /// Unless the answer is -1 or the operator is not recorded itself, `leave` must follow.
    fn begin(
        &self,
        py: Python<'_>,
        plan: &Bound<'_, Plan>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<i32> {
        let plan = plan.get();
        let device = plan.device(args, kwargs)?;
        let new_node = new_node(py)?;
        if device < 0 {
            if plan.touches_bytes() {
                record_host(py, plan, args, kwargs)?;
                if plan.page_locks(kwargs)? {
                    context::enter(capture(py), 0, plan.label);
                    return Ok(-2);
                }
            }
            return Ok(-1);
        }
        self.enter(py, plan, args, kwargs, new_node)?;
        Ok(device)
    }

    /// Records an operator between `begin` and `leave`; `flags` bit 0: it ends with a host wait.
    #[expect(clippy::unused_self, clippy::too_many_arguments, reason = "one call per operator")]
    fn record(
        &self,
        py: Python<'_>,
        plan: &Bound<'_, Plan>,
        device: u32,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        out: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        operation::record(py, plan.get(), device, args, kwargs, out, flags)
    }

    /// Records that a kernel reads (or writes) a tensor, between `begin` and `leave`.
    #[expect(clippy::unused_self, reason = "part of the same protocol")]
    fn record_tensor(&self, tensor: &Bound<'_, PyAny>, writes: bool) -> PyResult<()> {
        operation::record_tensor(tensor, writes)
    }

    /// Tells the recorder the sizes of blocks that a result brought to light.
    #[expect(clippy::unused_self, reason = "part of the same protocol")]
    fn note_sizes(&self, out: &Bound<'_, PyAny>) -> PyResult<()> {
        operation::note_sizes(out)
    }

    /// Announces the page-locked memory of a result and names it, between `begin` and `leave`.
    #[expect(clippy::unused_self, reason = "part of the same protocol")]
    fn announce_page_locked(&self, out: &Bound<'_, PyAny>) -> PyResult<()> {
        operation::announce_page_locked(out, context::block_name())
    }

    /// After an operator, whether it failed or not.
    #[expect(clippy::unused_self, reason = "part of the same protocol")]
    fn leave(&self) {
        context::leave();
    }

    /// The autograd engine is called here.
    fn enter_backward(&self, py: Python<'_>) {
        let call = BackwardCall::enter(py);
        self.state().backward_calls.push(call);
    }

    /// The call entered last has returned.
    fn leave_backward(&self) {
        let call = self.state().backward_calls.pop();
        if let Some(call) = call {
            call.leave();
        }
    }
}

impl ThreadRecorder {
    /// An operator is about to run on a device. If it is recorded itself, `context::leave` must follow.
    pub fn enter(
        &self,
        py: Python<'_>,
        plan: &Plan,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        new_node: Option<u64>,
    ) -> PyResult<()> {
        let call = self.state().backward_calls.last().cloned();
        if !plan.is_recorded() && new_node.is_none() {
            return Ok(());
        }
        if let Some(call) = &call
            && thread_number() != self.owner
        {
            context::serve(call);
        }
        let stack = capture(py);
        if let Some(number) = new_node {
            let mut state = self.state();
            state
                .forward_sites
                .entry(thread_number())
                .or_insert_with(ForwardSites::new)
                .remember(number, stack.site);
        }
        if plan.is_recorded() {
            let forward_site = self.forward_site(py, call.as_deref())?;
            context::enter_as(stack, forward_site, plan.label, plan.is_whole());
            if plan.reads_on_host() {
                put_host_accesses(plan, args, kwargs).inspect_err(|_| context::leave())?;
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Site of the forward operation whose node the engine runs now, or 0.
    fn forward_site(&self, py: Python<'_>, call: Option<&BackwardCall>) -> PyResult<u32> {
        let Some(call) = call else {
            return Ok(0);
        };
        let Some(number) = running_node(py)? else {
            return Ok(0);
        };
        let state = self.state();
        Ok(state.forward_sites.get(&call.caller).and_then(|sites| sites.site(number)).unwrap_or(0))
    }
}

/// Number of the node made on this thread since the last call, if one was.
pub fn new_node(py: Python<'_>) -> PyResult<Option<u64>> {
    let next = next_sequence_number(py)?;
    Ok((SEQUENCE.replace(next) != next).then(|| next.wrapping_sub(1)))
}

fn record_host(
    py: Python<'_>,
    plan: &Plan,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let accesses = operation::page_locked_accesses(plan, args, kwargs)?;
    let (Some(table), false) = (table(), accesses.is_empty()) else {
        return Ok(());
    };
    context::enter(capture(py), 0, plan.label);
    // SAFETY: pointer and length are those of `accesses`.
    unsafe { (table.host_access)(accesses.as_ptr(), accesses.len()) }
    context::leave();
    Ok(())
}

/// What the host reads of page-locked memory for an operator on a device, whose context is set: a number, an index.
fn put_host_accesses(plan: &Plan, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
    let accesses = operation::page_locked_accesses(plan, args, kwargs)?;
    if let (Some(table), false) = (table(), accesses.is_empty()) {
        // SAFETY: pointer and length are those of `accesses`.
        unsafe { (table.host_access)(accesses.as_ptr(), accesses.len()) }
    }
    Ok(())
}
