//! What was declared as read is changed.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let buffer = device.buffer::<f32>(4, &stream)?;
    let mut operation = stream.operation("changes");
    let token = operation.read(&buffer);
    operation.run(move |memory| memory.slice_mut(token)[0] = 1.0)?;
    Ok(())
}
