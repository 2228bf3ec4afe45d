//! What runtime calls of a thread are attributed to: call stack, forward stack, label.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use streamsan_record::table::RawAccess;
use streamsan_trace::{AccessMode, OpKind};

use crate::ranges;
use crate::stack::{self, Frames, Stack, intern_site};
use crate::table::{has_page_locked, intern_text, table};
use crate::tensor::access;

/// One call of the autograd engine by user code.
pub struct BackwardCall {
    /// Frames of the call, innermost first, with those of the call around it if it was made inside of one.
    frames: Vec<u32>,
    /// The same as an interned stack.
    site: u32,
    /// The thread that made the call, on which the forward operations ran.
    pub caller: u64,
    /// The ignores that the call was made in, as (site, label).
    ignores: Vec<(u32, u32)>,
    /// The call around this one.
    outer: Option<Arc<BackwardCall>>,
    active: AtomicBool,
}

/// Calls of the engine in progress, in order of their start.
static BACKWARD_CALLS: Mutex<Vec<Arc<BackwardCall>>> = Mutex::new(Vec::new());

impl BackwardCall {
    /// Registers a call made here and now.
    pub fn enter(py: Python<'_>) -> Arc<Self> {
        let frames = whole_stack(py).ids;
        let call = Arc::new(Self {
            site: intern_site(&frames),
            frames,
            caller: thread_number(),
            ignores: ranges::ignores(),
            outer: served(),
            active: AtomicBool::new(true),
        });
        BACKWARD_CALLS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&call));
        call
    }

    /// The call has returned.
    pub fn leave(self: &Arc<Self>) {
        self.active.store(false, Ordering::Relaxed);
        BACKWARD_CALLS.lock().unwrap_or_else(PoisonError::into_inner).retain(|call| !Arc::ptr_eq(call, self));
    }

    /// The call whose thread waits for this one: this call, or one around it.
    fn made_elsewhere(self: &Arc<Self>) -> Option<Arc<Self>> {
        std::iter::successors(Some(self), |call| call.outer.as_ref())
            .find(|call| call.caller != thread_number())
            .map(Arc::clone)
    }

    fn last() -> Option<Arc<Self>> {
        BACKWARD_CALLS.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }
}

#[derive(Clone, Copy, Default)]
struct Context {
    site: u32,
    forward_site: u32,
    label: u32,
    /// Whether it is an operator that is recorded with all that it touches.
    whole: bool,
    block_name: u32,
}

static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    static CURRENT: Cell<Context> = const {
        Cell::new(Context { site: 0, forward_site: 0, label: 0, whole: false, block_name: 0 })
    };
    static OUTER: RefCell<Vec<Context>> = const { RefCell::new(Vec::new()) };
    static SERVES: RefCell<Option<Arc<BackwardCall>>> = const { RefCell::new(None) };
}

/// A number for the calling thread, never used again.
pub fn thread_number() -> u64 {
    THREAD.with(|number| *number)
}

/// Says that the calling thread is one of the engine's and works for this call.
pub fn serve(call: &Arc<BackwardCall>) {
    SERVES.with_borrow_mut(|served| {
        if !served.as_ref().is_some_and(|known| Arc::ptr_eq(known, call)) {
            *served = Some(Arc::clone(call));
            if ranges::take_over(&call.ignores) {
                apply(CURRENT.get());
            }
        }
    });
}

/// The call that a thread of the engine works for.
fn served() -> Option<Arc<BackwardCall>> {
    SERVES.with_borrow_mut(|served| {
        let call = served.as_ref()?;
        if !call.active.load(Ordering::Relaxed) {
            *served = BackwardCall::last();
        }
        served.clone()
    })
}

/// The call whose frames follow those of this thread, if it is one of the engine's.
fn call_around(frames: &Frames) -> Option<Arc<BackwardCall>> {
    match served() {
        Some(call) => call.made_elsewhere(),
        None if frames.ids.is_empty() => BackwardCall::last(),
        None => None,
    }
}

/// The frames of this thread; on a thread of the engine, followed by those of the call it works for.
fn whole_stack(py: Python<'_>) -> Frames {
    let mut frames = stack::capture(py).frames.clone();
    if let Some(call) = call_around(&frames) {
        frames.ids.extend_from_slice(&call.frames);
    }
    frames
}

