//! The planner: how many slots a pipeline gets, how large they are, and how long it takes at best.
//!
//! A pipeline moves items through a fixed number of slots in device memory. Three engines work at once: uploads,
//! the function, downloads. A slot is refilled only after its download, so that with `W` slots at most `W` items
//! are under way. The time of `N` equal items is
//!
//! ```text
//! T(W) = h + c + d + 2e + (N - 1) * max(h, c, d, (h + c + d + 3e) / W, u)
//! ```
//!
//! with `h`, `c`, `d` the times of upload, function and download of one item, `e` the time from the end of one
//! stage to the start of the next one, and `u` the time the host needs to issue one item. Where both directions
//! share the link, `2 * bytes / both` joins the maximum. The formula is that of a closed queueing network with
//! one server a stage and `W` customers, all service times fixed; the tests compare it with a simulation.

use std::fmt;

/// What the machine can do, measured on it. Rates in bytes a second, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Host to device, alone.
    pub upload: f64,
    /// Device to host, alone.
    pub download: f64,
    /// Both directions together, the sum, when both are busy.
    pub both: f64,
    /// From the end of a stage to the start of the next one that waits for it.
    pub handover: f64,
    /// Host time to issue one item.
    pub issue: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// How many items.
    pub items: u64,
    /// Bytes up, an item.
    pub upload_bytes: u64,
    /// Bytes down, an item.
    pub download_bytes: u64,
    /// Device memory of an item in its slot: in place the larger of both, else their sum.
    pub slot_bytes: u64,
    /// Seconds of the function, an item.
    pub compute: f64,
}

/// What the pipeline may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Device memory for slots in bytes; the function's own temporaries are not in it.
    pub device: u64,
    /// Use exactly this many slots.
    pub slots: Option<usize>,
}

/// What limits a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The upload.
    Upload,
    /// The download.
    Download,
    /// The link, which both directions share.
    Link,
    /// The function.
    Compute,
    /// Too few slots: stages wait for free memory.
    Slots,
    /// The host, which cannot issue work fast enough.
    Host,
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Upload => "the upload",
            Self::Download => "the download",
            Self::Link => "the link, which uploads and downloads share",
            Self::Compute => "the function",
            Self::Slots => "the number of slots",
            Self::Host => "the host, which issues the work",
        })
    }
}

/// How a pipeline is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Slots in device memory.
    pub slots: usize,
    /// Items that travel together in one slot; more than one for small items.
    pub pack: u64,
    /// Bytes of one slot.
    pub slot_bytes: u64,
    /// Time of the whole work at best, in seconds.
    pub ideal: f64,
    /// What limits it.
    pub bound: Bound,
}

impl Plan {
    /// Device memory of all slots in bytes: never exceeded, whatever the number of items.
    pub fn device_bytes(&self) -> u64 {
        self.slot_bytes.saturating_mul(self.slots as u64)
    }
}

