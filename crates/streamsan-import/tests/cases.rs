//! Small profiles whose figures can be checked by hand.

mod support;

use serde_json::json;
use streamsan_import::{Analysis, Engine};
use support::Written;

const UP: &str = "Memcpy HtoD (Pinned -> Device)";
const DOWN: &str = "Memcpy DtoH (Device -> Pinned)";

/// Upload, compute, download, one after the other, all issued ahead.
fn in_turns() -> Written {
    let mut written = Written::default();
    let operations = [
        (UP, 100.0, 140.0),
        ("gemm", 140.0, 190.0),
        (DOWN, 190.0, 200.0),
        (UP, 200.0, 240.0),
        ("gemm", 240.0, 290.0),
        (DOWN, 290.0, 300.0),
    ];
    for (correlation, (name, from, to)) in (1i64..).zip(operations) {
        let issued = 8.0 + 2.0 * correlation as f64;
        let category = if name == "gemm" { "kernel" } else { "gpu_memcpy" };
        written.call("cudaLaunchKernel", (issued, issued + 2.0), correlation);
        let stream = 7 + correlation % 3;
        written.event(category, name, (from, to), &json!({ "args": { "device": 0, "stream": stream, "correlation": correlation, "bytes": 4_000_000 } }));
    }
    written.call("cudaDeviceSynchronize", (22.0, 305.0), 90);
    written
}

#[test]
fn what_takes_turns_could_overlap() {
    let analysis = in_turns().analysis();
    // From the first call to the end of the last operation.
    assert_eq!(analysis.took, 290_000);
    let bound = analysis.bound;
    assert_eq!((bound.engine, bound.device, bound.busy), (Engine::Compute, Some(0), 100_000));
    assert_eq!(analysis.gain(), 190_000);
    let device = &analysis.devices[0];
    assert_eq!(device.engines, [(Engine::Up, 80_000), (Engine::Down, 20_000), (Engine::Compute, 100_000)]);
    assert_eq!((device.copying, device.copying_beside_compute, device.together), (100_000, 0, 0));
    // 12 us of calls; all that follows is the wait.
    assert_eq!((analysis.host.busy, analysis.host.waiting), (12_000, 278_000));
    insta::assert_snapshot!(streamsan_import::text("turns.json", &analysis));
}

#[test]
fn copies_bound_a_program_whose_kernels_hide_behind_them() {
    let mut written = Written::default();
    for round in 0..4 {
        let at = 100.0 * f64::from(round) + 10.0;
        written.issued("Memcpy HtoD (Pageable -> Device)", (at, at + 98.0), 0, 13);
        written.issued("gemm", (at + 20.0, at + 50.0), 0, 7);
    }
    // The host waits on another thread.
    written.event("cuda_runtime", "cudaDeviceSynchronize", (8.0, 410.0), &json!({ "tid": 2 }));
    let analysis = written.analysis();
    assert_eq!((analysis.bound.engine, analysis.bound.busy), (Engine::Up, 392_000));
    let device = &analysis.devices[0];
    assert_eq!((device.copying_beside_compute, device.together), (120_000, 120_000));
    assert_eq!(analysis.pageable.len(), 1);
    assert_eq!((analysis.pageable[0].count, analysis.pageable[0].bytes), (4, 4_000_000));
    let text = streamsan_import::text("copies.json", &analysis);
    assert!(text.contains("Bound by copies up: "), "{text}");
    assert!(text.contains("4 copies up, pageable        392 us  3.8 MiB, 10.2 GB/s"), "{text}");
}

#[test]
fn kernels_of_a_graph_share_a_launch_and_a_stream() {
    let mut written = Written::default();
    written.call("cudaGraphLaunch", (0.0, 10.0), 5);
    for (from, to) in [(20.0, 60.0), (30.0, 50.0), (40.0, 80.0)] {
        written.event(
            "kernel",
            "node",
            (from, to),
            &json!({ "args": { "device": 0, "stream": 7, "correlation": 5 } }),
        );
    }
    let analysis = written.analysis();
    let device = &analysis.devices[0];
    assert_eq!((device.busy, device.streams[0].busy, device.streams[0].kernels), (60_000, 60_000, 3));
    assert_eq!(device.together, 0, "one stream is not two");
    assert_eq!(device.idle.starting, 10_000);
}

