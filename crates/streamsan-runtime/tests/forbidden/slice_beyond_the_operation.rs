//! The elements leave the operation.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let buffer = device.buffer::<f32>(4, &stream)?;
    let (sender, receiver) = std::sync::mpsc::channel::<&'static [f32]>();
    let mut operation = stream.operation("leak");
    let token = operation.read(&buffer);
    operation.run(move |memory| sender.send(memory.slice(token)).unwrap())?;
    println!("{:?}", receiver.recv());
    Ok(())
}
