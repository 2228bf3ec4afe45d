//! What a pipeline does when something fails, with faults made on purpose.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_check::{Config, check};
use streamsan_runtime::{
    Buffer, CpuOptions, Device, Error, ItemError, ItemReader, ItemWriter, Items, Pipeline, PipelineError,
    PipelineOptions, SliceSink, Stream,
};

fn options(item: usize, slots: usize) -> PipelineOptions {
    PipelineOptions { item, memory: 1 << 20, slots: Some(slots), ..PipelineOptions::default() }
}

fn double(compute: &Stream, buffer: &mut Buffer<i64>) -> Result<(), Error> {
    let mut operation = compute.operation("double");
    let values = operation.update(buffer);
    operation.run(move |memory| memory.slice_mut(values).iter_mut().for_each(|value| *value *= 2))
}

/// Doubles through a buffer of its own.
fn double_aside(compute: &Stream, buffer: &mut Buffer<i64>) -> Result<(), Error> {
    let mut aside = compute.device().buffer::<i64>(buffer.len(), compute)?;
    let mut operation = compute.operation("aside");
    let (from, to) = (operation.read(buffer), operation.write(&mut aside));
    operation.run(move |memory| memory.slice_mut(to).copy_from_slice(memory.slice(from)))?;
    compute.copy(&aside, buffer)?;
    double(compute, buffer)
}

type Item = Result<Vec<i64>, String>;
type Outcome = Result<Vec<i64>, ItemError>;

fn run(
    pipeline: &mut Pipeline<i64>,
    items: &[Item],
    function: impl FnMut(&Stream, &mut Buffer<i64>) -> Result<(), Error>,
) -> Vec<Outcome> {
    let mut results = Vec::new();
    pipeline.run(items.iter().cloned(), function, |_, result| results.push(result.map(<[i64]>::to_vec)));
    results
}

fn said(results: &[Outcome]) -> Vec<String> {
    results.iter().filter_map(|result| result.as_ref().err()).map(ToString::to_string).collect()
}

#[test]
fn a_failing_source_loses_no_other_item() {
    let mut items: Vec<Item> = (0..9).map(|item| Ok(vec![item; 2])).collect();
    items[4] = Err("the file is gone".to_owned());
    items[6] = Ok(vec![0; 3]);
    for elementwise in [false, true] {
        let device = Device::cpu(&CpuOptions::default());
        let chosen = PipelineOptions { elementwise, ..options(2, 3) };
        let results = run(&mut Pipeline::new(&device, &chosen).unwrap(), &items, double);
        let mut expected = vec!["item 4: source: the file is gone"];
        if !elementwise {
            expected.push("item 6: upload: it has 3 elements, a slot 2: make the slots larger");
        }
        assert_eq!(said(&results), expected);
        assert_eq!((results.len(), results[8].clone()), (9, Ok(vec![16, 16])));
    }
}

/// Gives so many bytes, then fails.
struct Cut(usize);

impl Read for Cut {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        let length = target.len().min(self.0);
        if length == 0 {
            return Err(std::io::Error::other("the disk is gone"));
        }
        self.0 -= length;
        target[..length].fill(1);
        Ok(length)
    }
}

#[test]
fn a_reader_that_fails_keeps_what_was_read() {
    let device = Device::cpu(&CpuOptions::default());
    for elementwise in [false, true] {
        let chosen = PipelineOptions { elementwise, ..options(4, 2) };
        let mut pipeline = Pipeline::<u8>::new(&device, &chosen).unwrap();
        // Two and a half of ten items.
        let (mut source, mut results) = (ItemReader::<u8, _>::new(Cut(10), 40, 4), [7; 40]);
        let (statistics, failed) =
            pipeline.transfer(&mut source, |_, _| Ok(()), &mut SliceSink::new(&mut results));
        assert_eq!((statistics.items, statistics.failed), (3, 1));
        let message = "item 2: source: the disk is gone; the 32 elements from here on are not read";
        assert_eq!(failed[0].to_string(), message);
        assert_eq!((&results[..8], &results[8..]), (&[1; 8][..], &[7; 32][..]));
    }
}

#[test]
fn a_function_that_refuses_an_item_names_it() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::new(&device, &options(2, 2)).unwrap();
    let items: Vec<Item> = (0..5).map(|item| Ok(vec![item; 2])).collect();
    let mut calls = 0;
    let results = run(&mut pipeline, &items, |compute, buffer| {
        calls += 1;
        if calls == 3 { Err(Error::OtherDevice) } else { double(compute, buffer) }
    });
    assert_eq!(results[2].as_ref().map_err(|error| (error.item, error.stage)), Err((2, "function")));
    assert_eq!((said(&results).len(), results[4].clone()), (1, Ok(vec![8, 8])));
}

