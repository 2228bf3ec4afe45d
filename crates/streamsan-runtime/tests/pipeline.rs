//! Pipelines on the CPU back end: right, bounded, and well behaved when something fails.

#[path = "random/scheduled.rs"]
mod scheduled;

use fastrand::Rng;
use scheduled::{PROGRAMS, delays, scheduled};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use streamsan_check::{Config, check};
use streamsan_runtime::{
    Bound, Buffer, CpuOptions, Device, Error, ItemError, ItemReader, ItemWriter, Pipeline, PipelineError,
    PipelineOptions, Stream,
};

fn options(item: usize, slots: usize) -> PipelineOptions {
    PipelineOptions { item, memory: 1 << 20, slots: Some(slots), ..PipelineOptions::default() }
}

/// Adds 1 to every element in one operation, then doubles it in another one, through a buffer of its own.
fn function(compute: &Stream, buffer: &mut Buffer<i64>) -> Result<(), Error> {
    let mut between = compute.device().buffer::<i64>(buffer.len(), compute)?;
    let mut add = compute.operation("add");
    let (from, to) = (add.read(buffer), add.write(&mut between));
    add.run(move |memory| {
        for (to, from) in memory.slice_mut(to).iter_mut().zip(memory.slice(from)) {
            *to = from.wrapping_add(1);
        }
    })?;
    let mut double = compute.operation("double");
    let (from, to) = (double.read(&between), double.write(buffer));
    double.run(move |memory| {
        for (to, from) in memory.slice_mut(to).iter_mut().zip(memory.slice(from)) {
            *to = from.wrapping_mul(2);
        }
    })
}

type Item = Result<Vec<i64>, String>;

fn run(device: &Device, options: &PipelineOptions, items: &[Item]) -> Vec<Result<Vec<i64>, ItemError>> {
    let mut pipeline = Pipeline::<i64>::new(device, options).unwrap();
    let mut results = Vec::new();
    pipeline.run(items.iter().cloned(), function, |index, result| {
        assert_eq!(index, results.len() as u64, "results come in order");
        results.push(result.map(<[i64]>::to_vec));
    });
    results
}

#[test]
fn random_pipelines_equal_serial_execution_and_are_clean() {
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let first: u64 = number("STREAMSAN_RUNTIME_SEED", 0);
    for seed in first..first + number("STREAMSAN_RUNTIME_PROGRAMS", PROGRAMS) {
        scheduled(seed, move || random_pipeline(seed));
    }
}

fn random_pipeline(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let length = random.usize(1..6);
    // With a function that treats each element by itself, items may be longer than a slot.
    let elementwise = random.bool();
    let longest = if elementwise { 5 * length } else { length };
    let items: Vec<Item> = (0..random.usize(0..12))
        .map(|_| match random.u8(0..12) {
            0 => Err("gone".to_owned()),
            _ => (0..random.usize(0..=longest)).map(|_| Ok(random.i64(0..1000))).collect(),
        })
        .collect();
    let device = Device::cpu(&CpuOptions { delays: delays(seed), ..CpuOptions::default() });
    device.start_journal();
    let slots = random.usize(1..5);
    // A little memory: some items travel together, or none do.
    let memory = slots as u64 * length as u64 * 8 * random.u64(1..4);
    let results = run(&device, &PipelineOptions { elementwise, memory, ..options(length, slots) }, &items);
    let expected: Vec<_> = (0..)
        .zip(&items)
        .map(|(item, values)| match values {
            Ok(values) => Ok(values.iter().map(|value| (value + 1) * 2).collect::<Vec<_>>()),
            Err(message) => Err(ItemError { item, stage: "source", message: message.clone() }),
        })
        .collect();
    assert_eq!(results, expected, "seed {seed}, elementwise {elementwise}");
    let report = check(&device.journal().unwrap(), &Config::default());
    assert!(report.findings.is_empty(), "seed {seed}: {:#?}", report.findings);
}

