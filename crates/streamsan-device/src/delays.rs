//! Copies done late, if `STREAMSAN_DELAY_COPIES` is 1.
//!
//! An asynchronous copy may take until something waits for it. With this its bytes move as late as that: a copy is
//! put aside and done before the first thing that is ordered after it, be it work of a stream, a wait of the host, or
//! the free of memory. Work that is not ordered after it finds the old bytes. Any program in which all conflicting
//! accesses are ordered computes what it computes otherwise; where a wait is missing, a wrong value can show.
//!
//! Doing a copy earlier than needed is always right, so whatever might free memory does all of them.

use std::ptr;
use std::sync::{Mutex, OnceLock};

use crate::call::lock;
use crate::errors::{Answer, Code};
use crate::protection::view;
use crate::readiness::{Chain, Record};
use crate::streams::{State, Stream, with_state};
use crate::transfers::{Rows, copy_rows};

/// Where a copy takes its bytes from.
#[derive(Debug)]
pub enum Source {
    /// First byte and pitch, read when the copy is done.
    Memory(usize, usize),
    /// The bytes of all rows, taken when the call was made: ordinary host memory is staged.
    Staged(Vec<u8>),
}

/// A copy that is not done yet.
#[derive(Debug)]
pub struct Late {
    /// Its stream.
    pub chain: Chain,
    /// Its place in the stream.
    pub position: u64,
    /// First byte and pitch of where it writes.
    pub destination: (usize, usize),
    /// What it copies.
    pub source: Source,
    /// How much.
    pub rows: Rows,
}

/// In the order in which they were asked for. Taken before the streams' lock, and held while bytes move: who finds
/// no copy here can rely on the bytes.
static LATE: Mutex<Vec<Late>> = Mutex::new(Vec::new());

/// Whether copies are put aside.
pub fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("STREAMSAN_DELAY_COPIES").is_some_and(|value| value == "1"))
}

/// Puts a copy aside.
pub fn put_aside(copy: Late) -> Answer {
    lock(&LATE)?.push(copy);
    Ok(())
}

/// The bytes of ordinary host memory, as they are now.
///
/// # Safety
///
/// The rows may be read.
pub unsafe fn staged(source: (usize, usize), rows: Rows) -> Source {
    let mut bytes = Vec::with_capacity(rows.width * rows.height);
    for row in 0..rows.height {
        // SAFETY: a row, as the caller promises.
        let row = unsafe { std::slice::from_raw_parts((source.0 + row * source.1) as *const u8, rows.width) };
        bytes.extend_from_slice(row);
    }
    Source::Staged(bytes)
}

/// Does the copies that work of this stream is ordered after.
pub fn before_work_of(stream: Stream) -> Answer {
    before(|state, copy| {
        let chain = state.chain(stream);
        state.readiness.sees(chain, copy.chain, copy.position)
    })
}

/// Does the copies that the host has waited for.
pub fn before_host() -> Answer {
    before(|state, copy| state.readiness.has_passed(copy.chain, copy.position))
}

/// Does the copies that a record covers.
pub fn before_record(record: &Record) -> Answer {
    before(|_, copy| record.sees(copy.chain, copy.position))
}

/// Does all copies.
pub fn before_anything() -> Answer {
    before(|_, _| true)
}

/// Does the copies that are due, in the order in which they were asked for. What is due includes all that it is
/// ordered after, since clocks are transitive.
fn before(mut due: impl FnMut(&mut State, &Late) -> bool) -> Answer {
    if !is_on() {
        return Ok(());
    }
    let mut late = lock(&LATE)?;
    if late.is_empty() {
        return Ok(());
    }
    let due = with_state(|state| Ok(late.iter().map(|copy| due(state, copy)).collect::<Vec<_>>()))?;
    let mut due = due.into_iter();
    late.retain(|copy| {
        let now = due.next().unwrap_or(true);
        if now {
            copy.run();
        }
        !now
    });
    Ok(())
}

impl Late {
    fn run(&self) {
        let to = (view(self.destination.0), self.destination.1);
        match &self.source {
            // SAFETY: the program says that these bytes are its own until the copy is done, as for CUDA; and a free of
            // memory does all copies before.
            Source::Memory(start, pitch) => unsafe { copy_rows(to, (view(*start), *pitch), self.rows) },
            Source::Staged(bytes) => {
                for (row, bytes) in bytes.chunks_exact(self.rows.width).enumerate() {
                    // SAFETY: as above, for the destination alone.
                    unsafe {
                        ptr::copy_nonoverlapping(bytes.as_ptr(), (to.0 + row * to.1) as *mut u8, bytes.len());
                    }
                }
            }
        }
    }
}

/// For the torch layer, which computes by itself: does the copies that work of this stream is ordered after. A stream
/// that is not known is nothing to wait for.
#[unsafe(no_mangle)]
extern "C" fn streamsan_copies_before(stream: u64, device: u32) -> Code {
    match before_work_of(Stream { handle: stream, device }) {
        Ok(()) => Code::SUCCESS,
        Err(code) => code,
    }
}
