//! Source positions: each pair of code object and instruction is described once.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use streamsan_record::table::RawFrame;
use streamsan_trace::FrameOrigin;

use crate::settings::{Owner, settings};
use crate::table::{intern_text, table};

/// A position that was described before.
#[derive(Clone, Copy)]
pub struct Known {
    /// The interned frame; 0 with [`Owner::Streamsan`].
    pub frame: u32,
    /// Whose code.
    pub owner: Owner,
    /// The name the statement gives to the value of this position, or 0.
    pub name: u32,
    /// Whether the code is torch's own but not a module: a thin layer over the operation.
    pub thin: bool,
}

/// More positions than any program has; reached only if code is generated without end.
const CAPACITY: usize = 1 << 20;

#[derive(Default)]
struct Positions {
    known: FxHashMap<(usize, c_int), Known>,
    /// Keeps code objects alive, so that their addresses stay theirs.
    codes: FxHashMap<usize, Py<PyAny>>,
}

static POSITIONS: OnceLock<Mutex<Positions>> = OnceLock::new();

fn with_positions<R>(action: impl FnOnce(&mut Positions) -> R) -> R {
    let positions = POSITIONS.get_or_init(Mutex::default);
    let mut guard = positions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    action(&mut guard)
}

/// Rises when descriptions are thrown away: code objects may die then, and others take their addresses.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Looks positions up; `None` for those not described yet.
pub fn lookup(positions: &[(usize, c_int)], into: &mut Vec<Option<Known>>) {
    with_positions(|state| into.extend(positions.iter().map(|position| state.known.get(position).copied())));
}

/// Describes a position for the first time.
pub fn describe(
    frame: &Bound<'_, PyAny>,
    code: &Bound<'_, PyAny>,
    instruction: c_int,
    ask_hook: bool,
) -> PyResult<Known> {
    let known = Place::of(frame, code, instruction)?.intern(frame, ask_hook);
    let dropped = with_positions(|state| {
        let full = state.known.len() >= CAPACITY;
        let dropped = if full { Some(std::mem::take(state)) } else { None };
        GENERATION.fetch_add(u64::from(full), Ordering::Relaxed);
        let address = code.as_ptr() as usize;
        state.codes.entry(address).or_insert_with(|| code.clone().unbind());
        state.known.insert((address, instruction), known);
        dropped
    });
    drop(dropped);
    Ok(known)
}

/// A source position as Python knows it.
struct Place {
    file: String,
    function: String,
    owner: Owner,
    line: u32,
    end_line: u32,
    column: u32,
    end_column: u32,
}

impl Place {
    fn of(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>, instruction: c_int) -> PyResult<Self> {
        let name: String = code.getattr("co_filename")?.extract()?;
        let function: String = code.getattr("co_qualname").or_else(|_| code.getattr("co_name"))?.extract()?;
        let (file, owner) = match settings() {
            Some(settings) => {
                let file = settings.absolute(&name);
                let owner = settings.owner(&file);
                (file, owner)
            }
            None => (name, Owner::User),
        };
        let mut place = Self { file, function, owner, line: 0, end_line: 0, column: 0, end_column: 0 };
        if !place.read_columns(code, instruction).unwrap_or(false) {
            place.line = frame.getattr("f_lineno")?.extract().unwrap_or(0);
            place.end_line = place.line;
        }
        Ok(place)
    }

    /// Reads lines and columns from `co_positions`, which Python has from 3.11 on.
    fn read_columns(&mut self, code: &Bound<'_, PyAny>, instruction: c_int) -> PyResult<bool> {
        let Ok(method) = code.getattr("co_positions") else {
            return Ok(false);
        };
        let index = usize::try_from(instruction).unwrap_or(0) / 2;
        let Some(position) = method.call0()?.try_iter()?.nth(index).transpose()? else {
            return Ok(false);
        };
        let (line, end_line, column, end_column): (Option<u32>, Option<u32>, Option<u32>, Option<u32>) =
            position.extract()?;
        let Some(line) = line.filter(|&line| line > 0) else {
            return Ok(false);
        };
        self.line = line;
        self.end_line = end_line.unwrap_or(line);
        self.column = column.map_or(0, |column| column + 1);
        self.end_column = end_column.map_or(0, |column| column + 1);
        Ok(true)
    }

    fn intern(&self, frame: &Bound<'_, PyAny>, ask_hook: bool) -> Known {
        let mut known = Known { frame: 0, owner: self.owner, name: 0, thin: self.is_thin() };
        if self.owner == Owner::Streamsan {
            return known;
        }
        let origin = if self.owner == Owner::User { FrameOrigin::User } else { FrameOrigin::Library };
        let raw = RawFrame {
            file: intern_text(&self.file),
            function: intern_text(&self.function),
            line: self.line,
            end_line: self.end_line,
            column: self.column,
            end_column: self.end_column,
            origin: origin as u32,
        };
        // SAFETY: `raw` lives through the call.
        known.frame = table().map_or(0, |table| unsafe { (table.intern_frame)(&raw const raw) });
        if ask_hook && self.owner == Owner::User {
            known.name = self.ask_for_name(frame, known.frame).unwrap_or_default();
        }
        known
    }

    fn ask_for_name(&self, frame: &Bound<'_, PyAny>, id: u32) -> PyResult<u32> {
        let Some(settings) = settings() else {
            return Ok(0);
        };
        let hook = settings.place_hook.bind(frame.py());
        let answer =
            hook.call1((frame, id, &self.file, self.line, self.end_line, self.column, self.end_column))?;
        Ok(answer.extract::<Option<String>>()?.map_or(0, |name| intern_text(&name)))
    }

    fn is_thin(&self) -> bool {
        self.owner == Owner::Library
            && self.file.contains("/torch/")
            && !self.file.contains("/torch/nn/modules/")
    }
}
