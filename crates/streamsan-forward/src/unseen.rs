//! Calls that matter for order and are not recorded: each is passed on as it is, and named in the trace as a gap.

use std::ffi::c_int;

use crate::callers::choose;
use crate::code::Code;
use crate::real::Entry;
use crate::recording::{begin, report};

extern "C" fn missing() -> c_int {
    Code::SYMBOL_NOT_FOUND.0
}

/// Names the call in the trace; gives the address of the real function.
extern "C" fn tell(entry: &Entry, caller: usize) -> usize {
    choose(caller);
    begin();
    report(|recorder| recorder.unsupported(entry.name()));
    let next = || crate::nccl::function(entry.symbol());
    entry.address().or_else(next).unwrap_or(missing as *const () as usize)
}

macro_rules! unseen {
    ($($name:ident)*) => {$(
        // Whatever the arguments are, they stay where the caller put them: none of these functions has arguments in
        // floating point.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            static ENTRY: Entry = crate::real::entry!($name);
            $crate::callers::keeping_arguments!(
                "lea rdi, [rip + {entry}]", "mov rsi, [rsp + 56]", "call {tell}"; "jmp rax";
                entry = sym ENTRY, tell = sym tell
            )
        }
    )*};
}

// Copies and memsets of other shapes, and to device variables.
unseen! {
    cudaMemcpy2DArrayToArray
    cudaMemcpy2DFromArray
    cudaMemcpy2DFromArrayAsync
    cudaMemcpy2DToArray
    cudaMemcpy2DToArrayAsync
    cudaMemcpy3D
    cudaMemcpy3DAsync
    cudaMemcpy3DBatchAsync
    cudaMemcpy3DPeer
    cudaMemcpy3DPeerAsync
    cudaMemcpy3DWithAttributesAsync
    cudaMemcpyArrayToArray
    cudaMemcpyBatchAsync
    cudaMemcpyFromArray
    cudaMemcpyFromArrayAsync
    cudaMemcpyFromSymbol
    cudaMemcpyFromSymbolAsync
    cudaMemcpyToArray
    cudaMemcpyToArrayAsync
    cudaMemcpyToSymbol
    cudaMemcpyToSymbolAsync
    cudaMemcpyWithAttributesAsync
    cudaMemset3D
    cudaMemset3DAsync
}

// Memory that is not of one device, or of another process.
unseen! {
    cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle
    cudaMalloc3D
    cudaMallocManaged
    cudaMallocPitch
    cudaMemPoolImportPointer
    cudaStreamAttachMemAsync
}

// Work and order that reach streams in other ways: semaphores of other interfaces, parts of a device, callbacks that may
// not wait for their turn, and the end of all.
unseen! {
    cudaDeviceReset
    cudaExecutionCtxRecordEvent
    cudaExecutionCtxStreamCreate
    cudaExecutionCtxSynchronize
    cudaExecutionCtxWaitEvent
    cudaLaunchHostFunc_v2
    cudaSignalExternalSemaphoresAsync
    cudaWaitExternalSemaphoresAsync
}