/// Runs something whole, then without each of its waits.
fn each_wait_is_needed(what: &str, work: impl Fn(&Device)) {
    let whole = Device::cpu(&CpuOptions::default());
    work(&whole);
    assert!(whole.waits() > 0);
    for wait in 0..whole.waits() {
        let broken = Device::cpu(&CpuOptions::default());
        broken.start_journal();
        broken.leave_out_wait(wait);
        work(&broken);
        let report = check(&broken.journal().unwrap(), &Config::default());
        assert!(report.has_errors(), "{what}, without wait {wait}");
    }
}

#[test]
fn every_wait_of_a_pipeline_is_needed() {
    let items: Vec<Item> = (0..8).map(|item| Ok(vec![item; 4])).collect();
    let long: Vec<Item> = vec![Ok(vec![1; 28])];
    for slots in 1..4 {
        each_wait_is_needed(&format!("{slots} slots"), |device| {
            run(device, &options(4, slots), &items);
        });
        // Two items a slot, and one item over seven.
        for (items, room) in [(&items, 2), (&long, 1)] {
            let memory = slots as u64 * room * 32;
            let chosen = PipelineOptions { elementwise: true, memory, ..options(4, slots) };
            each_wait_is_needed(&format!("{slots} slots, {room} items in each"), |device| {
                run(device, &chosen, items);
            });
        }
        each_wait_is_needed(&format!("{slots} slots, in place"), |device| {
            let registered = |item| device.register(vec![item; 4]).unwrap();
            let items: Vec<_> = (0..7).map(registered).collect();
            let mut results: Vec<_> = (0..7).map(registered).collect();
            let mut pipeline = Pipeline::<i64>::new(device, &options(4, slots)).unwrap();
            pipeline.run_in_place(&items, &mut results, function).unwrap();
        });
    }
}

#[test]
fn memory_is_that_of_the_slots() {
    // Three slots, one buffer of the function, and nothing more, for ten thousand items.
    let bytes = 64 * size_of::<i64>();
    let limits = CpuOptions { device_memory: 4 * bytes, host_memory: 6 * bytes, delays: None };
    let items: Vec<Item> = (0..10_000).map(|item| Ok(vec![item; 64])).collect();
    let results = run(&Device::cpu(&limits), &options(64, 3), &items);
    assert_eq!(results.len(), 10_000);
    assert!(
        results
            .iter()
            .enumerate()
            .all(|(at, result)| result.as_ref().unwrap()[63] == (i64::try_from(at).unwrap() + 1) * 2)
    );
}

#[test]
fn cancelling_hands_out_what_is_under_way() {
    let device = Device::cpu(&CpuOptions::default());
    let chosen = options(1, 3);
    let mut pipeline = Pipeline::<i64>::new(&device, &chosen).unwrap();
    let mut results = 0;
    let items = (0..100).map(|item| {
        if item == 10 {
            chosen.cancel.cancel();
        }
        Ok::<_, String>(vec![item])
    });
    let statistics = pipeline.run(items, function, |_, _| results += 1);
    // What was taken from the source is handed out.
    assert_eq!((results, statistics.items, statistics.cancelled), (11, 11, true));
}

#[test]
fn page_locked_items_are_used_where_they_are() {
    let device = Device::cpu(&CpuOptions { delays: Some(7), ..CpuOptions::default() });
    device.start_journal();
    let buffer = |value: i64| {
        let mut buffer = device.host_buffer::<i64>(4).unwrap();
        buffer.write().unwrap().fill(value);
        buffer
    };
    let items: Vec<_> = (0..20).map(buffer).collect();
    let mut results: Vec<_> = (0..20).map(|_| buffer(-1)).collect();
    let mut pipeline = Pipeline::<i64>::new(&device, &options(4, 3)).unwrap();
    let (statistics, failed) = pipeline.run_in_place(&items, &mut results, function).unwrap();
    assert_eq!((statistics.items, failed.as_slice()), (20, &[][..]));
    for (value, result) in (0..).zip(&results) {
        assert_eq!(&*result.read().unwrap(), [(value + 1) * 2; 4]);
    }
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
    assert_eq!(
        pipeline.run_in_place(&items[..3], &mut results, function).unwrap_err(),
        Error::Length { from: 3, to: 20 }
    );
}