/// The stack of this thread; on a thread of the engine, followed by that of the call it works for.
pub fn capture(py: Python<'_>) -> Stack {
    let captured = stack::capture(py);
    match call_around(&captured.frames) {
        None => captured.stack,
        Some(call) => {
            let frames: Vec<u32> = captured.frames.ids.iter().chain(&call.frames).copied().collect();
            Stack { site: intern_site(&frames), ..captured.stack }
        }
    }
}

/// The same, and whether the innermost frame is the user's.
pub fn capture_with_caller(py: Python<'_>) -> (Stack, bool) {
    (capture(py), stack::capture(py).frames.by_user)
}

/// Called by the recorder before what has no context; `may_wait`: 0 for the interpreter not at all, 1 as long as it takes.
pub unsafe extern "C" fn locate(may_wait: u32) {
    if !holds_interpreter() && (may_wait == 0 || !has_python_state()) {
        return;
    }
    if inside() {
        return;
    }
    // A panic must not unwind into the runtime's caller; its message has been printed.
    drop(std::panic::catch_unwind(|| {
        if may_wait == LIMITED && !holds_interpreter() {
            locate_from_elsewhere();
        } else {
            attach(locate_callback);
        }
    }));
}

/// The recorder's number for an interpreter that is waited for only so long.
const LIMITED: u32 = 2;

/// How long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Has another thread take the interpreter and look at this one's frames. If that lasts too long the place is the last
/// that is known.
fn locate_from_elsewhere() {
    struct State(*mut ffi::PyThreadState);
    // SAFETY: only looked at with the interpreter held.
    unsafe impl Send for State {}
    // SAFETY: the function may be called from any thread.
    let state = State(unsafe { ffi::PyGILState_GetThisThreadState() });
    let (tell, told) = std::sync::mpsc::channel();
    let given_up = Arc::new(AtomicBool::new(false));
    let is_late = Arc::clone(&given_up);
    let look = move || {
        let state = state;
        Python::try_attach(|py| {
            if !is_late.load(Ordering::SeqCst) {
                // SAFETY: the thread waits, or has just given up; it cannot end its Python without the interpreter.
                let _receiver_may_be_gone = tell.send(unsafe { stack::capture_elsewhere(py, state.0) });
            }
        });
    };
    if std::thread::Builder::new().spawn(look).is_err() {
        return;
    }
    match told.recv_timeout(PATIENCE) {
        Ok(stack) => {
            apply(Context { site: stack.site, block_name: stack.block_name, ..Context::default() });
        }
        Err(_) => given_up.store(true, Ordering::SeqCst),
    }
}

/// Runs `action` with the interpreter, unless that is going down.
///
/// For functions that torch or the runtime calls: torch gives the interpreter away while an operator runs, also where the
/// operator was called from a function of this module. PyO3 counts calls and takes a thread inside such a function for
/// one that has the interpreter.
pub fn attach<R>(action: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // SAFETY: the functions may be called from any thread; what is taken is given back.
    unsafe {
        if holds_interpreter() || ffi::Py_IsInitialized() == 0 || !has_python_state() {
            return Python::try_attach(action);
        }
        let _held = Held(ffi::PyGILState_Ensure());
        Python::try_attach(action)
    }
}

/// The interpreter, taken for this thread. It is given back whatever happens in between, a panic included.
struct Held(ffi::PyGILState_STATE);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: on the thread that took it, and what was taken in between has been given back.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// Whether a call of this thread was entered whose place is that of all that happens in it.
pub fn inside() -> bool {
    // A thread that ends has no place to tell any more; memory of a static object can still be freed then.
    OUTER.try_with(|outer| !outer.borrow().is_empty()).unwrap_or(true)
}

/// Whether the calling thread holds the interpreter: then attaching waits for nobody.
fn holds_interpreter() -> bool {
    static CHECK: OnceLock<Option<unsafe extern "C" fn() -> c_int>> = OnceLock::new();
    let check = CHECK.get_or_init(|| {
        // SAFETY: a C string; the function has had this type in every release, and a missing one is null.
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr())) }
    });
    // SAFETY: the function may be called from any thread.
    check.is_some_and(|check| unsafe { check() } == 1)
}

/// Whether the calling thread has run Python: another one has no place to tell.
fn has_python_state() -> bool {
    // SAFETY: the function may be called from any thread once the interpreter is there, which loaded this module.
    unsafe { !ffi::PyGILState_GetThisThreadState().is_null() }
}

