//! Accesses: each is compared with those that are kept, and kept itself.

use super::{Engine, Sink};
use crate::blocks::{Facts, Slot};
use crate::clock::Epoch;
use crate::finding::Actor;
use crate::hazard::{Hazard, Origin, pair_rule};
use crate::near_miss::waited_elsewhere;
use crate::overlap::Shapes;
use crate::rules::{Family, Rule};
use crate::shadow::{Extent, Touch};
use streamsan_trace::{Access, GapReason, MemorySpace, OpNumber, Tables};

impl Engine {
    pub(super) fn touch_all(
        &mut self,
        epoch: Epoch,
        actor: Actor,
        origin: Origin,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        self.touch_each(epoch, actor, origin, accesses, tables, sink);
        self.give(tables, sink);
    }

    pub(super) fn touch_each(
        &mut self,
        epoch: Epoch,
        actor: Actor,
        origin: Origin,
        accesses: &[Access],
        tables: &Tables,
        sink: &mut impl Sink,
    ) {
        for access in accesses {
            if actor != Actor::Host
                && let Some(&label) = self.escaped.get(&access.block)
            {
                sink.gap(GapReason::Escaped, label, epoch.number);
            }
            self.touch(epoch, actor, origin, access, tables);
            match std::mem::take(&mut self.undecided) {
                0 => {}
                pairs => sink.undecided(pairs, epoch.number),
            }
        }
    }

    #[inline]
    pub(super) fn give(&mut self, tables: &Tables, sink: &mut impl Sink) {
        if !self.found.is_empty() {
            self.give_found(tables, sink);
        }
    }

    #[cold]
    fn give_found(&mut self, tables: &Tables, sink: &mut impl Sink) {
        let mut found = std::mem::take(&mut self.found);
        for hazard in &found {
            if self.is_in_region(hazard.second) && !self.ignores.hides(hazard, tables) {
                sink.hazard(hazard, self, tables);
            }
        }
        found.clear();
        self.found = found;
    }

    pub(super) fn touch(
        &mut self,
        epoch: Epoch,
        actor: Actor,
        origin: Origin,
        access: &Access,
        tables: &Tables,
    ) {
        let Some(slot) = self.blocks.slot(access.block) else {
            self.touch_ended(epoch, origin, access);
            return;
        };
        let block = self.blocks.at_mut(slot);
        let first_touch = !std::mem::replace(&mut block.touched, true);
        let private = block.private;
        let memory = block.device().map(|device| Extent { device, start: block.address, end: block.end() });
        let touch = touch_of(block.address, epoch, origin, access);
        if let (true, Some(Extent { device, .. })) = (private, memory) {
            self.touch_private(&touch, actor, device, tables);
            return;
        }
        if let (Some(freed), Some(_)) = (block.freed(), memory) {
            self.use_after_free(freed, &touch);
            return;
        }
        self.effort.access();
        let (order, blocks, undecided) = (&self.order, &self.blocks, &mut self.undecided);
        let now = order.chain(epoch.chain);
        let ordered = |earlier: &Touch| {
            earlier.chain == epoch.chain
                || now.is_after(earlier.epoch())
                || (earlier.block != touch.block && blocks.handed_on_after(earlier.block, earlier.epoch()))
        };
        let mut conflicts: Vec<(Rule, Touch)> = Vec::new();
        let shapes = Shapes { tables, effort: &self.effort };
        let only = self.shadow.touch(slot, memory, &touch, shapes, ordered, |conflict| {
            if !conflict.decided {
                *undecided += 1;
                return;
            }
            let earlier = conflict.earlier;
            let rule = if earlier.block == touch.block {
                let first_actor = order.stream(earlier.chain).map_or(Actor::Host, Actor::Stream);
                pair_rule((first_actor, &earlier), (actor, &touch))
            } else if blocks.at(slot).handed_out_after(earlier.epoch()) {
                Rule::Ss201
            } else {
                Rule::Ss202
            };
            conflicts.push((rule, earlier));
        });
        if first_touch && memory.is_some() {
            let lucky = self
                .freed_in_use
                .first_access(blocks, touch.block, |used| order.ordered(used.epoch(), epoch.chain));
            conflicts.extend(lucky.into_iter().map(|(_, used)| (Rule::Ss203, used)));
        }
        if !conflicts.is_empty() {
            self.conflicts(&conflicts, &touch);
        }
        if only && memory.is_some() {
            self.leave_earlier_owners(slot);
        }
        if self.shadow.is_crowded(slot, &self.effort) {
            self.thin_out(slot);
        }
    }

