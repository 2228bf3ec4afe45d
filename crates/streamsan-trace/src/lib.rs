//! What was recorded: events, ids, sites, and the `.sstrace` file that holds them.
//!
//! One process gives one linear log. The order of the log is that of one atomic counter, read where the
//! call happens; each event carries that number ([`OpNumber`]). Handles and addresses are reused by CUDA,
//! so every id here names one *generation*: a stream from its creation to its destruction, a block from its
//! allocation to its free.
//!
//! This crate knows what happened and nothing of what it means: order, hazards and rules are in
//! `streamsan-check`.

mod access;
mod event;
pub mod file;
mod ids;
mod log;
mod tables;
mod trace;

pub use access::{Access, AccessMode};
pub use event::{
    AccessRange, Event, EventKind, GapReason, HostWaitHow, MemorySpace, Observer, OpKind, RangeKind, Subject,
    WaitTarget,
};
pub use ids::{
    BlockId, DeviceId, EventId, ExecutableId, FrameId, GraphId, LabelId, OpNumber, ShapeId, SiteId, StreamId,
    StringId, ThreadId,
};
pub use log::Log;
pub use tables::{
    Binding, Frame, FrameOrigin, Placement, Reach, Shape, ShapeDimension, Tables, VisibleStream,
};
pub use trace::{CaptureKind, Header, Trace};
