//! A token gives the elements that an operation changes once only.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let mut operation = stream.operation("twice");
    let token = operation.update(&mut buffer);
    operation.run(move |memory| {
        let (first, second) = (memory.slice_mut(token), memory.slice_mut(token));
        first[0] = second[1];
    })?;
    Ok(())
}