    /// Keeps what each access to a block is compared with within bounds.
    #[cold]
    pub(super) fn thin_out(&mut self, slot: Slot) {
        let order = &self.order;
        self.undecided += self.shadow.thin_out(slot, |touch| order.passed(touch.epoch()));
    }

    #[cold]
    fn conflicts(&mut self, conflicts: &[(Rule, Touch)], touch: &Touch) {
        for (rule, earlier) in conflicts {
            let mut hazard = self.hazard(*rule, earlier, touch);
            if *rule == Rule::Ss601 && waited_elsewhere(&hazard, self).is_some() {
                hazard.rule = Rule::Ss602;
            }
            self.push(hazard);
        }
    }

    /// All accesses of earlier owners of a block's bytes were replaced.
    fn leave_earlier_owners(&mut self, slot: Slot) {
        if let Some(known) = self.blocks.at_mut(slot).handed_out.take() {
            self.order.take_back(known);
        }
        if let Some(earlier) = self.shadow.take_from(slot)
            && self.blocks.find(earlier).is_some_and(|block| !block.endangered)
        {
            self.blocks.release_kept(earlier, |snapshot| self.order.take_back(snapshot));
        }
    }

    /// An access to a block that nothing refers to any more, if it is remembered.
    fn touch_ended(&mut self, epoch: Epoch, origin: Origin, access: &Access) {
        if let (None, Some(freed)) = (self.blocks.get(access.block), self.graphs.freed(access.block)) {
            self.use_after_free(freed, &touch_of(0, epoch, origin, access));
        } else if let Some(Facts { space, address, freed: Some(freed), .. }) = self.blocks.get(access.block)
            && matches!(space, MemorySpace::Cached(_) | MemorySpace::Device(_))
        {
            let touch = touch_of(address, epoch, origin, access);
            self.use_after_free(freed, &touch);
        }
    }

    fn use_after_free(&mut self, freed: (OpNumber, Origin), touch: &Touch) {
        let free = Touch { number: freed.0, origin: freed.1, ..*touch };
        let hazard = self.hazard(Rule::Ss204, &free, touch);
        self.push(Hazard { freed: Some(freed), ..hazard });
    }

    /// One hazard per rule and pair of operations; what a graph reads and writes is one thing.
    pub(super) fn push(&mut self, hazard: Hazard) {
        let graphs = |hazard: &Hazard| hazard.rule.family() == Family::Graphs;
        let same = |known: &Hazard| known.rule == hazard.rule || graphs(known) && graphs(&hazard);
        if !self.found.iter().any(|known| known.first == hazard.first && same(known)) {
            self.found.push(hazard);
        }
    }

    pub(crate) fn hazard(&self, rule: Rule, first: &Touch, second: &Touch) -> Hazard {
        let old = (first.block != second.block || rule == Rule::Ss204).then_some(first.block);
        let start = self.blocks.get(second.block).map_or(0, |block| block.address);
        Hazard {
            rule,
            first: first.number,
            second: second.number,
            first_origin: first.origin,
            second_origin: second.origin,
            first_actor: self.actor_of(first.chain),
            second_actor: self.actor_of(second.chain),
            first_mode: first.mode,
            second_mode: second.mode,
            block: second.block,
            old_block: old,
            offset: second.start.saturating_sub(start),
            overlap: first.end.min(second.end).saturating_sub(first.start.max(second.start)),
            ordered_up_to: self.order.ordered_up_to(first.chain, second.chain),
            first_chain: first.chain,
            freed: old.and_then(|block| self.blocks.get(block)?.freed),
        }
    }
}

fn touch_of(address: u64, epoch: Epoch, origin: Origin, access: &Access) -> Touch {
    Touch {
        number: epoch.number,
        chain: epoch.chain,
        block: access.block,
        mode: access.mode,
        start: address.saturating_add(access.offset),
        end: address.saturating_add(access.end()),
        shape: access.shape,
        origin,
    }
}