#[test]
fn a_budget_that_does_not_hold_is_refused() {
    let device = Device::cpu(&CpuOptions::default());
    let chosen = PipelineOptions { memory: 100, ..options(64, 3) };
    let error = Pipeline::<i64>::new(&device, &chosen).unwrap_err();
    assert!(matches!(error, PipelineError::Plan(_)), "{error}");
    let small = Device::cpu(&CpuOptions { device_memory: 1000, ..CpuOptions::default() });
    let error = Pipeline::<i64>::new(&small, &options(64, 3)).unwrap_err();
    assert!(error.to_string().starts_with("out of device memory: 512 bytes wanted"), "{error}");
}

/// Doubles every element in place.
fn double(compute: &Stream, buffer: &mut Buffer<i64>) -> Result<(), Error> {
    let mut operation = compute.operation("double");
    let values = operation.update(buffer);
    operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value *= 2))
}

#[test]
fn small_items_travel_together_and_large_ones_are_cut() {
    let device = Device::cpu(&CpuOptions::default());
    // Room for 2 slots of 8 items of 4 elements.
    let chosen = PipelineOptions { item: 4, memory: 2 * 8 * 32, elementwise: true, ..options(4, 2) };
    let mut pipeline = Pipeline::<i64>::new(&device, &chosen).unwrap();
    assert_eq!((pipeline.plan().pack, pipeline.plan().device_bytes()), (8, 512));
    let mut results = Vec::new();
    let small = (0..80).map(|item| Ok::<_, String>(vec![item; 4]));
    let statistics = pipeline.run(small, double, |_, result| results.push(result.unwrap().to_vec()));
    assert_eq!((statistics.items, statistics.loads, statistics.uploaded), (80, 10, 80 * 32));
    assert!((0..80).all(|item| results[item] == vec![2 * i64::try_from(item).unwrap(); 4]));
    let large: Vec<i64> = (0..1000).collect();
    let mut whole = Vec::new();
    let statistics = pipeline.run([Ok::<_, String>(&large)], double, |item, result| {
        whole.push((item, result.unwrap().to_vec()));
    });
    assert_eq!(whole, [(0, (0..1000).map(|value| 2 * value).collect())]);
    assert_eq!((statistics.items, statistics.loads), (1, 32));
}

#[test]
fn the_function_sees_as_many_elements_as_the_item_has() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<i64>::new(&device, &options(8, 2)).unwrap();
    let mut lengths = Vec::new();
    let items = (1..6).map(|length| Ok::<_, String>(vec![1; length]));
    let statistics = pipeline.run(
        items,
        |compute, buffer| {
            lengths.push(buffer.len());
            double(compute, buffer)
        },
        |_, result| assert!(result.unwrap().iter().all(|&value| value == 2)),
    );
    assert_eq!((lengths, statistics.uploaded), (vec![1, 2, 3, 4, 5], 15 * 8));
}

