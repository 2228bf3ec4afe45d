//! Calls that matter for order and are not recorded: each is passed on as it is, and named in the trace as a gap.

use std::ffi::c_int;

use crate::code::Code;
use crate::real::Entry;
use crate::recording::begin;

extern "C" fn missing() -> c_int {
    Code::SYMBOL_NOT_FOUND.0
}

/// Names the call in the trace; gives the address of the real function.
extern "C" fn tell(entry: &Entry) -> usize {
    begin();
    streamsan_record::report(|recorder| recorder.unsupported(entry.name()));
    entry.address().unwrap_or(missing as *const () as usize)
}

macro_rules! unseen {
    ($($name:ident)*) => {$(
        // Whatever the arguments are, they stay where the caller put them: none of these functions has arguments in
        // floating point.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            static ENTRY: Entry = crate::real::entry!($name);
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                "lea rdi, [rip + {entry}]",
                "call {tell}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                entry = sym ENTRY,
                tell = sym tell,
            )
        }
    )*};
}

// Copies and memsets of other shapes, and to device variables.
unseen! {
    cudaMemcpy2DFromArray
    cudaMemcpy2DFromArrayAsync
    cudaMemcpy2DToArray
    cudaMemcpy2DToArrayAsync
    cudaMemcpy3D
    cudaMemcpy3DAsync
    cudaMemcpy3DBatchAsync
    cudaMemcpy3DPeer
    cudaMemcpy3DPeerAsync
    cudaMemcpyBatchAsync
    cudaMemcpyFromSymbol
    cudaMemcpyFromSymbolAsync
    cudaMemcpyToSymbol
    cudaMemcpyToSymbolAsync
    cudaMemset3D
    cudaMemset3DAsync
}

// Memory that is not of one device, or of another process.
unseen! {
    cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle
    cudaMallocManaged
    cudaMallocPitch
    cudaMemPoolImportPointer
}

// The same calls in programs that are built for per-thread default streams.
unseen! {
    __cudaLaunchKernel_ptsz
    cudaGraphInstantiateWithParams_ptsz
    cudaLaunchCooperativeKernel_ptsz
    cudaMallocFromPoolAsync_ptsz
    cudaMemcpy2D_ptds
    cudaMemcpy3DAsync_ptsz
    cudaMemcpy3D_ptds
    cudaMemcpyFromSymbolAsync_ptsz
    cudaMemcpyFromSymbol_ptds
    cudaMemcpyToSymbolAsync_ptsz
    cudaMemcpyToSymbol_ptds
    cudaMemset2DAsync_ptsz
    cudaMemset2D_ptds
    cudaStreamBeginCaptureToGraph_ptsz
    cudaEventRecordWithFlags_ptsz
    cudaEventRecord_ptsz
    cudaFreeAsync_ptsz
    cudaGraphLaunch_ptsz
    cudaLaunchHostFunc_ptsz
    cudaLaunchKernelExC_ptsz
    cudaLaunchKernel_ptsz
    cudaMallocAsync_ptsz
    cudaMemcpy2DAsync_ptsz
    cudaMemcpyAsync_ptsz
    cudaMemcpy_ptds
    cudaMemsetAsync_ptsz
    cudaMemset_ptds
    cudaStreamAddCallback_ptsz
    cudaStreamBeginCapture_ptsz
    cudaStreamEndCapture_ptsz
    cudaStreamQuery_ptsz
    cudaStreamSynchronize_ptsz
    cudaStreamWaitEvent_ptsz
}
