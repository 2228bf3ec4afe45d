//! What a program may not do while streams capture.

use std::cell::Cell;
use std::ffi::c_int;

use crate::capture::any;
use crate::errors::{Answer, Code};
use crate::streams::{State, Stream, with_state};

/// Which threads a capture keeps from calls that may be unsafe (`cudaStreamCaptureMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All.
    Global,
    /// The one that began it.
    ThreadLocal,
    /// None.
    Relaxed,
}

impl Mode {
    /// The mode with CUDA's number.
    pub fn from_number(number: c_int) -> Result<Self, Code> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

thread_local! {
    /// CUDA's number of the thread's mode.
    static MODE: Cell<c_int> = const { Cell::new(0) };
}

/// Sets the calling thread's mode, by CUDA's number, and gives the one before. As in CUDA, any number is taken.
pub fn exchange(mode: c_int) -> c_int {
    MODE.try_with(|own| own.replace(mode)).unwrap_or(0)
}

/// The calling thread's number.
pub fn this_thread() -> u64 {
    // SAFETY: asks the system for a number.
    u64::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap_or(0)
}

/// Before a call that is not part of a stream's order, such as an allocation or a wait of the host: refuses it if a
/// capture forbids such calls to this thread.
pub fn unsafe_call() -> Answer {
    if !any() {
        return Ok(());
    }
    let mode = Mode::from_number(MODE.try_with(Cell::get).unwrap_or(0)).unwrap_or(Mode::Global);
    if mode == Mode::Relaxed {
        return Ok(());
    }
    let thread = this_thread();
    with_state(|state| {
        let refused = state.captures.invalidate(|_, capture| {
            if capture.thread == thread {
                capture.mode != Mode::Relaxed
            } else {
                mode == Mode::Global && capture.mode == Mode::Global
            }
        });
        if refused { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    })
}

impl State {
    /// Before any use of a stream: the capture it belongs to. A capture that is invalid takes nothing more, and the
    /// legacy default stream cannot be used while a blocking stream of its device captures.
    pub fn check_use(&mut self, stream: Stream) -> Result<Option<u64>, Code> {
        if !any() {
            return Ok(None);
        }
        if stream.handle == 0 {
            return match self.blocks_legacy(stream.device) {
                Some(number) => {
                    self.captures.invalidate(|other, _| other == number);
                    Err(Code::CAPTURE_IMPLICIT)
                }
                None => Ok(None),
            };
        }
        match self.captures.of(stream) {
            None => Ok(None),
            Some((number, capture)) if capture.valid => Ok(Some(number)),
            Some(_) => Err(Code::CAPTURE_INVALIDATED),
        }
    }

    /// The capture, if there is one, with a blocking stream of this device.
    pub fn blocks_legacy(&self, device: u32) -> Option<u64> {
        let blocking = |stream: &Stream| stream.device == device && self.is_blocking(*stream);
        self.captures.streams.iter().find(|(stream, _)| blocking(stream)).map(|(_, &number)| number)
    }

    /// Before a wait for a stream, or a question whether it has finished: a capturing one has nothing to wait for.
    pub fn check_host_wait(&mut self, stream: Stream) -> Answer {
        if let Some(number) = self.check_use(stream)? {
            self.captures.invalidate(|other, _| other == number);
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        Ok(())
    }

    /// Before a wait for a device: none of its streams may capture.
    pub fn check_device_wait(&mut self, device: u32) -> Answer {
        let captures = &mut self.captures;
        let numbers: Vec<u64> = captures
            .streams
            .iter()
            .filter(|(stream, _)| stream.device == device)
            .map(|(_, &number)| number)
            .collect();
        if captures.invalidate(|number, _| numbers.contains(&number)) {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        Ok(())
    }

    /// A wait for, or a question about, an event that was last recorded in this capture, under way or ended.
    pub fn refuse_captured_event(&mut self, capture: u64) -> Code {
        if self.captures.get(capture).is_none() {
            return Code::INVALID_VALUE;
        }
        self.captures.invalidate(|number, _| number == capture);
        Code::CAPTURED_EVENT
    }
}
