"""torch's own callbacks on allocations, events and synchronizations."""

from __future__ import annotations

import torch
import torch.cuda._gpu_trace as gpu_trace

from streamsan import _core


def register_callbacks() -> None:
    """Registers the native functions; torch calls them from now to the end of the process."""
    torch._C._activate_gpu_trace()
    gpu_trace.register_callback_for_memory_allocation(_core.on_memory_allocation)
    gpu_trace.register_callback_for_memory_deallocation(_core.on_memory_deallocation)
    gpu_trace.register_callback_for_event_record(_core.on_event_record)
    gpu_trace.register_callback_for_event_wait(_core.on_event_wait)
    gpu_trace.register_callback_for_event_synchronization(_core.on_event_synchronization)
    gpu_trace.register_callback_for_stream_synchronization(_core.on_stream_synchronization)
    gpu_trace.register_callback_for_device_synchronization(_core.on_device_synchronization)
