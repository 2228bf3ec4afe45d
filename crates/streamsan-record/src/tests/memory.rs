//! Accesses: which block an address belongs to, and what is left out.

use streamsan_trace::{
    Access, AccessMode, BlockId, DeviceId, EventKind, GapReason, HostWaitHow, MemorySpace, Observer, OpKind,
    ShapeId, StreamId, StringId, Trace,
};

use super::{MEMORY, Recorded, SIDE};
use crate::table::{RawAccess, TorchCallback as Callback};
use crate::{CopyCall, CopyLayout, MemsetCall};

const PINNED: u64 = 0x3000_0000;

fn raw(address: u64, length: u64) -> RawAccess {
    RawAccess { address, length, shape: 0, mode: AccessMode::Write as u32, argument: 0, reserved: 0 }
}

fn whole(block: u32, mode: AccessMode, offset: u64, length: u64) -> Access {
    Access { block: BlockId(block), mode, offset, length, shape: ShapeId(0), argument: StringId(0) }
}

#[test]
fn addresses_belong_to_torchs_block_first_and_else_to_the_runtimes() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY + 512, SIDE);
    recorded.block_size(MEMORY + 512, 100);
    recorded.block_size(MEMORY + 512, 100);
    recorded.operation(
        SIDE,
        0,
        0,
        0,
        &[raw(MEMORY + 520, 4), raw(MEMORY, 4), raw(MEMORY + 612, 4), raw(0x10, 4)],
    );
    let trace = recorded.finish();
    assert_eq!(trace.events[3].kind, EventKind::BlockSize { block: BlockId(2), size: 100 });
    assert_eq!(trace.events.len(), 5, "the size is said once");
    let write = AccessMode::Write;
    assert_eq!(trace.accesses, [whole(2, write, 8, 4), whole(1, write, 0, 4), whole(1, write, 612, 4)]);
}

#[test]
fn a_freed_block_is_remembered_until_its_bytes_have_a_new_owner() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY + 512, SIDE);
    recorded.block_size(MEMORY + 512, 512);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY + 512, 0);
    recorded.operation(SIDE, 0, 0, 0, &[raw(MEMORY + 600, 1)]);
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, SIDE);
    recorded.block_size(MEMORY, 2048);
    recorded.operation(SIDE, 0, 0, 0, &[raw(MEMORY + 600, 1)]);
    let blocks: Vec<u32> = recorded.finish().accesses.iter().map(|access| access.block.0).collect();
    assert_eq!(blocks, [2, 3]);
}

#[test]
fn memory_that_went_back_to_the_driver_is_unknown() {
    let recorded = Recorded::with_torch();
    recorded.torch_callback(Callback::MemoryAllocation, MEMORY, SIDE);
    recorded.torch_callback(Callback::MemoryDeallocation, MEMORY, 0);
    recorded.memory_freed(MEMORY);
    recorded.operation(SIDE, 0, 0, 0, &[raw(MEMORY, 1)]);
    let trace = recorded.finish();
    assert!(trace.accesses.is_empty());
    assert!(trace.events.iter().any(|event| event.kind == EventKind::FreeRequest { block: BlockId(1) }));
}

#[test]
fn a_block_on_another_device_has_that_device() {
    let recorded = Recorded::with_torch();
    let other = 0x9000_0000;
    recorded.memory_allocated(MemorySpace::Device(DeviceId(1)), other, 4096);
    recorded.torch_callback(Callback::MemoryAllocation, other, 0);
    assert_eq!(recorded.memory_space(other), Some(MemorySpace::Device(DeviceId(1))));
    let kinds = recorded.kinds();
    assert!(matches!(kinds[1], EventKind::StreamCreate { device: DeviceId(1), legacy_default: true, .. }));
    assert!(matches!(kinds[2], EventKind::Alloc { space: MemorySpace::Cached(DeviceId(1)), .. }));
}

#[test]
fn a_block_in_memory_that_the_driver_mapped_is_on_the_current_device() {
    let mapped = 0x9000_0000;
    for (asked, device) in [(true, DeviceId(1)), (false, DeviceId(0))] {
        let recorded = Recorded::with_torch();
        if asked {
            recorded.ask_for_device(|| 1);
        }
        recorded.torch_callback(Callback::MemoryAllocation, mapped, 0);
        let kinds = recorded.kinds();
        let stream = EventKind::StreamCreate {
            stream: StreamId(1),
            device,
            blocking: true,
            legacy_default: true,
            priority: 0,
        };
        assert_eq!(kinds[0], stream);
        assert!(matches!(kinds[1], EventKind::Alloc { space: MemorySpace::Cached(of), .. } if of == device));
    }
}

