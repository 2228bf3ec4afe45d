//! What whoever reads the trace of its own process asks for: nothing held back, and ids in place of handles.

use crate::Recorder;
use crate::exports::{slice, with};
use crate::table::{RawAccess, RawAsker, RawPlace};

impl Recorder {
    /// Writes what the calling thread holds back; finds the stream, and where each access lies.
    pub(crate) fn question(
        &self,
        stream: u64,
        device: u32,
        raw: &[RawAccess],
        mut place: impl FnMut(usize, RawPlace),
    ) -> RawAsker {
        let mut thread = self.begin();
        let mut known = self.known();
        let stream = self.stream(&mut thread, &mut known, stream, device);
        for (index, raw) in raw.iter().enumerate() {
            if let Some((block, offset)) = known.blocks.resolve(raw.address) {
                place(index, RawPlace { block: block.0, known: 1, offset });
            }
        }
        drop(known);
        RawAsker { stream: stream.0, thread: thread.id.0, last: self.file.last_number() }
    }
}

pub unsafe extern "C" fn settle_others(before: u64) {
    with(|recorder| recorder.settle_others(before));
}

pub unsafe extern "C" fn question(
    stream: u64,
    device: u32,
    accesses: *const RawAccess,
    count: usize,
    places: *mut RawPlace,
) -> RawAsker {
    // SAFETY: the table's contract.
    let accesses = unsafe { slice(accesses, count) };
    with(|recorder| {
        recorder.question(stream, device, accesses, |index, place| {
            // SAFETY: the table's contract: there is room for a place for each access.
            unsafe { places.add(index).write(place) }
        })
    })
}