#[test]
fn from_file_to_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let values: Vec<i64> = (0..1003).collect();
    std::fs::write(&from, values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>()).unwrap();
    let device = Device::cpu(&CpuOptions::default());
    for elementwise in [false, true] {
        let mut pipeline =
            Pipeline::<i64>::new(&device, &PipelineOptions { elementwise, ..options(10, 3) }).unwrap();
        let mut sink = ItemWriter::create(&to).unwrap();
        let mut source = ItemReader::<i64, _>::open(&from, 10).unwrap();
        let (statistics, failed) = pipeline.transfer(&mut source, double, &mut sink);
        sink.finish().unwrap();
        assert_eq!((statistics.items, failed.len()), (101, 0));
        let expected: Vec<u8> = values.iter().flat_map(|value| (2 * value).to_ne_bytes()).collect();
        assert!(std::fs::read(&to).unwrap() == expected);
    }
    std::fs::write(&from, [0; 13]).unwrap();
    let error = ItemReader::<i64, _>::open(&from, 10).unwrap_err().to_string();
    assert!(error.contains("13 bytes are not a whole number of elements of 8 bytes"), "{error}");
}

#[test]
fn registered_memory_is_used_where_it_is_and_given_back() {
    let device = Device::cpu(&CpuOptions { delays: Some(3), ..CpuOptions::default() });
    device.start_journal();
    let address = |data: &Vec<i64>| data.as_ptr() as usize;
    let data: Vec<Vec<i64>> = (0..6).map(|item| vec![item; 4]).collect();
    let places: Vec<usize> = data.iter().map(address).collect();
    let mut items: Vec<_> = data.into_iter().map(|data| device.register(data).unwrap()).collect();
    let mut results: Vec<_> = (0..6).map(|_| device.register(vec![0; 4]).unwrap()).collect();
    let mut pipeline = Pipeline::<i64>::new(&device, &options(4, 2)).unwrap();
    for _ in 0..2 {
        let (statistics, failed) = pipeline.run_in_place(&items, &mut results, double).unwrap();
        assert_eq!((statistics.items, failed.len()), (6, 0));
        std::mem::swap(&mut items, &mut results);
    }
    // Dropped while a copy may be under way: kept until it has ended.
    let stream = device.stream("s").unwrap();
    let mut buffer = device.buffer::<i64>(4, &stream).unwrap();
    stream.upload(&results[0], &mut buffer).unwrap();
    drop(results);
    let given: Vec<Vec<i64>> = items.into_iter().map(|item| item.into_vec().unwrap()).collect();
    assert_eq!(given.iter().map(address).collect::<Vec<_>>(), places);
    assert!((0..).zip(&given).all(|(item, values)| *values == vec![4 * item; 4]));
    assert!(device.register(Vec::<i64>::new()).unwrap().into_vec().unwrap().is_empty());
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

#[test]
fn progress_is_told_and_what_limits_is_measured() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<i64>::new(&device, &options(4, 3)).unwrap();
    let slow = |compute: &Stream, buffer: &mut Buffer<i64>| {
        let mut operation = compute.operation("slow");
        let values = operation.update(buffer);
        operation.run(move |memory| {
            std::thread::sleep(Duration::from_millis(3));
            memory.slice_mut(values)[0] += 1;
        })
    };
    let measured = pipeline.measure(&[1, 2, 3, 4], slow).unwrap();
    assert!(measured.compute >= 0.003, "{measured:?}");
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    pipeline.on_progress(Duration::ZERO, move |progress| teller.lock().unwrap().push(*progress));
    let items = (0..20).map(|item| Ok::<_, String>(vec![item; 4]));
    let statistics = pipeline.run(items, slow, |_, result| assert!(result.is_ok()));
    let (ideal, bound) = statistics.ideal.unwrap();
    assert_eq!(bound, Bound::Compute, "{measured:?}");
    assert!(ideal >= 0.06 && statistics.efficiency().unwrap() > 0.0, "{statistics}");
    let text = statistics.to_string();
    assert!(text.contains("20 items, 0 failed") && text.contains("of what the function allows"), "{text}");
    let told = told.lock().unwrap();
    assert!(told.windows(2).all(|pair| pair[0].items <= pair[1].items));
    assert_eq!(told.last().map(|last| (last.items, last.bytes)), Some((20, 2 * 20 * 32)));
    assert!(pipeline.measure(&[0; 5], slow).is_err());
}
