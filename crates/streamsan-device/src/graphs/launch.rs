//! Launching an executable: its nodes do their work in an order that their dependencies allow.

use std::sync::Arc;

use crate::call::{call, record};
use crate::capture;
use crate::delays;
use crate::errors::{Answer, Code};
use crate::events::wait_now;
use crate::graphs::{Nodes, Work};
use crate::streams::{Stream, enqueue, with_state, with_stream};

fn launch(executable: u64, stream: u64) -> Answer {
    let nodes = with_state(|state| Ok(Arc::clone(&state.graphs.executable(executable)?.nodes)))?;
    let inner = Arc::clone(&nodes);
    if let Some(stream) = capture::add(stream, || Work::Graph(inner))? {
        record(|recorder| recorder.graph_launched(executable, stream.handle, stream.device));
        return Ok(());
    }
    let stream = enqueue(stream)?;
    record(|recorder| recorder.graph_launched(executable, stream.handle, stream.device));
    wait_for_events(&nodes, stream)?;
    delays::before_work_of(stream)?;
    // No lock is held: an operator needs the interpreter.
    nodes.iter().try_for_each(|node| node.work.run(stream))
}

/// Waits for the events of the world outside, before anything of the graph runs.
fn wait_for_events(nodes: &Nodes, stream: Stream) -> Answer {
    for node in nodes {
        match &node.work {
            Work::Wait(event) => wait_now(*event, stream)?,
            Work::Graph(inner) => wait_for_events(inner, stream)?,
            _ => {}
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphLaunch(executable: u64, stream: u64) -> Code {
    call(|| launch(executable, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphUpload(executable: u64, stream: u64) -> Code {
    call(|| {
        with_state(|state| state.graphs.executable(executable).map(|_| ()))?;
        let (_, captured) = with_stream(stream, crate::streams::State::check_use)?;
        if captured?.is_some() { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    })
}
