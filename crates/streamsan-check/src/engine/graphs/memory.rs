//! Memory of graphs: all accesses to it are compared by address, whatever the block.

use super::super::Engine;
use super::{Private, pool_id};
use crate::blocks::{Block, Slot};
use crate::clock::Snapshot;
use crate::finding::Actor;
use crate::hazard::pair_rule;
use crate::overlap::Shapes;
use crate::rules::Rule;
use crate::shadow::Touch;
use streamsan_trace::{BlockId, DeviceId, MemorySpace, OpKind, Tables};

impl Engine {
    /// A block that was just handed out comes from the pool of a graph.
    pub(in crate::engine) fn keep_for_graphs(&mut self, id: BlockId) {
        let Some(slot) = self.blocks.slot(id) else { return };
        let block = self.blocks.at_mut(slot);
        if block.device().is_none() || block.freed().is_some() {
            return;
        }
        block.private = true;
        if let Some(known) = block.handed_out.take() {
            self.order.take_back(known);
        }
        self.graphs.private.entry(id).or_insert(Private { graph: None, freed: false, held: false });
    }

    /// A guard of a block from a graph's pool: its next owner is ordered after all that the guard is after.
    pub(in crate::engine) fn guard_private(&mut self, id: BlockId, guard: Snapshot) {
        if let Some(pool) = self.pool_of(id) {
            self.shadow.forget_known(pool, |used| used.block == id && guard.is_after(used.epoch()));
        }
        self.order.take_back(guard);
    }

    /// Memory is given back to the device, for which the call waits.
    pub(in crate::engine) fn end_pool(&mut self, device: DeviceId, start: u64, end: u64) {
        if let Some(pool) = self.blocks.slot(pool_id(device)) {
            self.shadow.forget_known(pool, |used| start <= used.start && used.end <= end);
        }
    }

    /// An access to a block of a graph's memory.
    pub(in crate::engine) fn touch_private(
        &mut self,
        touch: &Touch,
        actor: Actor,
        device: DeviceId,
        tables: &Tables,
    ) {
        self.effort.access();
        let slot = self.pool(device);
        let (order, blocks, undecided) = (&self.order, &self.blocks, &mut self.undecided);
        let now = order.chain(touch.chain);
        let ordered = |earlier: &Touch| {
            earlier.chain == touch.chain
                || now.is_after(earlier.epoch())
                // The memory of a graph that is gone.
                || (earlier.block != touch.block && blocks.find(earlier.block).is_none())
        };
        let mut conflicts: Vec<(Rule, Touch)> = Vec::new();
        let shapes = Shapes { tables, effort: &self.effort };
        self.shadow.touch(slot, None, touch, shapes, ordered, |conflict| {
            if !conflict.decided {
                *undecided += 1;
                return;
            }
            let earlier = conflict.earlier;
            let first = (order.stream(earlier.chain).map_or(Actor::Host, Actor::Stream), &earlier);
            conflicts.push((pair_rule(first, (actor, touch)), earlier));
        });
        for (rule, earlier) in conflicts {
            // Of a graph's blocks that share bytes the one that the world outside knows.
            let launched = touch.origin.kind == Some(OpKind::GraphLaunch);
            let block = if launched { earlier.block } else { touch.block };
            let hazard = self.hazard(rule, &Touch { block, ..earlier }, &Touch { block, ..*touch });
            self.push(hazard);
        }
        if self.shadow.is_crowded(slot, &self.effort) {
            self.thin_out(slot);
        }
    }

    /// Where accesses to a block are kept if it is a graph's and was used.
    pub(crate) fn pool_of(&self, block: BlockId) -> Option<Slot> {
        let block = self.blocks.find(block).filter(|block| block.private)?;
        self.blocks.slot(pool_id(block.device()?))
    }

    /// The place where accesses to graphs' memory on a device are kept, by address.
    fn pool(&mut self, device: DeviceId) -> Slot {
        let id = pool_id(device);
        if let Some(slot) = self.blocks.slot(id) {
            return slot;
        }
        let slot = self.blocks.insert(Block::new(id, MemorySpace::Device(device), 0, u64::MAX));
        self.shadow.begin(slot, 0);
        slot
    }
}
