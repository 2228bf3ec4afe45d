//! The calls that make, update and destroy graphs and executables.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use crate::call::{call, give, record};
use crate::errors::{Answer, Code};
use crate::graphs::{Executable, Graph, Node, Nodes, Work};
use crate::streams::with_state;

/// `cudaGraphInstantiateFlag…`: all that there are.
const ALL_FLAGS: u64 = 0xf;

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphCreate(graph: *mut u64, flags: c_uint) -> Code {
    call(|| {
        if graph.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = with_state(|state| {
            let handle = state.new_handle();
            state.graphs.by_handle.insert(handle, Graph::default());
            Ok(handle)
        })?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(graph, handle) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphDestroy(graph: u64) -> Code {
    call(|| {
        if with_state(|state| state.graphs.graph(graph).map(|graph| graph.capturing))? {
            return Err(Code::ILLEGAL_STATE);
        }
        record(|recorder| recorder.graph_destroyed(graph));
        // Dropped after the lock is given back.
        let _gone = with_state(|state| state.graphs.by_handle.remove(&graph).ok_or(Code::INVALID_VALUE))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphAddEmptyNode(
    node: *mut u64,
    graph: u64,
    dependencies: *const u64,
    count: usize,
) -> Code {
    call(|| {
        if node.is_null() || (count > 0 && dependencies.is_null()) {
            return Err(Code::INVALID_VALUE);
        }
        let mut after = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: the caller gives so many handles.
            after.push(unsafe { dependencies.add(index).read() });
        }
        let handle = with_state(|state| {
            let handle = state.new_handle();
            let known = state.graphs.by_handle.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
            if after.iter().any(|&node| known.find(node).is_none()) {
                return Err(Code::INVALID_VALUE);
            }
            known.nodes.push(Arc::new(Node { handle, dependencies: after, work: Work::Empty }));
            Ok(handle)
        })?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(node, handle) }
    })
}

/// Makes an executable of a graph.
unsafe fn instantiate(place: *mut u64, graph: u64, flags: u64) -> Answer {
    if place.is_null() || flags & !ALL_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let executable = with_state(|state| {
        let known = state.graphs.graph(graph)?;
        if known.capturing {
            return Err(Code::ILLEGAL_STATE);
        }
        let made = Executable::new(known, flags);
        let handle = state.new_handle();
        state.graphs.executables.insert(handle, made);
        Ok(handle)
    })?;
    record(|recorder| recorder.graph_instantiated(graph, executable));
    // SAFETY: the caller gives a place for the handle.
    unsafe { give(place, executable) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphInstantiate(executable: *mut u64, graph: u64, flags: c_ulonglong) -> Code {
    // SAFETY: as the caller of this function promises.
    call(|| unsafe { instantiate(executable, graph, flags) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphInstantiateWithFlags(
    executable: *mut u64,
    graph: u64,
    flags: c_ulonglong,
) -> Code {
    // SAFETY: as the caller of this function promises.
    call(|| unsafe { instantiate(executable, graph, flags) })
}

/// `cudaGraphInstantiateParams`.
#[repr(C)]
struct InstantiateParameters {
    flags: c_ulonglong,
    upload_stream: u64,
    error_node: u64,
    result: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphInstantiateWithParams(
    executable: *mut u64,
    graph: u64,
    parameters: *mut c_void,
) -> Code {
    call(|| {
        // SAFETY: null or the caller's parameters.
        let parameters = unsafe { parameters.cast::<InstantiateParameters>().as_mut() };
        let parameters = parameters.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: as the caller of this function promises.
        let made = unsafe { instantiate(executable, graph, parameters.flags) };
        (parameters.error_node, parameters.result) = (0, c_int::from(made.is_err()));
        made
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphExecGetFlags(executable: u64, flags: *mut c_ulonglong) -> Code {
    call(|| {
        let found = with_state(|state| Ok(state.graphs.executable(executable)?.flags))?;
        // SAFETY: the caller gives a place for the flags.
        unsafe { give(flags, found) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecDestroy(executable: u64) -> Code {
    call(|| {
        with_state(|state| state.graphs.executable(executable).map(|_| ()))?;
        record(|recorder| recorder.executable_destroyed(executable));
        let _gone =
            with_state(|state| state.graphs.executables.remove(&executable).ok_or(Code::INVALID_VALUE))?;
        Ok(())
    })
}

/// `cudaGraphExecUpdateResultInfo`.
#[repr(C)]
struct UpdateResult {
    result: c_int,
    error_node: u64,
    error_from_node: u64,
}

/// `cudaGraphExecUpdateErrorTopologyChanged`, `…NodeTypeChanged`.
const TOPOLOGY_CHANGED: c_int = 2;
const NODE_TYPE_CHANGED: c_int = 3;

/// The first difference that an update does not allow, and the node of the new graph that has it.
fn difference(old: &Nodes, new: &Nodes) -> Option<(c_int, u64)> {
    let position = |nodes: &Nodes, handle| nodes.iter().position(|node| node.handle == handle);
    if old.len() != new.len() {
        return Some((TOPOLOGY_CHANGED, new.last().map_or(0, |node| node.handle)));
    }
    for (before, after) in old.iter().zip(new) {
        if before.work.kind() != after.work.kind() {
            return Some((NODE_TYPE_CHANGED, after.handle));
        }
        let of = |nodes: &Nodes, node: &Node| -> Vec<Option<usize>> {
            node.dependencies.iter().map(|&handle| position(nodes, handle)).collect()
        };
        if of(old, before) != of(new, after) {
            return Some((TOPOLOGY_CHANGED, after.handle));
        }
    }
    None
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphExecUpdate(executable: u64, graph: u64, result: *mut c_void) -> Code {
    call(|| {
        // SAFETY: null or a place of the caller's.
        let result = unsafe { result.cast::<UpdateResult>().as_mut() }.ok_or(Code::INVALID_VALUE)?;
        *result = UpdateResult { result: 0, error_node: 0, error_from_node: 0 };
        // What is replaced is dropped after the lock is given back.
        let outcome = with_state(|state| {
            let nodes = state.graphs.graph(graph)?.nodes.clone();
            let known = state.graphs.executables.get_mut(&executable).ok_or(Code::INVALID_VALUE)?;
            Ok(match difference(&known.nodes, &nodes) {
                Some(difference) => Err(difference),
                None => Ok(std::mem::replace(&mut known.nodes, Arc::new(nodes))),
            })
        })?;
        match outcome {
            Ok(_replaced) => {
                record(|recorder| recorder.graph_instantiated(graph, executable));
                Ok(())
            }
            Err((reason, node)) => {
                (result.result, result.error_node) = (reason, node);
                Err(Code::GRAPH_UPDATE_FAILURE)
            }
        }
    })
}