#[test]
fn each_device_counts_for_itself() {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 60.0), 0, 7).issued("gemm", (20.0, 100.0), 1, 7);
    written.issued("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", (100.0, 130.0), 1, 20);
    let analysis = written.analysis();
    assert_eq!(analysis.took, 125_000);
    let bound = analysis.bound;
    assert_eq!((bound.engine, bound.device), (Engine::Compute, Some(1)), "the host is in three calls");
    assert_eq!(analysis.devices.len(), 2);
    assert_eq!((analysis.devices[0].busy, analysis.devices[1].busy), (50_000, 110_000));
    assert_eq!(analysis.devices[0].idle.nothing, 70_000);
    assert_eq!(analysis.devices[1].engines, [(Engine::Collectives, 30_000), (Engine::Compute, 80_000)]);
    let text = streamsan_import::text("two.json", &analysis);
    assert!(text.contains("two.json: 125 us on 2 GPUs\n"), "{text}");
    assert!(text.contains("  compute, device 1 "), "{text}");
}

#[test]
fn many_devices_and_streams_stay_short() {
    let mut written = Written::default();
    for device in 0..16 {
        for stream in 0..12 {
            let at = 10.0 + f64::from(stream);
            for (index, name) in [UP, DOWN, "gemm"].into_iter().enumerate() {
                let at = at + 20.0 * index as f64;
                written.issued(
                    name,
                    (at, at + 5.0 + f64::from(device % 7)),
                    i64::from(device),
                    i64::from(stream),
                );
            }
        }
    }
    let text = streamsan_import::text("many.json", &written.analysis());
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.contains("\n8 more devices in --output-format json\n"), "{text}");
    assert!(text.contains(" more streams, busy for "), "{text}");
    // The busiest one in full.
    assert!(text.contains("\nDevice 6: busy for "), "{text}");
}

#[test]
fn steps_are_what_is_looked_at() {
    let mut written = Written::default();
    written.issued("warm up", (10.0, 60.0), 0, 7);
    for step in 0..2 {
        let from = 100.0 + 100.0 * f64::from(step);
        written.event("user_annotation", &format!("ProfilerStep#{step}"), (from, from + 100.0), &json!({}));
        written.issued("gemm", (from + 20.0, from + 40.0), 0, 7);
    }
    // The same, seen from the device: no step of the program.
    written.event("gpu_user_annotation", "ProfilerStep#0", (0.0, 500.0), &json!({}));
    let analysis = written.analysis();
    assert_eq!((analysis.took, analysis.steps), (200_000, 2));
    assert_eq!((analysis.devices[0].busy, analysis.devices[0].streams[0].kernels), (40_000, 2));
    let text = streamsan_import::text("steps.json", &analysis);
    assert!(text.starts_with("steps.json: 200 us on 1 GPU, 2 steps of 100 us\n"), "{text}");
}

#[test]
fn a_wait_costs_what_the_device_idles_after_it() {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 100.0), 0, 7);
    // The device runs empty in the first wait; the second one finds it idle and keeps it from nothing.
    written.call("cudaStreamSynchronize", (20.0, 105.0), 80).call("cudaEventSynchronize", (110.0, 112.0), 81);
    written.event("cpu_op", "aten::item", (19.0, 106.0), &json!({}));
    written.event("cpu_op", "aten::_local_scalar_dense", (19.5, 105.5), &json!({}));
    let name = "<built-in method item of Tensor object at 0x7f0012345678>";
    written.event("python_function", "train.py(12): step", (0.0, 400.0), &json!({}));
    written.event("python_function", name, (18.0, 107.0), &json!({}));
    written.issued("gemm", (155.0, 200.0), 0, 7);
    let analysis = written.analysis();
    let idle = analysis.devices[0].idle;
    // 100 to 105 in the wait, 110 to 112 in the other one; the next call returns at 152; the kernel starts at 155.
    // Before the first kernel, from 5 to 10, there is its call and the delay after it.
    assert_eq!((idle.waiting, idle.after_wait, idle.issuing, idle.starting), (7_000, 45_000, 2_000, 6_000));
    let [first, second] = &analysis.waits[..] else { panic!("{:?}", analysis.waits) };
    assert_eq!((first.call.as_str(), first.idle, first.waited), ("cudaStreamSynchronize", 50_000, 85_000));
    assert_eq!(first.cost, 50_000);
    assert_eq!((second.call.as_str(), second.idle), ("cudaEventSynchronize", 2_000));
    let place = &first.place;
    let function = place.function.as_ref().unwrap();
    assert_eq!((function.file.as_str(), function.line, function.name.as_str()), ("train.py", 12, "step"));
    assert_eq!(
        (place.callee.as_deref(), place.operator.as_deref()),
        (Some("Tensor.item"), Some("aten::item"))
    );
}

