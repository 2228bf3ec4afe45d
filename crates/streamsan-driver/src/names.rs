//! Names of the driver that are only names here, and which name stands for which version.

use std::ffi::{CStr, c_int};

use crate::runtime::{NOT_SUPPORTED, quietly};

/// Names as programs write them, with the function that CUDA 13's header makes of each.
pub const RENAMED: &[(&str, &str)] = &[
    ("cuArray3DCreate", "cuArray3DCreate_v2"),
    ("cuArray3DGetDescriptor", "cuArray3DGetDescriptor_v2"),
    ("cuArrayCreate", "cuArrayCreate_v2"),
    ("cuArrayGetDescriptor", "cuArrayGetDescriptor_v2"),
    ("cuCtxCreate", "cuCtxCreate_v4"),
    ("cuCtxDestroy", "cuCtxDestroy_v2"),
    ("cuCtxPopCurrent", "cuCtxPopCurrent_v2"),
    ("cuCtxPushCurrent", "cuCtxPushCurrent_v2"),
    ("cuDeviceGetUuid", "cuDeviceGetUuid_v2"),
    ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"),
    ("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"),
    ("cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2"),
    ("cuDeviceTotalMem", "cuDeviceTotalMem_v2"),
    ("cuEventDestroy", "cuEventDestroy_v2"),
    ("cuEventElapsedTime", "cuEventElapsedTime_v2"),
    ("cuGraphAddDependencies", "cuGraphAddDependencies_v2"),
    ("cuGraphAddKernelNode", "cuGraphAddKernelNode_v2"),
    ("cuGraphAddNode", "cuGraphAddNode_v2"),
    ("cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"),
    ("cuGraphExecUpdate", "cuGraphExecUpdate_v2"),
    ("cuGraphGetEdges", "cuGraphGetEdges_v2"),
    ("cuGraphInstantiate", "cuGraphInstantiateWithFlags"),
    ("cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams_v2"),
    ("cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2"),
    ("cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2"),
    ("cuGraphNodeGetDependentNodes", "cuGraphNodeGetDependentNodes_v2"),
    ("cuGraphRemoveDependencies", "cuGraphRemoveDependencies_v2"),
    ("cuGraphicsResourceGetMappedPointer", "cuGraphicsResourceGetMappedPointer_v2"),
    ("cuGraphicsResourceSetMapFlags", "cuGraphicsResourceSetMapFlags_v2"),
    ("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"),
    ("cuLinkAddData", "cuLinkAddData_v2"),
    ("cuLinkAddFile", "cuLinkAddFile_v2"),
    ("cuLinkCreate", "cuLinkCreate_v2"),
    ("cuMemAdvise", "cuMemAdvise_v2"),
    ("cuMemAlloc", "cuMemAlloc_v2"),
    ("cuMemAllocHost", "cuMemAllocHost_v2"),
    ("cuMemAllocPitch", "cuMemAllocPitch_v2"),
    ("cuMemFree", "cuMemFree_v2"),
    ("cuMemGetAddressRange", "cuMemGetAddressRange_v2"),
    ("cuMemGetInfo", "cuMemGetInfo_v2"),
    ("cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2"),
    ("cuMemHostRegister", "cuMemHostRegister_v2"),
    ("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2"),
    ("cuMemcpy2D", "cuMemcpy2D_v2"),
    ("cuMemcpy2DAsync", "cuMemcpy2DAsync_v2"),
    ("cuMemcpy2DUnaligned", "cuMemcpy2DUnaligned_v2"),
    ("cuMemcpy3D", "cuMemcpy3D_v2"),
    ("cuMemcpy3DAsync", "cuMemcpy3DAsync_v2"),
    ("cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_v2"),
    ("cuMemcpyAtoA", "cuMemcpyAtoA_v2"),
    ("cuMemcpyAtoD", "cuMemcpyAtoD_v2"),
    ("cuMemcpyAtoH", "cuMemcpyAtoH_v2"),
    ("cuMemcpyAtoHAsync", "cuMemcpyAtoHAsync_v2"),
    ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"),
    ("cuMemcpyDtoA", "cuMemcpyDtoA_v2"),
    ("cuMemcpyDtoD", "cuMemcpyDtoD_v2"),
    ("cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2"),
    ("cuMemcpyDtoH", "cuMemcpyDtoH_v2"),
    ("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2"),
    ("cuMemcpyHtoA", "cuMemcpyHtoA_v2"),
    ("cuMemcpyHtoAAsync", "cuMemcpyHtoAAsync_v2"),
    ("cuMemcpyHtoD", "cuMemcpyHtoD_v2"),
    ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
    ("cuMemsetD16", "cuMemsetD16_v2"),
    ("cuMemsetD2D16", "cuMemsetD2D16_v2"),
    ("cuMemsetD2D32", "cuMemsetD2D32_v2"),
    ("cuMemsetD2D8", "cuMemsetD2D8_v2"),
    ("cuMemsetD32", "cuMemsetD32_v2"),
    ("cuMemsetD8", "cuMemsetD8_v2"),
    ("cuModuleGetGlobal", "cuModuleGetGlobal_v2"),
    ("cuStreamBatchMemOp", "cuStreamBatchMemOp_v2"),
    ("cuStreamBeginCapture", "cuStreamBeginCapture_v2"),
    ("cuStreamDestroy", "cuStreamDestroy_v2"),
    ("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3"),
    ("cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies_v2"),
    ("cuStreamWaitValue32", "cuStreamWaitValue32_v2"),
    ("cuStreamWaitValue64", "cuStreamWaitValue64_v2"),
    ("cuStreamWriteValue32", "cuStreamWriteValue32_v2"),
    ("cuStreamWriteValue64", "cuStreamWriteValue64_v2"),
    ("cuTexRefGetAddress", "cuTexRefGetAddress_v2"),
    ("cuTexRefSetAddress", "cuTexRefSetAddress_v2"),
    ("cuTexRefSetAddress2D", "cuTexRefSetAddress2D_v3"),
];

