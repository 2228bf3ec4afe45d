//! An operation that runs later borrows a local variable.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut sum = 0.0;
    let buffer = device.buffer::<f32>(4, &stream)?;
    let mut operation = stream.operation("sum");
    let token = operation.read(&buffer);
    operation.run(|memory| sum += memory.slice(token)[0])?;
    println!("{sum}");
    Ok(())
}