// Graphs that are not made, or not only, by a capture.
unseen! {
    cudaGraphAddChildGraphNode
    cudaGraphAddDependencies
    cudaGraphAddEventRecordNode
    cudaGraphAddEventWaitNode
    cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphAddHostNode
    cudaGraphAddKernelNode
    cudaGraphAddMemAllocNode
    cudaGraphAddMemFreeNode
    cudaGraphAddMemcpyNode
    cudaGraphAddMemcpyNode1D
    cudaGraphAddMemcpyNodeFromSymbol
    cudaGraphAddMemcpyNodeToSymbol
    cudaGraphAddMemsetNode
    cudaGraphAddNode
    cudaGraphDestroyNode
    cudaGraphEventRecordNodeSetEvent
    cudaGraphEventWaitNodeSetEvent
    cudaGraphExecChildGraphNodeSetParams
    cudaGraphExecEventRecordNodeSetEvent
    cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExecHostNodeSetParams
    cudaGraphExecKernelNodeSetParams
    cudaGraphExecMemcpyNodeSetParams
    cudaGraphExecMemcpyNodeSetParams1D
    cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol
    cudaGraphExecMemsetNodeSetParams
    cudaGraphExecNodeSetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphHostNodeSetParams
    cudaGraphKernelNodeSetParams
    cudaGraphMemcpyNodeSetParams
    cudaGraphMemcpyNodeSetParams1D
    cudaGraphMemcpyNodeSetParamsFromSymbol
    cudaGraphMemcpyNodeSetParamsToSymbol
    cudaGraphMemsetNodeSetParams
    cudaGraphNodeSetEnabled
    cudaGraphNodeSetParams
    cudaGraphRemoveDependencies
    cudaStreamUpdateCaptureDependencies
}

// NCCL's operations of one rank on the memory of another.
unseen! {
    ncclPutSignal
    ncclSignal
    ncclWaitSignal
}

// The same calls in programs that are built for per-thread default streams.
unseen! {
    __cudaLaunchKernel_ptsz
    cudaEventRecordWithFlags_ptsz
    cudaEventRecord_ptsz
    cudaFreeAsync_ptsz
    cudaGraphInstantiateWithParams_ptsz
    cudaGraphLaunch_ptsz
    cudaLaunchCooperativeKernel_ptsz
    cudaLaunchHostFunc_ptsz
    cudaLaunchHostFunc_v2_ptsz
    cudaLaunchKernelExC_ptsz
    cudaLaunchKernel_ptsz
    cudaMallocAsync_ptsz
    cudaMallocFromPoolAsync_ptsz
    cudaMemcpy2DArrayToArray_ptds
    cudaMemcpy2DAsync_ptsz
    cudaMemcpy2DFromArrayAsync_ptsz
    cudaMemcpy2DFromArray_ptds
    cudaMemcpy2DToArrayAsync_ptsz
    cudaMemcpy2DToArray_ptds
    cudaMemcpy2D_ptds
    cudaMemcpy3DAsync_ptsz
    cudaMemcpy3DBatchAsync_ptsz
    cudaMemcpy3DPeerAsync_ptsz
    cudaMemcpy3DPeer_ptds
    cudaMemcpy3DWithAttributesAsync_ptsz
    cudaMemcpy3D_ptds
    cudaMemcpyArrayToArray_ptds
    cudaMemcpyAsync_ptsz
    cudaMemcpyBatchAsync_ptsz
    cudaMemcpyFromArrayAsync_ptsz
    cudaMemcpyFromArray_ptds
    cudaMemcpyFromSymbolAsync_ptsz
    cudaMemcpyFromSymbol_ptds
    cudaMemcpyToArrayAsync_ptsz
    cudaMemcpyToArray_ptds
    cudaMemcpyToSymbolAsync_ptsz
    cudaMemcpyToSymbol_ptds
    cudaMemcpyWithAttributesAsync_ptsz
    cudaMemcpy_ptds
    cudaMemset2DAsync_ptsz
    cudaMemset2D_ptds
    cudaMemset3DAsync_ptsz
    cudaMemset3D_ptds
    cudaMemsetAsync_ptsz
    cudaMemset_ptds
    cudaSignalExternalSemaphoresAsync_ptsz
    cudaStreamAddCallback_ptsz
    cudaStreamAttachMemAsync_ptsz
    cudaStreamBeginCaptureToGraph_ptsz
    cudaStreamBeginCapture_ptsz
    cudaStreamEndCapture_ptsz
    cudaStreamQuery_ptsz
    cudaStreamSynchronize_ptsz
    cudaStreamUpdateCaptureDependencies_ptsz
    cudaStreamWaitEvent_ptsz
    cudaWaitExternalSemaphoresAsync_ptsz
}
