//! Graphs: nodes that captures made, executables made of them, and their handles.
//!
//! A node is work that a stream was given while it was capturing. It cannot change once it is there, so an
//! executable and the graph it was made of share nodes.

mod calls;
mod launch;
mod objects;
mod questions;
pub mod work;

use std::collections::HashMap;
use std::sync::Arc;

pub use work::Work;

use crate::errors::Code;
use crate::graphs::objects::{Held, UserObject};

/// One piece of work.
#[derive(Debug)]
pub struct Node {
    /// Its handle.
    pub handle: u64,
    /// Handles of the nodes that come before it, each once.
    pub dependencies: Vec<u64>,
    /// What it does.
    pub work: Work,
}

/// Nodes; each comes after those that it depends on.
pub type Nodes = Vec<Arc<Node>>;

/// A graph, being captured or complete.
#[derive(Debug, Default)]
pub struct Graph {
    /// Its nodes.
    pub nodes: Nodes,
    /// Whether a capture adds to it now.
    pub capturing: bool,
    /// What lives as long as it does, once for each reference.
    pub objects: Vec<Arc<UserObject>>,
}

/// An executable graph.
#[derive(Clone, Debug)]
pub struct Executable {
    /// Its nodes.
    pub nodes: Arc<Nodes>,
    /// The flags that it was made with.
    pub flags: u64,
    /// What lives as long as it does.
    _objects: Vec<Arc<UserObject>>,
}

impl Executable {
    /// An executable of a graph as it is now.
    pub fn new(graph: &Graph, flags: u64) -> Self {
        Self { nodes: Arc::new(graph.nodes.clone()), flags, _objects: graph.objects.clone() }
    }
}

/// All graphs of the process. What is taken out of here must be dropped after the lock is given back: a node that
/// goes tells the torch layer, which needs the interpreter.
#[derive(Debug, Default)]
pub struct Graphs {
    /// Graphs by handle.
    pub by_handle: HashMap<u64, Graph>,
    /// Executables by handle.
    pub executables: HashMap<u64, Executable>,
    /// Objects to which the program itself refers.
    pub objects: HashMap<u64, Held>,
}

impl Graphs {
    /// The graph with this handle; [`Code::INVALID_VALUE`] if there is none.
    pub fn graph(&self, handle: u64) -> Result<&Graph, Code> {
        self.by_handle.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    /// The executable with this handle, likewise.
    pub fn executable(&self, handle: u64) -> Result<&Executable, Code> {
        self.executables.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    /// The node with this handle, and the graph it is in.
    pub fn node(&self, handle: u64) -> Result<(&Graph, &Arc<Node>), Code> {
        self.by_handle
            .values()
            .find_map(|graph| graph.find(handle).map(|node| (graph, node)))
            .ok_or(Code::INVALID_VALUE)
    }
}

impl Graph {
    /// Its node with this handle. Handles grow, so nodes are in their order.
    pub fn find(&self, handle: u64) -> Option<&Arc<Node>> {
        let index = self.nodes.binary_search_by_key(&handle, |node| node.handle).ok()?;
        self.nodes.get(index)
    }

    /// Whether each of `nodes` is among `ends` or before one of them.
    pub fn leads_to(&self, nodes: impl IntoIterator<Item = u64>, ends: &[u64]) -> bool {
        let mut reached: std::collections::HashSet<u64> = ends.iter().copied().collect();
        for node in self.nodes.iter().rev() {
            if reached.contains(&node.handle) {
                reached.extend(&node.dependencies);
            }
        }
        nodes.into_iter().all(|node| reached.contains(&node))
    }
}
