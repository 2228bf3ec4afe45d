//! The CUDA runtime's names, answered by a device that is not there.
//!
//! Preloaded into a process, this library stands in front of NVIDIA's runtime. Device memory is host memory,
//! copies happen at once, kernels are not run; streams and events keep CUDA's rules, and every call that
//! matters for order goes to the recorder. Between the libraries of a process there is no other state of it.

mod abi;
mod call;
mod capture;
mod copies;
mod delays;
mod devices;
mod driver;
mod errors;
mod events;
mod graphs;
mod launches;
mod memory;
mod nccl;
mod pointers;
mod pools;
mod properties;
mod protection;
mod readiness;
mod recording;
mod regions;
mod registration;
mod streams;
mod system_calls;
mod transfers;
mod unsupported;
mod virtual_memory;
