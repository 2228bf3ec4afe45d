//! Walking the Python stack of the calling thread.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, OnceLock};

use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;

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

static SITES: OnceLock<Mutex<HashMap<Box<[u32]>, u32>>> = OnceLock::new();

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

impl Frames {
    /// Captures the stack of this thread; empty on a thread that runs no Python.
    pub fn capture(py: Python<'_>) -> Self {
        // SAFETY: the interpreter is attached; the result is a borrowed reference or null.
        let innermost =
            unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast::<PyObject>()) };
        let mut objects = Vec::with_capacity(32);
        let mut next = innermost;
        while let Some(frame) = next {
            next = back(&frame);
            let Some(code) = code(&frame) else { break };
            objects.push((frame, code));
            if objects.len() >= DEPTH {
                break;
            }
        }
        let positions: Vec<_> =
            objects.iter().map(|(frame, code)| (code.as_ptr(), instruction(frame))).collect();
        let mut known = Vec::with_capacity(positions.len());
        frames::lookup(&positions, &mut known);
        for (index, slot) in known.iter_mut().enumerate() {
            if slot.is_none() {
                let (frame, code) = &objects[index];
                *slot = describe(frame, code, positions[index].1);
            }
        }
        Self::from_known(known.into_iter().flatten())
    }

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
    let known = frames::describe(frame, code, instruction, !nested);
    DESCRIBING.set(nested);
    match known {
        Ok(known) => Some(known),
        Err(error) => {
            error.write_unraisable(frame.py(), None);
            None
        }
    }
}
