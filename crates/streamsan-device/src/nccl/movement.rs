//! What an operation does to the memory of its only rank.

use streamsan_record::PointerKind;
use streamsan_record::collectives::{Collective, Rank, Touched};
use streamsan_trace::AccessMode;

use super::Failure;
use super::scaling::Scale;
use crate::errors::{Answer, Code};
use crate::memory::is_device_memory;
use crate::pointers::kind_of;
use crate::protection::{copy_is_pending, view};
use crate::streams::Stream;
use crate::transfers::{Rows, copy_rows};

/// The only rank there is.
const ALONE: Rank = Rank { own: 0, all: 1 };

/// A copy, or a multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Movement {
    /// The operation.
    pub what: Collective,
    /// Its name in reports.
    pub name: &'static str,
    /// First byte that is sent.
    pub send: usize,
    /// First byte that is received into.
    pub receive: usize,
    /// How many of each.
    pub bytes: usize,
    /// What is done to the numbers.
    pub scale: Option<Scale>,
}

impl Movement {
    /// What is sent to oneself and received.
    pub(super) fn pair(send: &Self, receive: &Self) -> Result<Self, Failure> {
        if send.bytes == receive.bytes {
            Ok(Self { what: Collective::AllToAll, name: "nccl:send and recv", send: send.send, ..*receive })
        } else {
            let (away, back) = (send.bytes, receive.bytes);
            Err(Failure::usage(format!("{away} bytes are sent to oneself and {back} received")))
        }
    }

    /// The bytes it touches.
    pub fn touched(&self) -> Vec<Touched> {
        let mut touched = self.what.touches(self.send as u64, self.receive as u64, self.bytes as u64, ALONE);
        let factor = self.scale.and_then(|scale| scale.device_bytes());
        touched.extend(factor.map(|(address, bytes)| Touched {
            address: address as u64,
            bytes: bytes as u64,
            mode: AccessMode::Read,
        }));
        touched
    }

    /// Refuses memory that no device can reach.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for Touched { address, bytes, .. } in self.touched() {
            if !is_reachable(address as usize, bytes as usize)? {
                return Err(Failure::argument(format!(
                    "the {bytes} bytes at {address:#x} of {} are not device memory",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// Where to and from, if the bytes are only copied.
    pub fn copy(&self) -> Option<(usize, usize)> {
        let only_copied = self.scale.is_none() && self.bytes > 0 && self.send != self.receive;
        only_copied.then_some((self.receive, self.send))
    }

    /// Does it.
    ///
    /// # Safety
    ///
    /// What it touches may be read and written.
    pub unsafe fn run(&self) {
        let (receive, send) = (view(self.receive), view(self.send));
        // SAFETY: as the caller promises.
        unsafe {
            if let Some(scale) = self.scale {
                scale.apply(receive, send, self.bytes);
            } else if self.copy().is_some() {
                let rows = Rows { width: self.bytes, height: 1 };
                copy_rows((receive, self.bytes), (send, self.bytes), rows);
            }
        }
    }

    /// Does it for a graph launched in `stream`.
    pub fn run_in_graph(&self, stream: Stream) -> Answer {
        for Touched { address, bytes, .. } in self.touched() {
            // The memory may have gone since the capture.
            if !is_reachable(address as usize, bytes as usize)? {
                return Err(Code::ILLEGAL_ADDRESS);
            }
        }
        // SAFETY: the memory is there. That these bytes of it are the program's own, the program says.
        unsafe { self.run() };
        self.keep_pages(stream)
    }

    /// Keeps the host from page-locked memory until it has waited for the operation.
    pub fn keep_pages(&self, stream: Stream) -> Answer {
        for Touched { address, bytes, mode } in self.touched() {
            let (start, end) = (address as usize, (address + bytes) as usize);
            if kind_of(start)? == PointerKind::Pinned {
                copy_is_pending(stream, start, end, mode.writes());
            }
        }
        Ok(())
    }
}

fn is_reachable(start: usize, bytes: usize) -> Result<bool, Code> {
    Ok(match kind_of(start)? {
        PointerKind::Device(_) => is_device_memory(start, bytes)?,
        PointerKind::Pinned => true,
        PointerKind::Pageable => false,
    })
}
