//! Shadow memory: for each byte, the last writes and the reads since.
//!
//! Memory is an ordered map of cells per space. A cell is an interval of addresses; accesses split cells at
//! their bounding intervals, and a strided access keeps its shape inside the cell. Per cell and chain only
//! accesses that can still be the earlier half of a hazard are kept: an access that is ordered before a
//! newer one which covers it can be forgotten, since whatever is unordered with it is unordered with the
//! newer one too (the argument of FastTrack's epochs, applied to intervals).

use crate::clock::Epoch;
use crate::hazard::Origin;
use crate::overlap::{Footprint, Overlap, overlap};
use std::collections::BTreeMap;
use streamsan_trace::{AccessMode, BlockId, DeviceId, ShapeId, Tables};

/// An address space whose addresses do not clash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    Device(DeviceId),
    Host,
}

/// One access, with absolute addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) epoch: Epoch,
    pub(crate) block: BlockId,
    pub(crate) mode: AccessMode,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) shape: ShapeId,
    pub(crate) origin: Origin,
}

/// Two touches share bytes and at least one of them may change them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) earlier: Touch,
    /// False if the search for a shared byte was given up.
    pub(crate) decided: bool,
}

#[derive(Debug)]
struct Cell {
    end: u64,
    touches: Vec<Touch>,
}

/// The shadow of one address space.
#[derive(Debug, Default)]
struct Map {
    cells: BTreeMap<u64, Cell>,
}

/// Shadow memory of all spaces.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    spaces: BTreeMap<Space, Map>,
}

impl Shadow {
    /// Notes an access and hands every unordered conflicting earlier one to `report`.
    ///
    /// `ordered(earlier)` says whether an earlier access is ordered before this one.
    pub(crate) fn touch(
        &mut self,
        space: Space,
        touch: Touch,
        tables: &Tables,
        ordered: impl Fn(&Touch) -> bool,
        mut report: impl FnMut(Conflict),
    ) {
        if touch.start >= touch.end {
            return;
        }
        let map = self.spaces.entry(space).or_default();
        map.prepare(touch.start, touch.end);
        let mut same_everywhere = true;
        for (&start, cell) in map.cells.range_mut(touch.start..touch.end) {
            cell.examine(start, &touch, tables, &ordered, &mut report);
            cell.store(touch, &ordered);
            same_everywhere &= cell.touches.len() == 1;
        }
        if same_everywhere && touch.shape.0 == 0 {
            map.merge(touch.start, touch.end);
        }
    }
}

impl Shadow {
    /// The accesses of one block that are kept, each once.
    pub(crate) fn of_block(&self, space: Space, start: u64, end: u64, block: BlockId) -> Vec<Touch> {
        let mut found: Vec<Touch> = Vec::new();
        let Some(map) = self.spaces.get(&space) else { return found };
        let first = map.cells.range(..start).next_back().filter(|(_, cell)| cell.end > start);
        for (_, cell) in first.into_iter().chain(map.cells.range(start..end)) {
            for touch in cell.touches.iter().filter(|touch| touch.block == block) {
                if !found.iter().any(|known| known.epoch == touch.epoch && known.mode == touch.mode) {
                    found.push(*touch);
                }
            }
        }
        found
    }

    /// Forgets those accesses to an interval for which `known` holds.
    pub(crate) fn forget_known(
        &mut self,
        space: Space,
        start: u64,
        end: u64,
        known: impl Fn(&Touch) -> bool,
    ) {
        let Some(map) = self.spaces.get_mut(&space).filter(|_| start < end) else { return };
        map.split(start);
        map.split(end);
        for (_, cell) in map.cells.range_mut(start..end) {
            cell.touches.retain(|touch| !known(touch));
        }
    }

    /// Forgets all accesses to an interval.
    pub(crate) fn forget(&mut self, space: Space, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let Some(map) = self.spaces.get_mut(&space) else { return };
        map.split(start);
        map.split(end);
        let keys: Vec<u64> = map.cells.range(start..end).map(|(&key, _)| key).collect();
        for key in keys {
            map.cells.remove(&key);
        }
    }
}

