//! Walking the Python stack of the calling thread.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::hash::Hasher;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock};

use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};

use crate::frames::{self, Known};
use crate::settings::Owner;
use crate::table::table;

/// Frames kept of one stack, innermost first.
const DEPTH: usize = 64;

/// A captured stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The interned stack; 0 is empty.
    pub site: u32,
    /// Name the innermost statement gives to a block allocated here, or 0.
    pub block_name: u32,
    /// Name the innermost user statement gives to its value, or 0.
    pub value_name: u32,
}

type FrameToObject = unsafe extern "C" fn(*mut PyObject) -> *mut PyObject;
type FrameToInt = unsafe extern "C" fn(*mut PyObject) -> c_int;

/// Accessors that the interpreter exports but its stable interface does not promise.
struct Accessors {
    back: Option<FrameToObject>,
    code: Option<FrameToObject>,
    instruction: Option<FrameToInt>,
}

static ACCESSORS: OnceLock<Accessors> = OnceLock::new();

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn accessors() -> &'static Accessors {
    ACCESSORS.get_or_init(|| {
        // SAFETY: these functions have had these types in every release that exports them; a missing one
        // is a null pointer, which is `None`.
        unsafe {
            Accessors {
                back: std::mem::transmute::<*mut c_void, Option<FrameToObject>>(symbol(c"PyFrame_GetBack")),
                code: std::mem::transmute::<*mut c_void, Option<FrameToObject>>(symbol(c"PyFrame_GetCode")),
                instruction: std::mem::transmute::<*mut c_void, Option<FrameToInt>>(symbol(
                    c"PyFrame_GetLasti",
                )),
            }
        }
    })
}

fn back<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    match accessors().back {
        // SAFETY: the function returns a new reference or null, and raises nothing.
        Some(function) => unsafe { Bound::from_owned_ptr_or_opt(frame.py(), function(frame.as_ptr())) },
        None => frame.getattr(intern!(frame.py(), "f_back")).ok().filter(|frame| !frame.is_none()),
    }
}

fn code<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    match accessors().code {
        // SAFETY: as above.
        Some(function) => unsafe { Bound::from_owned_ptr_or_opt(frame.py(), function(frame.as_ptr())) },
        None => frame.getattr(intern!(frame.py(), "f_code")).ok(),
    }
}

fn instruction(frame: &Bound<'_, PyAny>) -> c_int {
    match accessors().instruction {
        // SAFETY: the function reads the frame.
        Some(function) => unsafe { function(frame.as_ptr()) },
        None => frame
            .getattr(intern!(frame.py(), "f_lasti"))
            .and_then(|value| value.extract())
            .unwrap_or_default(),
    }
}

thread_local! {
    /// Set while Python code of ours describes a place: what it frees or allocates asks nobody.
    static DESCRIBING: Cell<bool> = const { Cell::new(false) };
}

static SITES: OnceLock<Mutex<FxHashMap<Box<[u32]>, u32>>> = OnceLock::new();

/// Interns a stack of frames, innermost first.
pub fn intern_site(stack: &[u32]) -> u32 {
    if stack.is_empty() {
        return 0;
    }
    let sites = SITES.get_or_init(Mutex::default);
    let mut sites = sites.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(&site) = sites.get(stack) {
        return site;
    }
    // SAFETY: pointer and length are those of `stack`.
    let site = table().map_or(0, |table| unsafe { (table.intern_site)(stack.as_ptr(), stack.len()) });
    if sites.len() >= 1 << 20 {
        sites.clear();
    }
    sites.insert(stack.into(), site);
    site
}

/// Frames of the calling thread, innermost first, ours left out.
#[derive(Clone, Default)]
pub struct Frames {
    /// Interned frames.
    pub ids: Vec<u32>,
    block_name: u32,
    value_name: u32,
    /// Whether the innermost frame is the user's.
    pub by_user: bool,
}

/// A position: the code object's address, and the instruction. The object lives as long as the position is known.
type Position = (usize, c_int);

/// A stack that this thread had before.
#[derive(Default)]
pub struct Captured {
    positions: Box<[Position]>,
    pub frames: Frames,
    /// The same, interned.
    pub stack: Stack,
}

/// Stacks that one thread had, by a hash of their positions.
#[derive(Default)]
struct Recent {
    /// Kept for its capacity.
    positions: Vec<Position>,
    known: FxHashMap<u64, Rc<Captured>>,
    /// Of the descriptions that they are made of.
    generation: u64,
}

