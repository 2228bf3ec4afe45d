//! What the processes of `backend.rs` do.

use crate::program::{Arithmetic, Step, managed, program, serially};
use cudarc::driver::sys;
use fastrand::Rng;
use std::ptr::null_mut;
use streamsan_runtime::{Buffer, Device, Error, Pipeline, PipelineOptions, Stream};

/// Copies and fills, since the virtual device runs no kernels: an `add` changes or keeps the order of the source's
/// halves. Each touches all bytes of what it declares, or a wait for it could be needless.
struct Copies;

const HALF: usize = crate::program::LENGTH / 2;

fn succeeded(code: sys::CUresult) -> Result<(), sys::CUresult> {
    if code == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(code) }
}

/// Where each half goes and comes from.
fn halves(factor: i64) -> [(usize, usize); 2] {
    if factor < 0 { [(0, HALF), (HALF, 0)] } else { [(0, 0), (HALF, HALF)] }
}

impl Arithmetic for Copies {
    fn filled(value: i64) -> i64 {
        i64::from_ne_bytes([value.to_le_bytes()[0]; 8])
    }

    fn combine(target: &mut [i64], source: &[i64], factor: i64) {
        for (to, from) in halves(factor) {
            target[to..to + HALF].copy_from_slice(&source[from..from + HALF]);
        }
    }

    fn fill(&self, stream: &Stream, buffer: &mut Buffer<i64>, value: i64) {
        let mut fill = stream.operation("fill");
        let target = fill.write(buffer);
        // SAFETY: all of the declared buffer, in the given stream.
        unsafe {
            fill.launch(|launch| {
                let (address, length) = launch.write(&target);
                let byte = value.to_le_bytes()[0];
                succeeded(sys::cuMemsetD8Async(address, byte, length * 8, launch.stream().cast()))
            })
        }
        .unwrap()
        .unwrap();
    }

