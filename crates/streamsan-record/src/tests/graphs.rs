//! Graphs by raw handle.

use streamsan_trace::{EventKind, ExecutableId, GraphId, StreamId};

use super::{MEMORY, Recorded, SIDE};

/// Raw handles.
const GRAPH: u64 = 0xa000;
const EXECUTABLE: u64 = 0xb000;
const SIDE_ID: StreamId = StreamId(0);

#[test]
fn a_graph_is_captured_instantiated_and_launched() {
    let recorded = Recorded::with_torch();
    recorded.capture_begun(SIDE, 0);
    recorded.capture_ended(SIDE, 0, GRAPH);
    recorded.graph_instantiated(GRAPH, EXECUTABLE);
    recorded.graph_destroyed(GRAPH);
    recorded.graph_launched(EXECUTABLE, SIDE, 0);
    recorded.executable_destroyed(EXECUTABLE);
    assert_eq!(recorded.operations_recorded(), 1);
    let trace = recorded.finish();
    let kinds: Vec<EventKind> = trace.events.iter().map(|event| event.kind).skip(2).collect();
    let (graph, executable, stream) = (GraphId(1), ExecutableId(1), SIDE_ID);
    let EventKind::GraphLaunch { label, .. } = kinds[4] else { panic!("{:?}", kinds[4]) };
    assert_eq!(trace.tables.string(label), "graph launch");
    assert_eq!(
        kinds,
        [
            EventKind::CaptureBegin { graph, stream },
            EventKind::CaptureEnd { graph, stream, valid: true },
            EventKind::GraphInstantiate { graph, executable },
            EventKind::GraphDestroy { graph },
            EventKind::GraphLaunch { executable, stream, label },
            EventKind::ExecutableDestroy { executable },
        ]
    );
}

#[test]
fn handles_that_are_used_again_are_new_graphs() {
    let recorded = Recorded::with_torch();
    for _ in 0..2 {
        recorded.capture_begun(SIDE, 0);
        recorded.capture_ended(SIDE, 0, GRAPH);
        recorded.graph_instantiated(GRAPH, EXECUTABLE);
        recorded.graph_destroyed(GRAPH);
        recorded.executable_destroyed(EXECUTABLE);
    }
    let instantiated: Vec<(u32, u32)> = recorded
        .kinds()
        .iter()
        .filter_map(|kind| match *kind {
            EventKind::GraphInstantiate { graph, executable } => Some((graph.0, executable.0)),
            _ => None,
        })
        .collect();
    assert_eq!(instantiated, [(1, 1), (2, 2)]);
}

#[test]
fn an_update_keeps_the_executable_and_an_unknown_graph_has_no_id() {
    let recorded = Recorded::with_torch();
    recorded.graph_instantiated(GRAPH, EXECUTABLE);
    recorded.capture_begun(SIDE, 0);
    recorded.capture_ended(SIDE, 0, GRAPH);
    recorded.graph_instantiated(GRAPH, EXECUTABLE);
    let kinds = recorded.kinds();
    let executable = ExecutableId(1);
    assert_eq!(kinds[0], EventKind::GraphInstantiate { graph: GraphId(0), executable });
    assert_eq!(kinds[3], EventKind::GraphInstantiate { graph: GraphId(1), executable });
}

#[test]
fn an_invalid_capture_ends_without_a_graph_and_an_end_without_a_begin_is_nothing() {
    let recorded = Recorded::with_torch();
    recorded.capture_ended(SIDE, 0, 0);
    recorded.capture_begun(SIDE, 0);
    recorded.capture_ended(SIDE, 0, 0);
    let graph = GraphId(1);
    assert_eq!(
        recorded.kinds(),
        [
            EventKind::CaptureBegin { graph, stream: SIDE_ID },
            EventKind::CaptureEnd { graph, stream: SIDE_ID, valid: false },
        ]
    );
}

#[test]
fn blocks_from_the_pool_of_a_graph_are_marked() {
    use crate::table::TorchCallback::MemoryAllocation;
    let recorded = Recorded::with_torch();
    let marked = |outer: u32, inner: u32, address: u64| {
        (0..outer + inner).for_each(|_| recorded.graph_memory(true));
        (0..inner).for_each(|_| recorded.graph_memory(false));
        recorded.torch_callback(MemoryAllocation, address, 0);
        (0..outer).for_each(|_| recorded.graph_memory(false));
    };
    marked(0, 0, MEMORY);
    marked(1, 1, MEMORY + 512);
    // Without a beginning.
    recorded.graph_memory(false);
    marked(1, 0, MEMORY + 1024);
    marked(0, 0, MEMORY + 1536);
    // Another thread's allocations are redirected by themselves.
    recorded.graph_memory(true);
    std::thread::scope(|scope| {
        scope.spawn(|| recorded.torch_callback(MemoryAllocation, MEMORY + 2048, 0));
    });
    let of_graphs: Vec<_> = recorded
        .kinds()
        .iter()
        .filter_map(|kind| match kind {
            EventKind::GraphMemory { block } => Some(block.0),
            _ => None,
        })
        .collect();
    assert_eq!(of_graphs, [3, 4], "the segment is block 1");
}