/// Stacks remembered for each thread.
const REMEMBERED: usize = 1 << 12;

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// The stack of the calling thread, innermost frame first, ours left out; empty on a thread that runs no Python.
pub fn capture(py: Python<'_>) -> Rc<Captured> {
    // Taken out: describing a place runs Python, which may come here again.
    let mut recent = RECENT.take();
    recent.positions.clear();
    let mut hasher = FxHasher::default();
    for_each_frame(py, |frame, code| {
        let position = (code.as_ptr() as usize, instruction(frame));
        hasher.write_usize(position.0);
        hasher.write_i32(position.1);
        recent.positions.push(position);
    });
    let hash = hasher.finish();
    let generation = frames::generation();
    if recent.generation != generation || recent.known.len() >= REMEMBERED {
        recent.known.clear();
        recent.generation = generation;
    }
    let found = recent.known.get(&hash).filter(|known| *known.positions == *recent.positions).cloned();
    let captured = if let Some(found) = found {
        found
    } else {
        let (captured, whole) = describe_all(py, &recent.positions);
        let captured = Rc::new(captured);
        // What was described meanwhile may have thrown away what this one is made of.
        if whole && frames::generation() == generation {
            recent.known.insert(hash, Rc::clone(&captured));
        }
        captured
    };
    RECENT.set(recent);
    captured
}

thread_local! {
    /// The state of the thread whose frames are walked here instead of this thread's own, or null.
    static ELSEWHERE: Cell<*mut ffi::PyThreadState> = const { Cell::new(std::ptr::null_mut()) };
}

/// The stack of another thread, as in [`capture`]; to be called on a thread that runs no Python of its own.
///
/// # Safety
///
/// The thread of this state lives as long as the interpreter is held.
pub unsafe fn capture_elsewhere(py: Python<'_>, state: *mut ffi::PyThreadState) -> Stack {
    ELSEWHERE.set(state);
    let stack = capture(py).stack;
    ELSEWHERE.set(std::ptr::null_mut());
    stack
}

/// The innermost frame.
fn innermost(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    type FrameOfThread = unsafe extern "C" fn(*mut ffi::PyThreadState) -> *mut PyObject;
    static FRAME_OF_THREAD: OnceLock<Option<FrameOfThread>> = OnceLock::new();
    let state = ELSEWHERE.get();
    if state.is_null() {
        // SAFETY: the interpreter is attached; the result is a borrowed reference or null.
        return unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast::<PyObject>()) };
    }
    let function = FRAME_OF_THREAD.get_or_init(|| {
        // SAFETY: as in `accessors`.
        unsafe {
            std::mem::transmute::<*mut c_void, Option<FrameOfThread>>(symbol(c"PyThreadState_GetFrame"))
        }
    });
    // SAFETY: a living thread's state, as `capture_elsewhere`'s caller promises; a new reference or null.
    function.and_then(|function| unsafe { Bound::from_owned_ptr_or_opt(py, function(state)) })
}

/// Calls `action` with each frame and its code, innermost first.
fn for_each_frame<'py>(py: Python<'py>, mut action: impl FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>)) {
    let mut next = innermost(py);
    for _ in 0..DEPTH {
        let Some(frame) = next else { break };
        let Some(code) = code(&frame) else { break };
        action(&frame, &code);
        next = back(&frame);
    }
}

/// Looks all positions up, and describes those that are new. Whether the answer holds for the next time, too.
fn describe_all(py: Python<'_>, positions: &[Position]) -> (Captured, bool) {
    let mut known = Vec::with_capacity(positions.len());
    frames::lookup(positions, &mut known);
    let mut whole = !DESCRIBING.get();
    if known.iter().any(Option::is_none) {
        let mut objects = Vec::with_capacity(positions.len());
        for_each_frame(py, |frame, code| objects.push((frame.clone(), code.clone())));
        for (slot, (frame, code)) in known.iter_mut().zip(&objects) {
            if slot.is_none() {
                *slot = describe(frame, code, instruction(frame));
                whole &= slot.is_some();
            }
        }
    }
    let frames = Frames::from_known(known.into_iter().flatten());
    let stack = frames.intern();
    (Captured { positions: positions.into(), frames, stack }, whole)
}

impl Frames {
    fn from_known(known: impl Iterator<Item = Known>) -> Self {
        let mut stack = Self::default();
        let mut direct = true;
        let mut named = false;
        for entry in known {
            if entry.owner == Owner::Streamsan {
                continue;
            }
            if stack.ids.is_empty() {
                stack.by_user = entry.owner == Owner::User;
            }
            if entry.owner == Owner::User && !named {
                named = true;
                stack.value_name = entry.name;
                stack.block_name = if direct { entry.name } else { 0 };
            }
            direct &= entry.thin;
            if entry.frame != 0 || entry.owner == Owner::User {
                stack.ids.push(entry.frame);
            }
        }
        stack
    }

    /// Interns the frames as a stack.
    pub fn intern(&self) -> Stack {
        Stack { site: intern_site(&self.ids), block_name: self.block_name, value_name: self.value_name }
    }
}

fn describe(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>, instruction: c_int) -> Option<Known> {
    let nested = DESCRIBING.replace(true);
    // What Python runs here is this thread's.
    let elsewhere = ELSEWHERE.replace(std::ptr::null_mut());
    let known = frames::describe(frame, code, instruction, !nested);
    ELSEWHERE.set(elsewhere);
    DESCRIBING.set(nested);
    match known {
        Ok(known) => Some(known),
        Err(error) => {
            error.write_unraisable(frame.py(), None);
            None
        }
    }
}