/// Why no plan could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// One item does not fit.
    TooLarge {
        /// Device memory of one item.
        item: u64,
        /// The budget.
        budget: u64,
    },
    /// The slots that were asked for do not fit.
    TooManySlots {
        /// The number asked for.
        slots: usize,
        /// Device memory of one item.
        item: u64,
        /// The budget.
        budget: u64,
    },
    /// Zero slots were asked for.
    NoSlots,
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { item, budget } => write!(
                formatter,
                "one item needs {item} bytes of device memory, the budget is {budget}: raise the budget or split the items"
            ),
            Self::TooManySlots { slots, item, budget } => write!(
                formatter,
                "{slots} slots of {item} bytes do not fit into a budget of {budget} bytes: at most {} do",
                budget / item.max(&1)
            ),
            Self::NoSlots => formatter.write_str("a pipeline needs at least one slot"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Items are packed until a slot has about this many bytes. From here on the start of a copy costs about 1 % of
/// it (measured on an H200: 47 GB/s at 1 MiB, 52 at 4 MiB, 55 from 16 MiB on), and what the host needs for a load
/// is spread over its items.
pub const WELL_FILLED: u64 = 16 << 20;

/// A plan may be this much slower than one with any number of slots.
const TOLERANCE: f64 = 1.005;

/// Most slots that are taken without being asked for: more than hides every hand-over only holds memory.
const MOST: usize = 8;

/// The times of one turn of a pipeline.
#[derive(Clone, Copy, Debug)]
struct Turn {
    upload: f64,
    compute: f64,
    download: f64,
    link: f64,
    handover: f64,
    host: f64,
}

impl Turn {
    fn new(machine: &Machine, work: &Work) -> Self {
        let (up, down) = (work.upload_bytes as f64, work.download_bytes as f64);
        Self {
            upload: up / machine.upload,
            compute: work.compute,
            download: down / machine.download,
            link: if up > 0.0 && down > 0.0 { (up + down) / machine.both } else { 0.0 },
            handover: machine.handover,
            host: machine.issue,
        }
    }

    fn pass(&self) -> f64 {
        self.upload + self.compute + self.download
    }

    /// The longest of what every item needs in turn, and which it is.
    fn slowest(&self, slots: usize) -> (f64, Bound) {
        [
            (self.upload, Bound::Upload),
            (self.download, Bound::Download),
            (self.link, Bound::Link),
            (self.compute, Bound::Compute),
            (self.host, Bound::Host),
            ((self.pass() + 3.0 * self.handover) / slots as f64, Bound::Slots),
        ]
        .into_iter()
        .fold((0.0, Bound::Host), |longest, stage| if stage.0 > longest.0 { stage } else { longest })
    }

    fn total(&self, items: u64, slots: usize) -> (f64, Bound) {
        let (turn, bound) = self.slowest(slots);
        (self.pass() + 2.0 * self.handover + items.saturating_sub(1) as f64 * turn, bound)
    }
}

/// Time of the work at best with this many slots, in seconds, and what limits it.
///
/// ```
/// use streamsan_runtime::{Bound, Machine, Work, ideal_seconds};
/// let machine = Machine { upload: 55e9, download: 55e9, both: 101e9, handover: 3e-6, issue: 0.0 };
/// let item = 64 << 20;
/// let work = Work { items: 64, upload_bytes: item, download_bytes: item, slot_bytes: item, compute: 1e-4 };
/// let (seconds, bound) = ideal_seconds(&machine, &work, 4);
/// assert_eq!(bound, Bound::Link);
/// assert!((0.08..0.09).contains(&seconds));
/// ```
pub fn ideal_seconds(machine: &Machine, work: &Work, slots: usize) -> (f64, Bound) {
    if work.items == 0 {
        return (0.0, Bound::Host);
    }
    Turn::new(machine, work).total(work.items, slots.max(1))
}

/// The same for stages whose times were measured, in seconds an item, instead of rates: upload, function, download.
///
/// ```
/// use streamsan_runtime::{Bound, ideal_of_stages};
/// assert_eq!(ideal_of_stages([1.0, 2.0, 1.0], 0.0, 10, 4), (4.0 + 9.0 * 2.0, Bound::Compute));
/// ```
pub fn ideal_of_stages(stages: [f64; 3], handover: f64, items: u64, slots: usize) -> (f64, Bound) {
    if items == 0 {
        return (0.0, Bound::Host);
    }
    let [upload, compute, download] = stages;
    Turn { upload, compute, download, link: 0.0, handover, host: 0.0 }.total(items, slots.max(1))
}

/// Plans a pipeline: the fewest slots that lose no time against any number of them, as far as memory allows.
///
/// # Errors
///
/// If one item, or the number of slots that was asked for, does not fit into the budget.
pub fn plan(machine: &Machine, work: &Work, budget: &Budget) -> Result<Plan, PlanError> {
    planned(machine, work, budget, WELL_FILLED)
}

/// Plans as [`plan`](plan()) does, but with one item in a slot, for functions that have to see an item by itself.
///
/// # Errors
///
/// As for [`plan`](plan()).
pub fn plan_single(machine: &Machine, work: &Work, budget: &Budget) -> Result<Plan, PlanError> {
    planned(machine, work, budget, 0)
}

fn planned(machine: &Machine, work: &Work, budget: &Budget, fill: u64) -> Result<Plan, PlanError> {
    let item = work.slot_bytes.max(1);
    if item > budget.device {
        return Err(PlanError::TooLarge { item, budget: budget.device });
    }
    let fit = usize::try_from(budget.device / item).unwrap_or(usize::MAX);
    if let Some(slots) = budget.slots {
        if slots == 0 {
            return Err(PlanError::NoSlots);
        }
        if slots > fit {
            return Err(PlanError::TooManySlots { slots, item, budget: budget.device });
        }
    }
    let wanted = budget.slots.unwrap_or(4);
    // Packing must leave room for the slots themselves and for every slot to have something to do.
    let room = budget.device / (item.saturating_mul(wanted as u64)).max(1);
    let pack = (fill / item).min(room).min(work.items / (2 * wanted as u64)).max(1);
    let packed = Work {
        items: work.items.div_ceil(pack),
        upload_bytes: work.upload_bytes.saturating_mul(pack),
        download_bytes: work.download_bytes.saturating_mul(pack),
        slot_bytes: item.saturating_mul(pack),
        compute: work.compute * pack as f64,
    };
    let fit = usize::try_from(budget.device / packed.slot_bytes).unwrap_or(usize::MAX).max(1);
    let turn = Turn::new(machine, &packed);
    let slots = budget.slots.unwrap_or_else(|| {
        let most = fit.min(MOST).min(usize::try_from(packed.items).unwrap_or(usize::MAX)).max(1);
        let best = turn.slowest(usize::MAX).0;
        (1..=most).find(|&slots| turn.slowest(slots).0 <= best * TOLERANCE).unwrap_or(most)
    });
    let (ideal, bound) = ideal_seconds(machine, &packed, slots);
    Ok(Plan { slots, pack, slot_bytes: packed.slot_bytes, ideal, bound })
}

#[cfg(test)]
mod tests {
    use super::{Bound, Budget, Machine, PlanError, Work, ideal_seconds, plan};
    use proptest::prelude::*;

    const H200: Machine =
        Machine { upload: 55.3e9, download: 55.3e9, both: 101.2e9, handover: 3e-6, issue: 5e-6 };

    fn work(items: u64, bytes: u64, compute: f64) -> Work {
        Work { items, upload_bytes: bytes, download_bytes: bytes, slot_bytes: bytes, compute }
    }

    /// The same pipeline, event by event: each engine serves the items in order, one at a time.
    fn simulated(stages: [f64; 3], handover: f64, issue: f64, items: usize, slots: usize) -> f64 {
        let mut free = [0.0_f64; 3];
        let mut done: Vec<f64> = Vec::new();
        for item in 0..items {
            let refill = if item >= slots { done[item - slots] + handover } else { 0.0 };
            let mut ready = refill.max(item as f64 * issue);
            for (stage, time) in stages.into_iter().enumerate() {
                let end = ready.max(free[stage]) + time;
                free[stage] = end;
                ready = end + handover;
            }
            done.push(free[2]);
        }
        done.last().copied().unwrap_or(0.0)
    }

    proptest! {
        #[test]
        fn the_formula_agrees_with_a_simulation(
            stages in prop::array::uniform3(1e-6_f64..1e-3),
            handover in 0.0_f64..2e-5,
            issue in 0.0_f64..1e-3,
            items in 200_u64..600,
            slots in 1_usize..8,
        ) {
            // Rates are chosen so that each stage takes the time that was drawn; the link is not shared.
            let machine = Machine {
                upload: 1e6 / stages[0], download: 1e6 / stages[2], both: f64::INFINITY, handover, issue,
            };
            let (formula, _) = ideal_seconds(&machine, &work(items, 1_000_000, stages[1]), slots);
            let truth = simulated(stages, handover, issue, items as usize, slots);
            prop_assert!((formula - truth).abs() <= 0.02 * truth, "{formula} against {truth}");
        }

        #[test]
        fn the_budget_holds(
            items in 1_u64..20_000, bytes in 1_u64..(64 << 20), compute in 0.0_f64..1e-2,
            device in 1_u64..(1 << 30), slots in prop::option::of(0_usize..12),
        ) {
            match plan(&H200, &work(items, bytes, compute), &Budget { device, slots }) {
                Ok(plan) => {
                    prop_assert!(plan.device_bytes() <= device);
                    prop_assert!(plan.slots >= 1 && plan.pack >= 1);
                    prop_assert!(slots.is_none_or(|slots| slots == plan.slots));
                }
                Err(error) => prop_assert!(
                    bytes > device || slots.is_some_and(|slots| slots == 0 || slots as u64 * bytes > device),
                    "{error}"
                ),
            }
        }
    }

    #[test]
    fn three_or_four_slots_where_memory_allows() {
        let wide = Budget { device: 8 << 30, slots: None };
        let large = plan(&H200, &work(64, 64 << 20, 1e-3), &wide).unwrap();
        assert_eq!((large.slots, large.pack, large.bound), (3, 1, Bound::Link));
        // Stages as long as each other, on a link that is not shared: the hand-overs need a fourth slot.
        let apart = Machine { both: 2.0 * H200.upload, ..H200 };
        let balanced = plan(&apart, &work(4096, 2 << 20, 3.8e-5), &wide).unwrap();
        assert_eq!((balanced.slots, balanced.bound), (4, Bound::Compute), "{balanced:?}");
        let narrow = plan(&H200, &work(64, 64 << 20, 1e-3), &Budget { device: 128 << 20, slots: None });
        assert_eq!(narrow.map(|plan| (plan.slots, plan.bound)), Ok((2, Bound::Slots)));
    }

    #[test]
    fn small_items_travel_together() {
        let plan =
            plan(&H200, &work(10_000, 16 << 10, 1e-6), &Budget { device: 1 << 30, slots: None }).unwrap();
        assert_eq!(plan.pack, 1024);
        assert!(plan.ideal < 0.02, "{plan:?}");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let item = work(8, 64 << 20, 1e-3);
        let error = plan(&H200, &item, &Budget { device: 1 << 20, slots: None }).unwrap_err();
        assert_eq!(error, PlanError::TooLarge { item: 64 << 20, budget: 1 << 20 });
        assert!(error.to_string().contains("raise the budget"));
        let error = plan(&H200, &item, &Budget { device: 128 << 20, slots: Some(3) }).unwrap_err();
        assert!(error.to_string().ends_with("at most 2 do"), "{error}");
    }
}
