//! What a node of a graph does, and doing it.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::call::record;
use crate::errors::{Answer, Code};
use crate::events::record_now;
use crate::graphs::Nodes;
use crate::memory::is_device_memory;
use crate::nccl::Movement;
use crate::streams::{HostFunction, Stream, run_in_stream};
use crate::transfers::{Fill, Transfer};

/// What a node does.
#[derive(Debug)]
pub enum Work {
    /// Nothing: it only orders others.
    Empty,
    /// Copies bytes.
    Copy(Transfer),
    /// Fills bytes.
    Fill(Fill),
    /// Calls a function of the program.
    HostFunction(HostFunction, Argument),
    /// A kernel. Kernels are not run.
    Kernel {
        /// Its name.
        name: String,
        /// Whether what it touches is known: it is an operator's.
        known: bool,
    },
    /// An operation of NCCL.
    Collective(Movement),
    /// An operator that the torch layer computes.
    Operator(Operator),
    /// The nodes of a graph that was launched in a capturing stream.
    Graph(Arc<Nodes>),
    /// Records an event for the world outside the graph.
    Record(u64),
    /// Waits for an event of the world outside the graph.
    Wait(u64),
}

/// What a host function is called with.
#[derive(Clone, Copy, Debug)]
pub struct Argument(pub *mut c_void);

// SAFETY: it is only passed on; CUDA too calls the function from a thread of its own.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/// An operator, kept by the torch layer under a number.
#[derive(Debug)]
pub struct Operator {
    /// The layer's number for it; 0 if the layer does not know how to compute it again.
    pub number: u64,
    /// The device memory that it touches: first byte and length.
    pub touches: Vec<(usize, usize)>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        if self.number != 0 {
            layer::forget(self.number);
        }
    }
}

impl Work {
    /// `cudaGraphNodeType`.
    pub fn kind(&self) -> i32 {
        match self {
            Self::Kernel { .. } | Self::Collective(_) | Self::Operator(_) => 0,
            Self::Copy(_) => 1,
            Self::Fill(_) => 2,
            Self::HostFunction(..) => 3,
            Self::Graph(_) => 4,
            Self::Empty => 5,
            Self::Wait(_) => 6,
            Self::Record(_) => 7,
        }
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Empty => "empty",
            Self::Copy(transfer) => transfer.label(),
            Self::Fill(_) => "memset",
            Self::HostFunction(..) => "host function",
            Self::Kernel { name, .. } => name,
            Self::Collective(movement) => movement.name,
            Self::Operator(_) => "operator",
            Self::Graph(_) => "graph",
            Self::Record(_) => "event record",
            Self::Wait(_) => "event wait",
        }
    }

    /// Does it, as part of a launch in `stream`. No lock may be held.
    pub fn run(&self, stream: Stream) -> Answer {
        match self {
            // A wait was made by the launch, before anything ran.
            Self::Empty | Self::Kernel { known: true, .. } | Self::Wait(_) => Ok(()),
            Self::Kernel { name, known: false } => {
                record(|recorder| recorder.launched_kernel_of_graph(name));
                Ok(())
            }
            Self::Copy(transfer) => transfer.run_in_graph(stream),
            Self::Fill(fill) => fill.run_in_graph(stream),
            Self::HostFunction(function, argument) => {
                // SAFETY: the program gave a function and what it is to be called with, for each launch.
                run_in_stream(|| unsafe { function(argument.0) });
                Ok(())
            }
            Self::Collective(movement) => movement.run_in_graph(stream),
            Self::Operator(operator) => operator.run(),
            Self::Graph(nodes) => nodes.iter().try_for_each(|node| node.work.run(stream)),
            Self::Record(event) => record_now(*event, stream),
        }
    }
}

impl Operator {
    fn run(&self) -> Answer {
        for &(start, length) in &self.touches {
            // The memory went back to the system after the capture.
            if !is_device_memory(start, length)? {
                return Err(Code::ILLEGAL_ADDRESS);
            }
        }
        if self.number == 0 { Ok(()) } else { layer::run(self.number) }
    }
}

/// Whether these bytes of the program's ordinary memory are there.
pub fn is_mapped(start: usize, length: usize) -> bool {
    const PAGE: usize = 4096;
    let first = start & !(PAGE - 1);
    let pages = (start + length - first).div_ceil(PAGE);
    let mut resident = vec![0_u8; pages];
    // SAFETY: one byte for each page; the call looks at no memory of the range itself.
    unsafe { libc::mincore(first as *mut c_void, pages * PAGE, resident.as_mut_ptr()) == 0 }
}

/// The torch layer's functions, which compute operators again.
pub mod layer {
    use super::{Answer, AtomicUsize, Code, Ordering, ptr};

    /// Computes an operator again: 0, or it failed.
    pub type Run = unsafe extern "C" fn(u64) -> i32;
    /// An operator will not be computed again.
    pub type Forget = unsafe extern "C" fn(u64);

    static RUN: AtomicUsize = AtomicUsize::new(0);
    static FORGET: AtomicUsize = AtomicUsize::new(0);

    /// Gives the functions. They may be called from any thread, and never unwind.
    #[unsafe(no_mangle)]
    extern "C" fn streamsan_operators_of_graphs(run: Run, forget: Forget) {
        RUN.store(run as usize, Ordering::Release);
        FORGET.store(forget as usize, Ordering::Release);
    }

    pub(super) fn run(number: u64) -> Answer {
        let function: *const () = ptr::with_exposed_provenance(RUN.load(Ordering::Acquire));
        if function.is_null() {
            return Ok(());
        }
        // SAFETY: the address of the layer's function of this type.
        let code = unsafe { std::mem::transmute::<*const (), Run>(function)(number) };
        if code == 0 { Ok(()) } else { Err(Code::LAUNCH_FAILURE) }
    }

    pub(super) fn forget(number: u64) {
        let function: *const () = ptr::with_exposed_provenance(FORGET.load(Ordering::Acquire));
        if !function.is_null() {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<*const (), Forget>(function)(number) }
        }
    }
}
