//! Managed streams, lifetimes, and bounded upload, compute, download pipelines.
//!
//! The other half of streamsan: code in which the waits that its checker misses cannot be left out.
//!
//! - [`StreamGraph`]: named streams with declared dependencies; cycles are refused by name.
//! - [`plan`](plan()): how many slots of which size a pipeline gets, from a memory budget and measured rates, and
//!   how long it takes at best.

mod graph;
mod plan;

pub use graph::{GraphError, StreamGraph};
pub use plan::{Bound, Budget, Machine, Plan, PlanError, Work, ideal_seconds, plan};
