//! What operations own, and streams that nobody holds any more.

use std::sync::mpsc::channel;
use std::time::Duration;
use streamsan_check::{Config, check};
use streamsan_runtime::{CpuOptions, Device, Error, Pipeline, PipelineOptions};

/// Runs something that must end by itself.
fn that_ends(work: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let worker = std::thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(300)).expect("it hangs, or it panicked");
    worker.join().unwrap();
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn an_operation_may_own_the_last_handle_of_everything() {
    that_ends(|| {
        let (done, ended) = channel();
        {
            let device = Device::cpu(&CpuOptions::default());
            let (first, second) = (device.stream("first").unwrap(), device.stream("second").unwrap());
            let mut kept = device.buffer::<u8>(4, &second).unwrap();
            let mut host = device.host_buffer::<u8>(4).unwrap();
            second.upload(&host, &mut kept).unwrap();
            second.download(&kept, &mut host).unwrap();
            let (go, gate) = channel::<()>();
            let last = first.clone();
            first
                .operation("owner")
                .run(move |_| {
                    gate.recv().unwrap();
                    drop((kept, host, second));
                    drop((last, device));
                    done.send(()).unwrap();
                })
                .unwrap();
            drop(first);
            go.send(()).unwrap();
        }
        ended.recv().unwrap();
    });
}

#[test]
fn an_operation_that_waits_for_its_device_is_refused() {
    that_ends(|| {
        let device = Device::cpu(&CpuOptions::default());
        let stream = device.stream("s").unwrap();
        let (sender, answers) = channel();
        let (own, mut host) = (stream.clone(), device.host_buffer::<u8>(1).unwrap());
        let mut buffer = device.buffer::<u8>(1, &stream).unwrap();
        stream.upload(&host, &mut buffer).unwrap();
        stream
            .operation("waits")
            .run(move |_| {
                sender.send(own.synchronize()).unwrap();
                sender.send(own.device().synchronize()).unwrap();
                own.download(&buffer, &mut host).unwrap();
                sender.send(host.read().map(|_| ())).unwrap();
            })
            .unwrap();
        let answers: Vec<Result<(), Error>> = answers.iter().collect();
        assert_eq!(answers, vec![Err(Error::InsideOperation); 3]);
        stream.synchronize().unwrap();
    });
}

/// While one thread waits for memory, an operation under way gives some back.
#[test]
fn memory_that_an_operation_drops_is_found() {
    that_ends(|| {
        let limits = CpuOptions { device_memory: 64, ..CpuOptions::default() };
        let device = Device::cpu(&limits);
        let (first, second) = (device.stream("first").unwrap(), device.stream("second").unwrap());
        let owned = device.buffer::<u8>(64, &first).unwrap();
        let (go, gate) = channel::<()>();
        first
            .operation("owner")
            .run(move |_| {
                gate.recv().unwrap();
                drop(owned);
            })
            .unwrap();
        let opener = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            go.send(()).unwrap();
        });
        // Another size, so that the pool has none of it.
        assert!(device.buffer::<u8>(65, &second).is_err());
        device.buffer::<u8>(63, &second).unwrap();
        opener.join().unwrap();
    });
}

#[test]
fn what_was_done_before_a_failure_stays_done() {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s").unwrap();
    stream.operation("good").run(|_| {}).unwrap();
    let good = stream.record().unwrap();
    stream.operation("bad").run(|_| panic!("no")).unwrap();
    assert!(stream.synchronize().is_err());
    assert_eq!(good.synchronize(), Ok(()));
}

#[test]
fn streams_of_dropped_pipelines_are_used_again() {
    let device = Device::cpu(&CpuOptions::default());
    device.start_journal();
    let options = PipelineOptions { item: 4, memory: 1 << 10, slots: Some(2), ..PipelineOptions::default() };
    let before = threads();
    for turn in 0..300_u64 {
        let mut pipeline = Pipeline::<u64>::new(&device, &options).unwrap();
        let mut results = Vec::new();
        pipeline.run(
            (0..3).map(|item| Ok::<_, String>(vec![turn + item; 4])),
            |compute, buffer| {
                let mut operation = compute.operation("add");
                let values = operation.update(buffer);
                operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value += 1))
            },
            |_, result| results.push(result.unwrap()[3]),
        );
        assert_eq!(results, [turn + 1, turn + 2, turn + 3]);
    }
    // Other tests of this file have threads too.
    let more = threads().saturating_sub(before);
    assert!(more < 100, "{more} threads more after 300 pipelines of 3 streams");
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

#[test]
fn a_stream_that_failed_is_given_to_nobody() {
    let device = Device::cpu(&CpuOptions::default());
    {
        let stream = device.stream("bad").unwrap();
        stream.operation("bad").run(|_| panic!("no")).unwrap();
        assert!(stream.synchronize().is_err());
    }
    let stream = device.stream("good").unwrap();
    stream.operation("good").run(|_| {}).unwrap();
    assert_eq!(stream.synchronize(), Ok(()));
}
