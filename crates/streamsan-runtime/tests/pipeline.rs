//! Pipelines on the CPU back end: right, bounded, and well behaved when something fails.

use fastrand::Rng;
use streamsan_check::{Config, check};
use streamsan_runtime::{
    Buffer, Cancel, CpuOptions, Device, Error, ItemError, Pipeline, PipelineError, PipelineOptions, Stream,
};

fn options(item: usize, slots: usize) -> PipelineOptions {
    PipelineOptions { item, memory: 1 << 20, slots: Some(slots), cancel: Cancel::default() }
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
    let programs: u64 =
        std::env::var("STREAMSAN_RUNTIME_PROGRAMS").map_or(500, |text| text.parse().expect("a number"));
    for seed in 0..programs {
        let mut random = Rng::with_seed(seed);
        let length = random.usize(1..6);
        let items: Vec<Item> = (0..random.usize(0..12))
            .map(|_| (0..random.usize(0..=length)).map(|_| Ok(random.i64(0..1000))).collect())
            .collect();
        let device = Device::cpu(&CpuOptions { delays: Some(seed), ..CpuOptions::default() });
        device.start_journal();
        let results = run(&device, &options(length, random.usize(1..5)), &items);
        let expected: Vec<_> = items
            .iter()
            .map(|item| Ok(item.as_ref().unwrap().iter().map(|value| (value + 1) * 2).collect::<Vec<_>>()))
            .collect();
        assert_eq!(results, expected, "seed {seed}");
        let report = check(&device.journal().unwrap(), &Config::default());
        assert!(report.findings.is_empty(), "seed {seed}: {:#?}", report.findings);
    }
}

#[test]
fn every_wait_of_a_pipeline_is_needed() {
    let items: Vec<Item> = (0..7).map(|item| Ok(vec![item; 4])).collect();
    for slots in 1..4 {
        let whole = Device::cpu(&CpuOptions::default());
        run(&whole, &options(4, slots), &items);
        assert!(whole.waits() > 0);
        for wait in 0..whole.waits() {
            let broken = Device::cpu(&CpuOptions::default());
            broken.start_journal();
            broken.leave_out_wait(wait);
            run(&broken, &options(4, slots), &items);
            let report = check(&broken.journal().unwrap(), &Config::default());
            assert!(report.has_errors(), "{slots} slots, without wait {wait}");
        }
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
fn a_failing_item_loses_no_other() {
    let mut items: Vec<Item> = (0..9).map(|item| Ok(vec![item; 2])).collect();
    items[4] = Err("the file is gone".to_owned());
    items[6] = Ok(vec![0; 3]);
    let results = run(&Device::cpu(&CpuOptions::default()), &options(2, 3), &items);
    let failed: Vec<String> =
        results.iter().filter_map(|result| result.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(
        failed,
        [
            "item 4: source: the file is gone",
            "item 6: upload: it has 3 elements, a slot 2: make the slots larger"
        ]
    );
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 7);
    assert_eq!(results[8], Ok(vec![18, 18]));
}

#[test]
fn a_function_that_refuses_an_item_names_it() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<i64>::new(&device, &options(2, 2)).unwrap();
    let (mut calls, mut results) = (0, Vec::new());
    let items = (0..5).map(|item| Ok::<_, String>(vec![item; 2]));
    let statistics = pipeline.run(
        items,
        |compute, buffer| {
            calls += 1;
            if calls == 3 { Err(Error::OtherDevice) } else { function(compute, buffer) }
        },
        |_, result| results.push(result.map(<[i64]>::to_vec).map_err(|error| (error.item, error.stage))),
    );
    assert_eq!(results[2], Err((2, "function")));
    assert_eq!((statistics.items, statistics.failed), (5, 1));
    assert_eq!(results[4], Ok(vec![10, 10]));
}

#[test]
fn an_operation_that_panics_is_named_and_ends_the_stream() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<i64>::new(&device, &options(1, 2)).unwrap();
    let mut results = Vec::new();
    pipeline.run(
        (0..4).map(|item| Ok::<_, String>(vec![item])),
        |compute, buffer| {
            let mut operation = compute.operation("divide");
            let values = operation.update(buffer);
            operation.run(move |memory| {
                let values = memory.slice_mut(values);
                values[0] = 10_i64.checked_div(values[0] - 1).expect("division by zero");
            })
        },
        |_, result| results.push(result.map(<[i64]>::to_vec).map_err(|error| error.message)),
    );
    assert_eq!(results.len(), 4);
    assert_eq!(results[0], Ok(vec![-10]));
    let message = results[1].clone().unwrap_err();
    assert_eq!(message, "operation `divide` in stream `compute` failed: division by zero");
    assert!(results[2..].iter().all(Result::is_err));
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
    assert_eq!((results, statistics.items, statistics.cancelled), (10, 10, true));
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
