//! Memory that is used again, and failures: what a later owner or reader has to wait for.

use std::sync::mpsc::{Receiver, Sender, channel};
use streamsan_check::{Config, check};
use streamsan_runtime::{Buffer, CpuOptions, Device, Stream};

/// Submits an operation that fills a buffer once it is let through.
fn fill_later(stream: &Stream, buffer: &mut Buffer<i64>, value: i64) -> Sender<()> {
    let (go, gate): (Sender<()>, Receiver<()>) = channel();
    let mut fill = stream.operation("fill later");
    let target = fill.write(buffer);
    fill.run(move |memory| {
        let _ = gate.recv();
        memory.slice_mut(target).fill(value);
    })
    .unwrap();
    go
}

/// The new buffer is first used on a stream that is neither the owner nor the old user.
#[test]
fn a_new_owner_on_another_stream_waits_for_the_old_user() {
    let device = Device::cpu(&CpuOptions::default());
    device.start_journal();
    let [owner, old, new] = ["owner", "old", "new"].map(|name| device.stream(name).unwrap());
    let mut first = device.buffer::<i64>(4, &owner).unwrap();
    let go = fill_later(&old, &mut first, 1);
    drop(first);
    let mut second = device.buffer::<i64>(4, &owner).unwrap();
    let mut source = device.host_buffer::<i64>(4).unwrap();
    source.write().unwrap().fill(2);
    new.upload(&source, &mut second).unwrap();
    // Time for the upload to be early, if nothing holds it back.
    std::thread::sleep(std::time::Duration::from_millis(20));
    go.send(()).unwrap();
    device.synchronize().unwrap();
    let mut result = device.host_buffer::<i64>(4).unwrap();
    new.download(&second, &mut result).unwrap();
    assert_eq!(*result.read().unwrap(), [2; 4]);
    assert!(check(&device.journal().unwrap(), &Config::default()).findings.is_empty());
}

/// A stream that failed says so before what it waits for has finished.
#[test]
fn a_failed_stream_tells_nothing_about_others() {
    let device = Device::cpu(&CpuOptions::default());
    let [failing, slow] = ["failing", "slow"].map(|name| device.stream(name).unwrap());
    let broken = failing.operation("broken");
    broken.run(|_| panic!("no")).unwrap();
    assert!(failing.synchronize().is_err());
    let mut buffer = device.buffer::<i64>(4, &slow).unwrap();
    let go = fill_later(&slow, &mut buffer, 7);
    let mut result = device.host_buffer::<i64>(4).unwrap();
    slow.download(&buffer, &mut result).unwrap();
    let unused = device.host_buffer::<i64>(4).unwrap();
    let mut target = device.buffer::<i64>(4, &failing).unwrap();
    failing.wait(&slow.record().unwrap()).unwrap();
    failing.upload(&unused, &mut target).unwrap();
    drop(unused);
    // Looks whether the dropped buffer may be used again.
    let _other = device.host_buffer::<i64>(1).unwrap();
    let opener = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        go.send(()).unwrap();
    });
    assert_eq!(*result.read().unwrap(), [7; 4]);
    opener.join().unwrap();
}