fn unsupported(name: &str) -> c_int {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { return NOT_SUPPORTED };
    // SAFETY: the device library's function, with a string that outlives the call.
    quietly(|table| unsafe { (table.unsupported)(name.as_ptr()) });
    NOT_SUPPORTED
}

macro_rules! unsupported_calls {
    ($($name:ident)*) => {$(
        // Arguments are not looked at, so their number does not matter in C's calling convention.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            unsupported(concat!(stringify!($name), "\0"))
        }
    )*};
}

unsupported_calls! {
    cuArray3DCreate
    cuArray3DCreate_v2
    cuArray3DGetDescriptor
    cuArray3DGetDescriptor_v2
    cuArrayCreate
    cuArrayCreate_v2
    cuArrayDestroy
    cuArrayGetDescriptor
    cuArrayGetDescriptor_v2
    cuArrayGetMemoryRequirements
    cuArrayGetPlane
    cuArrayGetSparseProperties
    cuCheckpointProcessCheckpoint
    cuCheckpointProcessGetRestoreThreadId
    cuCheckpointProcessGetState
    cuCheckpointProcessLock
    cuCheckpointProcessRestore
    cuCheckpointProcessUnlock
    cuCoredumpGetAttribute
    cuCoredumpGetAttributeGlobal
    cuCoredumpSetAttribute
    cuCoredumpSetAttributeGlobal
    cuCtxAttach
    cuCtxCreate
    cuCtxCreate_v2
    cuCtxCreate_v3
    cuCtxCreate_v4
    cuCtxDestroy
    cuCtxDestroy_v2
    cuCtxDetach
    cuCtxDisablePeerAccess
    cuCtxEnablePeerAccess
    cuCtxFromGreenCtx
    cuCtxGetCacheConfig
    cuCtxGetDevResource
    cuCtxGetDevice_v2
    cuCtxGetExecAffinity
    cuCtxGetId
    cuCtxGetSharedMemConfig
    cuCtxPopCurrent
    cuCtxPushCurrent
    cuCtxRecordEvent
    cuCtxResetPersistingL2Cache
    cuCtxSetCacheConfig
    cuCtxSetFlags
    cuCtxSetSharedMemConfig
    cuCtxSynchronize_v2
    cuCtxWaitEvent
    cuDestroyExternalMemory
    cuDestroyExternalSemaphore
    cuDevResourceGenerateDesc
    cuDevSmResourceSplitByCount
    cuDeviceComputeCapability
    cuDeviceGetByPCIBusId
    cuDeviceGetDefaultMemPool
    cuDeviceGetDevResource
    cuDeviceGetExecAffinitySupport
    cuDeviceGetGraphMemAttribute
    cuDeviceGetHostAtomicCapabilities
    cuDeviceGetLuid
    cuDeviceGetMemPool
    cuDeviceGetNvSciSyncAttributes
    cuDeviceGetP2PAtomicCapabilities
    cuDeviceGetP2PAttribute
    cuDeviceGetProperties
    cuDeviceGetTexture1DLinearMaxWidth
    cuDeviceGraphMemTrim
    cuDevicePrimaryCtxRelease
    cuDevicePrimaryCtxReset
    cuDevicePrimaryCtxReset_v2
    cuDevicePrimaryCtxSetFlags
    cuDevicePrimaryCtxSetFlags_v2
    cuDeviceRegisterAsyncNotification
    cuDeviceSetGraphMemAttribute
    cuDeviceSetMemPool
    cuDeviceTotalMem
    cuDeviceUnregisterAsyncNotification
    cuEventDestroy
    cuEventRecordWithFlags_ptsz
    cuEventRecord_ptsz
    cuExternalMemoryGetMappedBuffer
    cuExternalMemoryGetMappedMipmappedArray
    cuFlushGPUDirectRDMAWrites
    cuFuncGetModule
    cuFuncGetName
    cuFuncGetParamInfo
    cuFuncIsLoaded
    cuFuncLoad
    cuFuncSetBlockShape
    cuFuncSetSharedMemConfig
    cuFuncSetSharedSize
    cuGetProcAddress_v2_ptsz
    cuGraphAddBatchMemOpNode
    cuGraphAddChildGraphNode
    cuGraphAddDependencies
    cuGraphAddDependencies_v2
    cuGraphAddEmptyNode
    cuGraphAddEventRecordNode
    cuGraphAddEventWaitNode
    cuGraphAddExternalSemaphoresSignalNode
    cuGraphAddExternalSemaphoresWaitNode
    cuGraphAddHostNode
    cuGraphAddKernelNode
    cuGraphAddKernelNode_v2
    cuGraphAddMemAllocNode
    cuGraphAddMemFreeNode
    cuGraphAddMemcpyNode
    cuGraphAddMemsetNode
    cuGraphAddNode
    cuGraphAddNode_v2
    cuGraphBatchMemOpNodeGetParams
    cuGraphBatchMemOpNodeSetParams
    cuGraphChildGraphNodeGetGraph
    cuGraphClone
    cuGraphConditionalHandleCreate
    cuGraphCreate
    cuGraphDestroy
    cuGraphDestroyNode
    cuGraphEventRecordNodeGetEvent
    cuGraphEventRecordNodeSetEvent
    cuGraphEventWaitNodeGetEvent
    cuGraphEventWaitNodeSetEvent
    cuGraphExecBatchMemOpNodeSetParams
    cuGraphExecChildGraphNodeSetParams
    cuGraphExecDestroy
    cuGraphExecEventRecordNodeSetEvent
    cuGraphExecEventWaitNodeSetEvent
    cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExecGetFlags
    cuGraphExecHostNodeSetParams
    cuGraphExecKernelNodeSetParams
    cuGraphExecKernelNodeSetParams_v2
    cuGraphExecMemcpyNodeSetParams
    cuGraphExecMemsetNodeSetParams
    cuGraphExecNodeSetParams
    cuGraphExecUpdate
    cuGraphExecUpdate_v2
    cuGraphExternalSemaphoresSignalNodeGetParams
    cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams
    cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphGetEdges
    cuGraphHostNodeGetParams
    cuGraphHostNodeSetParams
    cuGraphInstantiate
    cuGraphInstantiateWithFlags
    cuGraphInstantiateWithParams
    cuGraphInstantiateWithParams_ptsz
    cuGraphInstantiate_v2
    cuGraphKernelNodeCopyAttributes
    cuGraphKernelNodeGetAttribute
    cuGraphKernelNodeGetParams
    cuGraphKernelNodeGetParams_v2
    cuGraphKernelNodeSetAttribute
    cuGraphKernelNodeSetParams
    cuGraphKernelNodeSetParams_v2
    cuGraphLaunch
    cuGraphLaunch_ptsz
    cuGraphMemAllocNodeGetParams
    cuGraphMemFreeNodeGetParams
    cuGraphMemcpyNodeGetParams
    cuGraphMemcpyNodeSetParams
    cuGraphMemsetNodeGetParams
    cuGraphMemsetNodeSetParams
    cuGraphNodeFindInClone
    cuGraphNodeGetDependencies
    cuGraphNodeGetDependentNodes
    cuGraphNodeGetEnabled
    cuGraphNodeSetEnabled
    cuGraphNodeSetParams
    cuGraphReleaseUserObject
    cuGraphRemoveDependencies
    cuGraphRemoveDependencies_v2
    cuGraphRetainUserObject
    cuGraphUpload
    cuGraphUpload_ptsz
    cuGraphicsMapResources
    cuGraphicsMapResources_ptsz
    cuGraphicsResourceGetMappedMipmappedArray
    cuGraphicsResourceGetMappedPointer
    cuGraphicsResourceGetMappedPointer_v2
    cuGraphicsResourceSetMapFlags
    cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray
    cuGraphicsUnmapResources
    cuGraphicsUnmapResources_ptsz
    cuGraphicsUnregisterResource
    cuGreenCtxCreate
    cuGreenCtxDestroy
    cuGreenCtxGetDevResource
    cuGreenCtxGetId
    cuGreenCtxRecordEvent
    cuGreenCtxStreamCreate
    cuGreenCtxWaitEvent
    cuImportExternalMemory
    cuImportExternalSemaphore
    cuIpcCloseMemHandle
    cuIpcGetEventHandle
    cuIpcGetMemHandle
    cuIpcOpenEventHandle
    cuIpcOpenMemHandle
    cuIpcOpenMemHandle_v2
    cuKernelGetAttribute
    cuKernelGetFunction
    cuKernelGetLibrary
    cuKernelGetName
    cuKernelGetParamInfo
    cuKernelSetAttribute
    cuKernelSetCacheConfig
    cuLaunch
    cuLaunchCooperativeKernelMultiDevice
    cuLaunchCooperativeKernel_ptsz
    cuLaunchGrid
    cuLaunchGridAsync
    cuLaunchHostFunc_ptsz
    cuLaunchKernelEx_ptsz
    cuLaunchKernel_ptsz
    cuLibraryEnumerateKernels
    cuLibraryGetGlobal
    cuLibraryGetKernel
    cuLibraryGetKernelCount
    cuLibraryGetManaged
    cuLibraryGetModule
    cuLibraryGetUnifiedFunction
    cuLibraryLoadData
    cuLibraryLoadFromFile
    cuLibraryUnload
    cuLinkAddData
    cuLinkAddData_v2
    cuLinkAddFile
    cuLinkAddFile_v2
    cuLinkComplete
    cuLinkCreate
    cuLinkCreate_v2
    cuLinkDestroy
    cuLogsCurrent
    cuLogsDumpToFile
    cuLogsDumpToMemory
    cuMemAdvise
    cuMemAdvise_v2
    cuMemAlloc
    cuMemAllocAsync_ptsz
    cuMemAllocFromPoolAsync
    cuMemAllocFromPoolAsync_ptsz
    cuMemAllocHost
    cuMemAllocManaged
    cuMemAllocPitch
    cuMemAllocPitch_v2
    cuMemBatchDecompressAsync
    cuMemBatchDecompressAsync_ptsz
    cuMemDiscardAndPrefetchBatchAsync
    cuMemDiscardAndPrefetchBatchAsync_ptsz
    cuMemDiscardBatchAsync
    cuMemDiscardBatchAsync_ptsz
    cuMemExportToShareableHandle
    cuMemFree
    cuMemFreeAsync_ptsz
    cuMemGetAccess
    cuMemGetAddressRange
    cuMemGetAddressRange_v2
    cuMemGetAllocationPropertiesFromHandle
    cuMemGetDefaultMemPool
    cuMemGetHandleForAddressRange
    cuMemGetInfo
    cuMemGetMemPool
    cuMemHostGetDevicePointer
    cuMemHostRegister
    cuMemImportFromShareableHandle
    cuMemMapArrayAsync
    cuMemMapArrayAsync_ptsz
    cuMemPoolCreate
    cuMemPoolDestroy
    cuMemPoolExportPointer
    cuMemPoolExportToShareableHandle
    cuMemPoolGetAccess
    cuMemPoolGetAttribute
    cuMemPoolImportFromShareableHandle
    cuMemPoolImportPointer
    cuMemPoolSetAccess
    cuMemPoolSetAttribute
    cuMemPoolTrimTo
    cuMemPrefetchAsync
    cuMemPrefetchAsync_ptsz
    cuMemPrefetchAsync_v2
    cuMemPrefetchAsync_v2_ptsz
    cuMemPrefetchBatchAsync
    cuMemPrefetchBatchAsync_ptsz
    cuMemRangeGetAttribute
    cuMemRangeGetAttributes
    cuMemSetMemPool
    cuMemcpy2D
    cuMemcpy2DAsync
    cuMemcpy2DAsync_v2
    cuMemcpy2DAsync_v2_ptsz
    cuMemcpy2DUnaligned
    cuMemcpy2DUnaligned_v2
    cuMemcpy2DUnaligned_v2_ptds
    cuMemcpy2D_v2
    cuMemcpy2D_v2_ptds
    cuMemcpy3D
    cuMemcpy3DAsync
    cuMemcpy3DAsync_v2
    cuMemcpy3DAsync_v2_ptsz
    cuMemcpy3DBatchAsync
    cuMemcpy3DBatchAsync_ptsz
    cuMemcpy3DBatchAsync_v2
    cuMemcpy3DBatchAsync_v2_ptsz
    cuMemcpy3DPeer
    cuMemcpy3DPeerAsync
    cuMemcpy3DPeerAsync_ptsz
    cuMemcpy3DPeer_ptds
    cuMemcpy3D_v2
    cuMemcpy3D_v2_ptds
    cuMemcpyAsync_ptsz
    cuMemcpyAtoA
    cuMemcpyAtoA_v2
    cuMemcpyAtoA_v2_ptds
    cuMemcpyAtoD
    cuMemcpyAtoD_v2
    cuMemcpyAtoD_v2_ptds
    cuMemcpyAtoH
    cuMemcpyAtoHAsync
    cuMemcpyAtoHAsync_v2
    cuMemcpyAtoHAsync_v2_ptsz
    cuMemcpyAtoH_v2
    cuMemcpyAtoH_v2_ptds
    cuMemcpyBatchAsync
    cuMemcpyBatchAsync_ptsz
    cuMemcpyBatchAsync_v2
    cuMemcpyBatchAsync_v2_ptsz
    cuMemcpyDtoA
    cuMemcpyDtoA_v2
    cuMemcpyDtoA_v2_ptds
    cuMemcpyDtoD
    cuMemcpyDtoDAsync
    cuMemcpyDtoDAsync_v2_ptsz
    cuMemcpyDtoD_v2_ptds
    cuMemcpyDtoH
    cuMemcpyDtoHAsync
    cuMemcpyDtoHAsync_v2_ptsz
    cuMemcpyDtoH_v2_ptds
    cuMemcpyHtoA
    cuMemcpyHtoAAsync
    cuMemcpyHtoAAsync_v2
    cuMemcpyHtoAAsync_v2_ptsz
    cuMemcpyHtoA_v2
    cuMemcpyHtoA_v2_ptds
    cuMemcpyHtoD
    cuMemcpyHtoDAsync
    cuMemcpyHtoDAsync_v2_ptsz
    cuMemcpyHtoD_v2_ptds
    cuMemcpyPeer
    cuMemcpyPeerAsync
    cuMemcpyPeerAsync_ptsz
    cuMemcpyPeer_ptds
    cuMemcpy_ptds
    cuMemsetD16
    cuMemsetD16Async
    cuMemsetD16Async_ptsz
    cuMemsetD16_v2
    cuMemsetD16_v2_ptds
    cuMemsetD2D16
    cuMemsetD2D16Async
    cuMemsetD2D16Async_ptsz
    cuMemsetD2D16_v2
    cuMemsetD2D16_v2_ptds
    cuMemsetD2D32
    cuMemsetD2D32Async
    cuMemsetD2D32Async_ptsz
    cuMemsetD2D32_v2
    cuMemsetD2D32_v2_ptds
    cuMemsetD2D8
    cuMemsetD2D8Async_ptsz
    cuMemsetD2D8_v2_ptds
    cuMemsetD32
    cuMemsetD32Async
    cuMemsetD32Async_ptsz
    cuMemsetD32_v2
    cuMemsetD32_v2_ptds
    cuMemsetD8
    cuMemsetD8Async_ptsz
    cuMemsetD8_v2_ptds
    cuMipmappedArrayCreate
    cuMipmappedArrayDestroy
    cuMipmappedArrayGetLevel
    cuMipmappedArrayGetMemoryRequirements
    cuMipmappedArrayGetSparseProperties
    cuModuleEnumerateFunctions
    cuModuleGetFunctionCount
    cuModuleGetGlobal
    cuModuleGetGlobal_v2
    cuModuleGetLoadingMode
    cuModuleGetSurfRef
    cuModuleGetTexRef
    cuModuleLoadFatBinary
    cuMulticastAddDevice
    cuMulticastBindAddr
    cuMulticastBindMem
    cuMulticastCreate
    cuMulticastGetGranularity
    cuMulticastUnbind
    cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    cuOccupancyMaxPotentialBlockSize
    cuOccupancyMaxPotentialBlockSizeWithFlags
    cuOccupancyMaxPotentialClusterSize
    cuParamSetSize
    cuParamSetTexRef
    cuParamSetf
    cuParamSeti
    cuParamSetv
    cuPointerGetAttributes
    cuPointerSetAttribute
    cuSignalExternalSemaphoresAsync
    cuSignalExternalSemaphoresAsync_ptsz
    cuStreamAddCallback
    cuStreamAddCallback_ptsz
    cuStreamAttachMemAsync
    cuStreamAttachMemAsync_ptsz
    cuStreamBatchMemOp
    cuStreamBatchMemOp_ptsz
    cuStreamBatchMemOp_v2
    cuStreamBatchMemOp_v2_ptsz
    cuStreamBeginCapture
    cuStreamBeginCaptureToGraph
    cuStreamBeginCaptureToGraph_ptsz
    cuStreamBeginCapture_ptsz
    cuStreamBeginCapture_v2
    cuStreamBeginCapture_v2_ptsz
    cuStreamCopyAttributes
    cuStreamCopyAttributes_ptsz
    cuStreamDestroy
    cuStreamEndCapture
    cuStreamEndCapture_ptsz
    cuStreamGetAttribute
    cuStreamGetAttribute_ptsz
    cuStreamGetCaptureInfo
    cuStreamGetCaptureInfo_ptsz
    cuStreamGetCaptureInfo_v2
    cuStreamGetCaptureInfo_v2_ptsz
    cuStreamGetCaptureInfo_v3
    cuStreamGetCaptureInfo_v3_ptsz
    cuStreamGetCtx
    cuStreamGetCtx_ptsz
    cuStreamGetCtx_v2
    cuStreamGetCtx_v2_ptsz
    cuStreamGetDevice_ptsz
    cuStreamGetFlags_ptsz
    cuStreamGetGreenCtx
    cuStreamGetId_ptsz
    cuStreamGetPriority_ptsz
    cuStreamIsCapturing_ptsz
    cuStreamQuery_ptsz
    cuStreamSetAttribute
    cuStreamSetAttribute_ptsz
    cuStreamSynchronize_ptsz
    cuStreamUpdateCaptureDependencies
    cuStreamUpdateCaptureDependencies_ptsz
    cuStreamUpdateCaptureDependencies_v2
    cuStreamUpdateCaptureDependencies_v2_ptsz
    cuStreamWaitEvent_ptsz
    cuStreamWaitValue32
    cuStreamWaitValue32_ptsz
    cuStreamWaitValue32_v2
    cuStreamWaitValue32_v2_ptsz
    cuStreamWaitValue64
    cuStreamWaitValue64_ptsz
    cuStreamWaitValue64_v2
    cuStreamWaitValue64_v2_ptsz
    cuStreamWriteValue32
    cuStreamWriteValue32_ptsz
    cuStreamWriteValue32_v2
    cuStreamWriteValue32_v2_ptsz
    cuStreamWriteValue64
    cuStreamWriteValue64_ptsz
    cuStreamWriteValue64_v2
    cuStreamWriteValue64_v2_ptsz
    cuSurfObjectCreate
    cuSurfObjectDestroy
    cuSurfObjectGetResourceDesc
    cuSurfRefGetArray
    cuSurfRefSetArray
    cuTensorMapEncodeIm2col
    cuTensorMapEncodeIm2colWide
    cuTensorMapEncodeTiled
    cuTensorMapReplaceAddress
    cuTexObjectCreate
    cuTexObjectDestroy
    cuTexObjectGetResourceDesc
    cuTexObjectGetResourceViewDesc
    cuTexObjectGetTextureDesc
    cuTexRefCreate
    cuTexRefDestroy
    cuTexRefGetAddress
    cuTexRefGetAddressMode
    cuTexRefGetAddress_v2
    cuTexRefGetArray
    cuTexRefGetBorderColor
    cuTexRefGetFilterMode
    cuTexRefGetFlags
    cuTexRefGetFormat
    cuTexRefGetMaxAnisotropy
    cuTexRefGetMipmapFilterMode
    cuTexRefGetMipmapLevelBias
    cuTexRefGetMipmapLevelClamp
    cuTexRefGetMipmappedArray
    cuTexRefSetAddress
    cuTexRefSetAddress2D
    cuTexRefSetAddress2D_v2
    cuTexRefSetAddress2D_v3
    cuTexRefSetAddressMode
    cuTexRefSetAddress_v2
    cuTexRefSetArray
    cuTexRefSetBorderColor
    cuTexRefSetFilterMode
    cuTexRefSetFlags
    cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy
    cuTexRefSetMipmapFilterMode
    cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp
    cuTexRefSetMipmappedArray
    cuThreadExchangeStreamCaptureMode
    cuUserObjectCreate
    cuUserObjectRelease
    cuUserObjectRetain
    cuWaitExternalSemaphoresAsync
    cuWaitExternalSemaphoresAsync_ptsz
}
