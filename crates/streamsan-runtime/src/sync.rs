//! Locks and threads: the standard library's, or Shuttle's in tests that explore schedules (`--features shuttle`).

use std::sync::PoisonError;

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// A lock that a panic elsewhere does not make unusable: what it holds is consistent at every step.
pub(crate) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
