//! What one slot is filled with: an item, or for functions that treat each element by itself, whatever parts of
//! whatever items fit.

use super::error::ItemError;
use super::source::Source;

/// Most items of one load, so that a source of empty or failing items does not fill one for ever.
const MOST: usize = 4096;

/// A part of an item in a slot.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) item: u64,
    /// Elements of the item before these.
    pub(super) first: usize,
    /// Elements, and how many the item has.
    pub(super) length: usize,
    pub(super) total: usize,
    /// Where they are in the slot.
    pub(super) at: usize,
    pub(super) outcome: Result<(), ItemError>,
}

/// What a slot is filled with.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) segments: Vec<Segment>,
    /// Elements of the slot that are used.
    pub(super) length: usize,
}

/// Fills slots from a source.
#[derive(Debug, Default)]
pub(super) struct Filler {
    /// The item that was begun: its number, how much of it is done, how much it is.
    current: Option<(u64, usize, usize)>,
    next: u64,
    ended: bool,
}

impl Filler {
    /// Whether the source has ended and all of it was taken.
    pub(super) fn has_ended(&self) -> bool {
        self.ended && self.current.is_none()
    }

    /// Whether an item was taken in part.
    pub(super) fn is_inside_an_item(&self) -> bool {
        self.current.is_some()
    }

    /// Fills a slot. A load without segments: the source has ended.
    pub(super) fn fill<T>(
        &mut self,
        source: &mut dyn Source<T>,
        room: &mut [T],
        elementwise: bool,
        stop: &dyn Fn() -> bool,
    ) -> Load {
        let mut load = Load::default();
        loop {
            let (item, first, total) = match self.current.take() {
                Some(current) => current,
                None if stop() => break,
                None => match source.next_item() {
                    None => {
                        self.ended = true;
                        break;
                    }
                    Some(length) => {
                        let item = self.next;
                        self.next += 1;
                        match length {
                            Ok(total) => (item, 0, total),
                            Err(message) => {
                                load.refuse((item, 0, 0), "source", message);
                                if load.is_full(elementwise, room.len()) {
                                    break;
                                }
                                continue;
                            }
                        }
                    }
                },
            };
            if !elementwise && total > room.len() {
                let message =
                    format!("it has {total} elements, a slot {}: make the slots larger", room.len());
                load.refuse((item, 0, total), "upload", message);
                break;
            }
            let at = load.length;
            let length = (total - first).min(room.len() - at);
            match source.fill(&mut room[at..at + length]) {
                Ok(()) => {
                    load.segments.push(Segment { item, first, length, total, at, outcome: Ok(()) });
                    load.length += length;
                    if first + length < total {
                        self.current = Some((item, first + length, total));
                    }
                }
                Err(message) => load.refuse((item, first, total), "source", message),
            }
            if load.is_full(elementwise, room.len()) {
                break;
            }
        }
        load
    }
}

impl Load {
    fn refuse(&mut self, (item, first, total): (u64, usize, usize), stage: &'static str, message: String) {
        let outcome = Err(ItemError { item, stage, message });
        self.segments.push(Segment { item, first, length: 0, total, at: self.length, outcome });
    }

    fn is_full(&self, elementwise: bool, room: usize) -> bool {
        !elementwise || self.length == room || self.segments.len() == MOST
    }
}
