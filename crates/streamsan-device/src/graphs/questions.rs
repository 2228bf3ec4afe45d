//! The calls that ask what is in a graph.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;

use crate::call::{call, give};
use crate::errors::{Answer, Code};
use crate::graphs::Graph;
use crate::streams::with_state;

/// Writes up to `*count` values to `target` and their number to `count`, as CUDA does: with a null target, how many there
/// are; places left over become 0.
///
/// # Safety
///
/// `count` is null or may be written; `target` is null or has room for `*count` values.
unsafe fn give_list(values: &[u64], target: *mut u64, count: *mut usize) -> Answer {
    // SAFETY: as the caller promises.
    let count = unsafe { count.as_mut() }.ok_or(Code::INVALID_VALUE)?;
    if target.is_null() {
        *count = values.len();
        return Ok(());
    }
    let room = *count;
    for index in 0..room {
        // SAFETY: as the caller promises.
        unsafe { target.add(index).write(values.get(index).copied().unwrap_or(0)) };
    }
    *count = room.min(values.len());
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> Code {
    call(|| {
        let found: Vec<u64> = with_state(|state| {
            Ok(state.graphs.graph(graph)?.nodes.iter().map(|node| node.handle).collect())
        })?;
        // SAFETY: as the caller of this function promises.
        unsafe { give_list(&found, nodes, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> Code {
    call(|| {
        let found: Vec<u64> = with_state(|state| {
            let nodes = &state.graphs.graph(graph)?.nodes;
            Ok(nodes.iter().filter(|node| node.dependencies.is_empty()).map(|node| node.handle).collect())
        })?;
        // SAFETY: as the caller of this function promises.
        unsafe { give_list(&found, nodes, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphGetEdges(
    graph: u64,
    from: *mut u64,
    to: *mut u64,
    _edges: *mut c_void,
    count: *mut usize,
) -> Code {
    call(|| {
        if from.is_null() != to.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let (starts, ends): (Vec<u64>, Vec<u64>) = with_state(|state| {
            let nodes = &state.graphs.graph(graph)?.nodes;
            Ok(nodes
                .iter()
                .flat_map(|node| node.dependencies.iter().map(|&before| (before, node.handle)))
                .unzip())
        })?;
        // SAFETY: as the caller of this function promises; the count is read before it is written.
        unsafe {
            let mut room = count.as_ref().copied().unwrap_or(0);
            give_list(&starts, from, &raw mut room)?;
            give_list(&ends, to, count)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphNodeGetType(node: u64, kind: *mut c_int) -> Code {
    call(|| {
        let found = with_state(|state| Ok(state.graphs.node(node)?.1.work.kind()))?;
        // SAFETY: the caller gives a place for the number.
        unsafe { give(kind, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphNodeGetDependencies(
    node: u64,
    dependencies: *mut u64,
    _edges: *mut c_void,
    count: *mut usize,
) -> Code {
    call(|| {
        let found = with_state(|state| Ok(state.graphs.node(node)?.1.dependencies.clone()))?;
        // SAFETY: as the caller of this function promises.
        unsafe { give_list(&found, dependencies, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphNodeGetDependentNodes(
    node: u64,
    dependents: *mut u64,
    _edges: *mut c_void,
    count: *mut usize,
) -> Code {
    call(|| {
        let found: Vec<u64> = with_state(|state| {
            let (graph, _) = state.graphs.node(node)?;
            let after = graph.nodes.iter().filter(|other| other.dependencies.contains(&node));
            Ok(after.map(|other| other.handle).collect())
        })?;
        // SAFETY: as the caller of this function promises.
        unsafe { give_list(&found, dependents, count) }
    })
}

/// The graph in the DOT language.
fn drawn(graph: &Graph) -> String {
    let mut text = String::from("digraph dot {\n");
    for node in &graph.nodes {
        let _infallible = writeln!(text, "  \"{:#x}\" [label={:?}];", node.handle, node.work.name());
        for before in &node.dependencies {
            let _infallible = writeln!(text, "  \"{before:#x}\" -> \"{:#x}\";", node.handle);
        }
    }
    text.push_str("}\n");
    text
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphDebugDotPrint(graph: u64, path: *const c_char, _flags: c_uint) -> Code {
    call(|| {
        if path.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let text = with_state(|state| Ok(drawn(state.graphs.graph(graph)?)))?;
        // SAFETY: a string of the caller's.
        let path = unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| Code::INVALID_VALUE)?;
        std::fs::write(path, text).map_err(|_| Code::OPERATING_SYSTEM)
    })
}