#[test]
fn of_items_that_travel_together_only_the_one_to_blame_fails() {
    let device = Device::cpu(&CpuOptions { delays: Some(5), ..CpuOptions::default() });
    device.start_journal();
    let chosen = PipelineOptions { elementwise: true, memory: 2 * 8 * 8, ..options(2, 2) };
    let mut pipeline = Pipeline::new(&device, &chosen).unwrap();
    let mut items: Vec<Item> = (0..12).map(|item| Ok(vec![item; 2])).collect();
    items[5] = Ok(vec![5; 3]);
    let results = run(&mut pipeline, &items, |compute, buffer| {
        // More than one of them, and the odd one.
        if buffer.len() > 2 { Err(Error::OtherDevice) } else { double(compute, buffer) }
    });
    let failed: Vec<u64> =
        results.iter().filter_map(|result| result.as_ref().err()).map(|error| error.item).collect();
    assert_eq!((results.len(), failed), (12, vec![5]));
    assert_eq!((&results[4], &results[11]), (&Ok(vec![8, 8]), &Ok(vec![22, 22])));
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

#[test]
fn when_the_function_runs_out_of_memory_slots_are_given_up() {
    let bytes = size_of::<[i64; 8]>();
    for (room, left) in [(4, 3), (3, 2), (2, 1)] {
        let limits = CpuOptions { device_memory: room * bytes, delays: Some(1), ..CpuOptions::default() };
        let device = Device::cpu(&limits);
        device.start_journal();
        let chosen = options(8, room.min(3));
        let mut pipeline = Pipeline::new(&device, &chosen).unwrap();
        let items: Vec<Item> = (0..20).map(|item| Ok(vec![item; 8])).collect();
        let mut calls = 0;
        let mut results = Vec::new();
        let statistics = pipeline.run(
            items.iter().cloned(),
            |compute, buffer| {
                calls += 1;
                // In the middle of the run.
                if calls < 7 { double(compute, buffer) } else { double_aside(compute, buffer) }
            },
            |_, result| results.push(result.map(<[i64]>::to_vec)),
        );
        let expected: Vec<Outcome> = (0..20).map(|item| Ok(vec![2 * item; 8])).collect();
        assert_eq!(results, expected);
        assert_eq!((statistics.failed, statistics.slots, pipeline.slots()), (0, left, left));
        assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
    }
}

#[test]
fn when_one_slot_is_too_much_the_items_say_so() {
    let bytes = size_of::<[i64; 8]>();
    let device = Device::cpu(&CpuOptions { device_memory: bytes, ..CpuOptions::default() });
    let mut pipeline = Pipeline::new(&device, &options(8, 1)).unwrap();
    let mut calls = 0;
    let items: Vec<Item> = (0..4).map(|item| Ok(vec![item; 8])).collect();
    let results = run(&mut pipeline, &items, |compute, buffer| {
        calls += 1;
        if calls == 2 { double_aside(compute, buffer) } else { double(compute, buffer) }
    });
    let message = "item 1: function: out of device memory: 64 bytes wanted, 64 of 64 in use: use fewer or smaller buffers, or raise the limit";
    assert_eq!(said(&results), [message]);
    assert_eq!(results[3], Ok(vec![6; 8]));
}

#[test]
fn in_place_slots_are_given_up_too() {
    let bytes = size_of::<[i64; 8]>();
    let device = Device::cpu(&CpuOptions { device_memory: 2 * bytes, ..CpuOptions::default() });
    let items: Vec<_> = (0..9).map(|item| device.register(vec![item; 8]).unwrap()).collect();
    let mut results: Vec<_> = (0..9).map(|_| device.host_buffer::<i64>(8).unwrap()).collect();
    let mut pipeline = Pipeline::new(&device, &options(8, 2)).unwrap();
    let (statistics, failed) = pipeline.run_in_place(&items, &mut results, double_aside).unwrap();
    assert_eq!((failed.len(), statistics.slots), (0, 1));
    assert!((0..).zip(&results).all(|(item, result)| *result.read().unwrap() == [2 * item; 8]));
}

#[test]
fn where_memory_is_short_there_are_fewer_slots() {
    let bytes = size_of::<[i64; 8]>();
    let short = [
        CpuOptions { device_memory: 2 * bytes, ..CpuOptions::default() },
        CpuOptions { host_memory: 5 * bytes, ..CpuOptions::default() },
    ];
    for limits in short {
        let device = Device::cpu(&limits);
        let chosen = PipelineOptions { slots: None, ..options(8, 1) };
        let mut pipeline = Pipeline::new(&device, &chosen).unwrap();
        assert_eq!(pipeline.slots(), 2);
        let items: Vec<Item> = (0..9).map(|item| Ok(vec![item; 8])).collect();
        assert!(said(&run(&mut pipeline, &items, double)).is_empty());
        // Those that were asked for are not given up in silence.
        let device = Device::cpu(&limits);
        let error = Pipeline::<i64>::new(&device, &options(8, 3)).unwrap_err();
        assert!(matches!(error, PipelineError::Device(Error::OutOfMemory { .. })), "{error}");
    }
}

#[test]
fn refused_page_locking_is_said_and_the_data_comes_back() {
    let device = Device::cpu(&CpuOptions { host_memory: 64, ..CpuOptions::default() });
    let refused = device.register(vec![3_u8; 65]).unwrap_err();
    assert_eq!(refused.data, vec![3; 65]);
    let text = refused.to_string();
    assert!(text.starts_with("out of page-locked host memory: 65 bytes wanted, 0 of 64 in use"), "{text}");
    let error = Pipeline::<u8>::new(&device, &options(33, 1)).unwrap_err().to_string();
    assert!(error.starts_with("out of page-locked host memory: 33 bytes wanted, 33 of 64 in use"), "{error}");
}

/// Operations fail on the device, where the stream ends with them.
#[test]
fn a_stream_that_ends_ends_the_run_and_nothing_is_lost() {
    for elementwise in [false, true] {
        let device = Device::cpu(&CpuOptions::default());
        let chosen = PipelineOptions { elementwise, memory: 3 * 8, ..options(1, 3) };
        let mut pipeline = Pipeline::<i64>::new(&device, &chosen).unwrap();
        let (mut results, taken) = (Vec::new(), AtomicU64::new(0));
        let divide = |compute: &Stream, buffer: &mut Buffer<i64>| {
            let mut operation = compute.operation("divide");
            let values = operation.update(buffer);
            operation.run(move |memory| {
                let values = memory.slice_mut(values);
                values[0] = 10_i64.checked_div(values[0] - 5).expect("division by zero");
            })
        };
        let items = (0..100).map(|item| {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok::<_, String>(vec![item])
        });
        let statistics = pipeline.run(items, divide, |_, result| {
            results.push(result.map(<[i64]>::to_vec));
        });
        let message = "operation `divide` in stream `compute` failed: division by zero";
        // The source was asked for no more than was under way, and each of those was handed out.
        assert_eq!(results.len() as u64, taken.load(Ordering::Relaxed));
        assert!(results.len() <= 8, "{results:?}");
        assert_eq!(results[..5].iter().filter(|result| result.is_ok()).count(), 5, "{results:?}");
        assert_eq!(results[5], Err(ItemError { item: 5, stage: "function", message: message.to_owned() }));
        let later = format!("not done, since item 5 ended a stream: {message}");
        assert!(said(&results[6..]).iter().all(|said| said.ends_with(&later)), "{results:?}");
        assert_eq!(statistics.stopped.as_deref(), Some(message));
        // The pipeline is of no use any more, and says so at once; the device is.
        let again = pipeline.run([Ok::<_, String>([1])], divide, |_, _| {});
        assert_eq!((again.items, again.stopped.as_deref()), (0, Some(message)));
        let mut other = Pipeline::new(&device, &options(1, 2)).unwrap();
        assert_eq!(run(&mut other, &[Ok(vec![4])], double), [Ok(vec![8])]);
    }
}

/// A writer with little room.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::Error::other("the disk is full"));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_is_named_by_item() {
    let device = Device::cpu(&CpuOptions::default());
    let mut pipeline = Pipeline::<i64>::new(&device, &options(2, 2)).unwrap();
    let items = || Items::new((0..4).map(|item| Ok::<_, String>(vec![item; 2])));
    let (statistics, failed) = pipeline.transfer(&mut items(), double, &mut ItemWriter::new(Full(40)));
    assert_eq!((statistics.items, statistics.failed), (4, 2));
    assert_eq!(failed[0].to_string(), "item 2: sink: the disk is full");
    let mut room = [0; 5];
    let (_, failed) = pipeline.transfer(&mut items(), double, &mut SliceSink::new(&mut room));
    assert_eq!((room, failed.len()), ([0, 0, 2, 2, 0], 2));
    assert_eq!(failed[0].to_string(), "item 2: sink: 2 elements from 4 on do not fit into 5");
}

#[test]
fn cancelling_ends_behind_a_whole_item() {
    let device = Device::cpu(&CpuOptions::default());
    let chosen = PipelineOptions { elementwise: true, memory: 2 * 16, ..options(1, 2) };
    let mut pipeline = Pipeline::<i64>::new(&device, &chosen).unwrap();
    let mut results = Vec::new();
    let items = (0..9).map(|item| {
        if item == 3 {
            chosen.cancel.cancel();
        }
        Ok::<_, String>(vec![item; 50])
    });
    let statistics =
        pipeline.run(items, double, |_, result| results.push(result.map(<[i64]>::to_vec).unwrap()));
    assert!(statistics.cancelled);
    assert_eq!(results, (0..4).map(|item| vec![2 * item; 50]).collect::<Vec<_>>());
}
