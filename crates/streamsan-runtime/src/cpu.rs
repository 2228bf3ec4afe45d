//! The back end without a GPU: each stream is a queue with a thread of its own.
//!
//! The same semantics as CUDA's: operations of one stream run in order, a wait holds back what is enqueued after
//! it, nothing else is ordered. With a seed, each operation starts after a random delay, so that whatever is
//! not ordered happens in another order soon.

mod delays;
mod memory;
mod queue;

use crate::backend::{Address, Backend, HostWork, Space, StreamIndex};
use crate::error::Error;
use crate::sync::{Mutex, held};
use memory::Memory;
use queue::{Queue, Task};
use std::sync::Arc;

/// What a CPU device is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuOptions {
    /// Device memory in bytes; 0: no limit.
    pub device_memory: usize,
    /// Page-locked host memory in bytes; 0: no limit.
    pub host_memory: usize,
    /// Operations start after random delays drawn from this seed.
    pub delays: Option<u64>,
}

/// Queues on threads.
#[derive(Debug)]
pub(crate) struct Cpu {
    streams: Mutex<Vec<Arc<Queue>>>,
    memory: Memory,
    delays: Option<u64>,
}

impl Cpu {
    pub(crate) fn new(options: &CpuOptions) -> Self {
        Self {
            streams: Mutex::default(),
            memory: Memory::new(options.device_memory, options.host_memory),
            delays: options.delays,
        }
    }

    fn queue(&self, stream: StreamIndex) -> Arc<Queue> {
        Arc::clone(&held(&self.streams)[stream.0])
    }
}

impl Backend for Cpu {
    fn create_stream(&self, name: &str) -> Result<StreamIndex, Error> {
        let mut streams = held(&self.streams);
        let index = streams.len();
        let seed = self.delays.map(|seed| seed.wrapping_add(index as u64));
        streams.push(Queue::start(name, seed)?);
        Ok(StreamIndex(index))
    }

    fn put_down(&self, stream: StreamIndex) {
        self.queue(stream).close();
    }

    fn take_up(&self, stream: StreamIndex, name: &str) -> Result<(), Error> {
        self.queue(stream).reopen(name)
    }

    fn inside_operation(&self) -> bool {
        held(&self.streams).iter().any(|queue| queue.is_current())
    }

    unsafe fn copy(
        &self,
        stream: StreamIndex,
        from: Address,
        to: Address,
        bytes: usize,
    ) -> Result<u64, Error> {
        let work = move || {
            // SAFETY: the caller of `Backend::copy` vouches for both ranges until this has run.
            unsafe { std::ptr::copy_nonoverlapping(from.0 as *const u8, to.0 as *mut u8, bytes) }
        };
        Ok(self.queue(stream).push(Task::Work("copy".to_owned(), Box::new(work))))
    }

    fn run(&self, stream: StreamIndex, label: &str, work: HostWork) -> Result<u64, Error> {
        Ok(self.queue(stream).push(Task::Work(label.to_owned(), work)))
    }

    fn mark(&self, stream: StreamIndex) -> Result<u64, Error> {
        Ok(self.queue(stream).pushed())
    }

    fn wait(&self, waiter: StreamIndex, awaited: StreamIndex, number: u64) -> Result<(), Error> {
        let awaited = self.queue(awaited);
        self.queue(waiter).push(Task::Wait(awaited, number));
        Ok(())
    }

    fn finished(&self, stream: StreamIndex, number: u64) -> Result<bool, Error> {
        self.queue(stream).finished(number)
    }

    fn synchronize(&self, stream: StreamIndex, number: u64) -> Result<(), Error> {
        self.queue(stream).synchronize(number)
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Address, Error> {
        self.memory.allocate(space, bytes)
    }

    unsafe fn register(&self, _: Address, bytes: usize) -> Result<(), Error> {
        self.memory.take(Space::Host, bytes)
    }

    unsafe fn unregister(&self, _: Address, bytes: usize) {
        self.memory.give(Space::Host, bytes);
    }

    unsafe fn free(&self, space: Space, address: Address, bytes: usize) {
        // SAFETY: handed on from the caller.
        unsafe { self.memory.free(space, address, bytes) };
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        for queue in held(&self.streams).drain(..) {
            queue.close();
        }
    }
}
