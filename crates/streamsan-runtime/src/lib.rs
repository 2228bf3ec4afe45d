//! Managed streams, lifetimes, and bounded upload, compute, download pipelines.
//!
//! The other half of streamsan: code in which the waits that its checker misses cannot be left out.
//!
//! - [`StreamGraph`]: named streams with declared dependencies; cycles are refused by name.
//! - [`plan`](plan()): how many slots of which size a pipeline gets, from a memory budget and measured rates, and
//!   how long it takes at best.

mod backend;
mod buffer;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
mod graph;
mod host;
mod journal;
mod operation;
mod order;
mod pipeline;
mod plan;
mod pool;
mod stream;
mod sync;

pub use buffer::Buffer;
pub use cpu::CpuOptions;
pub use device::Device;
pub use error::Error;
pub use graph::{GraphError, StreamGraph};
pub use host::{HostBuffer, HostRead, HostWrite};
pub use operation::{Launch, Operation, Read, Running, Write};
pub use pipeline::{Cancel, ItemError, Pipeline, PipelineError, PipelineOptions, Statistics};
pub use plan::{
    Bound, Budget, Machine, Plan, PlanError, WELL_FILLED, Work, ideal_of_stages, ideal_seconds, plan,
};
pub use stream::{Event, Stream};
