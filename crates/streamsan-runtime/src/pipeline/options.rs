//! What a pipeline may use, and who may stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a pipeline may use.
///
/// ```
/// use streamsan_runtime::PipelineOptions;
/// let options = PipelineOptions { item: 1024, memory: 64 << 20, ..PipelineOptions::default() };
/// assert!(options.slots.is_none() && !options.elementwise);
/// ```
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// Most elements of one item; with `elementwise`, how many a usual item has.
    pub item: usize,
    /// Device memory for the slots, in bytes. The function's own buffers are not in it.
    pub memory: u64,
    /// Exactly this many slots; else as many as pay, and fewer where memory is short.
    pub slots: Option<usize>,
    /// The function treats each element by itself. Small items then travel together, and items of any length are cut
    /// where a slot ends; the function sees whatever part of whatever items a slot holds.
    pub elementwise: bool,
    /// Stops the pipeline when set: items under way are still handed out.
    pub cancel: Cancel,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        let cancel = Cancel::default();
        Self { item: 1 << 20, memory: 1 << 30, slots: None, elementwise: false, cancel }
    }
}

/// Asks a pipeline to stop; clones ask the same one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
