//! Managed streams, lifetimes, and bounded upload, compute, download pipelines.
//!
//! The other half of streamsan: code in which the waits that its checker misses cannot be left out.
//!
//! - [`StreamGraph`]: named streams with declared dependencies; cycles are refused by name. [`GraphStreams`] runs them.
//! - [`Device`], [`Stream`], [`Buffer`], [`HostBuffer`]: buffers know who writes and who reads them, and whatever is
//!   submitted waits for what it has to come after.
//! - [`Pipeline`]: a function over any number of items through a fixed number of slots.
//! - [`plan`](plan()): how many slots of which size a pipeline gets, from a memory budget and measured rates, and
//!   how long it takes at best.
//!
//! # What the types forbid
//!
//! These programs do not compile; each is a test in `tests/forbidden`. To read or write host memory while a copy with it
//! is submitted, or a vector while it is registered. To change a buffer through two tokens, in two operations that are
//! not submitted, through a token that only reads, or twice through one token. To copy a buffer onto itself. To
//! drop or move a buffer between its declaration and the submission, or to use it after it was moved. To keep
//! elements beyond their operation, a result or a slot beyond its item, or to read a result during the run that writes
//! it. An operation that borrows a local variable or takes what is not [`Send`]. Elements with pointers or invalid
//! values. Kernels launched by safe code, or from another thread.
//!
//! Things of two devices used together, and tokens of another operation, are not told apart by their types: the first is
//! [`Error::OtherDevice`], the second ends the stream with an error. An operation that waits for its own device gets
//! [`Error::InsideOperation`].
//!
//! # When something fails
//!
//! | what | then |
//! | --- | --- |
//! | the source has no item | an error with the item's number; all others are done. A reader that fails ends the source |
//! | an item is longer than a slot | an error with the item's number, unless the function treats each element by itself |
//! | the function returns an error | an error with the item's number; of items that travel together only the one to blame fails |
//! | device memory, when the pipeline is made | fewer slots, if their number was not chosen; else an error |
//! | device memory, in the function | results under way are handed out, a slot is given up, the function is called again; with one slot left, an error with the item's number |
//! | page-locked memory, when the pipeline is made | fewer slots, if their number was not chosen; else an error |
//! | [`Device::register`] is refused | an error that has the data |
//! | an operation fails on the device | what was done before it is handed out; it and what is under way are errors; the run ends, and the source keeps the rest ([`Statistics::stopped`]) |
//! | the sink fails | an error with the item's number |
//! | [`Cancel`] | what was taken from the source is handed out, the last item whole |
//! | a record behind an operation fails | whoever comes after the operation waits for the whole stream instead |

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
pub use graph::{GraphError, GraphStreams, StreamGraph};
pub use host::{HostBuffer, HostRead, HostWrite, RegisterError};
pub use operation::{Launch, Operation, Read, Running, Write};
pub use pipeline::{
    Cancel, ItemError, ItemReader, ItemWriter, Items, Measured, Part, Pipeline, PipelineError,
    PipelineOptions, Progress, Sink, SliceSink, Source, Statistics,
};
pub use plan::{
    Bound, Budget, Machine, Plan, PlanError, WELL_FILLED, Work, ideal_of_stages, ideal_seconds, plan,
    plan_single,
};
pub use stream::{Event, Stream};
