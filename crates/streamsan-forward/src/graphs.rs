//! Stream capture and graphs.

use std::ffi::{c_int, c_void};

use crate::callers::exported;
use crate::code::Code;
use crate::real::real;
use crate::recording::{begin, report};
use crate::streams::stream;

/// Tells of a capture that has begun.
fn capture_begun(code: Code, handle: u64) -> Code {
    code.then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.capture_begun(stream.handle, stream.device);
    })
}

extern "C" fn cudaStreamBeginCapture(stream: u64, mode: c_int) -> Code {
    begin();
    capture_begun(real!(cudaStreamBeginCapture(stream: u64, mode: c_int)), stream)
}

extern "C" fn cudaStreamBeginCaptureToGraph(
    stream: u64,
    graph: u64,
    dependencies: *const u64,
    edges: *const c_void,
    count: usize,
    mode: c_int,
) -> Code {
    begin();
    let code = real!(cudaStreamBeginCaptureToGraph(
        stream: u64,
        graph: u64,
        dependencies: *const u64,
        edges: *const c_void,
        count: usize,
        mode: c_int
    ));
    capture_begun(code, stream)
}

extern "C" fn cudaStreamEndCapture(handle: u64, graph: *mut u64) -> Code {
    begin();
    let code = real!(cudaStreamEndCapture(handle: u64, graph: *mut u64));
    report(|recorder| {
        // SAFETY: the runtime has written the graph there, or null.
        let captured = if code.ok() { unsafe { graph.read() } } else { 0 };
        let stream = stream(recorder, handle);
        recorder.capture_ended(stream.handle, stream.device, captured);
    });
    code
}

/// Tells of an executable that was made.
fn instantiated(code: Code, executable: *mut u64, graph: u64) -> Code {
    code.then(|recorder| {
        // SAFETY: the runtime has written the executable there.
        recorder.graph_instantiated(graph, unsafe { executable.read() });
    })
}

extern "C" fn cudaGraphInstantiate(executable: *mut u64, graph: u64, flags: u64) -> Code {
    begin();
    let code = real!(cudaGraphInstantiate(executable: *mut u64, graph: u64, flags: u64));
    instantiated(code, executable, graph)
}

extern "C" fn cudaGraphInstantiateWithFlags(executable: *mut u64, graph: u64, flags: u64) -> Code {
    begin();
    let code = real!(cudaGraphInstantiateWithFlags(executable: *mut u64, graph: u64, flags: u64));
    instantiated(code, executable, graph)
}

extern "C" fn cudaGraphInstantiateWithParams(
    executable: *mut u64,
    graph: u64,
    parameters: *mut c_void,
) -> Code {
    begin();
    let code =
        real!(cudaGraphInstantiateWithParams(executable: *mut u64, graph: u64, parameters: *mut c_void));
    instantiated(code, executable, graph)
}

extern "C" fn cudaGraphExecUpdate(executable: u64, graph: u64, result: *mut c_void) -> Code {
    begin();
    real!(cudaGraphExecUpdate(executable: u64, graph: u64, result: *mut c_void))
        .then(|recorder| recorder.graph_instantiated(graph, executable))
}

extern "C" fn cudaGraphLaunch(executable: u64, handle: u64) -> Code {
    begin();
    real!(cudaGraphLaunch(executable: u64, handle: u64)).then(|recorder| {
        let stream = stream(recorder, handle);
        recorder.graph_launched(executable, stream.handle, stream.device);
    })
}

extern "C" fn cudaGraphDestroy(graph: u64) -> Code {
    begin();
    report(|recorder| recorder.graph_destroyed(graph));
    real!(cudaGraphDestroy(graph: u64))
}

extern "C" fn cudaGraphExecDestroy(executable: u64) -> Code {
    begin();
    report(|recorder| recorder.executable_destroyed(executable));
    real!(cudaGraphExecDestroy(executable: u64))
}

exported! {
    cudaStreamBeginCapture
    cudaStreamBeginCaptureToGraph
    cudaStreamEndCapture
    cudaGraphInstantiate
    cudaGraphInstantiateWithFlags
    cudaGraphInstantiateWithParams
    cudaGraphExecUpdate
    cudaGraphLaunch
    cudaGraphDestroy
    cudaGraphExecDestroy
}
