//! The Python module `streamsan._core`: the hot path of the torch layer, and the command.
//!
//! The module owns no recorder. It finds the one of the process, exported by the preloaded device library
//! as a table of C functions (`streamsan_record::table`), and turns what PyTorch says into calls of it.
//! Nothing here holds a Rust lock while it calls into Python: any call may run the garbage collector,
//! which frees tensors, which comes back as a deallocation callback.

mod audit;
mod bytes;
mod callbacks;
mod cli;
mod context;
mod errors;
mod events;
mod frames;
mod graphs;
mod host_memory;
mod launches;
mod live;
mod native_tensor;
mod observer;
mod operation;
mod plan;
mod ranges;
mod report;
mod runtime;
mod settings;
mod stack;
mod stream_type;
mod table;
mod tensor;
mod thread;
mod torch_functions;

use pyo3::prelude::*;

/// The native half of streamsan.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::audit::audit;
    #[pymodule_export]
    use crate::bytes::copy_bytes;
    #[pymodule_export]
    use crate::callbacks::watch_gpu_trace;
    #[pymodule_export]
    use crate::cli::main;
    #[pymodule_export]
    use crate::context::{
        clear_context, mark, name_stream_here, record_host_access, record_host_bytes, record_launch,
    };
    #[pymodule_export]
    use crate::events::read_events;
    #[pymodule_export]
    use crate::graphs::{captures_in, compute_operators_of_graphs, is_capturing, keep_operator};
    #[pymodule_export]
    use crate::host_memory::{announce_page_locked, escape, record_stream};
    #[pymodule_export]
    use crate::launches::record_kernel;
    #[pymodule_export]
    use crate::live::Live;
    #[pymodule_export]
    use crate::native_tensor::read_tensors_natively;
    #[pymodule_export]
    use crate::observer::{Observer, learn_operator};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::ranges::{
        annotate, ignores_here, is_rule, name_tensor, range_begin, range_end, record_annotated, set_ignores,
        settle, trace_path,
    };
    #[pymodule_export]
    use crate::report::{check, formats, render, suffixes, write_excerpt, write_program};
    #[pymodule_export]
    use crate::runtime::{
        draw_stream_graph, ideal_pipeline, order_streams, plan_pipeline, write_stream_graph,
    };
    #[pymodule_export]
    use crate::settings::configure;
    #[pymodule_export]
    use crate::stream_type::watch_stream_type;
    #[pymodule_export]
    use crate::table::{
        attach, close, collective_end, gap, graph_memory, handing_out, has_page_locked, host_block, intern,
        is_virtual, name_block, name_stream, operations_recorded, placement, recording, set_header_text,
        stream_object, unrecorded_wait, visible_stream, work_begin, work_end,
    };
    #[pymodule_export]
    use crate::thread::ThreadRecorder;
}