    fn add(&self, stream: &Stream, from: &Buffer<i64>, to: &mut Buffer<i64>, factor: i64) {
        let mut add = stream.operation("add");
        let (source, target) = (add.read(from), add.update(to));
        // SAFETY: halves of the declared buffers, in the given stream.
        unsafe {
            add.launch(|launch| {
                let (target, source) = (launch.write(&target).0, launch.read(source).0);
                halves(factor).into_iter().try_for_each(|(to, from)| {
                    let (target, source) = (target + to as u64 * 8, source + from as u64 * 8);
                    succeeded(sys::cuMemcpyDtoDAsync_v2(target, source, HALF * 8, launch.stream().cast()))
                })
            })
        }
        .unwrap()
        .unwrap();
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Device 0, without the wait that the parent wants to be left out.
fn device() -> Device {
    let device = Device::cuda(0).unwrap();
    if let Some(wait) = number("STREAMSAN_TEST_LEFT_OUT") {
        device.leave_out_wait(wait);
    }
    device
}

fn answer(text: impl std::fmt::Display) {
    println!("\nanswer: {text}");
}

#[test]
#[ignore = "started by the other tests, in a process of its own"]
fn child() {
    match std::env::var("STREAMSAN_TEST_ROLE").unwrap_or_default().as_str() {
        "programs" => programs(),
        "program" => one_program(),
        "pipeline" => pipeline(),
        "values" => values(),
        "context" => context(),
        "unrecorded" => unrecorded(),
        "short" => short(),
        "failures" => answer(failures().map_or_else(|error| error.to_string(), |()| "none".to_owned())),
        role => println!("no such role: {role}"),
    }
}

fn programs() {
    let first = number("STREAMSAN_TEST_SEED").unwrap();
    for seed in first..first + number("STREAMSAN_TEST_PROGRAMS").unwrap() {
        let program = program(&mut Rng::with_seed(seed));
        let (seen, _) = managed(&program, &device(), &Copies);
        assert_eq!(seen, serially::<Copies>(&program), "seed {seed}: {program:#?}");
    }
    answer("right");
}

fn one_program() {
    let mut program = program(&mut Rng::with_seed(number("STREAMSAN_TEST_SEED").unwrap()));
    // Whether a dropped host buffer's copies have finished is a question of time, and the answer orders.
    program.steps.retain(|step| !matches!(step, Step::DropHost { .. }));
    let device = device();
    let (_, early) = managed(&program, &device, &Copies);
    let needed = (0..device.waits()).filter(|wait| !early.contains(wait));
    answer(needed.map(|wait| wait.to_string()).collect::<Vec<_>>().join(" "));
}

/// Each item goes through a buffer that the function makes, and comes back with its halves exchanged.
fn pipeline() {
    let device = device();
    let slots = usize::try_from(number("STREAMSAN_TEST_SLOTS").unwrap()).unwrap();
    let options =
        PipelineOptions { item: 2 * HALF, memory: 1 << 20, slots: Some(slots), ..PipelineOptions::default() };
    let mut pipeline = Pipeline::<i64>::new(&device, &options).unwrap();
    let items = (0..7).map(|item| Ok::<_, String>([[item; HALF], [-item; HALF]].concat()));
    let mut results = Vec::new();
    let function = |compute: &Stream, buffer: &mut Buffer<i64>| {
        let mut own = compute.device().buffer::<i64>(2 * HALF, compute)?;
        Copies.add(compute, buffer, &mut own, 0);
        Copies.add(compute, &own, buffer, -1);
        Ok(())
    };
    pipeline.run(items, function, |_, result| results.push(result.unwrap().to_vec()));
    for (item, result) in (0..).zip(&results) {
        assert_eq!(*result, [[-item; HALF], [item; HALF]].concat());
    }
    answer((0..device.waits()).map(|wait| wait.to_string()).collect::<Vec<_>>().join(" "));
}

/// An upload in one stream, a copy in another one, a download in a third.
fn values() {
    let device = device();
    let [first, second, third] = ["first", "second", "third"].map(|name| device.stream(name).unwrap());
    let mut host = device.host_buffer::<i64>(4).unwrap();
    host.write().unwrap().fill(7);
    let mut from = device.buffer::<i64>(4, &first).unwrap();
    let mut to = device.buffer::<i64>(4, &second).unwrap();
    first.upload(&host, &mut from).unwrap();
    second.copy(&from, &mut to).unwrap();
    let mut result = device.host_buffer::<i64>(4).unwrap();
    third.download(&to, &mut result).unwrap();
    answer(if *result.read().unwrap() == [7; 4] { "new" } else { "old" });
}

/// A pipeline whose function has a buffer of its own.
fn short() {
    let device = device();
    let options =
        PipelineOptions { item: 2 * HALF, memory: 3 * 16 * HALF as u64, ..PipelineOptions::default() };
    let mut pipeline = Pipeline::<i64>::new(&device, &options).unwrap();
    let items = (0..9).map(|item| Ok::<_, String>(vec![item; 2 * HALF]));
    let mut results = Vec::new();
    let function = |compute: &Stream, buffer: &mut Buffer<i64>| {
        let mut own = compute.device().buffer::<i64>(2 * HALF, compute)?;
        Copies.add(compute, buffer, &mut own, 0);
        Copies.add(compute, &own, buffer, -1);
        Ok(())
    };
    let statistics = pipeline.run(items, function, |_, result| results.push(result.unwrap()[0]));
    assert_eq!(results, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    answer(statistics.slots);
}

fn current() -> sys::CUcontext {
    let mut context = null_mut();
    // SAFETY: a place for the handle.
    succeeded(unsafe { sys::cuCtxGetCurrent(&raw mut context) }).unwrap();
    context
}

fn context() {
    let (first, second) = (Device::cuda(0).unwrap(), Device::cuda(1).unwrap());
    let inside = second.within(current).unwrap();
    assert_ne!(inside, first.within(current).unwrap());
    // SAFETY: a context that `second` keeps.
    succeeded(unsafe { sys::cuCtxSetCurrent(inside) }).unwrap();
    {
        let stream = first.stream("s").unwrap();
        let mut buffer = first.buffer::<i64>(2 * HALF, &stream).unwrap();
        let host = first.host_buffer::<i64>(2 * HALF).unwrap();
        stream.upload(&host, &mut buffer).unwrap();
        Copies.fill(&stream, &mut buffer, 1);
        stream.synchronize().unwrap();
        assert_eq!(current(), inside);
        let other = second.stream("o").unwrap();
        assert_eq!(other.upload(&host, &mut buffer), Err(Error::OtherDevice));
    }
    drop(first);
    assert_eq!(current(), inside);
    answer("left alone");
}

/// Uploads, downloads, and memory that is given back and used again at once.
fn unrecorded() {
    let device = device();
    let (first, second) = (device.stream("first").unwrap(), device.stream("second").unwrap());
    for turn in 0..4_i64 {
        let mut host = device.host_buffer::<i64>(8).unwrap();
        host.write().unwrap().fill(turn);
        let mut buffer = device.buffer::<i64>(8, &first).unwrap();
        first.upload(&host, &mut buffer).unwrap();
        drop(host);
        let mut result = device.host_buffer::<i64>(8).unwrap();
        second.download(&buffer, &mut result).unwrap();
        drop(buffer);
        let mut next = device.buffer::<i64>(8, &first).unwrap();
        Copies.fill(&first, &mut next, 9);
        assert_eq!(*result.read().unwrap(), [turn; 8]);
    }
    answer("right");
}

fn failures() -> Result<(), Error> {
    let device = device();
    let stream = device.stream("s")?;
    let host = device.host_buffer::<i64>(8)?;
    let mut buffer = device.buffer::<i64>(8, &stream)?;
    stream.upload(&host, &mut buffer)?;
    let registered = device.register(vec![0_u8; 80]).map_err(|refused| refused.error)?;
    assert_eq!(registered.into_vec()?, [0; 80]);
    stream.synchronize()
}
