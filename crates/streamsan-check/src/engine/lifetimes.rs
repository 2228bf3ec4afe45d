//! Blocks begin, get guards and end; what no later event can be unordered with is let go.

use super::Engine;
use crate::blocks::Block;
use crate::clock::{ChainId, Snapshot};
use crate::rules::Rule;
use crate::shadow::Touch;
use streamsan_trace::{AccessMode, BlockId, Event, MemorySpace, OpNumber, StreamId};

impl Engine {
    pub(super) fn allocate(
        &mut self,
        event: &Event,
        id: BlockId,
        owner: StreamId,
        space: MemorySpace,
        address: u64,
        size: u64,
    ) {
        let cached = matches!(space, MemorySpace::Cached(_));
        self.coverage.blocks += u64::from(cached);
        let handed_out = cached.then(|| self.order.knowledge(owner, event.number));
        if let Some(known) = &handed_out {
            self.freed_in_use.forget(&self.blocks, owner, |used| known.is_after(used.epoch()));
        }
        let block = Block {
            owner,
            allocated: event.number,
            alloc_site: event.site,
            handed_out,
            ..Block::new(id, space, address, size)
        };
        // In a damaged log a block can begin twice: what was kept of it lies at other addresses, and is dropped.
        let slot = self.blocks.insert(block);
        self.shadow.begin(slot, address);
        if cached {
            self.freed_in_use.handed_out(&self.blocks, owner, id);
            self.freed_in_use.reused(&self.blocks, id);
        }
    }

    /// A guard orders whoever gets the bytes next after all that it is after: also after uses by owners before
    /// this block's.
    pub(super) fn guard(&mut self, id: BlockId, guard: Snapshot) {
        // A block whose own accesses do not matter may be released by now.
        let Some(block) = self.blocks.get(id).filter(|_| !self.graphs.allocated(id)) else { return };
        let slot = self.blocks.slot(id);
        if slot.is_some_and(|slot| self.blocks.at(slot).private) {
            self.guard_private(id, guard);
            return;
        }
        if let MemorySpace::Cached(device) = block.space {
            let end = block.address.saturating_add(block.rounded());
            let known = |used: &Touch| guard.is_after(used.epoch());
            self.shadow.forget_retired(device, block.address, end, known);
            if let Some(slot) = slot {
                self.shadow.forget_known(slot, known);
            }
        }
        match slot {
            Some(slot) => self.blocks.guard(slot, guard),
            None => self.order.take_back(guard),
        }
    }

    pub(super) fn free(&mut self, event: &Event, id: BlockId) {
        let origin = self.origin(event);
        let of_graph = self.graphs.free(id, (event.number, origin));
        if of_graph && self.graphs.allocated(id) {
            return;
        }
        let Some(slot) = self.blocks.slot(id) else { return };
        let block = self.blocks.at_mut(slot);
        if of_graph {
            let again = std::mem::replace(&mut block.freed_at, event.number) != OpNumber(0);
            if !again && self.blocks.keep_freed() {
                self.tidy();
            }
            return;
        }
        let again = block.freed().is_some();
        (block.freed_at, block.freed_origin) = (event.number, origin);
        let (space, start, owner, touched) = (block.space, block.address, block.owner, block.touched);
        let needed = match space {
            MemorySpace::Cached(device) => {
                let order = &self.order;
                let chain = order.chain_of(owner);
                let pending = |used: &Touch| {
                    !chain.is_some_and(|chain| order.ordered(used.epoch(), chain))
                        && !order.passed(used.epoch())
                };
                if self.shadow.any_of_block(slot, id, pending) {
                    let mut uses = self.freed_in_use.list();
                    self.shadow.put_of_block(slot, id, pending, &mut uses);
                    let known = self.order.knowledge(owner, event.number);
                    uses.retain(|used| !known.is_after(used.epoch()));
                    self.order.take_back(known);
                    self.blocks.at_mut(slot).endangered = !uses.is_empty();
                    self.freed_in_use.note(owner, id, uses);
                }
                let kept =
                    self.shadow.retire(slot, id, (device, start), |used| self.order.passed(used.epoch()));
                // The guards of a block that was not touched are for those who had its bytes before.
                kept || !touched || self.blocks.at(slot).endangered
            }
            // The call waits before the memory can come back (`cudaFree`).
            MemorySpace::Device(device) => {
                let end = block.end();
                self.shadow.forget_block(slot);
                self.shadow.forget_retired(device, start, end, |_| true);
                self.end_pool(device, start, end);
                false
            }
            MemorySpace::Pinned | MemorySpace::Pageable => {
                self.escaped.remove(&id);
                for used in self.shadow.of_block(slot, id, |used| !self.order.passed(used.epoch())) {
                    let touch = Touch {
                        number: event.number,
                        chain: ChainId::HOST,
                        mode: AccessMode::Write,
                        origin,
                        ..used
                    };
                    let hazard = self.hazard(Rule::Ss303, &used, &touch);
                    self.found.push(hazard);
                }
                self.shadow.forget_block(slot);
                false
            }
        };
        if again {
            return;
        }
        if !needed {
            self.blocks.release(id, |snapshot| self.order.take_back(snapshot));
        } else if self.blocks.keep_freed() {
            self.tidy();
        }
    }

    /// Lets go of what no later event can be unordered with.
    pub(super) fn tidy(&mut self) {
        let (order, blocks) = (&self.order, &self.blocks);
        let mut used = self.shadow.tidy(|touch| order.passed(touch.epoch()), |slot| blocks.at(slot).id);
        self.freed_in_use.tidy(|touch| order.passed(touch.epoch()));
        used.extend(self.freed_in_use.blocks().chain(self.graphs.held()));
        self.blocks.sweep(&used, |snapshot| self.order.take_back(snapshot));
        self.graphs.tidy(&self.blocks);
    }
}