impl Map {
    /// Makes cells so that `start..end` is covered by whole cells.
    fn prepare(&mut self, start: u64, end: u64) {
        if self.cells.get(&start).is_some_and(|cell| cell.end == end) {
            return;
        }
        self.split(start);
        self.split(end);
        let mut holes = Vec::new();
        let mut position = start;
        for (&cell_start, cell) in self.cells.range(start..end) {
            if position < cell_start {
                holes.push((position, cell_start));
            }
            position = cell.end;
        }
        if position < end {
            holes.push((position, end));
        }
        for (hole_start, hole_end) in holes {
            self.cells.insert(hole_start, Cell { end: hole_end, touches: Vec::new() });
        }
    }

    fn split(&mut self, position: u64) {
        let Some((_, cell)) = self.cells.range_mut(..position).next_back() else { return };
        if cell.end > position {
            let rest = Cell { end: cell.end, touches: cell.touches.clone() };
            cell.end = position;
            self.cells.insert(position, rest);
        }
    }

    /// Makes one cell of `start..end`, all of whose cells hold one and the same touch.
    fn merge(&mut self, start: u64, end: u64) {
        let later: Vec<u64> = self.cells.range(start..end).skip(1).map(|(&key, _)| key).collect();
        for key in later {
            self.cells.remove(&key);
        }
        if let Some(cell) = self.cells.get_mut(&start) {
            cell.end = end;
        }
    }
}

impl Cell {
    fn examine(
        &self,
        start: u64,
        touch: &Touch,
        tables: &Tables,
        ordered: &impl Fn(&Touch) -> bool,
        report: &mut impl FnMut(Conflict),
    ) {
        for earlier in &self.touches {
            if !conflicting(earlier.mode, touch.mode)
                || earlier.epoch.number == touch.epoch.number
                || ordered(earlier)
            {
                continue;
            }
            let found = if earlier.shape.0 == 0 && touch.shape.0 == 0 {
                Overlap::Shared
            } else {
                overlap(&self.footprint(start, earlier, tables), &self.footprint(start, touch, tables))
            };
            match found {
                Overlap::Disjoint => {}
                Overlap::Shared => report(Conflict { earlier: *earlier, decided: true }),
                Overlap::Undecided => report(Conflict { earlier: *earlier, decided: false }),
            }
        }
    }

    /// A contiguous touch covers the whole cell; a strided one is taken as it is.
    fn footprint<'a>(&self, start: u64, touch: &Touch, tables: &'a Tables) -> Footprint<'a> {
        match tables.shape(touch.shape) {
            Some(shape) => Footprint { start: touch.start, end: touch.end, shape: Some(shape) },
            None => Footprint { start, end: self.end, shape: None },
        }
    }

    fn store(&mut self, touch: Touch, ordered: &impl Fn(&Touch) -> bool) {
        self.touches.retain(|earlier| {
            let superseded = touch.mode.writes() || !earlier.mode.writes();
            let covered =
                touch.shape.0 == 0 || (touch.shape == earlier.shape && touch.start == earlier.start);
            let own = earlier.epoch.number == touch.epoch.number;
            // A use of an older generation is reported against the first access that conflicts with it.
            let reported = earlier.block != touch.block && conflicting(earlier.mode, touch.mode);
            let replaced = reported || if own { touch.mode.writes() } else { ordered(earlier) };
            !(superseded && covered && replaced)
        });
        self.touches.push(touch);
    }
}

/// Whether two accesses to one byte can disagree. Two unknown accesses may both be reads, and so may an
/// unknown one beside a read: only a definite write makes a conflict with an unknown access.
fn conflicting(a: AccessMode, b: AccessMode) -> bool {
    let definite = |mode: AccessMode| matches!(mode, AccessMode::Write | AccessMode::Update);
    definite(a) || definite(b)
}
