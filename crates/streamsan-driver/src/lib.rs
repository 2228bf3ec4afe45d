//! The CUDA driver's names, for virtual runs. Streams, events, copies and memory are those of the preloaded
//! device library; what is not there answers `CUDA_ERROR_NOT_SUPPORTED`.

mod contexts;
mod faults;
mod kernels;
mod lookup;
mod names;
mod runtime;
mod streams;
mod virtual_memory;
