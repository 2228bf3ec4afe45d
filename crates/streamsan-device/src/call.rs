//! What every exported call does around its body: no panic leaves, failures become the last error, and a
//! forked child is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use streamsan_record::{ask as ask_recorder, report as record};

use crate::errors::{Answer, Code, remember};
use crate::protection;

/// Whether this process has used the device.
static IN_USE: AtomicBool = AtomicBool::new(false);
/// Whether this process is the forked child of one that had.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Runs the body of a call that uses the device.
pub fn call(body: impl FnOnce() -> Answer) -> Code {
    if !IN_USE.load(Ordering::Relaxed) {
        IN_USE.store(true, Ordering::Relaxed);
        crate::recording::begin();
    }
    inquiry(body)
}

/// Runs the body of a call that only asks about the device: a process that forks after it may still use the
/// device in the child.
pub fn inquiry(body: impl FnOnce() -> Answer) -> Code {
    let code = if FORKED.load(Ordering::Relaxed) {
        // A lock may be held for ever here by a thread that exists only in the parent.
        Code::INITIALIZATION_ERROR
    } else {
        let code = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => Code::SUCCESS,
            Ok(Err(code)) => code,
            Err(_) => Code::UNKNOWN,
        };
        protection::after_call();
        code
    };
    remember(code);
    code
}

/// Answers a call that this device does not have, and records that it was made.
pub fn unsupported(name: &str) -> Code {
    call(|| {
        record(|recorder| recorder.unsupported(name));
        Err(Code::NOT_SUPPORTED)
    })
}

/// Locks; a lock that a panic has poisoned is [`Code::UNKNOWN`].
pub fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Code> {
    mutex.lock().map_err(|_| Code::UNKNOWN)
}

/// Locks for reading; poisoned as in [`lock`].
pub fn read<T>(lock: &RwLock<T>) -> Result<RwLockReadGuard<'_, T>, Code> {
    lock.read().map_err(|_| Code::UNKNOWN)
}

/// Locks for writing; poisoned as in [`lock`].
pub fn write<T>(lock: &RwLock<T>) -> Result<RwLockWriteGuard<'_, T>, Code> {
    lock.write().map_err(|_| Code::UNKNOWN)
}

/// Writes an answer through a pointer that the caller gave.
///
/// # Safety
///
/// `target` is null or may be written.
pub unsafe fn give<T>(target: *mut T, value: T) -> Answer {
    if target.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and writable as the caller promises.
    unsafe { target.write(value) };
    Ok(())
}

/// Refuses the device in children forked after its first use, as CUDA does.
pub fn watch_forks() {
    extern "C" fn before() {
        protection::before_fork();
    }
    extern "C" fn in_parent() {
        protection::after_fork_in_parent();
    }
    extern "C" fn in_child() {
        if IN_USE.load(Ordering::Relaxed) {
            FORKED.store(true, Ordering::Relaxed);
        }
        crate::recording::after_fork_in_child();
        protection::after_fork_in_child();
    }
    // SAFETY: the handlers touch atomics, and a lock that the forking thread holds meanwhile.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_unknown_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code = call(|| panic!("inside a call"));
        std::panic::set_hook(hook);
        assert_eq!(code, Code::UNKNOWN);
    }

    #[test]
    fn an_answer_needs_a_place() {
        // SAFETY: null is allowed.
        assert_eq!(unsafe { give(std::ptr::null_mut(), 1_i32) }, Err(Code::INVALID_VALUE));
    }
}
