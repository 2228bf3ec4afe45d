//! An operation changes the same buffer through two tokens.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let mut operation = stream.operation("twice");
    let (first, second) = (operation.update(&mut buffer), operation.update(&mut buffer));
    operation.run(move |memory| memory.slice_mut(first)[0] = memory.slice_mut(second)[1])?;
    Ok(())
}
