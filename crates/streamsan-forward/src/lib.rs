//! Recording on a GPU: the calls of the CUDA runtime that matter for order, passed on to the real one.
//!
//! Preloaded into a process, this library stands in front of NVIDIA's runtime with those names only that are recorded. Each
//! call is made for real, with the same arguments and the same answer; when it has succeeded, the recorder hears of it. A
//! call counts as made when it has returned: a program whose other threads rely on it has told them so after that. Only
//! what ends a handle or memory is told before, because the driver may hand out the same one again at once.
//!
//! NCCL's operations are recorded in the same way. What is not seen: calls that libraries make to the driver, or to a
//! runtime linked into them (cuBLAS, Triton).

#![allow(non_snake_case, reason = "functions have the names of CUDA's")]

mod callers;
mod code;
mod copies;
mod devices;
mod events;
mod graphs;
mod launches;
mod memory;
mod memsets;
mod nccl;
mod pointers;
mod real;
mod recording;
mod runtimes;
mod streams;
mod unseen;
