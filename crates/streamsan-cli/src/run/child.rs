//! The watched program as a child process: signals go to it, its end comes back.

use super::End;
use crate::fault::Fault;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process, waitid};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const FORWARDED: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The program while it runs.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// Emptied before the process is reaped, so that its number is not used again while we may send to it.
    process: Arc<Mutex<Option<Pid>>>,
}

impl Running {
    /// Sends a signal, if the program still runs.
    pub(super) fn send(&self, signal: Signal) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = *process {
            let _ = kill_process(process, signal);
        }
    }

    fn end(&self) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Starts the command and waits for its end, passing on the signals that ask us to stop. `started` is called in between.
pub(super) fn run(mut command: Command, name: &str, started: impl FnOnce(&Running)) -> Result<End, Fault> {
    // Taken over before the start: a signal in between must not leave a program without its parent.
    let mut signals =
        Signals::new(FORWARDED).map_err(|error| Fault::new(format!("cannot watch for signals: {error}")))?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in FORWARDED {
        // After the end of the program Ctrl-C means us.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ended))
            .map_err(|error| Fault::new(format!("cannot watch for signals: {error}")))?;
    }
    let mut child = command.spawn().map_err(|error| Fault::new(format!("cannot start {name}: {error}")))?;
    let running = Running { process: Arc::new(Mutex::new(Pid::from_raw(child.id().cast_signed()))) };
    let (handle, receiver) = (signals.handle(), running.clone());
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever() {
            if let Some(signal) = to_forward(signal) {
                receiver.send(signal);
            }
        }
    });
    started(&running);
    if let Some(process) = Pid::from_raw(child.id().cast_signed()) {
        // Leaves the process to be reaped below.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
    }
    running.end();
    let status = child.wait().map_err(|error| Fault::new(format!("cannot wait for {name}: {error}")))?;
    ended.store(true, Ordering::SeqCst);
    handle.close();
    let _ = forwarder.join();
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Signaled(signal.unwrap_or(0)),
    })
}

/// What to pass on. Ctrl-C at a terminal reaches the program by itself; twice would break its clean-up.
fn to_forward(signal: i32) -> Option<Signal> {
    match signal {
        SIGINT if in_foreground() => None,
        SIGINT => Some(Signal::INT),
        SIGHUP => Some(Signal::HUP),
        _ => Some(Signal::TERM),
    }
}

/// Whether we and the program get what is typed at the terminal.
fn in_foreground() -> bool {
    std::fs::File::open("/dev/tty")
        .is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