#[test]
fn a_copy_touches_the_host_only_where_it_is_page_locked() {
    let recorded = Recorded::with_torch();
    recorded.memory_allocated(MemorySpace::Pinned, PINNED, 4096);
    let call = CopyCall {
        stream: SIDE,
        device: 0,
        destination: MEMORY + 16,
        source: PINNED + 8,
        layout: CopyLayout::Linear { bytes: 32 },
        kind: OpKind::CopyHostToDevice,
        blocking: true,
        label: "memcpy HtoD",
    };
    recorded.copy(&call);
    recorded.copy(&CopyCall { source: 0x10, blocking: false, ..call });
    recorded.copy(&CopyCall { layout: CopyLayout::Linear { bytes: 0 }, blocking: false, ..call });
    let trace = recorded.finish();
    let EventKind::Op { label, kind, .. } = trace.events[3].kind else { panic!("{:?}", trace.events[3]) };
    assert_eq!((trace.tables.string(label), kind), ("memcpy HtoD", OpKind::CopyHostToDevice));
    let EventKind::HostWait { observer, how, .. } = trace.events[4].kind else {
        panic!("{:?}", trace.events[4])
    };
    assert_eq!((observer, how), (Observer::Program, HostWaitHow::Blocking));
    let (read, write) = (AccessMode::Read, AccessMode::Write);
    assert_eq!(trace.accesses, [whole(2, read, 8, 32), whole(1, write, 16, 32), whole(1, write, 16, 32)]);
}

#[test]
fn a_pitched_copy_touches_its_rows_only() {
    let recorded = Recorded::with_torch();
    recorded.copy(&CopyCall {
        stream: SIDE,
        device: 0,
        destination: MEMORY,
        source: MEMORY + 4096,
        layout: CopyLayout::Pitched { width: 8, height: 4, destination_pitch: 16, source_pitch: 8 },
        kind: OpKind::CopyDeviceToDevice,
        blocking: false,
        label: "memcpy DtoD",
    });
    recorded.memset(&MemsetCall {
        stream: SIDE,
        device: 0,
        address: MEMORY,
        pitch: 16,
        width: 8,
        height: 4,
        blocking: false,
    });
    let trace = recorded.finish();
    let lengths: Vec<_> = trace.accesses.iter().map(|access| (access.length, access.shape.0)).collect();
    assert_eq!(lengths, [(32, 0), (56, 1), (56, 1)], "rows without holes are contiguous");
    assert_eq!(trace.tables.shapes[1].run, 8);
}

#[test]
fn copies_within_a_device_are_part_of_an_operator_that_is_recorded_whole() {
    let recorded = Recorded::start();
    let label = recorded.string("aten::cat").0;
    let inside = CopyCall {
        stream: SIDE,
        device: 0,
        destination: MEMORY + 64,
        source: MEMORY,
        layout: CopyLayout::Linear { bytes: 8 },
        kind: OpKind::CopyDeviceToDevice,
        blocking: false,
        label: "memcpy DtoD",
    };
    let memset = MemsetCall {
        stream: SIDE,
        device: 0,
        address: MEMORY,
        width: 8,
        height: 1,
        pitch: 8,
        blocking: false,
    };
    recorded.set_operator(0, 0, label);
    recorded.copy(&inside);
    recorded.memset(&memset);
    recorded.copy(&CopyCall { source: 0x10, kind: OpKind::CopyHostToDevice, ..inside });
    recorded.set_context(0, 0, label);
    recorded.copy(&inside);
    recorded.memset(&memset);
    let kinds: Vec<OpKind> = recorded
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::Op { kind, .. } => Some(kind),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [OpKind::CopyHostToDevice, OpKind::CopyDeviceToDevice, OpKind::Memset]);
}

#[test]
fn kernels_of_an_operator_are_part_of_it_and_others_are_a_gap() {
    let recorded = Recorded::with_torch();
    let label = recorded.string("aten::mul").0;
    recorded.set_context(0, 0, label);
    recorded.operation(SIDE, 0, 0, 1, &[]);
    assert!(recorded.launch(SIDE, 0, || "vectorized_elementwise_kernel"));
    recorded.set_context(0, 0, 0);
    assert!(!recorded.launch(SIDE, 0, || "my_kernel"));
    recorded.launch(SIDE, 0, || "my_kernel");
    recorded.launched_kernel_of_graph("my_kernel");
    recorded.launch(SIDE, 0, || "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi");
    recorded.unsupported("cudaGraphLaunch");
    assert_eq!(recorded.operations_recorded(), 1);
    let trace = recorded.finish();
    let gaps: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Gap { reason, detail } => Some((reason, trace.tables.string(detail))),
            _ => None,
        })
        .collect();
    let outside =
        "torch kernel outside the torch layer: _ZN2at6native29vectorized_elementwise_kernelILi4EEEvi";
    let expected = [
        (GapReason::OpaqueKernel, "my_kernel"),
        (GapReason::OpaqueKernel, "my_kernel, in a graph"),
        (GapReason::OpaqueKernel, outside),
        (GapReason::UnsupportedCall, "cudaGraphLaunch"),
    ];
    assert_eq!(gaps, expected);
    assert!(matches!(trace.events[3].kind, EventKind::HostWait { how: HostWaitHow::Blocking, .. }));
}

