//! The program of `streamsan run` does not outlive it unnoticed: when that process dies without a chance to pass anything
//! on (SIGKILL, out of memory), the kernel sends the program SIGTERM.
//!
//! Only the process that `streamsan run` started itself asks for this; its children do not inherit it. A program
//! that ignores SIGTERM, or raises its privileges by what it executes, goes on. Linux sends the signal when
//! the *thread* that started the program ends; `streamsan run` starts it from the one that then waits for it.

use std::env;

use crate::env::RUN;

/// Asks for the signal if the parent of this process is the `streamsan run` that the environment names.
pub fn follow() {
    let Some(run) = env::var(RUN).ok().and_then(|value| value.parse::<libc::pid_t>().ok()) else { return };
    if parent() != run {
        return;
    }
    // SAFETY: plain system calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        // It may have died before the request.
        if parent() != run {
            libc::raise(libc::SIGTERM);
        }
    }
}

fn parent() -> libc::pid_t {
    // SAFETY: a plain system call that cannot fail.
    unsafe { libc::getppid() }
}