/// Of a host that is not recorded while the GPU is busy, nothing is said but that.
fn says_compute(analysis: &Analysis, host: u64) {
    assert_eq!(analysis.bound.engine, Engine::Compute);
    assert_eq!(analysis.host.busy, host);
    assert_eq!(analysis.took, analysis.host.busy + analysis.host.waiting + analysis.host.unexplained);
    let text = streamsan_import::text("tail.json", analysis);
    assert!(text.contains("More streams gain nothing: only faster kernels help.\n"), "{text}");
    assert!(text.contains("\n  host, not explained "), "{text}");
}

#[test]
fn a_host_that_is_done_bounds_nothing() {
    let mut written = Written::default();
    for launch in 0..20 {
        let at = 5.0 * f64::from(launch);
        written.call("cudaLaunchKernel", (at, at + 4.0), i64::from(launch) + 1);
        let at = 10.0 + 100.0 * f64::from(launch);
        let arguments = json!({ "args": { "device": 0, "stream": 7, "correlation": launch + 1 } });
        written.event("kernel", "gemm", (at, at + 100.0), &arguments);
    }
    // The profile ends without a wait.
    says_compute(&written.analysis(), 80_000);
}

/// A kernel of 1 ms, and a host that asks for its end; with frames of Python if it has stacks.
fn polled(operators: bool, stacks: bool) -> Written {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 1010.0), 0, 7);
    for ask in 0..100 {
        let at = 12.0 + 10.0 * f64::from(ask);
        written.call("cudaEventQuery", (at, at + 8.0), 100 + i64::from(ask));
        if operators {
            written.event("cpu_op", "aten::empty", (at - 1.0, at + 9.0), &json!({}));
        }
    }
    if stacks {
        written.event("python_function", "serve.py(3): serve", (0.0, 1010.0), &json!({}));
    }
    written
}

#[test]
fn asking_whether_the_gpu_is_done_is_no_work() {
    says_compute(&polled(false, false).analysis(), 2_000);
    // From the launch to the first question there is Python; the last one ends with the kernel.
    says_compute(&polled(false, true).analysis(), 7_000);
    // The allocator asks as well: its operator is work.
    let analysis = polled(true, false).analysis();
    assert_eq!(analysis.host.busy, 2_000 + 999_000);
}

#[test]
fn sleeping_is_no_work_and_its_share_is_said() {
    let mut written = Written::default();
    for batch in 0..4 {
        let at = 10.0 + 100.0 * f64::from(batch);
        written.issued("gemm", (at, at + 20.0), 0, 7);
        written.event("python_function", "<built-in function sleep>", (at + 10.0, at + 90.0), &json!({}));
    }
    written.event("python_function", "serve.py(3): serve", (0.0, 400.0), &json!({}));
    let analysis = written.analysis();
    // 5 to 330; it slept for 3 times 80, and 10 of the last.
    assert_eq!((analysis.took, analysis.host.unexplained), (325_000, 250_000));
    let text = streamsan_import::text("serve.json", &analysis);
    let wanted = "250 us of the host the profile does not explain: Python, sleeping, polling.\n";
    assert!(text.contains(wanted) && !text.contains("gain nothing"), "{text}");
}

#[test]
fn a_short_wait_costs_no_more_than_it_took() {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 20.0), 0, 7);
    written.call("cudaStreamSynchronize", (18.0, 21.0), 80);
    written.issued("gemm", (105.0, 110.0), 0, 7);
    let analysis = written.analysis();
    let wait = &analysis.waits[0];
    // 20 to 102 nothing ran; without the wait the host would have come to its call 3 us earlier.
    assert_eq!((wait.idle, wait.cost, wait.waited), (82_000, 3_000, 3_000));
}

#[test]
fn a_thread_that_works_is_not_held_up_by_one_that_waits() {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 20.0), 0, 7);
    // Another thread waits all the time; this one runs an operator, and issues late.
    written.event("cuda_runtime", "cudaEventSynchronize", (5.0, 90.0), &json!({ "tid": 2 }));
    written.event("cpu_op", "aten::slow", (8.0, 94.0), &json!({}));
    written.issued("gemm", (95.0, 100.0), 0, 7);
    let analysis = written.analysis();
    let idle = analysis.devices[0].idle;
    // 20 to 92, and the first call.
    assert_eq!((idle.waiting, idle.issuing), (0, 74_000));
    assert_eq!(analysis.waits[0].cost, 0);
    assert_eq!(analysis.host.waiting, 1_000, "between the first call and the operator");
}
