//! The judge: small stream programs on the CPU, every legal schedule, the true answer.
//!
//! A program ([`Program`], written in `sim` blocks of markdown files) says what a host thread calls: work
//! in streams, records and waits of events, host waits. [`judge`] *executes* it, in every order that CUDA
//! allows, and says which conflicting operations can execute in either order. It knows no clocks, epochs or
//! reachability, so it can be set against the checker: [`lower`] gives the trace that a recorder would have
//! written for the same program. [`reachability`] is a second, static definition that the judge itself is
//! tested against.
//!
//! What is modelled: one device and one host thread; streams as in-order queues; the legacy default stream
//! with blocking and non-blocking streams; events as the last record at the time of the wait; operations
//! that execute as a whole; blocks of torch's caching allocator, whose memory the program hands out again;
//! page-locked memory that copies and the host touch; graphs, whose nodes execute one by one. What can be missed:
//! effects inside an operation, allocations in a capture, pageable memory, and, in programs too large for all their states, orders that
//! no sampled schedule had; [`Verdict::complete`] says so.

mod annotations;
mod bytes;
mod captures;
mod command;
mod display;
mod error;
mod exchange;
mod execution;
mod explore;
mod judge;
mod lifetimes;
mod lower;
mod markdown;
mod memory;
mod parse;
mod pieces;
mod program;
mod queues;
mod random;
mod random_graphs;
mod random_lifetimes;
pub mod reachability;
mod replay;
mod sample;
mod state_set;

pub use annotations::{Annotations, Expectation, ExpectedLevel};
pub use bytes::{Bytes, Runs};
pub use command::{describe, witness_text};
pub use error::ProgramError;
pub use execution::Actor;
pub use judge::{Effort, Found, Judge, Kind, Pair, Verdict, judge, witness};
pub use lower::{Lowered, lower};
pub use markdown::{Test, parse_file};
pub use parse::parse;
pub use program::{
    Access, Action, Buffer, BufferKind, Program, Step, Stream, StreamKind, Target, Within, Work,
};
pub use random::random;
pub use random_graphs::random_graphs;
pub use random_lifetimes::random_lifetimes;
pub use replay::{Replay, ScheduleError, replay, schedule_text};
pub use sample::Schedule;