fn apply(context: Context) {
    CURRENT.set(context);
    if let Some(table) = table() {
        let set = if context.whole { table.set_operator } else { table.set_context };
        // SAFETY: the table's functions may be called from any thread.
        unsafe { set(context.site, context.forward_site, context.label) }
    }
}

/// Enters a call: what the runtime does until [`leave`] belongs to it.
pub fn enter(stack: Stack, forward_site: u32, label: u32) {
    enter_as(stack, forward_site, label, false);
}

/// The same, for an operator; `whole`: it is recorded with all that it touches on its device.
pub fn enter_as(stack: Stack, forward_site: u32, label: u32, whole: bool) {
    OUTER.with_borrow_mut(|outer| outer.push(CURRENT.get()));
    apply(Context { site: stack.site, forward_site, label, whole, block_name: stack.block_name });
}

/// Leaves the call entered last.
pub fn leave() {
    let outer = OUTER.with_borrow_mut(Vec::pop).unwrap_or_default();
    if OUTER.with_borrow(Vec::is_empty) {
        let site = SERVES.with_borrow(|served| served.as_ref().map_or(0, |call| call.site));
        apply(Context { site, ..Context::default() });
    } else {
        apply(outer);
    }
}

/// Name for a block that is allocated in the call entered last, or 0.
pub fn block_name() -> u32 {
    CURRENT.get().block_name
}

/// Label of the call entered last, or 0.
pub fn current_label() -> u32 {
    CURRENT.get().label
}

/// Gives a callback its place: that of the call it comes from, or else the stack. Returns the name for a
/// block that is allocated there, or 0.
pub fn locate_callback(py: Python<'_>) -> u32 {
    if OUTER.with_borrow(Vec::is_empty) {
        let stack = capture(py);
        apply(Context { site: stack.site, block_name: stack.block_name, ..Context::default() });
    }
    CURRENT.get().block_name
}

/// Enters a call made here: runtime calls until `clear_context` have this stack, and this label if given.
#[pyfunction]
#[pyo3(signature = (label=None))]
pub fn mark(py: Python<'_>, label: Option<&str>) {
    enter(capture(py), 0, label.map_or(0, intern_text));
}

/// Leaves the call entered by `mark`.
#[pyfunction]
pub fn clear_context() {
    leave();
}

/// Names a stream made here after the variable that it is assigned to. False if it is not assigned.
#[pyfunction]
pub fn name_stream_here(py: Python<'_>, stream: u64, device: u32) -> bool {
    let name = capture(py).value_name;
    let (Some(table), true) = (table(), name != 0) else {
        return false;
    };
    // SAFETY: the table's functions may be called from any thread.
    unsafe { (table.name_stream)(stream, device, name, 0) }
    true
}

/// Records a kernel without accesses, with the context of `mark`.
#[pyfunction]
pub fn record_launch(stream: u64, device: u32) {
    if let Some(table) = table() {
        // SAFETY: no accesses are given.
        unsafe { (table.operation)(stream, device, OpKind::Kernel as u32, 0, std::ptr::null(), 0) }
    }
}

/// Records that the host itself reads (or writes) the bytes of a tensor, with the context of `mark`.
#[pyfunction]
pub fn record_host_access(tensor: &Bound<'_, PyAny>, writes: bool) -> PyResult<()> {
    let Some(table) = table().filter(|_| has_page_locked()) else {
        return Ok(());
    };
    let mode = if writes { AccessMode::Write } else { AccessMode::Read };
    if let Some(access) = access(tensor, mode as u32, 0)? {
        // SAFETY: one access is given and lives through the call.
        unsafe { (table.host_access)(&raw const access, 1) }
    }
    Ok(())
}

/// Records that the host itself reads (or writes) `length` bytes, with the context of `mark`.
#[pyfunction]
pub fn record_host_bytes(address: u64, length: u64, writes: bool) {
    let mode = if writes { AccessMode::Write } else { AccessMode::Read };
    let access = RawAccess { address, length, shape: 0, mode: mode as u32, argument: 0, reserved: 0 };
    if let Some(table) = table() {
        // SAFETY: one access is given and lives through the call.
        unsafe { (table.host_access)(&raw const access, 1) }
    }
}
