//! The queues of the CPU back end under Shuttle: many schedules of the same program, and deadlocks found as such.
//!
//! `cargo test -p streamsan-runtime --features shuttle --test schedules`

use streamsan_check::{Config, check};
use streamsan_runtime::{Buffer, CpuOptions, Device, Error, Pipeline, PipelineOptions, Stream};

const SCHEDULES: usize = 2_000;

fn double(compute: &Stream, buffer: &mut Buffer<i64>) -> Result<(), Error> {
    let mut operation = compute.operation("double");
    let values = operation.update(buffer);
    operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value *= 2))
}

/// A pipeline with fewer slots than items.
fn pipeline() {
    let device = Device::cpu(&CpuOptions::default());
    device.start_journal();
    let options = PipelineOptions { item: 1, memory: 64, slots: Some(2), ..PipelineOptions::default() };
    let mut results = Vec::new();
    {
        let mut pipeline = Pipeline::<i64>::new(&device, &options).unwrap();
        let items = (0..5).map(|item| Ok::<_, String>([item]));
        pipeline.run(items, double, |_, result| results.push(result.unwrap()[0]));
    }
    assert_eq!(results, [0, 2, 4, 6, 8]);
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

/// Two readers on two streams, then a writer on a third, a drop, and a new owner of the memory.
fn readers() {
    let device = Device::cpu(&CpuOptions::default());
    let [a, b, c] = ["a", "b", "c"].map(|name| device.stream(name).unwrap());
    let mut shared = device.buffer::<i64>(1, &a).unwrap();
    double(&a, &mut shared).unwrap();
    let mut copies = [device.host_buffer::<i64>(1).unwrap(), device.host_buffer::<i64>(1).unwrap()];
    let [first, second] = &mut copies;
    a.download(&shared, first).unwrap();
    b.download(&shared, second).unwrap();
    let mut fill = c.operation("fill");
    let target = fill.write(&mut shared);
    fill.run(move |memory| memory.slice_mut(target)[0] = 7).unwrap();
    drop(shared);
    let mut next = device.buffer::<i64>(1, &a).unwrap();
    double(&a, &mut next).unwrap();
    let mut last = device.host_buffer::<i64>(1).unwrap();
    b.download(&next, &mut last).unwrap();
    assert_eq!((copies[0].read().unwrap()[0], copies[1].read().unwrap()[0]), (0, 0));
    assert_eq!(last.read().unwrap()[0], 14);
}

/// An operation drops the last handle of everything while the host goes on.
fn owner() {
    let device = Device::cpu(&CpuOptions::default());
    let (first, second) = (device.stream("first").unwrap(), device.stream("second").unwrap());
    let mut buffer = device.buffer::<i64>(1, &first).unwrap();
    double(&second, &mut buffer).unwrap();
    let (own, other) = (first.clone(), device.clone());
    first.operation("owner").run(move |_| drop((buffer, second, own, other))).unwrap();
}

/// Streams are put down and taken up again while their work is under way.
fn taken_up() {
    let device = Device::cpu(&CpuOptions::default());
    device.start_journal();
    let mut results = Vec::new();
    for turn in 0..3 {
        let (up, down) = (device.stream("up").unwrap(), device.stream("down").unwrap());
        let mut host = device.host_buffer::<i64>(1).unwrap();
        host.write().unwrap()[0] = turn;
        let mut buffer = device.buffer::<i64>(1, &up).unwrap();
        up.upload(&host, &mut buffer).unwrap();
        double(&down, &mut buffer).unwrap();
        let mut result = device.host_buffer::<i64>(1).unwrap();
        down.download(&buffer, &mut result).unwrap();
        results.push(result);
    }
    let values: Vec<i64> = results.iter().map(|result| result.read().unwrap()[0]).collect();
    assert_eq!(values, [0, 2, 4]);
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

#[test]
fn operations_that_own_the_last_handle() {
    shuttle::check_random(owner, SCHEDULES);
    shuttle::check_pct(owner, SCHEDULES, 3);
}

#[test]
fn streams_that_are_taken_up_again() {
    shuttle::check_random(taken_up, SCHEDULES);
    shuttle::check_pct(taken_up, SCHEDULES, 3);
}

#[test]
fn pipelines_in_random_schedules() {
    shuttle::check_random(pipeline, SCHEDULES);
}

#[test]
fn pipelines_with_few_preemptions() {
    shuttle::check_pct(pipeline, SCHEDULES, 3);
}

#[test]
fn readers_on_several_streams() {
    shuttle::check_random(readers, SCHEDULES);
    shuttle::check_pct(readers, SCHEDULES, 3);
}

#[test]
fn a_wait_that_is_left_out_shows_in_some_schedule() {
    let broken = || {
        let device = Device::cpu(&CpuOptions::default());
        device.leave_out_wait(0);
        let (a, b) = (device.stream("a").unwrap(), device.stream("b").unwrap());
        let mut buffer = device.buffer::<i64>(1, &a).unwrap();
        let mut fill = a.operation("fill");
        let target = fill.write(&mut buffer);
        fill.run(move |memory| memory.slice_mut(target)[0] = 7).unwrap();
        let mut host = device.host_buffer::<i64>(1).unwrap();
        b.download(&buffer, &mut host).unwrap();
        assert_eq!(host.read().unwrap()[0], 7);
    };
    // In some schedule the value is wrong; what is said then depends on what the device still does.
    assert!(std::panic::catch_unwind(|| shuttle::check_pct(broken, SCHEDULES, 3)).is_err());
}