/// A download to ordinary host memory, which holds the host.
fn blocking_download() -> CopyCall<'static> {
    CopyCall {
        stream: SIDE,
        device: 0,
        destination: 0x10,
        source: MEMORY,
        layout: CopyLayout::Linear { bytes: 8 },
        kind: OpKind::CopyDeviceToHost,
        blocking: true,
        label: "memcpy DtoH",
    }
}

/// The wait of it, and where it began if that is an event of its own.
fn waits(trace: &Trace) -> Vec<(u64, &'static str)> {
    let of_interest = trace.events.iter().filter_map(|event| {
        let what = match event.kind {
            EventKind::Op { .. } => "operation",
            EventKind::HostWaitBegin { .. } => "wait begins",
            EventKind::HostWait { how: HostWaitHow::Blocking, .. } => "waited",
            _ => return None,
        };
        Some((event.number.0, what))
    });
    of_interest.collect()
}

#[test]
fn a_blocking_call_knows_what_was_issued_before_it() {
    let recorded = Recorded::start();
    recorded.blocking_operation_begin(SIDE, 0);
    recorded.copy(&blocking_download());
    let trace = recorded.finish();
    let found = waits(&trace);
    assert_eq!(found.iter().map(|&(_, what)| what).collect::<Vec<_>>(), ["operation", "waited"]);

    let recorded = Recorded::start();
    recorded.blocking_operation_begin(SIDE, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| recorded.host_function(SIDE, 0)).join().unwrap();
    });
    recorded.copy(&blocking_download());
    let trace = recorded.finish();
    let found = waits(&trace);
    let order: Vec<&str> = found.iter().map(|&(_, what)| what).collect();
    assert_eq!(order, ["operation", "wait begins", "operation", "waited"]);
}

#[test]
fn a_blocking_call_that_fails_leaves_nothing() {
    let recorded = Recorded::start();
    recorded.blocking_operation_begin(SIDE, 0);
    recorded.give_up();
    recorded.copy(&CopyCall { blocking: false, ..blocking_download() });
    let trace = recorded.finish();
    assert_eq!(waits(&trace).iter().map(|&(_, what)| what).collect::<Vec<_>>(), ["operation"]);
}

#[test]
fn a_stream_that_was_made_elsewhere_has_its_flags() {
    let recorded = Recorded::start();
    assert!(recorded.knows_stream(0) && recorded.knows_stream(SIDE));
    assert!(!recorded.knows_stream(0x7777));
    recorded.stream_seen(0x7777, 1, true, -1);
    recorded.stream_seen(0x7777, 1, false, 0);
    let created = EventKind::StreamCreate {
        stream: StreamId(1),
        device: DeviceId(1),
        blocking: true,
        legacy_default: false,
        priority: -1,
    };
    assert_eq!(recorded.kinds(), [created]);
}

#[test]
fn what_is_part_of_an_operator_leaves_no_number_behind() {
    let recorded = Recorded::with_torch();
    let label = recorded.string("aten::zero_").0;
    recorded.set_operator(recorded.site(1), 0, label);
    for copied in [true, false] {
        recorded.blocking_operation_begin(SIDE, 0);
        assert!(recorded.thread().entered.is_some());
        if copied {
            recorded.copy(&CopyCall {
                stream: SIDE,
                device: 0,
                destination: MEMORY,
                source: MEMORY + 4096,
                layout: CopyLayout::Linear { bytes: 64 },
                kind: OpKind::CopyDeviceToDevice,
                blocking: true,
                label: "copy",
            });
        } else {
            let (pitch, width, height) = (64, 64, 1);
            let address = MEMORY;
            recorded.memset(&MemsetCall {
                stream: SIDE,
                device: 0,
                address,
                pitch,
                width,
                height,
                blocking: true,
            });
        }
        assert!(recorded.thread().entered.is_none(), "copied: {copied}");
    }
}
